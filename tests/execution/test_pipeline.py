# SPDX-License-Identifier: Apache-2.0
"""Whole runs: n variants, order, growing, whole groups, answers in the data, copies, and the ways to start one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from reward_kit.config_models import Sampling
from reward_kit.errors import ConfigError, DatasetError, StorageError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from reward_kit.models import Completion, Failure, Message, Sample
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_lines import Entry, Line
from tests.generation.loopback import Misbehave, Says
from tests.loopback.endpoint import asked_twice, honest, prompt_of, serving
from tests.loopback.runs import config, judged, keys, lines, questions, results, write_rows


def run(told: Mapping[str, Any], **options: Any) -> RunResult:
    return EvaluationPipeline(told, **options).run()


def slowly_and_out_of_order(body: dict[str, Any], number: int) -> Misbehave:
    """Every answer takes another while, so that the last prompt may be answered first."""
    wait = random.Random(prompt_of(body)).random() / 10
    reply: Says = honest(body, number)

    async def answer_late(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(wait)
        writer.write(reply.encoded())
        await writer.drain()

    return answer_late


# ── n variants ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", ["native", "fanout"])
@pytest.mark.parametrize("reward", ["quick", "steady", "ranking"])
def test_variants_differ_are_numbered_and_come_out_in_dataset_order(tmp_path: Path, mode: str, reward: str) -> None:
    with serving(slowly_and_out_of_order) as endpoint:
        told = config(
            tmp_path, endpoint.api_base, rows=questions(8), reward=reward, generation__n=3, generation__n_mode=mode
        )
        result = run(told)
        sent = len(endpoint.requests)
    in_order = [(f"s{i}", draw) for i in range(8) for draw in range(3)]
    for name in ("rollouts.jsonl", "results.jsonl"):
        assert keys(lines(tmp_path / "run" / name)) == in_order
    assert len({row["assistant_response"] for row in results(tmp_path).values()}) == 24
    assert sent == (8 if mode == "native" else 24)
    assert (result.judged, result.failed, result.status) == (24, 0, "finished")
    assert result.summary["samples"] == 8


def test_growing_n_and_the_limit_pays_only_for_what_is_new(tmp_path: Path) -> None:
    with serving(honest) as endpoint:
        told = config(tmp_path, endpoint.api_base, rows=questions(6), generation__n=2, generation__n_mode="fanout")
        limited = told | {"evaluation_params": {"limit_samples": 3}}
        run(limited)
        first = judged(results(tmp_path))
        assert len(endpoint.requests) == 6
        run(told)
        assert len(endpoint.requests) == 12
        run(told | {"generation": told["generation"] | {"n": 4}})
        assert len(endpoint.requests) == 24
        assert not asked_twice(endpoint.requests)
    grown = judged(results(tmp_path))
    assert {key: grown[key] for key in first} == first
    assert list(grown) == [(f"s{i}", draw) for i in range(6) for draw in range(4)]
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["generation"]["n"] == 4


@pytest.mark.parametrize("path", ["n", "phase", "killed"])
def test_a_batch_reward_gets_whole_groups(tmp_path: Path, path: str) -> None:
    """After growing n, in the execution phase, and where a group was scored in part, all are judged together."""
    told = config(tmp_path, rows=questions(3), reward="ranking", generation__n=2)
    grown = told | {"generation": told["generation"] | {"n": 4}}
    run(told)
    assert {row["evaluation_reason"] for row in results(tmp_path).values()} == {"1 of 2"}
    if path == "phase":
        run(grown, phase="inference")
        run(grown, phase="execution")
    else:
        run(grown)
    if path == "killed":
        journal = tmp_path / "run" / "results.jsonl"
        journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:6]))
        run(grown)
    assert list(results(tmp_path)) == [(f"s{i}", draw) for i in range(3) for draw in range(4)]
    assert {row["evaluation_reason"] for row in results(tmp_path).values()} == {"1 of 4"}


def test_a_smaller_n_or_limit_owes_nothing_and_keeps_everything(tmp_path: Path) -> None:
    told = config(tmp_path, rows=questions(4), generation__n=3)
    run(told)
    before = results(tmp_path)
    result = run(told | {"generation": told["generation"] | {"n": 1}, "evaluation_params": {"limit_samples": 1}})
    assert result.counters.generated == 0
    assert results(tmp_path) == before
    assert result.summary["not_asked_for"] == 11, "and it is said that the figures are of more than was asked for"
    assert run(told).summary.get("not_asked_for") is None


@pytest.mark.parametrize("phase", ["inference", "both"])
def test_rows_that_were_taken_out_are_told_of(tmp_path: Path, phase: Any) -> None:
    told = config(tmp_path, rows=questions(4), generation__n=2)
    assert "not_asked_for" not in run(told, phase=phase).summary
    write_rows(tmp_path / "dataset.jsonl", questions(4)[1:])
    assert run(told, phase=phase).summary["not_asked_for"] == 2


def test_answers_that_were_taken_out_of_the_data_are_told_of(tmp_path: Path) -> None:
    rows = [row | {"assistant_response": "It is 4."} for row in questions(3)]
    told = config(tmp_path, rows=rows, generation__enabled=False)
    assert "not_asked_for" not in run(told).summary
    write_rows(tmp_path / "dataset.jsonl", rows[:1])
    assert run(told).summary["not_asked_for"] == 2
    assert "not_asked_for" not in run(told, phase="execution").summary, "where there is no dataset, all is asked for"


def test_rows_that_moved_keep_their_answers_and_come_out_where_they_stand_now(tmp_path: Path) -> None:
    with serving(honest) as endpoint:
        told = config(tmp_path, endpoint.api_base, rows=questions(5), generation__n=2, generation__n_mode="fanout")
        run(told)
        shuffled = [questions(7)[i] for i in (3, 5, 0, 4, 6, 2, 1)]
        write_rows(tmp_path / "dataset.jsonl", shuffled)
        run(told | {"generation": told["generation"] | {"n": 3}})
        assert not asked_twice(endpoint.requests)
        assert len(endpoint.requests) == 21
    order = [(row["id"], draw) for row in shuffled for draw in range(3)]
    for name in ("rollouts.jsonl", "results.jsonl"):
        assert keys(lines(tmp_path / "run" / name)) == order
    # What is scored later, without the dataset, stands in the same order and is grouped whole.
    (tmp_path / "dataset.jsonl").unlink()
    ranked = told | {"reward": {"function_path": told["reward"]["function_path"].replace("quick", "ranking")}}
    result = run(ranked, rescore=True)
    assert list(results(tmp_path)) == order
    assert {row["evaluation_reason"] for row in results(tmp_path).values()} == {"1 of 3"}
    assert result.summary["samples"] == 7


def test_rows_that_only_moved_are_put_in_their_new_order(tmp_path: Path) -> None:
    told = config(tmp_path, rows=questions(5), generation__n=2)
    run(told)
    before = judged(results(tmp_path))
    shuffled = [questions(5)[i] for i in (3, 0, 4, 2, 1)]
    write_rows(tmp_path / "dataset.jsonl", shuffled)
    assert run(told).counters.generated == 0
    order = [(row["id"], draw) for row in shuffled for draw in range(2)]
    for name in ("rollouts.jsonl", "results.jsonl"):
        assert keys(lines(tmp_path / "run" / name)) == order
    assert judged(results(tmp_path)) == before


def test_a_finished_run_asks_nobody_and_judges_nothing_again(tmp_path: Path) -> None:
    with serving(honest) as endpoint:
        told = config(tmp_path, endpoint.api_base, generation__n=2)
        first = run(told)
        files = {path.name: path.read_bytes() for path in (tmp_path / "run").glob("*.jsonl")}
        endpoint.requests.clear()
        again = run(told)
        assert not endpoint.requests
    assert again.mean_score == first.mean_score
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").glob("*.jsonl")} == files


def test_a_retryable_failure_is_owed_again_and_its_record_replaced(tmp_path: Path) -> None:
    out_of_order = [True]

    def react(body: dict[str, Any], number: int) -> Says:
        return (
            Says(503, {"error": {"message": "full"}})
            if out_of_order and "1" in prompt_of(body)
            else honest(body, number)
        )

    with serving(react) as endpoint:
        told = config(tmp_path, endpoint.api_base, generation__api_params={"max_retries": 0})
        first = run(told)
        assert (first.judged, first.failed) == (3, 1)
        assert results(tmp_path)["s1", 0]["evaluation_score"] is None
        out_of_order.clear()
        second = run(told)
    assert (second.judged, second.failed, second.counters.generated) == (4, 0, 1)
    assert list(results(tmp_path)) == [(f"s{i}", 0) for i in range(4)]
    assert len(lines(tmp_path / "run" / "rollouts.jsonl")) == 4


# ── answers that are in the data ─────────────────────────────────────────────────────────────────────────────────────


def test_answers_in_a_column_are_scored(tmp_path: Path) -> None:
    rows = [row | {"assistant_response": f"It is {i}."} for i, row in enumerate(questions(3))]
    run(config(tmp_path, rows=rows, generation__enabled=False))
    found = results(tmp_path)
    assert [row["assistant_response"] for row in found.values()] == ["It is 0.", "It is 1.", "It is 2."]
    assert all(row["evaluation_score"] is not None for row in found.values())


def test_answers_at_the_end_of_messages_are_scored(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    run(config(tmp_path, rows=[{"id": "a", "messages": turns, "ground_truth": "4"}], generation__enabled=False))
    (row,) = results(tmp_path).values()
    assert (row["user_query"], row["assistant_response"], row["messages"]) == ("2+2?", "4", turns)


def test_several_answers_of_a_sample_are_its_variants(tmp_path: Path) -> None:
    rows = [{"id": "a", "user_query": "q", "assistant_response": text} for text in ("x", "y", "z")]
    told = config(tmp_path, rows=[*rows, {"id": "b", "user_query": "r", "assistant_response": "w"}], reward="ranking",
                  generation__enabled=False)  # fmt: skip
    result = run(told)
    assert list(results(tmp_path)) == [("a", 0), ("a", 1), ("a", 2), ("b", 0)]
    assert results(tmp_path)["a", 1]["evaluation_reason"] == "1 of 3"
    assert set(result.summary["pass_at_k"]) == {"1", "2", "3"}, "there are three answers, whatever n says"
    assert run(told).counters.scored == 0


def test_an_answer_that_changed_under_its_id_is_refused(tmp_path: Path) -> None:
    rows = [row | {"assistant_response": "old"} for row in questions(2)]
    told = config(tmp_path, rows=rows, generation__enabled=False)
    run(told)
    write_rows(tmp_path / "dataset.jsonl", [rows[0] | {"assistant_response": "new"}, rows[1]])
    with pytest.raises(StorageError, match="Answer 0 of sample 's0' has changed since"):
        run(told)


def test_an_answer_added_later_is_scored_and_the_others_are_not_scored_again(tmp_path: Path) -> None:
    rows = [{"id": "a", "user_query": "q", "assistant_response": "x"}]
    told = config(tmp_path, rows=rows, generation__enabled=False)
    run(told)
    write_rows(tmp_path / "dataset.jsonl", [*rows, rows[0] | {"assistant_response": "y"}])
    assert run(told).counters.scored == 1
    assert list(results(tmp_path)) == [("a", 0), ("a", 1)]


# ── copies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_copies_go_where_they_were_asked_for(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "copy.jsonl"
    told = config(tmp_path, output__results_file=str(elsewhere), output__preview_pairs_file="pairs.jsonl")
    run(told)
    assert lines(elsewhere) == list(results(tmp_path).values())
    pairs = lines(tmp_path / "run" / "pairs.jsonl")
    assert [pair["id"] for pair in pairs] == ["s0", "s1", "s2", "s3"]
    assert [message["role"] for message in pairs[0]["messages"]] == ["user", "assistant"]
    assert pairs[0]["ground_truth"] == "0"
    elsewhere.unlink()
    run(told)
    assert elsewhere.exists(), "asked for again, made again"


@pytest.mark.parametrize("name", ["rollouts.jsonl", "results.jsonl", "config.yaml", "manifest.json", "summary.json"])
def test_a_copy_never_takes_the_place_of_a_file_of_the_run(tmp_path: Path, name: str) -> None:
    told = config(tmp_path, output__preview_pairs_file=name)
    with pytest.raises(ConfigError, match="preview_pairs_file"):
        run(told)
    assert not (tmp_path / "run").exists()


def test_the_results_file_may_be_the_results_themselves(tmp_path: Path) -> None:
    run(config(tmp_path, output__results_file="results.jsonl"))
    assert len(results(tmp_path)) == 4


# ── ways to start ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("reward", ["quick", "steady"])
async def test_run_works_inside_a_running_loop(tmp_path: Path, reward: str) -> None:
    assert run(config(tmp_path, reward=reward)).judged == 4


async def test_run_async_leaves_the_loop_usable(tmp_path: Path) -> None:
    result = await EvaluationPipeline(config(tmp_path, reward="steady")).run_async()
    assert [row["id"] for row in result.rows()] == ["s0", "s1", "s2", "s3"]
    await asyncio.sleep(0)
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


def test_samples_and_a_generator_of_rows_stand_in_for_the_dataset(tmp_path: Path) -> None:
    told = config(tmp_path) | {"dataset": None}
    assert run(told, samples=(row for row in questions(3))).judged == 3
    sample = Sample(id="own", messages=[Message(role="user", content="hello")], columns={"level": 7})
    other = told | {"output": {"output_dir": str(tmp_path / "other")}}
    run(other, samples=[sample])
    assert results(tmp_path, "other")["own", 0]["columns"] == {"level": 7}


def test_the_config_a_run_wrote_is_itself_a_valid_input(tmp_path: Path) -> None:
    run(config(tmp_path, generation__n=2, system_prompt="Be brief."))
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    before = results(tmp_path)
    result = run(written)
    assert result.counters.generated == 0
    assert results(tmp_path) == before


def test_without_a_dataset_there_is_nothing_to_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.path_or_name"):
        run(config(tmp_path) | {"dataset": None})


# ── clients of one's own ─────────────────────────────────────────────────────────────────────────────────────────────


class Broken:
    """A client with a bug."""

    model = "broken"
    identity: Mapping[str, Any] = {"model": "broken"}

    def __init__(self, error: BaseException | None) -> None:
        self.error = error
        self.asked = asyncio.Event()
        self.closed = False

    async def generate(
        self, messages: Sequence[Message], *, draws: Sequence[int], sampling: Sampling,
        tools: list[dict[str, Any]] | None = None, sample_id: str = "",
    ) -> list[Completion | Failure]:  # fmt: skip
        self.asked.set()
        await asyncio.sleep(0.01)
        if sample_id == "s2" and self.error is not None:
            raise self.error
        if self.error is None:
            await asyncio.sleep(600)
        return [Completion(message=Message(role="assistant", content=f"{sample_id} {draw}")) for draw in draws]

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("reward", ["quick", "steady"])
@pytest.mark.parametrize("error", [KeyError("oops"), asyncio.CancelledError()])
def test_a_bug_in_a_client_ends_the_run_instead_of_hanging_it(
    tmp_path: Path, reward: str, error: BaseException
) -> None:
    client = Broken(error)
    with pytest.raises((KeyError, RuntimeError)):
        run(config(tmp_path, reward=reward), client=client)
    assert client.closed


async def test_cancelling_run_async_ends_it_at_once(tmp_path: Path) -> None:
    client = Broken(None)
    pipeline = EvaluationPipeline(config(tmp_path, reward="steady"), client=client)
    running = asyncio.create_task(pipeline.run_async())
    await client.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert client.closed


def test_a_bug_while_scoring_ends_the_run_although_the_queue_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reward_kit.execution import engine
    from reward_kit.execution.counters import RunCounters

    def bug(*_: object) -> None:
        raise AttributeError("a bug of ours")

    monkeypatch.setattr(RunCounters, "count_verdict", bug)
    monkeypatch.setattr(engine, "_GRACE_SECONDS", 0.2)
    with pytest.raises(AttributeError, match="a bug of ours"):
        run(config(tmp_path, rows=questions(3000)))
    assert len(lines(tmp_path / "run" / "rollouts.jsonl")) >= 1


def test_a_disk_that_does_not_take_the_lines_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reward_kit.execution import engine

    def refuse(self: Journal) -> None:
        raise StorageError("not on the disk")

    monkeypatch.setattr(engine, "_SYNC_SECONDS", 0.05)
    monkeypatch.setattr(engine, "_GRACE_SECONDS", 0.2)
    with monkeypatch.context() as patch, pytest.raises(StorageError, match="not on the disk"):
        patch.setattr(Journal, "sync", refuse)
        run(config(tmp_path, generation__mock={"latency_ms": 500}, rows=questions(2000)))
    assert len(lines(tmp_path / "run" / "rollouts.jsonl")) < 2000


@pytest.mark.parametrize("journal", ["rollouts.jsonl", "results.jsonl"])
@pytest.mark.parametrize("error", [StorageError("no room"), AttributeError("a bug of ours")])
def test_a_line_that_could_not_be_written_is_never_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str, error: Exception
) -> None:
    """Not even when it is the last one, and nothing comes after it that would notice."""
    write = Journal.append

    def broken(self: Journal, entries: Sequence[Entry | Line]) -> None:
        if self.path.name == journal and any(b'"id":"s3"' in bytes(entry[-1]) for entry in entries):
            raise error
        write(self, entries)

    told = config(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", broken)
        with pytest.raises(type(error), match=str(error)):
            run(told)
    assert run(told).judged == 4


def test_an_interrupt_does_not_wait_for_a_reward_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reward_kit.execution import engine

    monkeypatch.setattr(engine, "_GRACE_SECONDS", 0.3)
    told = config(tmp_path, reward="interrupting", rows=questions(4))
    result = run(told)
    assert result.status == "interrupted"
    assert 2 <= len(results(tmp_path)) <= 3
    calm = config(tmp_path, reward="quick")
    with pytest.raises(StorageError):
        run(calm)
    assert run(calm, rescore=True).judged == len(lines(tmp_path / "run" / "rollouts.jsonl"))


# ── data that is wrong ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_bad_row_late_in_the_dataset_loses_nothing_before_it(tmp_path: Path) -> None:
    dataset = write_rows(tmp_path / "dataset.jsonl", questions(20))
    with dataset.open("ab") as file:
        file.write(b'{"id": "broken", "user_query": \n')
    told = config(tmp_path)
    with pytest.raises(DatasetError, match=r"dataset\.jsonl.*21"):
        run(told)
    assert len(lines(tmp_path / "run" / "rollouts.jsonl")) == 20
    assert len(results(tmp_path)) == 20
    write_rows(dataset, questions(21))
    assert run(told).counters.generated == 1


def test_rows_skipped_on_request_are_counted(tmp_path: Path) -> None:
    told = config(tmp_path, rows=[*questions(2), {"id": "no prompt"}], dataset__on_bad_row="skip")
    assert run(told).summary["skipped_rows"] == 1
    assert len(results(tmp_path)) == 2


def test_an_id_that_is_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="column 'id' holds half of a character"):
        run(config(tmp_path) | {"dataset": None}, samples=[{"id": "lone \ud800", "user_query": "q"}])


def test_unusual_data_goes_through_unchanged(tmp_path: Path) -> None:
    truth = {"nested": [1, None, "é\n\"'"], "big": 2**60}
    rows: list[dict[str, Any]] = [
        {"id": "quotes \"'\\ \n line", "user_query": "tab\there", "ground_truth_for_eval": truth, "none": None},
        {"id": "ünïcode 🎉", "user_query": " ", "ground_truth_for_eval": 0},
    ]
    run(config(tmp_path, rows=rows))
    assert [row["id"] for row in results(tmp_path).values()] == [row["id"] for row in rows]
    assert results(tmp_path)[rows[0]["id"], 0]["ground_truth_for_eval"] == truth
    line = lines(tmp_path / "run" / "rollouts.jsonl")[0]
    assert line["sample"]["messages"][-1]["content"] == "tab\there"
    assert orjson.dumps(line["sample"]["ground_truth"]) == orjson.dumps(truth)
