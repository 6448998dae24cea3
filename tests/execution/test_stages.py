# SPDX-License-Identifier: Apache-2.0
"""The two stages: what they make is on disk before anyone downstream sees it, whoever the model is."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.config_models import Sampling
from reward_kit.errors import StorageError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.owed import Work
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.queues import Handover, Item, WorkQueue
from reward_kit.execution.stages import Stop, generate, record_of, records_output, rollouts_output, score
from reward_kit.generation.client import ModelClient
from reward_kit.generation.judge import JudgeUse
from reward_kit.generation.local import bundled_weights
from reward_kit.models import (
    Completion,
    EvaluateResult,
    Failure,
    Message,
    MetricResult,
    Record,
    Rollout,
    Sample,
    StepOutput,
    Verdict,
)
from reward_kit.redaction import forget_all, sent
from reward_kit.storage.journal import Journal
from reward_kit.storage.line_writer import LineWriter
from tests.loopback.endpoint import honest, serving
from tests.loopback.runs import config, questions

BROKEN = Failure(stage="score", type="RewardError", message="no verdict")


def keys_on_disk(path: Path) -> set[tuple[str, int]]:
    """What the whole lines of a file hold, read anew."""
    whole = path.read_bytes().rpartition(b"\n")[0].splitlines()
    return {(row["id"], row["response_index"]) for row in map(orjson.loads, whole)}


# ── whole runs ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Turns:
    """A model of somebody's own, which lets a random number of the loop's turns pass before it answers."""

    model = "own"
    identity: Mapping[str, Any] = {}

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)

    async def generate(
        self, messages: Sequence[Message], *, draws: Sequence[int], sampling: Sampling,
        tools: list[dict[str, Any]] | None = None, sample_id: str = "",
    ) -> list[Completion | Failure]:  # fmt: skip
        for _ in range(self._dice.randrange(4)):
            await asyncio.sleep(0)
        return [Completion(message=Message(role="assistant", content=f"{sample_id} {draw}")) for draw in draws]

    async def close(self) -> None:
        pass


@contextlib.contextmanager
def model(kind: str) -> Iterator[tuple[str | None, ModelClient | None, dict[str, Any]]]:
    if kind == "http":
        with serving(honest) as endpoint:
            yield endpoint.api_base, None, {}
    elif kind == "local":
        if bundled_weights() is None:
            pytest.skip("needs the embedded model")
        yield None, None, {"generation__model_name": "local", "generation__max_tokens": 3}
    else:
        yield None, Turns(7) if kind == "own" else None, {}


@pytest.mark.parametrize("kind", ["mock", "http", "own", pytest.param("local", marks=pytest.mark.local_model)])
@pytest.mark.parametrize("n", [1, 3])
def test_no_rollout_reaches_scoring_before_its_line_is_on_disk(tmp_path: Path, kind: str, n: int) -> None:
    rollouts = tmp_path / "run" / "rollouts.jsonl"
    seen: list[bool] = []

    async def looks_at_the_disk(
        messages: list[Message], *, sample_id: str, response_index: int, **kwargs: Any
    ) -> float:
        seen.append((sample_id, response_index) in keys_on_disk(rollouts))
        return 1.0

    with model(kind) as (api_base, client, options):
        told = config(tmp_path, api_base, rows=questions(4 if kind == "local" else 30), generation__n=n, **options)
        result = EvaluationPipeline(told, reward=looks_at_the_disk, client=client).run()
    assert result.judged == len(seen) > 0
    assert all(seen)


def test_no_more_is_asked_for_before_what_came_is_on_disk(tmp_path: Path) -> None:
    """So a crash costs the requests in flight, and never the answers before them as well."""
    rollouts = tmp_path / "run" / "rollouts.jsonl"
    answered: set[str] = set()
    lacking: list[set[str]] = []

    class Watching(Turns):
        async def generate(self, messages: Sequence[Message], **options: Any) -> list[Completion | Failure]:
            lacking.append(answered - {key for key, _ in keys_on_disk(rollouts)})
            made = await super().generate(messages, **options)
            answered.add(options["sample_id"])
            return made

    # One task: with more, another one's answer may have come in this very turn, and be on its way to the disk.
    told = config(tmp_path, rows=questions(20), generation__api_params={"max_concurrent_requests": 1})
    EvaluationPipeline(told, phase="inference", client=Watching(3)).run()
    assert len(lacking) == 20
    assert not any(lacking)


def test_no_judge_is_asked_again_before_its_last_verdict_is_on_disk(tmp_path: Path) -> None:
    """So a crash costs the replies in flight, and never those before them as well; here no cache holds them."""
    results = tmp_path / "run" / "results.jsonl"
    replied: set[str] = set()
    lacking: list[set[str]] = []

    async def asks(messages: list[Message], *, judge: Any, sample_id: str, **kwargs: Any) -> float:
        lacking.append(replied - {key for key, _ in keys_on_disk(results)})
        (reply,) = await judge.ask(messages[-1].text)
        replied.add(sample_id)
        return float(reply is not None)

    # One task: with more, another one's verdict may have come in this very turn, and be on its way to the disk.
    judge = {"model_name": "mock", "cache": {"enabled": False}}
    told = config(tmp_path, rows=questions(20), judge=judge, reward__concurrency=1)
    assert EvaluationPipeline(told, reward=asks).run().judged == len(lacking) == 20
    assert not any(lacking)


# ── the stages by themselves ─────────────────────────────────────────────────────────────────────────────────────────


def a_sample(number: int) -> Sample:
    return Sample(id=f"s{number}", messages=[Message(role="user", content=str(number))], position=number)


def rollout(number: int, draw: int, failure: Failure | None = None) -> Rollout:
    return Rollout(sample=a_sample(number), response_index=draw, failure=failure)


class Watched(Handover):
    """A queue that notes which of the rollouts it was given were not in the file."""

    def __init__(self, path: Path) -> None:
        super().__init__(1000)
        self.path = path
        self.missing: set[tuple[str, int]] = set()
        self.given: list[list[Rollout]] = []

    def give(self, item: Any) -> None:
        self.given.append(item.rollouts)
        self.missing |= {(r.sample.id, r.response_index) for r in item.rollouts} - keys_on_disk(self.path)
        super().give(item)


@settings(max_examples=25, deadline=None)
@given(
    turns=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    width=st.integers(1, 4),
    n=st.integers(1, 3),
    groups=st.booleans(),
)
def test_generate_hands_on_what_is_on_disk(
    tmp_path_factory: pytest.TempPathFactory, turns: list[int], width: int, n: int, groups: bool
) -> None:
    path = tmp_path_factory.mktemp("run") / "rollouts.jsonl"

    async def play(sample: Sample, draws: Sequence[int]) -> list[Rollout]:
        for _ in range(turns[sample.position]):
            await asyncio.sleep(0)
        return [Rollout(sample=sample, response_index=draw) for draw in draws]

    async def run() -> Watched:
        counters, handed_on = RunCounters(), Watched(path)
        works = (Work(a_sample(number), "ab", list(range(n))) for number in range(len(turns)))
        queue = WorkQueue(works, ahead=width)
        with Journal(path) as journal:
            output = rollouts_output(journal, LineWriter(journal.samples), counters, handed_on, groups=groups)
            tasks = [generate(queue, play, output, handed_on, counters, Stop(counters)) for _ in range(width)]
            await asyncio.gather(*tasks)
            output.flush()
        assert counters.generated == len(turns) * n
        return handed_on

    handed_on = asyncio.run(run())
    assert not handed_on.missing
    assert {len(rollouts) for rollouts in handed_on.given} == ({n} if groups else {1})
    assert sum(map(len, handed_on.given)) == len(turns) * n


async def test_what_cannot_be_written_is_handed_to_nobody(tmp_path: Path) -> None:
    counters, handover = RunCounters(), Handover(10)

    async def play(sample: Sample, draws: Sequence[int]) -> list[Rollout]:
        return [Rollout(sample=sample, response_index=draw) for draw in draws]

    class Full(Journal):
        def append(self, entries: Sequence[Any]) -> None:
            raise StorageError("the disk is full")

    with Full(tmp_path / "rollouts.jsonl") as journal:
        output = rollouts_output(journal, LineWriter(journal.samples), counters, handover, groups=False)
        queue = WorkQueue(iter([Work(a_sample(0), "ab", [0]), Work(a_sample(1), "ab", [0])]))
        with pytest.raises(StorageError, match="full"):
            await generate(queue, play, output, handover, counters, Stop(counters))
    assert handover.take_at_once() is None
    assert counters.generated == 0


class Fixed:
    """Says of each rollout whether its draw is even; of the third draws, that there is no verdict."""

    concurrency = 2
    sandbox: str | None = None
    judge_use: JudgeUse | None = None
    is_paid = False

    async def score(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        return [
            BROKEN if each.response_index == 2 else EvaluateResult(score=float(each.response_index % 2 == 0))
            for each in rollouts
        ]


async def test_score_makes_a_record_of_every_rollout_in_the_order_of_its_group(tmp_path: Path) -> None:
    counters, handover = RunCounters(), Handover(10)
    unanswered = Failure(stage="generate", type="ProviderError", message="late", retryable=True)
    group = [rollout(0, 0), rollout(0, 1, unanswered), rollout(0, 2), rollout(0, 3)]
    written: list[Record] = []

    with Journal(tmp_path / "results.jsonl") as journal:
        writer = LineWriter(journal.samples)

        def line(record: Record, content: str) -> Any:
            written.append(record)
            return writer.result_line(record, content)

        output = records_output(journal, line, counters)
        queue = WorkQueue(iter(()))
        handover.give(Item(group, "ab"))
        handover.end()
        await score(handover, Fixed(), output, queue)
        output.flush()
    assert [record.rollout for record in written] == group
    assert [record.verdict for record in written] == [
        EvaluateResult(score=1.0), unanswered, BROKEN, EvaluateResult(score=0.0),
    ]  # fmt: skip
    assert (counters.judged, counters.failed) == (2, 2)
    assert len(keys_on_disk(tmp_path / "results.jsonl")) == 4


@pytest.mark.parametrize("verdict", [EvaluateResult(score=0.5, reason="half"), BROKEN])
def test_a_record_made_without_checks_is_the_one_that_is_checked(verdict: Verdict) -> None:
    made, checked = record_of(rollout(1, 0), verdict), Record.of(rollout(1, 0), verdict)
    assert made == checked
    assert (made.__dict__, made.model_fields_set) == (checked.__dict__, checked.model_fields_set)
    assert made.verdict is verdict


class _Own(EvaluateResult):
    more: str = ""


KEY = "sk-proj-Zq7PlantedKey4711xAbC9"
HELD: list[EvaluateResult] = [
    EvaluateResult(score=1.0, metrics={KEY: MetricResult(score=1.0, reason="fine")}),
    EvaluateResult(score=1.0, metrics={"a": MetricResult(score=1.0, reason=f"with {KEY}")}),
    EvaluateResult(score=1.0, step_outputs=[StepOutput(step_index=0, base_reward=1.0, reason=KEY)]),
    EvaluateResult(score=1.0, step_outputs=[StepOutput(step_index=0, base_reward=1.0, metrics={"a": [{"b": KEY}]})]),
    _Own(score=1.0, more=KEY),
    _Own(score=1.0, metrics={"a": MetricResult(score=1.0, reason="fine")}, more=KEY),
]


@pytest.mark.parametrize("verdict", HELD)
def test_a_verdict_that_holds_a_key_that_was_sent_is_a_failure_wherever_it_stands(verdict: EvaluateResult) -> None:
    assert isinstance(record_of(rollout(1, 0), verdict).verdict, EvaluateResult)
    sent(KEY)
    try:
        told = record_of(rollout(1, 0), verdict).verdict
    finally:
        forget_all()
    assert isinstance(told, Failure) and KEY not in told.message
