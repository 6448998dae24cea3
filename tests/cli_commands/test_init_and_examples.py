# SPDX-License-Identifier: Apache-2.0
"""`reward-kit init --template` and `reward-kit examples`: folders that run as they are written."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from reward_kit.cli_commands.copied_folders import without_dead_links
from reward_kit.cli_commands.examples_cmd import example_names, needed_by
from reward_kit.cli_commands.init_cmd import TEMPLATES
from reward_kit.utils.module_loader import load_function
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


@pytest.mark.parametrize(
    ("answer", "truth", "right"),
    [
        ("0.5", "0.5", True), ("It is .5", "0.5", True), ("It is 0.50.", "0.5", True), ("5", "0.5", False),
        ("It is 1,250.75 dollars.", "1250.75", True), ("1,000,000", "1000000", True), ("1000", "1,000", True),
        ("It is -3.", "-3", True), ("It is +3", "3", True), ("\N{MINUS SIGN}3", "-3", True), ("3", "-3", False),
        ("10-3", "3", True), ("The choices are 1,2", "2", True), ("7. Done", "7", True), ("None.", "7", False),
    ],
)  # fmt: skip
def test_the_starter_reads_a_number_whole(answer: str, truth: str, right: bool) -> None:
    evaluate = load_function(f"{ROOT / 'reward_kit/cli_commands/templates/starter/reward.py'}:evaluate")
    messages = [{"role": "user", "content": "How much?"}, {"role": "assistant", "content": answer}]
    verdict = evaluate(messages=messages, ground_truth=truth)
    assert (verdict.score, f"{truth} was expected" in verdict.reason) == (float(right), True)


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
    assert (tmp_path / "examples/math_example/main.py").read_bytes() == (source / "main.py").read_bytes()
    command = said.out.splitlines()[-1].strip()
    done = run_program("bash", "-c", f"{command} -q", directory=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["agent_mcp", "gigpo_ppo_training", "tool_calling_example"])
def test_the_command_that_copying_elsewhere_names_works(name: str, tmp_path: Path, call: Call) -> None:
    command = call("examples", "copy", name, "--to", "my own").out.splitlines()[-1].strip()
    assert command.startswith("cd 'my own' && ")
    done = run_program("bash", "-c", f"{command} -q --fail-under judged=1", directory=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", example_names())
def test_the_command_that_is_named_uses_files_that_were_copied(name: str, tmp_path: Path, call: Call) -> None:
    *moves, command = call("examples", "copy", name).out.splitlines()[-1].strip().split(" && ")
    words = command.split()
    assert words[0] in {"reward-kit", "python"}
    place = tmp_path.joinpath(*(move.removeprefix("cd ") for move in moves))
    paths = [word for word in words if word.startswith(("examples/", "conf"))]
    assert paths and [path for path in paths if not (place / path).exists()] == []


def test_an_example_brings_the_folders_that_it_needs(tmp_path: Path, call: Call) -> None:
    said = call("examples", "copy", "gigpo_ppo_training")
    assert "It needs the example agent_frozen_lake, which was copied to examples/agent_frozen_lake." in said.out
    done = run_program(sys.executable, "examples/gigpo_ppo_training/local_eval.py", "--n", "1", directory=tmp_path)
    assert done.returncode == 0 and "reached the goal: 1.000 of 6 walks" in done.stdout, done.stderr


def test_a_needed_folder_that_is_there_is_left_as_it_is(tmp_path: Path, call: Call) -> None:
    call("examples", "copy", "agent_frozen_lake")
    (tmp_path / "examples/agent_frozen_lake/reward.py").write_text("mine")
    said = call("examples", "copy", "gigpo_ppo_training")
    assert said.code == 0 and "examples/agent_frozen_lake exists already, and is left as it is" in said.out
    assert (tmp_path / "examples/agent_frozen_lake/reward.py").read_text() == "mine"


@pytest.mark.parametrize("name", example_names())
def test_an_example_names_the_folders_that_its_files_use(name: str) -> None:
    folder = ROOT / "examples" / name
    texts = [path.read_text() for path in folder.rglob("*") if path.suffix in {".py", ".yaml"}]
    others = [other for other in example_names() if other != name]
    used = {other for other in others if any(re.search(rf"[\"/.]{other}[\"/.]", text) for text in texts)}
    assert set(needed_by(folder)) == used


@pytest.mark.parametrize("name", example_names())
def test_a_copied_page_links_only_to_what_was_copied(name: str, tmp_path: Path, call: Call) -> None:
    call("examples", "copy", name)
    for page in tmp_path.rglob("*.md"):
        links = [link for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()) if "://" not in link]
        assert [link for link in links if not (page.parent / link.partition("#")[0]).exists()] == []


def test_a_dead_link_becomes_the_name_of_the_file() -> None:
    page = (
        "[Judge](../../docs/judge.md#a) [docs/mcp.md](../../docs/mcp.md) [All](../README.md) "
        "[lake](../lake/README.md) [here](#below) ![curve](curve.svg) [Ray](https://docs.ray.io/)"
    )
    kept = "[lake](../lake/README.md) [here](#below) ![curve](curve.svg) [Ray](https://docs.ray.io/)"
    assert without_dead_links(
        page.encode(), "examples/mine/README.md", ["examples/mine", "examples/lake"]
    ).decode() == (
        "Judge (`docs/judge.md` in the documentation) `docs/mcp.md` in the documentation "
        f"All (`examples/README.md` in the repository) {kept}"
    )


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
