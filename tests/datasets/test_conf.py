# SPDX-License-Identifier: Apache-2.0
"""The Hydra groups that ship with the package compose, from anybody's config directory, into valid dataset settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from reward_kit.config_models import DatasetConfig

GROUPS = Path(__file__).parents[2] / "reward_kit" / "conf" / "dataset"
FILE = "dataset.path_or_name=a.jsonl"
NEEDED = {
    "base": [FILE],
    "base_dataset": [FILE],
    "base_derived_dataset": ["dataset.base_dataset={path_or_name: a.jsonl}"],
    "local_jsonl": [FILE],
}


@pytest.fixture
def user_dir(tmp_path: Path) -> Path:
    (tmp_path / "run.yaml").write_text("defaults:\n  - dataset: gsm8k\n  - _self_\n")
    return tmp_path


def composed(directory: Path, overrides: list[str]) -> dict[str, Any]:
    # As an override: a plugin for the search path would stay with Hydra, for every test of this process.
    overrides = [*overrides, "hydra.searchpath=[pkg://reward_kit.conf]"]
    with initialize_config_dir(config_dir=str(directory), version_base="1.3"):
        config = OmegaConf.to_container(compose("run", overrides=overrides), resolve=True, throw_on_missing=True)
    assert isinstance(config, dict)
    return {str(name): value for name, value in config.items()}


@pytest.mark.parametrize("name", sorted(file.stem for file in GROUPS.glob("*.yaml")))
def test_every_group_composes_and_validates(user_dir: Path, name: str) -> None:
    config = composed(user_dir, [f"dataset={name}", *NEEDED.get(name, [])])
    dataset = DatasetConfig.model_validate(config["dataset"])
    assert dataset.path_or_name or dataset.base_dataset is not None


def test_every_setting_can_be_overridden_without_a_plus(user_dir: Path) -> None:
    assert set(composed(user_dir, [])["dataset"]) == set(DatasetConfig.model_fields)


def test_the_base_of_a_derived_dataset_can_be_chosen(user_dir: Path) -> None:
    overrides = [
        "dataset=derived",
        "dataset@dataset.base_dataset=local_jsonl",
        "dataset.base_dataset.path_or_name=a.jsonl",
        "dataset.max_samples=7",
    ]
    dataset = DatasetConfig.model_validate(composed(user_dir, overrides)["dataset"])
    assert dataset.base_dataset is not None
    assert (dataset.base_dataset.path_or_name, dataset.path_or_name, dataset.max_samples) == ("a.jsonl", None, 7)


def test_a_group_of_the_user_comes_before_the_packaged_one(user_dir: Path) -> None:
    (user_dir / "dataset").mkdir()
    (user_dir / "dataset" / "gsm8k.yaml").write_text("path_or_name: mine.jsonl\n")
    assert composed(user_dir, [])["dataset"] == {"path_or_name": "mine.jsonl"}
