# SPDX-License-Identifier: Apache-2.0
"""The files of a split in a folder, beside what Hugging Face takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import load_samples
from reward_kit.datasets.split_files import files_of_split
from reward_kit.errors import DatasetError


def folder(home: Path, *names: str) -> Path:
    for name in names:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"prompt": "{name}"}}\n')
    return home


def read(home: Path, split: str | None, **settings: Any) -> list[str]:
    samples = list(load_samples(DatasetConfig.model_validate({"path_or_name": str(home), "split": split, **settings})))
    assert {sample.split for sample in samples} == {split}
    return [sample.columns["prompt"] for sample in samples]


@pytest.mark.parametrize(
    ("names", "split", "expected"),
    [
        (["train.jsonl", "test.jsonl"], "test", ["test.jsonl"]),
        (["train.jsonl", "test.jsonl"], "train+test", ["train.jsonl", "test.jsonl"]),
        (["train.jsonl", "dev.jsonl"], "validation", ["dev.jsonl"]),
        (["train.jsonl", "dev.jsonl"], "dev", ["dev.jsonl"]),
        (["my_train-1.jsonl", "my_train-2.jsonl", "my_eval.jsonl"], "test", ["my_eval.jsonl"]),
        (["data/train-00000-of-00002.jsonl", "data/train-00001-of-00002.jsonl", "data/hard-00000-of-00001.jsonl"],
         "hard", ["data/hard-00000-of-00001.jsonl"]),
        (["train/a.jsonl", "test/a.jsonl", "test/b.jsonl"], "test", ["test/a.jsonl", "test/b.jsonl"]),
        (["a.jsonl", "b.jsonl"], "train", ["a.jsonl", "b.jsonl"]),
        (["math.jsonl", "code-1.jsonl", "code-2.jsonl"], "code", ["code-1.jsonl", "code-2.jsonl"]),
        (["math/a.jsonl", "code/a.jsonl"], "math", ["math/a.jsonl"]),
        (["train.jsonl", ".test.jsonl", "test.jsonl"], "test", ["test.jsonl"]),
        (["latest.jsonl", "contest.jsonl"], "train", ["contest.jsonl", "latest.jsonl"]),
    ],
)  # fmt: skip
def test_a_split_of_a_folder_is_told_by_names(
    tmp_path: Path, names: list[str], split: str, expected: list[str]
) -> None:
    assert read(folder(tmp_path, *names), split) == expected


@pytest.mark.parametrize(
    ("names", "split", "there"),
    [
        (["train.jsonl", "test.jsonl"], "nosuch", "'train', 'test'"),
        (["train.jsonl", "dev.jsonl"], "test", "'train', 'validation'"),
        (["a.jsonl"], "test", "'train'"),
        (["train.jsonl", "test.jsonl"], "test[:10]", "'train', 'test'.*`dataset.max_samples`"),
        (["train.jsonl", "test.jsonl"], "train+dev", "'train', 'test'"),
    ],
)
def test_a_split_that_is_not_there_is_refused_with_those_that_are(
    tmp_path: Path, names: list[str], split: str, there: str
) -> None:
    with pytest.raises(DatasetError, match=rf"has no split .*it has {there}"):
        read(folder(tmp_path, *names), split)


def test_the_split_of_a_file_or_a_pattern_is_its_label(tmp_path: Path) -> None:
    folder(tmp_path, "train.jsonl", "a.jsonl")
    assert read(tmp_path / "train.jsonl", "test") == ["train.jsonl"]
    assert read(tmp_path / "*.jsonl", "test") == ["a.jsonl", "train.jsonl"]
    assert read(tmp_path, None) == ["a.jsonl", "train.jsonl"]


def test_few_shot_rows_are_taken_from_their_own_split(tmp_path: Path) -> None:
    folder(tmp_path, "train.jsonl", "test.jsonl")
    template = "{% for row in few_shot %}{{ row.prompt }} {% endfor %}{{ prompt }}"
    told = {"path_or_name": str(tmp_path), "split": "test", "prompt_template": template,
            "few_shot": {"count": 1, "split": "train"}}  # fmt: skip
    (sample,) = load_samples(DatasetConfig.model_validate(told))
    assert sample.messages[-1].text == "train.jsonl test.jsonl"


WORDS = st.sampled_from(["train", "test", "dev", "val", "eval", "validation", "data", "a", "math", "latest"])
NAMES = st.builds("".join, st.lists(WORDS | st.sampled_from(["-", "_", ".", "1", " "]), min_size=1, max_size=4))
PATHS = st.builds(lambda folders, name: "/".join([*folders, f"{name}.jsonl"]), st.lists(NAMES, max_size=2), NAMES)
SHARDS = st.builds("data/{}-0000{}-of-00009.jsonl".format, WORDS, st.integers(0, 8))


@settings(max_examples=40, deadline=None)
@given(paths=st.lists(PATHS | SHARDS, min_size=1, max_size=5, unique=True))
def test_the_usual_splits_are_those_of_hugging_face(paths: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    data_files = pytest.importorskip("datasets.data_files", reason="the extra hf is not installed")
    home = tmp_path_factory.mktemp("folder")
    plain = [path for path in paths if not any(part.startswith(".") for part in path.split("/"))]
    if not plain:
        return
    files = [home / name for name in sorted(plain)]
    folder(home, *plain)
    patterns = data_files.get_data_patterns(str(home))
    for split in map(str, patterns):
        theirs = data_files.DataFilesList.from_patterns(patterns[split], str(home))
        assert {str(file) for file in files_of_split(split, files, str(home))} == set(theirs)
