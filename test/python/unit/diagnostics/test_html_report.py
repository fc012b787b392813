"""Test the HTML report: what is in the file, and what it does in a real browser."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import torch
from explained import example_inputs, gated, next_row

from bridge.diagnostics.explaining import compiling, make_explanation
from bridge.diagnostics.html_report import highlight

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def explanation():
    with compiling("cuda:sm_90", {}) as recording, torch.no_grad():
        torch.compile(next_row)(*example_inputs())
        torch.compile(gated)(*example_inputs())
    return make_explanation(recording, "two functions", "cuda:sm_90")


@pytest.fixture(scope="module")
def page(explanation, tmp_path_factory):
    return explanation.save_html(tmp_path_factory.mktemp("report") / "report.html")


class TestFile:
    def test_needs_nothing_else(self, page):
        text = page.read_text()
        assert (
            not re.findall(r'(?:src|href)="', text)
            and "@import" not in text
            and "url(" not in text.replace("url(#", "")
        )

    def test_groups_come_by_gain_and_the_first_is_shown(self, explanation, page):
        """Check that groups come by gain, with the first shown: in the order of the graphs, the best would be last."""
        saved = [group.seconds_before - group.seconds_after for group in explanation.groups]
        assert saved == sorted(saved, reverse=True) and saved[0] > saved[1]
        shown = re.findall(r'<section class="group" data-group="(\d)"( hidden)?>', page.read_text())
        assert shown == [("0", ""), ("1", " hidden")]

    def test_a_notebook_shows_how_the_page_opens(self, explanation, page):
        opening = explanation._repr_html_()
        assert opening.startswith("<p>two functions for cuda:sm_90: 4 -&gt; 3 kernels") and "merged into 1" in opening
        assert opening in page.read_text()

    def test_kernels_of_two_graphs_are_told_apart(self, explanation):
        """Check that kernels of two graphs are told apart, though both have nodes named op0."""
        fused, apart = explanation.groups
        assert len(fused.kernels) == 1 and len(apart.kernels) == 2
        assert not {k.name for k in fused.kernels} & {k.name for k in apart.kernels}

    def test_text_is_escaped(self):
        assert "&lt;4x4xf32&gt;" in highlight("%0 = affine.load %arg0[%i] : memref<4x4xf32>")

    def test_accesses_name_their_buffer(self):
        function = 'func.func @f(%arg0: memref<4xf32> {bridge.buffer = "x"}) {'
        text = function + "\n  %0 = affine.load %arg0[%arg1] : memref<4xf32>"
        assert 'data-buffer="x" title="x">affine.load %arg0[%arg1]</span>' in highlight(text)


@pytest.fixture(scope="module")
def browser(page, tmp_path_factory):
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("there is no Chromium with a chromedriver on this machine")
    options = selenium.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = selenium.Chrome(options=options, service=selenium.ChromeService(driver))
    started.get(page.as_uri())
    yield started
    started.quit()


class TestBrowser:
    @staticmethod
    def visible(browser, selector):
        return [e for e in browser.find_elements("css selector", selector) if e.is_displayed()]

    def test_opens_without_errors(self, browser):
        assert browser.find_element("tag name", "body").get_attribute("data-ready") == "true"
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
        assert "two functions" in browser.title

    def test_shows_one_group_and_the_other_at_a_click(self, browser):
        fused, apart = browser.find_elements("css selector", "nav button")
        (shown,) = self.visible(browser, ".group")
        assert shown.get_attribute("data-group") == "0" and "2 → 1" in shown.text
        apart.click()
        (shown,) = self.visible(browser, ".group")
        assert shown.get_attribute("data-group") == "1"
        assert "[loop_carried_dependence]" in shown.text and "writes element" in shown.text
        fused.click()
        assert self.visible(browser, ".group")[0].get_attribute("data-group") == "0"

    def test_a_pass_is_chosen_by_its_row_and_by_an_arrow(self, browser):
        rows = {row.get_attribute("data-stage"): row for row in self.visible(browser, "tr[data-stage]")}
        rows["after-bridge-split-index-sets.mlir"].click()
        (text,) = self.visible(browser, ".group .stage")
        assert text.get_attribute("data-stage") == "after-bridge-split-index-sets.mlir"
        assert rows["after-bridge-split-index-sets.mlir"].get_attribute("aria-selected") == "true"
        names = list(rows)
        next_button = self.visible(browser, "button[data-step='1']")[0]
        next_button.click()
        (text,) = self.visible(browser, ".group .stage")
        assert text.get_attribute("data-stage") == names[names.index("after-bridge-split-index-sets.mlir") + 1]

    def test_a_click_on_an_access_marks_its_buffer(self, browser):
        access = next(e for e in self.visible(browser, ".access") if e.get_attribute("data-buffer") == "buf0")
        access.click()
        lit = browser.find_elements("css selector", ".access.lit")
        assert len(lit) > 2 and {e.get_attribute("data-buffer") for e in lit} == {"buf0"}
        access.click()
        assert browser.find_elements("css selector", ".access.lit") == []

    def test_a_click_on_a_statement_marks_it_in_both_graphs(self, browser):
        statement = self.visible(browser, ".statement")[0]
        browser.execute_script("arguments[0].dispatchEvent(new MouseEvent('click'))", statement)
        lit = [e for e in browser.find_elements("css selector", ".statement.lit") if e.is_displayed()]
        assert len(lit) == 2 and {e.get_attribute("data-node") for e in lit} == {"op0"}

    def test_drawings_have_a_size(self, browser):
        boxes = browser.execute_script(
            "return JSON.stringify([...document.querySelectorAll('.group:not([hidden]) svg rect')]"
            ".map(r => [r.getBoundingClientRect().width, r.getBoundingClientRect().height]))"
        )
        sizes = json.loads(boxes)
        assert len(sizes) > 8 and all(width > 10 and height > 10 for width, height in sizes)

    def test_nothing_is_wider_than_the_page(self, browser):
        overflow = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        assert overflow <= 0
