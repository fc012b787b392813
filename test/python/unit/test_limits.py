"""Test the rules of the house that ruff does not count: lines of a file and of a function, and a test for each file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import ROOT

FOLDERS = ["bridge", "lowering", "passes", "test", "benchmarks", "examples"]

MOST_LINES = 500
MOST_LINES_OF_A_FUNCTION = 80

#: What opens a block, at the start of a line and formatted by clang-format, and is no function.
_NO_FUNCTION = re.compile(r" *(namespace|struct|class|enum|union|extern)\b")


def sources(*suffixes: str) -> list[Path]:
    """Return sources by suffix; a developer's links into the build tree are not followed."""
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)
    links = [ROOT / "bridge" / name for name in ("_native", "lowering")]
    return sorted(path for path in found if not any(link in path.parents for link in links))


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """Yield (name, lines) of all functions."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or 0) - node.lineno + 1


def cpp_functions(text: str) -> Iterator[tuple[str, int]]:
    """Yield (opening line, lines) of all blocks; one ends with the next brace that is indented no more than it is."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if line.endswith("{") and not line.lstrip().startswith(("}", "//")) and not _NO_FUNCTION.match(line):
            closing = re.compile(f" {{0,{len(line) - len(line.lstrip())}}}}}")
            end = next((n for n in range(start + 1, len(lines)) if closing.match(lines[n])), start)
            yield line.strip(), end - start + 1


def too_long(functions: Iterator[tuple[str, int]]) -> list[str]:
    return [f"{name}: {lines} lines" for name, lines in functions if lines > MOST_LINES_OF_A_FUNCTION]


@pytest.mark.parametrize("suffixes", [(".py",), (".cpp", ".h", ".td")], ids=["Python", "C++"])
def test_no_file_is_too_long(suffixes):
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources(*suffixes)}
    assert len(lengths) > 20
    assert [f"{path}: {lines} lines" for path, lines in lengths.items() if lines > MOST_LINES] == []


@pytest.mark.parametrize(
    ("functions", "suffixes"), [(python_functions, (".py",)), (cpp_functions, (".cpp", ".h"))], ids=["Python", "C++"]
)
def test_no_function_is_too_long(functions, suffixes):
    texts = {path: path.read_text(encoding="utf-8") for path in sources(*suffixes)}
    assert sum(len(list(functions(text))) for text in texts.values()) > 100
    assert [f"{path}: {found}" for path, text in texts.items() for found in too_long(functions(text))] == []


def test_a_function_that_is_too_long_is_found():
    body = MOST_LINES_OF_A_FUNCTION * ["  x = 1;"]
    assert too_long(python_functions("\n".join(["def f():", *body]))) == ["f: 81 lines"]
    method = ["struct S {", "  int f() {", *("  " + line for line in body), "  }", "};"]
    assert too_long(cpp_functions("\n".join(method))) == ["int f() {: 82 lines"]


def test_every_file_of_the_package_has_its_tests():
    """Check that a file's tests are found by its path: bridge/horizontal/cost.py, unit/horizontal/test_cost.py."""
    files = [path.relative_to(ROOT) for path in sources(".py") if not path.name.startswith("__")]
    packaged = [path for path in files if path.parts[0] in ("bridge", "lowering")]
    expected = {Path(*path.parts[1:-1], f"test_{path.name}") for path in packaged}
    unit = ROOT / "test" / "python" / "unit"
    assert len(expected) > 100
    assert not expected - {path.relative_to(unit) for path in unit.rglob("test_*.py")}


#: Words that begin the name of something, or a question, and no instruction; a verb may be any other word.
_NO_VERBS = {
    *("a", "all", "an", "any", "each", "every", "how", "it", "no", "of", "one", "some", "that", "the", "these", "this"),
    *("those", "what", "which", "who", "whose", "why"),
}


def first_words(text: str, classes: bool) -> Iterator[tuple[str, str]]:
    """Yield (name, first word) of the docstrings of a module and, if asked for, of its classes."""
    tree = ast.parse(text)
    documented = [tree, *(node for node in ast.walk(tree) if classes and isinstance(node, ast.ClassDef))]
    for node in documented:
        docstring = ast.get_docstring(node) or ""
        if docstring:
            yield getattr(node, "name", "the module"), docstring.split()[0].lower().rstrip(",.:")


def test_docstrings_of_modules_and_classes_begin_with_a_verb():
    """Check that docstrings of modules and of the package's classes begin with a verb.

    Of tests, benchmarks and what writes the docs, only modules are checked.
    """
    tests = [path for path in sources(".py") if path.relative_to(ROOT).parts[0] in ("test", "benchmarks", "docs")]
    package = [
        path for path in sources(".py") if path.relative_to(ROOT).parts[0] in ("bridge", "lowering", "benchmarks")
    ]
    assert len(tests) > 200 and len(package) > 200
    known = [(path, *pair) for path in tests for pair in first_words(path.read_text(encoding="utf-8"), classes=False)]
    known += [(path, *pair) for path in package for pair in first_words(path.read_text(encoding="utf-8"), classes=True)]
    assert [f"{path}: {name}: {word}" for path, name, word in known if word in _NO_VERBS] == []


def test_a_docstring_without_a_verb_is_found():
    text = '"""The rows."""\n\n\nclass Row:\n    """A row."""\n'
    assert list(first_words(text, classes=True)) == [("the module", "the"), ("Row", "a")]
    assert list(first_words(text, classes=False)) == [("the module", "the")]
