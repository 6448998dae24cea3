# SPDX-License-Identifier: Apache-2.0
"""Every example has the shape that examples/README.md describes, and its data are what its `prepare.py` makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.doc_pages import ROOT

FOLDERS = sorted(readme.parent for readme in (ROOT / "examples").glob("*/README.md"))
DATA = ("conf", "dataset.jsonl", "prepare.py")
STORED = ("answers.jsonl", "fireworks_preview.py", "fireworks_regenerate.py", "trl_grpo_integration.py")
SHAPE = (*DATA, "reward.py", "mock_model.py", "local_eval.py", *STORED)
"""What each folder has beside its README."""

LIBRARY = "the reward is one of the library"
WORLD = (
    "its reward judges an episode by what the world says of it, and neither Fireworks nor a file of texts has a world"
)

LACKS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "agent_frozen_lake": [(WORLD, STORED)],
    "agent_mcp": [(WORLD, STORED)],
    "agent_shell": [(WORLD, STORED)],
    "agent_sql": [(WORLD, STORED)],
    "agent_support": [(WORLD, STORED)],
    "deepcoder_experiment": [(LIBRARY, ("reward.py",))],
    "gigpo_ppo_training": [(WORLD, STORED), ("agent_frozen_lake has them", ("reward.py", "mock_model.py"))],
    "group_reward_example": [("an evaluator at Fireworks judges one answer at a time", ("fireworks_preview.py",))],
    "judge_example": [(LIBRARY, ("reward.py",))],
    "math_example": [("its reward has the inherited name main.py", ("reward.py",))],
    "openr1_math": [(LIBRARY, ("reward.py",))],
    "shell_tasks": [(LIBRARY, ("reward.py",))],
    "tool_calling_example": [(LIBRARY, ("reward.py",))],
    "trl_grpo": [(LIBRARY, ("reward.py",))],
}  # fmt: skip
"""What a folder does not have, and why. A folder that is not named here has everything."""
LARGEST = 1_000_000
"""Bytes of all examples together."""


def test_the_list_of_examples_names_each_of_them() -> None:
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir() and not path.name.startswith("_")}
    assert folders - {"__pycache__"} == {folder.name for folder in FOLDERS}, "each has a README"
    assert [folder.name for folder in FOLDERS if f"({folder.name}/README.md)" not in listed] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_has_the_shape_but_for_what_the_table_says(folder: Path) -> None:
    missing = [name for name in SHAPE if not (folder / name).exists()]
    excused = {name for _, names in LACKS.get(folder.name, []) for name in names}
    assert sorted(missing) == sorted(excused), "the files that lack, and those that the table says it lacks"


def test_the_table_knows_only_folders_that_are_there() -> None:
    assert LACKS.keys() <= {folder.name for folder in FOLDERS}


def test_the_list_of_examples_says_what_a_folder_lacks() -> None:
    page = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    rows = [line for line in page.partition("| folder | lacks | why |")[2].split("\n\n")[0].splitlines() if "`" in line]
    groups = {LIBRARY: "others", WORLD: "the agents, `gigpo_ppo_training`"}
    for folder, reasons in LACKS.items():
        for reason, names in reasons:
            files = ", ".join(f"`{name}`" for name in names)
            files = files.replace("`fireworks_preview.py`, `fireworks_regenerate.py`", "`fireworks_*.py`")
            start = f"| {groups.get(reason, f'`{folder}`')} | {files} | "
            assert any(row.startswith(start) for row in rows), f"examples/README.md has no row {start!r}"


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if (folder / "conf").is_dir()], ids=lambda f: f.name)
def test_datasets_are_chosen_from_the_group(folder: Path) -> None:
    for file in (folder / "conf").glob("*.yaml"):
        first = yaml.safe_load(file.read_text(encoding="utf-8")).get("defaults", [None])[0]
        from_another = isinstance(first, str) and (folder / "conf" / f"{first}.yaml").is_file()
        assert from_another or (isinstance(first, dict) and "dataset" in first), f"{file} names its dataset by hand"


@pytest.mark.parametrize(
    "folder", [folder for folder in FOLDERS if (folder / "prepare.py").is_file()], ids=lambda f: f.name
)
def test_the_data_are_what_prepare_makes(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(folder / "prepare.py"), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    made = sorted(tmp_path.iterdir())
    assert "dataset.jsonl" in {file.name for file in made}
    assert [file.name for file in made if file.read_bytes() != (folder / file.name).read_bytes()] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_script_says_errors_in_a_sentence(folder: Path) -> None:
    assert "\n@errors_in_a_sentence()\ndef main() -> None:" in (folder / "local_eval.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["judge_example", "math_example", "serving_example"])
def test_a_script_says_in_a_sentence_that_a_key_is_missing(name: str, tmp_path: Path) -> None:
    folder = ROOT / "examples" / name
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    model = [] if name == "judge_example" else ["--model", "openai/gpt-6-luna"]
    done = subprocess.run(
        [sys.executable, str(folder / "local_eval.py"), *model], env={**keyless, "JUDGE": "openai/gpt-6-luna"},
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "OPENAI_API_KEY" in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert done.stderr.startswith("local_eval.py: error: "), done.stderr


@pytest.mark.parametrize(
    "command", [["-m", "examples.gigpo_ppo_training.train"], ["examples/trl_grpo/train.py"]], ids=" ".join
)
def test_a_training_without_its_packages_names_the_extra(command: list[str], tmp_path: Path) -> None:
    # A finder that stands first and finds neither: so it is where they are not installed.
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util, sys\n"
        "class Without:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name in {'torch', 'trl'}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Without)\n"
        "real = importlib.util.find_spec\n"
        "def without(name, package=None):\n"
        "    return None if name in {'torch', 'trl'} else real(name, package)\n"
        "importlib.util.find_spec = without\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, *command], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.endswith("pip install 'reward-kit[train]'\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_examples_are_small() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "examples"], cwd=ROOT, capture_output=True, text=True, check=False
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("program `git` is needed, and a checkout")
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert sum(file.stat().st_size for file in files if file.is_file()) < LARGEST
