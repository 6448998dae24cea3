# SPDX-License-Identifier: Apache-2.0
"""Hugging Face datasets: real ones, made of local files."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import load_samples
from reward_kit.datasets.huggingface import HuggingFaceSource, _retries_in_one_line
from reward_kit.datasets.loader import load_and_process_dataset
from reward_kit.errors import DatasetError, MissingExtraError

WriteRows = Callable[..., str]


def config(path: str | dict[str, str], **settings: Any) -> DatasetConfig:
    return DatasetConfig(source_type="huggingface", path_or_name="json", data_files=path, **settings)


@pytest.mark.parametrize("streaming", [True, False])
def test_rows_come_through(
    write_rows: WriteRows, streaming: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    path = write_rows(*[{"question": f"{n}?", "answer": str(n)} for n in range(3)])
    mapping = {"user_query": "question", "ground_truth_for_eval": "answer"}
    settings = config(path, split="train", streaming=streaming, column_mapping=mapping)
    samples = list(load_samples(settings))
    assert [(sample.messages[0].content, sample.ground_truth, sample.split) for sample in samples] == [
        ("0?", "0", "train"),
        ("1?", "1", "train"),
        ("2?", "2", "train"),
    ]
    assert load_samples(settings).size_hint() is None


def test_one_split_must_be_chosen_where_there_are_several(write_rows: WriteRows) -> None:
    pytest.importorskip("datasets")
    path = write_rows({"user_query": "a"})
    assert len(list(load_samples(config({"train": path})))) == 1
    with pytest.raises(DatasetError, match=r"several splits \('train', 'test'\).*dataset.split"):
        list(load_samples(config({"train": path, "test": path})))
    with pytest.raises(DatasetError, match="cannot be loaded"):
        list(load_samples(config({"train": path}, split="validation")))


def test_a_bad_row_is_numbered(write_rows: WriteRows) -> None:
    pytest.importorskip("datasets")
    path = write_rows({"user_query": "a"}, {"user_query": ""})
    with pytest.raises(DatasetError, match="'json', row 2: column 'user_query'"):
        list(load_samples(config({"train": path})))


def test_a_stream_that_breaks_off_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object) -> Iterator[dict[str, Any]]:
        yield {"user_query": "1?"}
        raise RuntimeError("the Hub is away")

    monkeypatch.setattr(HuggingFaceSource, "_load", broken)
    samples = iter(load_samples(DatasetConfig(path_or_name="somebody/set", split="train")))
    assert next(samples).messages[0].text == "1?"
    with pytest.raises(
        DatasetError, match=r"'somebody/set' failed before its end: RuntimeError: the Hub is away.*again to go on"
    ):
        next(samples)


def test_without_the_extra_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"'openai/gsm8k'.*pip install 'reward-kit\[hf\]'"):
        list(load_samples(DatasetConfig(path_or_name="openai/gsm8k")))


def test_the_fingerprint_is_what_was_asked_for() -> None:
    prints = {
        load_samples(DatasetConfig(path_or_name="openai/gsm8k", split=split)).fingerprint() for split in ("a", "b")
    }
    assert len(prints) == 2
    versions = (None, "v1", "v2")
    assert len({HuggingFaceSource(config("a.json", revision=one), "json").fingerprint() for one in versions}) == 3


def test_the_loader_is_told_the_version(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    datasets = pytest.importorskip("datasets")
    asked: list[str | None] = []

    def load_dataset(*args: Any, revision: str | None, **settings: Any) -> list[dict[str, Any]]:
        asked.append(revision)
        return [{"user_query": "1?"}]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    for revision in ("v1.2", None):
        list(load_samples(DatasetConfig(path_or_name="somebody/set", split="train", revision=revision)))
    extra = {"revision": "v1.3", "data_dir": "part"}
    assert len(load_and_process_dataset("huggingface", "somebody/set", "train", hf_extra_load_params=extra)) == 1
    assert asked == ["v1.2", None, "v1.3"]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning.startswith("Not passed on to Hugging Face: `dataset.hf_extra_load_params.data_dir`.")


def test_retries_of_the_hub_are_said_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub.utils")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # read once, when another test imported it
    caplog.set_level("DEBUG")
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/x"
        with _retries_in_one_line(), pytest.raises(Exception, match="refused"):
            hub.http_backoff("HEAD", nobody, max_retries=3, base_wait_time=0.01)
    said = [(record.name, record.getMessage()) for record in caplog.records if record.levelname == "WARNING"]
    assert [name for name, _ in said] == ["reward_kit.datasets.huggingface"]
    assert "Trying again" in said[0][1]
    told = [record.getMessage() for record in caplog.records if record.levelname == "DEBUG"]
    assert sum("[Retry " in message for message in told) == 3, "--verbose still shows each of them"


def test_a_hub_that_cannot_be_reached_says_what_to_do_without_it(tmp_path: Any) -> None:
    pytest.importorskip("datasets")
    done = subprocess.run(
        [sys.executable, "-m", "reward_kit", "datasets", "show", "gsm8k"],
        env={**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert "Check the network." in sentence
    assert sentence.endswith("name the file: `dataset.path_or_name=FILE.jsonl`.")
