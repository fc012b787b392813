"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

function showGroup(name) {
  for (const group of all(".group")) group.hidden = group.dataset.group !== name;
  for (const tab of all("nav button")) tab.setAttribute("aria-selected", tab.dataset.group === name);
}

/* The right-hand text of a group is the stage that its table, its menu or an arrow key has chosen. */
function showStage(group, stage) {
  for (const text of all(".stage", group)) text.hidden = text.dataset.stage !== stage;
  for (const row of all("tr[data-stage]", group)) row.setAttribute("aria-selected", row.dataset.stage === stage);
  const menu = group.querySelector("select.stages");
  if (menu) menu.value = stage;
}

/* Every access of a buffer, in both texts; a second click takes it back. */
function light(group, attribute, value) {
  const lit = all(".lit", group);
  const again = lit.some((element) => element.dataset[attribute] === value);
  for (const element of lit) element.classList.remove("lit");
  if (again) return;
  for (const element of all(`[data-${attribute}="${CSS.escape(value)}"]`, group)) element.classList.add("lit");
}

for (const tab of all("nav button")) tab.addEventListener("click", () => showGroup(tab.dataset.group));
for (const group of all(".group")) {
  const stages = all("select.stages option", group).map((option) => option.value);
  for (const row of all("tr[data-stage]", group)) row.addEventListener("click", () => showStage(group, row.dataset.stage));
  for (const access of all(".access", group)) {
    access.addEventListener("click", () => light(group, "buffer", access.dataset.buffer));
  }
  for (const statement of all(".statement", group)) {
    statement.addEventListener("click", () => light(group, "node", statement.dataset.node));
  }
  const menu = group.querySelector("select.stages");
  if (!menu) continue;
  menu.addEventListener("change", () => showStage(group, menu.value));
  for (const button of all("button[data-step]", group)) {
    button.addEventListener("click", () => {
      const next = stages.indexOf(menu.value) + Number(button.dataset.step);
      if (next >= 0 && next < stages.length) showStage(group, stages[next]);
    });
  }
}
document.body.dataset.ready = "true";
