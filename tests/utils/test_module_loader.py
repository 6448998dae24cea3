# SPDX-License-Identifier: Apache-2.0
"""Objects by import path, and what is said when a path does not load."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_kit.errors import MissingExtraError
from reward_kit.utils.module_loader import load_function, load_object

FILE = """
from dataclasses import dataclass
from helper_beside import VALUE

@dataclass
class Box:
    inner: "Box | None" = None
    size: int = VALUE

    class Lid:
        colour = "red"

def reward(messages, **kwargs):
    return 1.0

def late():
    import helper_for_later
    return helper_for_later.VALUE

number = 7
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of the user's own; what is loaded from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    folder = tmp_path / "rewards"
    folder.mkdir()
    (folder / "mine.py").write_text(FILE)
    (folder / "helper_beside.py").write_text("VALUE = 3\n")
    (folder / "helper_for_later.py").write_text("VALUE = 4\n")
    package = tmp_path / "user_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "judge.py").write_text("class Judge:\n    limit = 5\n")
    (package / "broken.py").write_text("import not_installed_anywhere\n")
    (package / "raises.py").write_text("raise RuntimeError('no luck')\n")
    (package / "leaves.py").write_text("raise SystemExit(3)\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    "path",
    ["user_package.judge:Judge.limit", "user_package.judge.Judge.limit", "user_package:judge.Judge.limit"],
)
def test_modules_in_the_current_directory_are_found(path: str) -> None:
    assert load_object(path) == 5


def test_installed_modules_are_found() -> None:
    assert load_object("os.path.join") is load_object("os.path:join") is os.path.join


def test_files_are_found_with_what_lies_beside_them() -> None:
    assert load_object("rewards/mine.py:Box")().size == 3
    assert load_object("./rewards/mine.py:Box.Lid.colour") == "red"
    assert load_object("rewards/mine.py:late")() == 4


def test_a_file_is_loaded_once_however_it_is_named(here: Path) -> None:
    box = load_object("rewards/mine.py:Box")
    assert load_object(f"{here}/rewards/../rewards/mine.py:Box") is box


def test_a_changed_file_is_loaded_again(here: Path) -> None:
    for value in (1, 2, 3):  # the same size, within the same second
        (here / "rewards" / "edited.py").write_text(f"value = {value}\n")
        os.utime(here / "rewards" / "edited.py", ns=(value, value))
        assert load_object("rewards/edited.py:value") == value
    assert not list(here.rglob("edited*.pyc"))


def test_what_a_file_defines_can_be_pickled_and_inspected() -> None:
    box = load_object("rewards/mine.py:Box")
    assert pickle.loads(pickle.dumps(box(size=9))) == box(size=9)
    assert typing.get_type_hints(box)["inner"] == box | None


def test_another_process_that_loads_the_file_can_unpickle_what_it_defines() -> None:
    data = pickle.dumps(load_object("rewards/mine.py:Box")(size=9))
    code = (
        "import pickle, sys\n"
        "from reward_kit.utils.module_loader import load_object\n"
        "load_object('rewards/mine.py:Box')\n"
        "print(pickle.loads(sys.stdin.buffer.read()).size)\n"
    )
    root = str(Path(__file__).parents[2])
    ran = subprocess.run(
        [sys.executable, "-c", code], input=data, env={"PYTHONPATH": root}, capture_output=True, check=True
    )
    assert ran.stdout.strip() == b"9"


def test_loading_shadows_nothing_afterwards(here: Path) -> None:
    load_object("rewards/mine.py:reward")
    assert sys.path[-1] == str(here / "rewards")
    assert sys.path.count(str(here / "rewards")) == 1


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere.at.all:fn", "there is no module 'nowhere.at.all'"),
        ("nowhere.fn", "there is no module 'nowhere'"),
        ("user_package.judge:Juge", "module 'user_package.judge' has no attribute 'Juge' .did you mean 'Judge'"),
        ("user_package.juge.Judge", "module 'user_package' has no attribute 'juge' .did you mean 'judge'"),
        ("user_package.judge:Judge.limits", "has no attribute 'limits' .did you mean 'limit'"),
        (
            "user_package.broken:fn",
            "module 'user_package.broken' raised ModuleNotFoundError: No module named 'not_inst",
        ),
        ("user_package.raises:fn", "module 'user_package.raises' raised RuntimeError: no luck"),
        ("user_package.raises.fn", "module 'user_package.raises' raised RuntimeError: no luck"),
        ("user_package.leaves:fn", "raised SystemExit: 3"),
        ("rewards/mien.py:reward", "there is no file 'rewards/mien.py' .did you mean 'mine.py'"),
        ("rewards/mine.py:rewards", "the file 'mine.py' has no attribute 'rewards' .did you mean 'reward'"),
        ("rewards/mine.py", "Write 'rewards/mine.py:name'"),
        ("user_package/raises.py:fn", r"raises\.py' raised RuntimeError: no luck"),
        ("reward", "it names no module"),
        ("", "it names no module"),
        (":fn", "write it as 'pkg.mod:obj'"),
        ("user_package.judge:", "write it as 'pkg.mod:obj'"),
        ("user package:fn", "there is no module 'user package'"),
    ],
)
def test_a_path_that_does_not_load_is_one_sentence(path: str, reason: str) -> None:
    with pytest.raises(ImportError, match=reason) as caught:
        load_object(path)
    assert str(caught.value).startswith(f"Cannot load {path!r}: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_raises_leaves_nothing_behind(here: Path) -> None:
    before = set(sys.modules)
    for _ in range(2):
        with pytest.raises(ImportError, match="no luck"):
            load_object("user_package/raises.py:fn")
    assert not [name for name in set(sys.modules) - before if "raises" in name]
    (here / "user_package" / "raises.py").write_text("fn = 1\n")
    assert load_object("user_package/raises.py:fn") == 1


def test_a_missing_extra_keeps_its_own_message(here: Path) -> None:
    (here / "extra.py").write_text(
        "from reward_kit.errors import MissingExtraError\nraise MissingExtraError('This', 'hf')\n"
    )
    with pytest.raises(MissingExtraError, match=r"reward-kit\[hf\]"):
        load_object("extra.py:fn")


def test_a_function_must_be_callable() -> None:
    assert load_function("rewards/mine.py:reward")([]) == 1.0
    with pytest.raises(ImportError, match="it is a int"):
        load_function("rewards/mine.py:number")
