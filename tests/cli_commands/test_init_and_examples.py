# SPDX-License-Identifier: Apache-2.0
"""`reward-kit init --template` and `reward-kit examples`: folders that run as they are written."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from reward_kit.cli_commands.examples_cmd import example_names
from reward_kit.cli_commands.init_cmd import TEMPLATES
from tests.cli_commands.conftest import Call
from tests.doc_pages import ROOT, run_program
from tests.execution.shell_support import require_namespaces

SHAPE = {"README.md", "conf/run.yaml", "dataset.jsonl", "reward.py", "test_reward.py"}
IN_SANDBOXES = {"code", "shell"}


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_every_template_that_is_there_is_named() -> None:
    folders = ROOT / "reward_kit" / "cli_commands" / "templates"
    assert {folder.name for folder in folders.iterdir()} == set(TEMPLATES)


@pytest.mark.parametrize("template", [name for name in TEMPLATES if name != "starter"])
def test_a_template_runs_and_its_own_tests_pass(template: str, tmp_path: Path, call: Call) -> None:
    """Among the tests that a template brings is one that runs its config, to the end, and knows every score."""
    said = call("init", "mine", "--template", template)
    assert said.code == 0 and "cd mine && reward-kit run conf/run.yaml" in said.out
    folder = tmp_path / "mine"
    written = files_in(folder)
    assert written >= SHAPE
    readme = (folder / "README.md").read_text()
    assert readme.startswith("# mine\n") and "$" not in readme
    assert set(re.findall(r"^\| `([\w./]+)` \|", readme, re.MULTILINE)) == written - {"README.md"}
    if template in IN_SANDBOXES:
        require_namespaces()
    assert 'reward_kit_run("conf/run.yaml")' in (folder / "test_reward.py").read_text()
    done = run_program(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", directory=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_that_init_names_works(tmp_path: Path, call: Call) -> None:
    command = call("init", "mine", "--template", "group").out.splitlines()[-1].strip()
    done = run_program("bash", "-c", f"{command} --fail-under judged=1 -q", directory=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_template_is_not_written_over_what_is_there(tmp_path: Path, call: Call) -> None:
    (tmp_path / "mine" / "conf").mkdir(parents=True)
    (tmp_path / "mine" / "conf" / "run.yaml").write_text("mine")
    assert "conf/run.yaml exists already" in call("init", "mine", "-t", "math").err
    assert files_in(tmp_path / "mine") == {"conf/run.yaml"}
    assert call("init", "mine", "-t", "math", "--force").code == 0
    assert (tmp_path / "mine" / "conf" / "run.yaml").read_text() != "mine"


def test_a_template_that_is_not_there_is_refused_with_the_names(call: Call) -> None:
    said = call("init", "mine", "--template", "mth")
    assert said.code == 2 and "'composite'" in said.err and "(did you mean 'math'?)." in said.err
    assert "did you mean" not in call("init", "mine", "--template", "xyz").err


def test_the_current_directory_is_named_as_such(tmp_path: Path, call: Call) -> None:
    for here in (".", str(tmp_path)):
        said = call("init", here, "--force")
        assert said.out.endswith(" to the current directory. Try it:\n  reward-kit run run.yaml\n")


def test_the_examples_are_listed_with_what_each_shows(call: Call) -> None:
    lines = [line.split(maxsplit=1) for line in call("examples", "list").out.splitlines()]
    assert [name for name, _ in lines] == example_names()
    assert {folder.parent.name for folder in (ROOT / "examples").glob("*/README.md")} == {name for name, _ in lines}
    assert all(re.match(r"\w[^`*]{10,}$", about) for _, about in lines)


def test_the_list_of_examples_is_also_json(call: Call) -> None:
    listed = json.loads(call("examples", "list", "--json").out)
    assert [example["name"] for example in listed] == example_names()
    lines = call("examples", "list").out.splitlines()
    for example, line in zip(listed, lines, strict=True):
        assert set(example) == {"name", "about"}
        shown = line.removeprefix(example["name"]).strip().removesuffix(" …")
        assert shown and example["about"].startswith(shown)
    assert not any("…" in example["about"] for example in listed), "JSON has the whole sentence"


def test_an_example_is_copied_and_runs_where_it_was_copied_to(tmp_path: Path, call: Call) -> None:
    said = call("examples", "copy", "math_example")
    assert said.code == 0, said.err
    source = ROOT / "examples" / "math_example"
    copied = {name for name in files_in(source) if "__pycache__" not in name}
    assert files_in(tmp_path / "examples" / "math_example") == copied
    assert (tmp_path / "examples/math_example/README.md").read_bytes() == (source / "README.md").read_bytes()
    command = said.out.splitlines()[-1].strip()
    done = run_program("bash", "-c", f"{command} -q", directory=tmp_path)
    assert done.returncode == 0, done.stderr


def test_an_example_is_never_written_over_a_file(tmp_path: Path, call: Call) -> None:
    (tmp_path / "examples" / "math_example").mkdir(parents=True)
    (tmp_path / "examples" / "math_example" / "README.md").write_text("mine")
    assert "exists already" in call("examples", "copy", "math_example").err
    assert files_in(tmp_path / "examples") == {"math_example/README.md"}
    assert call("examples", "copy", "math_example", "--to", "elsewhere").code == 0


def test_an_example_that_is_not_there_is_refused_with_the_names(call: Call) -> None:
    said = call("examples", "copy", "math_exampl")
    assert said.code == 2
    assert "There is no example 'math_exampl' (did you mean 'math_example'?). There are: " in said.err
    assert "There is no example 'xyz'. There are: " in call("examples", "copy", "xyz").err
