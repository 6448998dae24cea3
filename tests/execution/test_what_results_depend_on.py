# SPDX-License-Identifier: Apache-2.0
"""What a run's results depend on: every file of the project that its reward needs, and nothing else; and `rescore`."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward_kit import evaluate
from reward_kit.errors import StorageError
from reward_kit.storage.run_directory import digest_of
from reward_kit.utils.checksums import sealed_document

ROWS = [{"question": "a?", "answer": "yes"}]


@pytest.fixture(autouse=True)
def _own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have each test import its own files, in its own folder."""
    monkeypatch.chdir(tmp_path)
    before, path = set(sys.modules), [*sys.path]
    yield
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if not name.startswith(("reward_kit", "tests", "_pytest")):
            del sys.modules[name]


def judged(reward: Any, out: Path | str = "out", **options: Any) -> float:
    """The mean score of one answer, "yes"."""
    settings = {"workers": 1, **options.pop("reward_settings", {})}
    mock = {"responses": ["yes"]}
    result = evaluate(
        ROWS, reward, model="mock", mock=mock, output_dir=out, progress=False, reward_settings=settings, **options
    )
    assert result.mean_score is not None
    return result.mean_score


# ── which files ──────────────────────────────────────────────────────────────────────────────────────────────────────

HOPS = {
    "import": ("{name}.py", "import {name}\n", "{name}.value()"),
    "from": ("{name}.py", "from {name} import value as {name}_value\n", "{name}_value()"),
    "inside": ("{name}.py", "", "__import__('{name}').value()"),
    "in a function": ("{name}.py", "def of_{name}():\n    import {name}\n    return {name}.value()\n", "of_{name}()"),
    "by name": ("{name}.py", "import importlib\n", "importlib.import_module('{name}').value()"),
    "computed": ("{name}.py", "import importlib\n", "importlib.import_module('{name}'[:1] + '{name}'[1:]).value()"),
    "package": ("p_{name}/sub.py", "from p_{name} import sub as {name}\n", "{name}.value()"),
    "relative": ("p_{name}/deep.py", "from p_{name}.front import value as {name}_value\n", "{name}_value()"),
    "init": ("p_{name}/__init__.py", "import p_{name}\n", "p_{name}.value()"),
}
"""How one module leads to the next: its file, a line above, and an expression."""

READS = {
    "while judging": ("from pathlib import Path\n", "float(Path({path!r}).read_text())"),
    "at import": ("with open({path!r}, 'rb') as held:\n    HELD = float(held.read())\n", "HELD"),
    "json": ("import json, pathlib\n", "float(json.loads(pathlib.Path({path!r}).read_text()))"),
    "arrow": ("import pyarrow as pa\n", "float(pa.OSFile({path!r}).read())"),
    "arrow beside": (
        "import os, pyarrow as pa\nfrom pathlib import Path\n",
        "float(pa.OSFile(str(next(p for p in Path(__file__).resolve().parents if (p / 'words').is_dir()) / 'words' / "
        "'held.parquet')).read())",
    ),
    "arrow in a text": ("import pyarrow as pa\n", "float(pa.OSFile('read from words/held.parquet'[10:]).read())"),
    "low level": ("import os\n", "float(os.read(os.open({path!r}, os.O_RDONLY), 100))"),
}

layouts = st.fixed_dictionaries(
    {
        "hops": st.lists(st.sampled_from(sorted(HOPS)), max_size=3),
        "read": st.sampled_from([None, *sorted(READS)]),
        "asynchronous": st.booleans(),
        "in_package": st.booleans(),
        "changed": st.integers(0, 10),
    }
)


class Project:
    """A project with a chain of modules, the last of which holds the score, or reads it from a file."""

    def __init__(self, root: Path, layout: dict[str, Any], number: int) -> None:
        self.root, self.read = root, layout["read"]
        self.data = f"words/held.{'parquet' if 'arrow' in (self.read or '') else 'txt'}"
        self.names = [f"m{number}_{place}" for place in range(len(layout["hops"]))]
        self.files: dict[str, str] = {}
        self.needed: list[str] = []
        own = f"pk{number}/rw.py" if layout["in_package"] else f"reward{number}.py"
        self.reward = f"pk{number}.rw:judge" if layout["in_package"] else f"{own}:judge"
        if layout["in_package"]:
            self.files[f"pk{number}/__init__.py"] = ""
        hops = [*zip(layout["hops"], self.names, strict=True)]
        files = [own, *(HOPS[hop][0].format(name=name) for hop, name in hops)]
        for place, file in enumerate(files):
            above, value = self._value(hops[place] if place < len(hops) else None)
            asynchronous = "async " if layout["asynchronous"] else ""
            head = f"{asynchronous}def judge(messages, **kw):\n    return {value}\n" if place == 0 else ""
            self.files[file] = f"{above}\ndef value():\n    return {value}\n{head}"
        for hop, name in hops:
            if hop == "relative":
                self.files[f"p_{name}/front.py"] = "from .deep import value\n"
            if hop in {"relative", "package"}:
                self.files[f"p_{name}/__init__.py"] = ""
        if self.read is not None:
            self.files[self.data] = "0.25"
        self.files |= {"unrelated.py": "x = 1\n", "words/unrelated.txt": "1", "pk_other/__init__.py": ""}
        for file, text in self.files.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(text)
        data = [] if self.read is None else [self.data]
        needed = [*files, *data]
        self.changed = needed[layout["changed"] % len(needed)]

    def _value(self, hop: tuple[str, str] | None) -> tuple[str, str]:
        if hop is not None:
            _, above, value = HOPS[hop[0]]
            return above.format(name=hop[1]), value.format(name=hop[1])
        if self.read is None:
            return "", "0.25"
        above, value = READS[self.read]
        path = str(self.root / self.data)
        return above.format(path=path), value.format(path=path)

    def change(self, file: str) -> None:
        held = self.root / file
        held.write_text("0.75" if file == self.data else held.read_text() + "# a remark\n")


_numbers = iter(range(10**6))


@given(layout=layouts)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_change_in_any_file_that_judging_needs_is_noticed_by_name_and_no_other(layout: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        os.chdir(root)
        project = Project(root, layout, next(_numbers))
        out = root / "out"
        assert judged(project.reward, out) == 0.25
        for file in ("unrelated.py", "words/unrelated.txt", "pk_other/__init__.py"):
            project.change(file)
        assert judged(project.reward, out) == 0.25
        project.change(project.changed)
        with pytest.raises(StorageError, match="`rescore`") as caught:
            judged(project.reward, out)
        named = Path(project.changed).name
        assert f"{named}' has changed" in str(caught.value), (project.changed, str(caught.value))
        assert "unrelated" not in str(caught.value)


@pytest.mark.parametrize("read", [*READS, "params"])
def test_a_file_of_data_is_noticed_however_it_is_opened_and_named(read: str, tmp_path: Path) -> None:
    layout = {"hops": [], "read": "arrow" if read == "params" else read, "asynchronous": False, "in_package": False}
    project = Project(tmp_path, layout | {"changed": 1}, next(_numbers))
    params: dict[str, Any] = {}
    if read == "params":
        code = "import pyarrow as pa\ndef judge(messages, table, **kw):\n    return float(pa.OSFile(table).read())\n"
        Path(project.reward.partition(":")[0]).write_text(code)
        params = {"reward_settings": {"params": {"table": project.data}}}
    assert judged(project.reward, **params) == 0.25
    assert judged(project.reward, **params) == 0.25
    project.change(project.changed)
    with pytest.raises(StorageError, match=f"{Path(project.data).name}' has changed"):
        judged(project.reward, **params)


def test_files_of_another_folder_and_of_installed_packages_are_not_the_projects(tmp_path: Path) -> None:
    elsewhere = Path(tempfile.mkdtemp()) / "list.txt"
    elsewhere.write_text("1")
    Path("rw.py").write_text(
        f"import hypothesis, pathlib\nLIST = pathlib.Path({str(elsewhere)!r})\n"
        "def judge(messages, **kw):\n    return float(LIST.read_text())\n"
    )
    judged("rw.py:judge")
    claim = json.loads(Path("out/manifest.json").read_text())["digests"]["results"]
    assert list(claim["settings"]["reward.files"]) == ["rw.py"] and "opened" not in claim


def test_a_file_that_the_reward_also_writes_is_no_input() -> None:
    Path("rw.py").write_text(
        "import os\nfrom pathlib import Path\n"
        "def judge(messages, **kw):\n"
        "    count = int(Path('count').read_text()) if os.path.exists('count') else 0\n"
        "    Path('count').write_text(str(count + 1))\n"
        "    return 0.5\n"
    )
    Path("count").write_text("7")
    assert judged("rw.py:judge") == 0.5
    Path("count").write_text("100")
    assert judged("rw.py:judge") == 0.5


def test_a_table_that_the_reward_also_writes_in_c_is_no_input() -> None:
    Path("rw.py").write_text(
        "import pyarrow as pa\n"
        "def judge(messages, **kw):\n"
        "    with pa.OSFile('count.arrow') as file:\n"
        "        count = int(file.read())\n"
        "    with pa.OSFile('count.arrow', 'wb') as file:\n"
        "        file.write(str(count + 1).encode())\n"
        "    return 0.5\n"
    )
    Path("count.arrow").write_text("9")
    assert judged("rw.py:judge") == 0.5 and Path("count.arrow").read_text() == "10"
    assert judged("rw.py:judge") == 0.5


def test_a_directory_of_an_older_version_goes_on_and_learns_what_it_did_not_note() -> None:
    Path("helpers.py").write_text("def value():\n    return 0.5\n")
    Path("rw.py").write_text("import helpers\ndef judge(messages, **kw):\n    return helpers.value()\n")
    judged("rw.py:judge")
    manifest = json.loads(Path("out/manifest.json").read_text())
    claim = manifest["digests"]["results"]
    older = {k: v for k, v in claim["settings"].items() if k in {"reward.function", "reward.source", "reward.params"}}
    manifest["digests"]["results"] = {"digest": digest_of(older), "settings": older}
    Path("out/manifest.json").write_bytes(sealed_document({k: v for k, v in manifest.items() if k != "check"}))
    judged("rw.py:judge")
    Path("helpers.py").write_text("def value():\n    return 0.75\n")
    with pytest.raises(StorageError, match=r"'helpers.py' has changed"):
        judged("rw.py:judge")
    manifest["digests"]["results"]["settings"]["reward.source"] = "another"
    manifest["digests"]["results"]["digest"] = digest_of(manifest["digests"]["results"]["settings"])
    Path("out/manifest.json").write_bytes(sealed_document({k: v for k, v in manifest.items() if k != "check"}))
    with pytest.raises(StorageError, match=r"^'rw.py' has changed"):
        judged("rw.py:judge")


# ── values that no file holds ────────────────────────────────────────────────────────────────────────────────────────


def notebook(source: str, **names: Any) -> dict[str, Any]:
    """What a cell of a notebook defines: there is no file."""
    scope: dict[str, Any] = {"__name__": "__main__", **names}
    exec(compile(source, "<cell 1>", "exec"), scope)
    return scope


CELL = """
import re
LIMIT = 1.0
TABLE = {"yes": [1, 2]}
SHAPE = re.compile("y.s")
class Scale:
    def __init__(self, by): self.by = by
SCALE = Scale(1)
OTHER = 3
def helper(text):
    return LIMIT * SCALE.by if text in TABLE and SHAPE.match(text) else 0.0
def judge(messages, **kw):
    def inner():
        return helper(messages[-1].content)
    return inner()
class Judge:
    def __init__(self, share): self.share = share
    def __call__(self, messages, **kw): return self.share * helper(messages[-1].content)
    def other(self, messages, **kw): return self.share
"""

MADE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "function": lambda scope: scope["judge"],
    "partial": lambda scope: functools.partial(scope["judge"], strict=True),
    "callable": lambda scope: scope["Judge"](0.5),
    "method": lambda scope: scope["Judge"](0.5).__call__,
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LIMIT = 1.0", "LIMIT = 0.5"),
        ('"yes": [1, 2]', '"yes": [1, 3]'),
        ("else 0.0", "else 0.1"),
        ("y.s", "y.."),
        ("Scale(1)", "Scale(2)"),
    ],
)
def test_what_a_notebooks_reward_names_is_part_of_it(made: str, before: str, after: str) -> None:
    judged(MADE[made](notebook(CELL)))
    judged(MADE[made](notebook(CELL.replace("OTHER = 3", "OTHER = 4"))))
    with pytest.raises(StorageError, match="`rescore`"):
        judged(MADE[made](notebook(CELL.replace(before, after))))
    judged(MADE[made](notebook(CELL.replace(before, after))), rescore=True)


def test_what_a_callable_object_holds_is_part_of_it() -> None:
    scope = notebook(CELL)
    assert judged(scope["Judge"](0.5)) == 0.5
    with pytest.raises(StorageError, match=r"Judge\.share"):
        judged(scope["Judge"](0.25))
    assert judged(scope["Judge"](0.25), rescore=True) == 0.25


def test_a_module_that_a_notebook_imports_is_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    Path("nb_helpers.py").write_text("def value():\n    return 0.5\n")
    scope = notebook("import nb_helpers\ndef judge(messages, **kw):\n    return nb_helpers.value()\n")
    assert judged(scope["judge"]) == 0.5
    Path("nb_helpers.py").write_text("def value():\n    return 0.75\n")
    with pytest.raises(StorageError, match=r"'nb_helpers.py' has changed"):
        judged(scope["judge"])
    assert judged(scope["judge"], rescore=True) == 0.75


@pytest.mark.parametrize("asynchronous", ["", "async "])
def test_a_module_that_has_changed_is_imported_anew_where_its_reward_is_called_here(asynchronous: str) -> None:
    name = f"anew{len(asynchronous)}"
    helper = Path(f"{name}_helper.py")
    helper.write_text("def value():\n    return 0.5\n")
    Path(f"{name}.py").write_text(
        f"from {name}_helper import value\n{asynchronous}def judge(messages, **kw):\n    return value()\n"
    )
    assert judged(f"{name}.py:judge") == 0.5
    helper.write_text("def value():\n    return 0.75\n")
    assert judged(f"{name}.py:judge", rescore=True) == 0.75
    helper.write_text("def value():\n    return 0.125\n")
    assert judged(f"{name}:judge", out="other") == 0.125


# ── judging again ────────────────────────────────────────────────────────────────────────────────────────────────────

SIX = "".join(json.dumps({"id": str(number), "question": "a?", "answer": "yes"}) + "\n" for number in range(6))
COUNTING = """
import asyncio, os, signal
from pathlib import Path
calls = 0
async def judge(messages, **kw):
    global calls
    calls += 1
    await asyncio.sleep(0.05)
    if calls == int(os.environ.get("DIE_AT", 0)):
        os.kill(os.getpid(), signal.SIGKILL)
    with open("calls", "a") as log:
        log.write("x")
    return float(Path("words.txt").read_text())
"""


def reward_kit_run(*options: str, die_at: int = 0) -> int:
    """One run as a process of its own; how many answers it judged, or the signal that it was killed by."""
    Path("calls").write_text("")
    environment = {**os.environ, "DIE_AT": str(die_at)}
    command = [sys.executable, "-m", "reward_kit", "run", "run.yaml", "--quiet", *options]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        assert done.returncode < 0 or "--rescore" in done.stderr, done.stderr
        return done.returncode if done.returncode < 0 else -100
    return len(Path("calls").read_text())


REFUSED = -100


def test_rescore_judges_again_and_goes_on_where_it_was_cut_off() -> None:
    Path("rows.jsonl").write_text(SIX)
    Path("words.txt").write_text("0.5")
    Path("rw.py").write_text(COUNTING)
    Path("run.yaml").write_text(
        "dataset: {path_or_name: rows.jsonl}\n"
        "generation: {model_name: mock, mock: {responses: ['yes']}}\n"
        "reward: {function_path: 'rw.py:judge', concurrency: 1}\n"
        "output: {output_dir: out}\n"
    )

    def scores() -> list[float]:
        return [json.loads(line)["evaluation_score"] for line in Path("out/results.jsonl").read_text().splitlines()]

    assert reward_kit_run() == 6
    assert reward_kit_run("--rescore") == 6, "asked for, so it is done, although nothing changed"
    assert reward_kit_run("--rescore", die_at=4) == -signal.SIGKILL
    kept = len(scores())
    assert 0 < kept < 4
    assert reward_kit_run("--rescore") == 6 - kept, "what was judged before it was killed is kept"
    assert reward_kit_run("--rescore", die_at=4) == -signal.SIGKILL
    Path("words.txt").write_text("0.25")
    assert scores() and reward_kit_run() == REFUSED
    assert reward_kit_run("--rescore") == 6 and set(scores()) == {0.25}
    assert reward_kit_run("--rescore", die_at=4) == -signal.SIGKILL
    Path("rw.py").write_text(COUNTING.replace("return float", "return 0.5 * float"))
    assert reward_kit_run("--rescore") == 6 and set(scores()) == {0.125}
    assert reward_kit_run() == 0
