# SPDX-License-Identifier: Apache-2.0
"""Files that a config names are found where its author sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reward_kit.cli_commands.config_paths import resolve_paths


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a `conf` folder, and somebody who stands elsewhere."""
    for name in ("project/conf/beside.jsonl", "project/above.jsonl", "project/reward.py", "elsewhere/here.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("here.jsonl", "here.jsonl"),
        ("beside.jsonl", "{}/conf/beside.jsonl"),
        ("above.jsonl", "{}/above.jsonl"),
        ("ab*.jsonl", "{}/ab*.jsonl"),
        ("nowhere.jsonl", "nowhere.jsonl"),
        ("openai/gsm8k", "openai/gsm8k"),
        ("/absolute.jsonl", "/absolute.jsonl"),
    ],
)
def test_a_dataset_is_looked_for_here_then_beside_the_config(project: Path, name: str, found: str) -> None:
    values = {"dataset": {"path_or_name": name}, "rollouts_file": name}
    resolved = resolve_paths(values, project / "conf")
    assert resolved["dataset"]["path_or_name"] == found.format(project)
    assert resolved["rollouts_file"] == found.format(project)
    assert values["dataset"] == {"path_or_name": name}, "what was given is not changed"


def test_code_in_files_is_found_and_code_in_modules_is_left_alone(project: Path) -> None:
    values: dict[str, Any] = {
        "reward": {"function_path": "reward.py:f"},
        "generation": {"n": 2, "mock": {"function_path": "reward.py:g"}},
        "dataset": {"base_dataset": {"path_or_name": "above.jsonl"}, "preprocess": ["reward.py:p", "pkg.mod:q"]},
    }
    resolved = resolve_paths(values, project / "conf")
    assert resolved["reward"]["function_path"] == f"{project}/reward.py:f"
    assert resolved["generation"] == {"n": 2, "mock": {"function_path": f"{project}/reward.py:g"}}
    assert resolved["dataset"]["base_dataset"]["path_or_name"] == f"{project}/above.jsonl"
    assert resolved["dataset"]["preprocess"] == [f"{project}/reward.py:p", "pkg.mod:q"]


def test_the_parts_of_a_composite_reward_are_found_too(project: Path) -> None:
    for parts, found in [
        (["reward.py:f", "math_reward"], [f"{project}/reward.py:f", "math_reward"]),
        ({"a": {"reward": "reward.py:f", "weight": 2}}, {"a": {"reward": f"{project}/reward.py:f", "weight": 2}}),
        ("reward.py:f", "reward.py:f"),
    ]:
        values = {"reward": {"function_path": "pkg:composite", "params": {"parts": parts, "how": "min"}}}
        resolved = resolve_paths(values, project / "conf")
        assert resolved["reward"]["params"] == {"parts": found, "how": "min"}


@pytest.mark.parametrize(
    "values", [{}, {"dataset": None, "reward": None, "generation": None}, {"dataset": "gsm8k", "generation": 3}]
)
def test_what_has_another_shape_is_left_for_validation(project: Path, values: dict[str, Any]) -> None:
    assert resolve_paths(values, project) == values
