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
WHOLE = ("coding_example", "composite_example", "math_example")
"""The examples that show the whole way, from a run to a training."""
SCRIPTS = ("prepare", "mock_model", "local_eval", "fireworks_preview", "fireworks_regenerate", "trl_grpo_integration")
LARGEST = 1_000_000
"""Bytes of all examples together."""


def test_the_list_of_examples_names_each_of_them() -> None:
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir() and not path.name.startswith("_")}
    assert folders - {"__pycache__"} == {folder.name for folder in FOLDERS}, "each has a README"
    assert [folder.name for folder in FOLDERS if f"({folder.name}/README.md)" not in listed] == []


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_shape(name: str) -> None:
    folder = ROOT / "examples" / name
    missing = [script for script in SCRIPTS if not (folder / f"{script}.py").is_file()]
    assert not missing
    assert (folder / "dataset.jsonl").is_file() and (folder / "answers.jsonl").is_file()
    assert (folder / "reward.py").is_file() or (folder / "main.py").is_file()


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


def test_examples_are_small() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "examples"], cwd=ROOT, capture_output=True, text=True, check=False
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("program `git` is needed, and a checkout")
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert sum(file.stat().st_size for file in files if file.is_file()) < LARGEST
