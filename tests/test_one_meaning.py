# SPDX-License-Identifier: Apache-2.0
"""Words that the whole system shares have one meaning: one definition each, found by reading the package's source."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import reward_kit
from reward_kit.datasets.ground_truths import CANDIDATES, EXPLICIT

PACKAGE = Path(reward_kit.__file__).parent
SHARED = {
    "Verdict": "models.py",
    "Record": "models.py",
    "Rollout": "models.py",
    "Sample": "models.py",
    "Failure": "models.py",
    "Source": "datasets/sources.py",
    "Feed": "datasets/feed.py",
    "Totals": "execution/totals.py",
    "Comparison": "rewards/_judging/asking.py",
    "Dialect": "serving/dialect.py",
    "Vocabulary": "execution/vocabulary.py",
}
"""Each shared word, and the file that says what it means. Another thing needs another word, such as `BundleSource`."""
TELL_NOTHING = {"told", "said", "heard"}
"""Names of functions that a reader cannot guess the meaning of."""


@pytest.fixture(scope="module")
def definitions() -> dict[str, set[str]]:
    """The files that define each name at their top level, by the name."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for name in _defined(ast.parse(path.read_text(encoding="utf-8"))):
            found[name].add(path.relative_to(PACKAGE).as_posix())
    return found


def _defined(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        match statement:
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


@pytest.mark.parametrize("word", SHARED)
def test_a_shared_word_is_defined_once(word: str, definitions: dict[str, set[str]]) -> None:
    assert definitions[word] == {SHARED[word]}


ONLY_LISTS = {"datasets/ground_truths.py"}
"""Where the columns that may hold a right answer are listed."""


def test_one_place_says_which_columns_may_hold_a_right_answer() -> None:
    assert {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _lists_truths(node)
    } == ONLY_LISTS


def _lists_truths(node: ast.AST) -> bool:
    """Whether it is a tuple, list or set of nothing but columns that say or may hold what is right."""
    if not isinstance(node, ast.Tuple | ast.List | ast.Set):
        return False
    names = {item.value if isinstance(item, ast.Constant) else None for item in node.elts}
    return len(names) > 1 and names <= {*CANDIDATES, *EXPLICIT} and not names.isdisjoint(CANDIDATES)


def test_functions_have_names_that_say_what_they_do() -> None:
    assert [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.lstrip("_") in TELL_NOTHING
    ] == []
