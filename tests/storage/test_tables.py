# SPDX-License-Identifier: Apache-2.0
"""Rollouts and records as lines: what is written is what is read back, and the columns are those users know."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.errors import StorageError
from reward_kit.models import (
    ChatCompletionMessageToolCall,
    EvaluateResult,
    Failure,
    FunctionCall,
    Message,
    MetricResult,
    Record,
    Rollout,
    Sample,
    StepOutput,
    Usage,
)
from reward_kit.storage import line_writer
from reward_kit.storage.best_of_n_tables import experiment_row
from reward_kit.storage.journal_lines import Head, Status
from reward_kit.storage.large_parts import whole_row
from reward_kit.storage.line_writer import LineWriter
from reward_kit.storage.samples import SAMPLES, Samples, sample_json, sample_name
from reward_kit.storage.shell_tables import shell_result_row
from reward_kit.storage.tables import (
    entry_of,
    preview_pair,
    result_row,
    rollout_from_line,
)
from reward_kit.utils.checksums import sealed_line

LATE = Failure(stage="generate", type="ProviderError", message="late", retryable=True)
COLUMNS = {
    "schema", "id", "response_index", "position", "content", "status", "cost", "user_query", "system_prompt",
    "messages", "assistant_response", "ground_truth_for_eval", "evaluation_score", "evaluation_reason",
    "evaluation_metrics", "is_score_valid", "error", "model", "usage", "finish_reason", "latency_ms", "cached", "split",
}  # fmt: skip

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=4), inside, max_size=3),
    max_leaves=6,
)
calls = st.builds(
    ChatCompletionMessageToolCall,
    id=st.text(max_size=3),
    function=st.builds(FunctionCall, name=st.text(max_size=3), arguments=st.text(max_size=5)),
)
messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "system", "tool"]),
    content=st.none() | st.text(max_size=8) | st.just([{"type": "text", "text": "part"}]),
    tool_calls=st.none() | st.lists(calls, max_size=2),
    reasoning_content=st.none() | st.text(max_size=4),
)
samples = st.builds(
    Sample,
    id=st.text(min_size=1, max_size=8),
    messages=st.lists(messages, min_size=1, max_size=3),
    ground_truth=plain,
    split=st.none() | st.text(max_size=4),
    columns=st.dictionaries(st.text(max_size=5), plain, max_size=3),
    tools=st.none() | st.just([{"type": "function", "function": {"name": "f"}}]),
    position=st.integers(0, 10**9),
)
rollouts = st.builds(
    Rollout,
    sample=samples,
    response_index=st.integers(0, 100),
    turns=st.lists(messages, max_size=2),
    model=st.none() | st.text(max_size=4),
    sampling=st.just({"temperature": 0.5, "stop": ["a"]}),
    finish_reason=st.none() | st.just("stop"),
    usage=st.none()
    | st.builds(Usage, prompt_tokens=st.integers(0, 99), reasoning_tokens=st.none() | st.integers(0, 9)),
    cost=st.none() | st.floats(0, 5),
    latency_ms=st.none() | st.floats(0, 5),
    cached=st.booleans(),
    failure=st.none() | st.just(LATE),
)


@pytest.fixture(scope="module")
def samples_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Samples]:
    with contextlib.closing(Samples(tmp_path_factory.mktemp("run") / SAMPLES)) as samples:
        yield samples


def line_of(rollout: Rollout, samples: Samples) -> bytes:
    return LineWriter(samples).rollout_line(rollout, "00")[-1]


@given(rollout=rollouts)
def test_a_rollout_is_read_back_as_it_was(samples_file: Samples, rollout: Rollout) -> None:
    line = line_of(rollout, samples_file)
    assert line.count(b"\n") == 1
    assert rollout_from_line(line, samples_file) == rollout


@given(rollout=rollouts)
def test_a_rollout_of_a_time_when_it_held_its_sample_is_read_as_ever(samples_file: Samples, rollout: Rollout) -> None:
    body = rollout.model_dump_json(exclude={"response_index", "cost"}, exclude_none=True).encode()
    head = Head(rollout.sample.id, rollout.response_index, rollout.sample.position, "00", "ok", rollout.cost)
    assert rollout_from_line(sealed_line(head.line(body, 2)), samples_file) == rollout


@given(rollout=rollouts)
def test_a_rollout_put_together_from_pieces_is_what_the_model_writes_of_itself(
    samples_file: Samples, rollout: Rollout
) -> None:
    rest = rollout.model_dump_json(exclude={"response_index", "cost", "sample"}, exclude_none=True).encode()
    body = b'{"sample":"%b",%b' % (sample_name(sample_json(rollout.sample)), rest[1:])
    status: Status = "ok" if rollout.failure is None else "retry"
    sample = rollout.sample
    head = Head(sample.id, rollout.response_index, sample.position, "00", status, rollout.cost)
    assert line_of(rollout, samples_file) == head.line(body)


metrics = st.dictionaries(
    st.text(max_size=3), st.builds(MetricResult, score=st.floats(0, 1), reason=st.text(max_size=3))
)
steps = st.none() | st.lists(
    st.builds(StepOutput, step_index=st.integers(0, 3), base_reward=st.floats(0, 1)), max_size=2
)
verdicts = st.just(LATE) | st.builds(
    EvaluateResult, score=st.floats(-9, 9), reason=st.none() | st.text(max_size=3), metrics=metrics, step_outputs=steps
)


@given(rollout=rollouts, verdict=verdicts)
def test_a_result_put_together_from_pieces_is_what_its_row_says(
    samples_file: Samples, rollout: Rollout, verdict: EvaluateResult | Failure
) -> None:
    record = Record.of(rollout, verdict)
    assert LineWriter(samples_file).result_line(record, "00") == entry_of(record, "00", result_row(record)).line()


BIG = "0123456789abcdef" * 1025
"""A text of more than 16 KB."""
PICTURE = "data:image/png;base64,iVBORw0KGgo="
big_texts = st.sampled_from([BIG, "ü" * 9000, PICTURE, f"sha256:{'0' * 64}", "short"])
big_values = st.recursive(
    plain | big_texts,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=4), inside, max_size=3),
    max_leaves=6,
) | st.just([*range(9000)])
big_samples = st.builds(
    Sample,
    id=st.text(min_size=1, max_size=8),
    messages=st.lists(
        st.builds(
            Message,
            role=st.sampled_from(["user", "system"]),
            content=big_texts
            | st.lists(st.builds(lambda url: {"type": "image_url", "image_url": {"url": url}}, big_texts), max_size=2),
        ),
        min_size=1,
        max_size=3,
    ),
    ground_truth=big_values,
    split=st.none() | st.text(max_size=4),
    columns=st.dictionaries(st.text(max_size=5), big_values, max_size=3),
    tools=st.none() | st.just([{"type": "function", "function": {"name": "f", "description": BIG}}]),
    position=st.integers(0, 10**9),
)


@pytest.mark.parametrize("row_of", [result_row, experiment_row])
@given(sample=big_samples, said=big_texts, verdict=verdicts)
def test_large_parts_are_named_by_digest_and_are_read_back_whole(
    samples_file: Samples,
    row_of: Callable[[Record], dict[str, Any]],
    sample: Sample,
    said: str,
    verdict: EvaluateResult | Failure,
) -> None:
    record = Record.of(a_rollout(sample=sample, turns=[Message(role="assistant", content=said)]), verdict)
    line = LineWriter(samples_file, row_of).result_line(record, "00")[-1]
    whole = orjson.loads(entry_of(record, "00", row_of(record)).line()[-1])
    row = orjson.loads(line)
    assert row.keys() - {"sample"} == whole.keys()
    assert whole_row(row, samples_file) == whole
    if sample.columns.get("x") is None and "sample" not in row:
        assert BIG.encode() not in sample_json(sample)
    if said != BIG:
        assert BIG.encode() not in line


def test_a_part_is_named_by_the_sha256_of_its_text(samples_file: Samples) -> None:
    sample = Sample(id="a", messages=[Message(role="user", content=BIG)], columns={"small": "x", "list": [BIG, 1]})
    record = Record.of(a_rollout(sample=sample), EvaluateResult(score=1.0))
    row = orjson.loads(LineWriter(samples_file).result_line(record, "00")[-1])
    name = f"sha256:{hashlib.sha256(BIG.encode()).hexdigest()}"
    assert (row["user_query"], row["messages"][0]["content"]) == (name, name)
    assert row["columns"] == {"small": "x", "list": [name, 1]}
    assert row["sample"].encode() == sample_name(sample_json(sample))


@pytest.mark.parametrize("text", [BIG, PICTURE])
def test_the_line_of_a_shell_task_is_whole(samples_file: Samples, text: str) -> None:
    sample = Sample(id="a", messages=[Message(role="user", content=text)], columns={"task": text})
    record = Record.of(a_rollout(sample=sample), EvaluateResult(score=1.0))
    row = orjson.loads(LineWriter(samples_file, shell_result_row).result_line(record, "00")[-1])
    assert row["task"] == text
    assert whole_row(row, samples_file) == row


def test_the_copies_of_a_sample_are_told_each_by_itself(samples_file: Samples) -> None:
    first = a_rollout()
    other = a_rollout(sample=first.sample.model_copy(update={"columns": {"level": 4}}))
    writer = LineWriter(samples_file)
    lines = [writer.rollout_line(each, "00")[-1] for each in (first, other)]
    assert [rollout_from_line(line, samples_file).sample.columns["level"] for line in lines] == [3, 4]
    records = [Record.of(each, EvaluateResult(score=1.0)) for each in (first, other)]
    assert [orjson.loads(writer.result_line(record, "00")[-1])["columns"]["level"] for record in records] == [3, 4]


@given(order=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=30), kept=st.integers(0, 4))
def test_whatever_was_written_before_a_line_is_the_same(
    samples_file: Samples, order: list[tuple[int, bool]], kept: int
) -> None:
    """One writer that keeps pieces, however few of them, beside a new one for each line."""
    rollouts = [a_rollout(sample=a_rollout().sample.model_copy(update={"id": f"s{number}"})) for number in range(5)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_writer, "_KEPT", kept)
        writer = LineWriter(samples_file)
        for number, judged in order:
            rollout, content = rollouts[number], f"{number:02x}"
            if judged:
                record = Record.of(rollout, EvaluateResult(score=float(number)))
                assert writer.result_line(record, content) == LineWriter(samples_file).result_line(record, content)
            else:
                assert writer.rollout_line(rollout, content) == LineWriter(samples_file).rollout_line(rollout, content)


def test_what_is_kept_of_samples_is_bounded(samples_file: Samples) -> None:
    writer = LineWriter(samples_file)
    for number in range(5 * line_writer._KEPT):
        writer.rollout_line(a_rollout(sample=a_rollout().sample.model_copy(update={"id": f"s{number}"})), "00")
    assert line_writer._KEPT <= len(writer._recent) + len(writer._before) <= 2 * line_writer._KEPT


def a_rollout(**changes: Any) -> Rollout:
    sample = Sample(
        id="a",
        messages=[Message(role="system", content="Be brief."), Message(role="user", content="2+2?")],
        ground_truth="4",
        columns={"level": 3},
        position=7,
    )
    return Rollout(
        sample=sample, response_index=1, turns=[Message(role="assistant", content="4")], model="m", cost=0.1
    ).model_copy(update=changes)


def row_of(rollout: Rollout, verdict: EvaluateResult | Failure) -> dict[str, Any]:
    nowhere = Samples(Path("/nowhere"))
    row: dict[str, Any] = orjson.loads(LineWriter(nowhere).result_line(Record.of(rollout, verdict), "00")[-1])
    return row


def test_a_verdict_has_the_columns_users_know() -> None:
    metrics = {"exact": MetricResult(score=1.0, reason="same", is_score_valid=True)}
    row = row_of(a_rollout(), EvaluateResult(score=0.5, reason="half", metrics=metrics))
    assert row.keys() >= COLUMNS
    assert (row["id"], row["response_index"], row["position"], row["status"]) == ("a", 1, 7, "ok")
    assert (row["user_query"], row["system_prompt"], row["assistant_response"]) == ("2+2?", "Be brief.", "4")
    assert (row["evaluation_score"], row["evaluation_reason"], row["error"]) == (0.5, "half", None)
    assert row["evaluation_metrics"] == {"exact": {"score": 1.0, "is_score_valid": True, "reason": "same"}}
    assert row["columns"] == {"level": 3}


@pytest.mark.parametrize(("retryable", "status"), [(True, "retry"), (False, "failed")])
def test_a_failure_has_no_score(retryable: bool, status: str) -> None:
    failure = Failure(stage="score", type="RewardError", message="it broke", retryable=retryable)
    row = row_of(a_rollout(), failure)
    assert row.keys() >= COLUMNS
    assert (row["evaluation_score"], row["is_score_valid"], row["error"]) == (None, False, "RewardError: it broke")
    assert (row["status"], row["failure"]["stage"]) == (status, "score")


def test_step_rewards_are_kept() -> None:
    steps = [StepOutput(step_index=0, base_reward=0.25, metrics={"x": 1})]
    assert row_of(a_rollout(), EvaluateResult(score=1.0, step_outputs=steps))["step_outputs"][0]["base_reward"] == 0.25


@pytest.mark.parametrize("truth", [2**70, "lone \ud800 surrogate", {1: "a key that is a number"}])
def test_what_json_can_hardly_hold_is_written_all_the_same(samples_file: Samples, truth: Any) -> None:
    rollout = a_rollout()
    rollout = rollout.model_copy(update={"sample": rollout.sample.model_copy(update={"ground_truth": truth})})
    assert row_of(rollout, EvaluateResult(score=1.0))["evaluation_score"] == 1.0
    assert rollout_from_line(line_of(rollout, samples_file), samples_file).sample.id == "a"


@pytest.mark.parametrize("odd", [2**70, "lone \ud800 surrogate"])
@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_number_that_json_lacks_is_null_beside_anything(samples_file: Samples, odd: Any, number: float) -> None:
    columns = {"x": [number], "said": "NaN"}
    rollout = a_rollout()
    rollout = rollout.model_copy(
        update={"sample": rollout.sample.model_copy(update={"ground_truth": odd, "columns": columns})}
    )
    stored = samples_file.line(samples_file.keep(rollout.sample))
    for row in (orjson.loads(stored), row_of(rollout, EvaluateResult(score=1.0))):
        assert row["columns"] == {"x": [None], "said": "NaN"}


def test_a_preview_pair_is_made_only_of_answers() -> None:
    answered = row_of(a_rollout(), EvaluateResult(score=1.0))
    assert preview_pair(answered) == {"messages": answered["messages"], "id": "a", "ground_truth": "4"}
    assert preview_pair(row_of(a_rollout(turns=[], failure=LATE), LATE)) is None


@pytest.mark.parametrize("line", [b"{}", b"not json", b'{"schema":1,"id":"a","response_index":0}'])
def test_a_line_that_is_no_rollout_is_refused_in_a_sentence(samples_file: Samples, line: bytes) -> None:
    with pytest.raises(StorageError, match=r"is not a rollout .* rollouts\.jsonl"):
        rollout_from_line(line, samples_file)
