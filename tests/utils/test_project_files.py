# SPDX-License-Identifier: Apache-2.0
"""What a reward depends on beside its own file: the project's modules, followed in the source, and loose values."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from reward_kit.utils.module_loader import load_function
from reward_kit.utils.project_files import file_digest, loose_values, others_than_imported, project_of
from reward_kit.utils.project_imports import follow_imports, import_roots

FILES = {
    "rw.py": "import helpers\nfrom pk import deep\nfrom pk.sub.far import far\nimport json, numpy.linalg\n"
             "def judge(messages, **kwargs):\n    from late import word\n    return helpers.right(messages)\n",
    "helpers.py": "import importlib\ndef right(messages):\n    return importlib.import_module('named').value\n",
    "named.py": "value = 1.0\n",
    "late.py": "word = 'late'\n",
    "pk/__init__.py": "from . import beside\n",
    "pk/beside.py": "beside = 1\n",
    "pk/deep.py": "try:\n    import nowhere_to_be_found\nexcept ImportError:\n    pass\n"
                  "from .sub import far as again\n",
    "pk/sub/__init__.py": "",
    "pk/sub/far.py": "from ..beside import beside\nfar = beside\nhere = __file__\n",
    "other.py": "unrelated = True\n",
    "broken.py": "def (:\n",
}  # fmt: skip
NEEDED = {name for name in FILES if name not in ("other.py", "broken.py")}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "rw.py").write_text(FILES["rw.py"].replace(", numpy.linalg", ""))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_every_module_that_is_imported_belongs_to_it_and_no_other(project: Path) -> None:
    found = project_of(load_function("rw.py:judge"))
    assert found.root == project.resolve()
    assert set(found.files) == NEEDED and next(iter(found.files)) == "rw.py"
    assert {path.name for path in found.paths} == {Path(name).name for name in NEEDED}
    before = dict(found.files)
    (project / "named.py").write_text("value = 0.0\n")
    (project / "other.py").write_text("unrelated = False\n")
    after = project_of(load_function("rw.py:judge")).files
    assert {name for name in before if before[name] != after[name]} == {"named.py"}
    assert found.name_of(project / "data" / "words.txt") == "data/words.txt"
    assert found.name_of(Path(re.__file__)) is None and found.name_of(Path("/etc/hosts")) is None
    assert found.digest("nowhere.txt") == "missing" and found.digest("late.py") == file_digest(project / "late.py")


def test_a_file_that_changed_since_it_was_imported_is_noticed(project: Path) -> None:
    first = project_of(load_function("rw.py:judge"))
    others_than_imported(first)
    assert not others_than_imported(project_of(load_function("rw.py:judge")))
    (project / "helpers.py").write_text(FILES["helpers.py"] + "# changed\n")
    assert others_than_imported(project_of(load_function("rw.py:judge")))


def test_what_leads_out_of_the_project_is_told_with_its_place(project: Path) -> None:
    (project / "rw.py").write_text(FILES["rw.py"] + "import broken\nimport reward_kit.rewards.math\n")
    seen = follow_imports([project / "rw.py"], import_roots(project))
    outside = {(each.module, each.file.name, each.is_needed) for each in seen.outside}
    assert outside == {
        ("numpy", "rw.py", True), ("reward_kit", "rw.py", True), ("nowhere_to_be_found", "deep.py", False),
    }  # fmt: skip
    assert {"numpy.linalg", "reward_kit.rewards.math"} <= seen.named
    assert set(seen.unreadable) == {project / "broken.py"} and seen.reads_beside == {project / "pk/sub/far.py"}


def test_a_reward_of_the_library_has_no_files_of_a_project() -> None:
    found = project_of(load_function("reward_kit.rewards.math:math_reward"))
    assert not found.files and any(name.startswith("reward_kit.rewards.math") for name in found.library)


def notebook(source: str, **names: Any) -> Callable[..., Any]:
    """A function as a notebook has it: in `__main__`, without a file."""
    namespace: dict[str, Any] = {"__name__": "__main__", **names}
    exec(compile(source, "<cell>", "exec"), namespace)
    function: Callable[..., Any] = namespace["judge"]
    return function


CELL = """
def help(x):
    return x * factor
def judge(response):
    def inner():
        return words
    return help(1)
"""


@pytest.mark.parametrize(
    ("one", "other", "is_seen"),
    [
        ({"factor": 2}, {"factor": 3}, True),
        ({"words": ["a"]}, {"words": ["b"]}, True),
        ({"words": {"a": 1}}, {"words": {"a": 1}}, False),
        ({"words": re.compile("a")}, {"words": re.compile("b")}, True),
        ({"words": Decimal("1")}, {"words": Decimal("2")}, True),
        ({"unused": 1}, {"unused": 2}, False),
        ({"words": range(3)}, {"words": range(3)}, False),
        ({"words": list(range(100_001))}, {"words": list(range(1, 100_002))}, False),  # too many: their number counts
    ],
)
def test_values_that_a_notebooks_reward_names_count(one: Any, other: Any, is_seen: bool) -> None:
    values = [loose_values(notebook(CELL, **{"factor": 1, "words": None, **names})) for names in (one, other)]
    assert (values[0] != values[1]) is is_seen
    assert {"factor", "words", "help"} <= values[0].keys()


class Scorer:
    """A callable object, with something it holds."""

    def __init__(self, limit: int, inner: Any = None) -> None:
        self.limit, self._cache, self.inner = limit, limit, inner

    def __call__(self, response: str) -> float:
        return float(len(response) < self.limit)


def test_what_an_object_a_partial_and_a_method_hold_counts() -> None:
    assert loose_values(Scorer(3)) != loose_values(Scorer(4)) and "Scorer._cache" not in loose_values(Scorer(3))
    assert loose_values(Scorer(3).__call__) == loose_values(Scorer(3))
    by_partial = functools.partial(notebook(CELL, factor=1, words=None), unused=Scorer(5))
    assert {"factor", "Scorer.limit"} <= loose_values(by_partial).keys()
    assert (
        project_of(functools.partial(Scorer(3), "x")).files == project_of(Scorer(3, [Scorer(1), {"a": Scorer}])).files
    )
