# SPDX-License-Identifier: Apache-2.0
"""Batches of a run that has a mirror: another machine goes on with them, and asks for nothing a second time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from reward_kit.errors import StorageError
from reward_kit.execution.parts import mirroring
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.storage.mirror.copying import Copier
from tests.loopback.batches import KEY, Provider, serving
from tests.loopback.runs import config, judged, lines, questions, results

MIRROR = "memory://runs/one"


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("BATCH_KEY", KEY)
    store = fsspec.filesystem("memory")
    store.store.clear()
    yield store
    store.store.clear()


def run(home: Path, base: str, directory: str = "run", mirror: str | None = MIRROR, **options: Any) -> Any:
    values = config(
        home, base, rows=questions(5), generation__n=2, generation__transport="batch",
        generation__api_key_env="BATCH_KEY", generation__batch={"poll_seconds": 0.01},
    )  # fmt: skip
    values["output"] |= {"output_dir": str(home / directory), "mirror": mirror, "mirror_seconds": 1000.0}
    return EvaluationPipeline(values, **options).run()


def undisturbed(home: Path, base: str) -> dict[Any, Any]:
    run(home, base, "undisturbed", mirror=None)
    return judged(results(home, "undisturbed"))


def paid_once(provider: Provider) -> bool:
    return set(provider.asked.values()) == {1}


def test_batches_left_on_one_machine_are_fetched_on_another(tmp_path: Path, memory: Any) -> None:
    provider = Provider(polls=3)
    with serving(provider) as base:
        assert run(tmp_path, base, detach=True).status == "detached"
        result = run(tmp_path, base, "elsewhere", resume_from_mirror=True)
        assert (result.status, result.not_mirrored) == ("finished", None)
        assert len(provider.batches) == 1 and paid_once(provider)
        assert judged(results(tmp_path, "elsewhere")) == undisturbed(tmp_path, base)
    events = [line["event"] for line in lines(tmp_path / "elsewhere" / "batches.jsonl")]
    assert events[-1] == "absorbed"
    assert memory.cat_file("/runs/one/batches.jsonl") == (tmp_path / "elsewhere" / "batches.jsonl").read_bytes()
    assert not [name for name in memory.store if "requests" in name], "what is of no more use is not kept"


def test_a_machine_lost_while_it_submits_is_followed_by_one_that_finds_the_batch(tmp_path: Path, memory: Any) -> None:
    """The mirror as it was when the provider heard of the batch is enough to find it again."""
    seen: dict[str, bytes] = {}

    def look(step: str) -> None:
        if step == "create" and not seen:
            seen.update({name: file.getvalue() for name, file in memory.store.items()})

    provider = Provider(polls=3, on_step=look)
    with serving(provider) as base:
        run(tmp_path, base, detach=True)
        memory.store.clear()
        for name, data in seen.items():
            memory.pipe_file(name, data)
        assert run(tmp_path, base, "elsewhere", resume_from_mirror=True).status == "finished"
        assert len(provider.batches) == 1 and paid_once(provider)
        assert judged(results(tmp_path, "elsewhere")) == undisturbed(tmp_path, base)


def test_nothing_is_submitted_that_the_mirror_does_not_know_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Copier) -> None:
        raise StorageError("the store is full")

    provider = Provider()
    with serving(provider) as base:
        with monkeypatch.context() as patched:
            patched.setattr(mirroring, "_PATIENCE", 0.2)
            patched.setattr(mirroring, "_PATIENCE_WHEN_STOPPED", 0.2)
            patched.setattr(Copier, "copy_new", full)
            with pytest.raises(StorageError, match=r"the store is full\. No batch was submitted"):
                run(tmp_path, base)
        assert provider.batches == {}
        assert run(tmp_path, base).status == "finished"
    assert len(provider.batches) == 1 and paid_once(provider)


def test_answers_in_the_rollouts_of_a_mirror_are_not_fetched_again(tmp_path: Path) -> None:
    provider = Provider()
    with serving(provider) as base:
        run(tmp_path, base)
        steps: list[str] = []
        provider.on_step = steps.append
        result = run(tmp_path, base, "elsewhere", resume_from_mirror=True)
    assert (result.status, result.judged, steps) == ("finished", 10, [])
