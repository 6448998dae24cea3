# SPDX-License-Identifier: Apache-2.0
"""Runs whose answers come by batches, against a provider on this machine that can fail at every step."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reward_kit.cli import cli
from reward_kit.errors import AuthError, ConfigError, EndpointError, RewardKitError, StorageError
from reward_kit.execution.pipeline import EvaluationPipeline
from tests.loopback.batches import ACCOUNT, KEY, RESPONSES, Provider, serving
from tests.loopback.endpoint import prompt_of
from tests.loopback.runs import config, judged, lines, questions, results, write_rows


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCH_KEY", KEY)


def by_batches(home: Path, base: str, *, count: int = 7, n: int = 3, **settings: Any) -> EvaluationPipeline:
    home.mkdir(parents=True, exist_ok=True)
    values = config(
        home, base, rows=questions(count), generation__transport="batch", generation__n=n,
        generation__api_key_env="BATCH_KEY", generation__batch={"poll_seconds": 0.01},
        generation__api_params={"max_retries": 3}, generation__price={"input": 2.0, "output": 4.0},
    )  # fmt: skip
    for path, value in settings.items():
        if path == "detach":
            continue
        part = values
        *parents, last = path.split("__")
        for name in parents:
            part = part.setdefault(name, {})
        part[last] = value
    return EvaluationPipeline(values, detach=bool(settings.get("detach")))


def online(home: Path, base: str, **more: Any) -> dict[Any, Any]:
    """The judged rows of an ordinary run, one request per answer."""
    values = config(
        home, base, rows=questions(more.get("count", 7)), generation__n=more.get("n", 3), generation__n_mode="fanout",
    )  # fmt: skip
    values["output"]["output_dir"] = str(home / "online")
    EvaluationPipeline(values).run()
    return judged(results(home, "online"))


def paid_once(provider: Provider) -> bool:
    return set(provider.answered.values()) == {1}


def test_a_run_by_batches_has_the_answers_of_one_online(tmp_path: Path) -> None:
    provider = Provider(polls=3)
    with serving(provider) as base:
        result = by_batches(tmp_path, base, generation__batch={"max_requests": 5, "poll_seconds": 0.01}).run()
        expected = online(tmp_path, base)
    assert result.status == "finished"
    assert judged(results(tmp_path)) == expected
    assert provider.complaints == []
    assert len(provider.batches) == 5  # 21 requests, 5 at a time
    assert paid_once(provider)
    rows = results(tmp_path)
    assert {row["cost"] for row in rows.values()} == {(10 * 1.0 + 20 * 2.0) / 1e6}
    assert not (tmp_path / "run/batches").exists()
    events = [line["event"] for line in lines(tmp_path / "run/batches.jsonl")]
    assert events.count("absorbed") == 5


def test_a_model_of_the_responses_is_asked_by_batches_as_it_is_online(tmp_path: Path) -> None:
    provider = Provider(endpoint=RESPONSES, polls=1)
    with serving(provider) as base:
        result = by_batches(tmp_path, base, generation__api="responses").run()
        provider.fate = lambda body, times: (400, {"code": "invalid_prompt", "message": "No."}) if odd(body) else "lose"
        failed = by_batches(tmp_path / "failed", base, generation__api="responses", generation__batch={"attempts": 1})
        failed.run()
    assert (result.status, result.failed, provider.complaints) == ("finished", 0, [])
    rows = results(tmp_path).values()
    assert {row["cost"] for row in rows} == {(10 * 1.0 + 20 * 2.0) / 1e6} and len(rows) == 21
    asked = lines(tmp_path / "run/rollouts.jsonl")[0]
    assert asked["finish_reason"] == "stop" and asked["usage"]["completion_tokens"] == 20
    assert all(line["failure"] is not None for line in lines(tmp_path / "failed/run/rollouts.jsonl"))


def test_it_is_refused_where_it_cannot_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'mock' is not asked at one"):
        by_batches(tmp_path, "http://127.0.0.1:1/v1", generation__model_name="mock", generation__api_base=None)
    with pytest.raises(ConfigError, match="waits for each answer"):
        by_batches(tmp_path, "http://127.0.0.1:1/v1", agent={"sandbox_tools": ["bash"]})
    with pytest.raises(ConfigError, match="n_mode"):
        by_batches(tmp_path, "http://127.0.0.1:1/v1", generation__n_mode="native")


# ── what a provider does to lines ────────────────────────────────────────────────────────────────────────────────────


def odd(body: dict[str, Any]) -> bool:
    return int(prompt_of(body).removeprefix("What is ").rstrip("?")) % 2 == 1


@pytest.mark.parametrize("fate", ["lose", "expire", (500, {"message": "overloaded"}), (429, {"message": "slow"})])
def test_lines_without_an_answer_are_asked_for_again(tmp_path: Path, fate: Any) -> None:
    seen: Counter[tuple[str, Any]] = Counter()

    def once(body: dict[str, Any], _: int) -> Any:
        key = (prompt_of(body), body["seed"])
        seen[key] += 1
        return fate if odd(body) and seen[key] == 1 else "answer"

    provider = Provider(fate=once)
    with serving(provider) as base:
        result = by_batches(tmp_path, base).run()
        expected = online(tmp_path, base)
    assert (result.status, result.failed) == ("finished", 0)
    assert judged(results(tmp_path)) == expected
    assert paid_once(provider)
    assert [len(batch.lines) for batch in provider.batches.values()] == [21, 9]
    assert provider.complaints == []


def test_what_never_comes_is_a_failure_and_owed_again(tmp_path: Path) -> None:
    provider = Provider(fate=lambda body, _: "lose" if odd(body) else "answer")
    with serving(provider) as base:
        result = by_batches(tmp_path, base, generation__batch={"attempts": 2, "poll_seconds": 0.01}).run()
        assert (result.judged, result.failed) == (12, 9)
        failed = [row for row in results(tmp_path).values() if row.get("failure")]
        assert {row["evaluation_score"] for row in failed} == {None}
        assert all("no answer" in row["failure"]["message"] for row in failed)
        assert len(provider.batches) == 2
        provider.fate = lambda body, _: "answer"
        again = by_batches(tmp_path, base).run()
        assert (again.judged, again.failed) == (21, 0)
        assert judged(results(tmp_path)) == online(tmp_path, base)
    assert paid_once(provider)


def test_a_refused_line_is_a_failure_that_says_what_to_change(tmp_path: Path) -> None:
    error = {"message": "Unsupported parameter: 'temperature' is not supported with this model.", "code": "x"}
    provider = Provider(fate=lambda body, _: (400, error) if odd(body) else "answer")
    with serving(provider) as base:
        result = by_batches(tmp_path, base).run()
    assert len(provider.batches) == 1  # asking again would come to the same
    assert (result.judged, result.failed) == (12, 9)
    [message] = {row["failure"]["message"] for row in results(tmp_path).values() if row.get("failure")}
    assert "'temperature'" in message and "Take it out of the configuration" in message


def test_an_account_without_credit_stops_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    poor = (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"})
    provider = Provider(fate=lambda body, _: poor if odd(body) else "answer")
    with serving(provider) as base:
        with pytest.raises(EndpointError, match="out of credit"):
            by_batches(tmp_path, base).run()
        provider.fate = lambda body, _: "answer"
        assert by_batches(tmp_path, base).run().status == "finished"
        assert judged(results(tmp_path)) == online(tmp_path, base)
    assert paid_once(provider)


def test_lines_that_come_twice_count_once(tmp_path: Path) -> None:
    provider = Provider(fate=lambda body, _: "twice")
    with serving(provider) as base:
        by_batches(tmp_path, base).run()
        assert judged(results(tmp_path)) == online(tmp_path, base)


# ── how batches end ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_expired_batch_is_taken_in_and_its_rest_asked_for_again(tmp_path: Path) -> None:
    provider = Provider(end=lambda number: "expired" if number == 0 else "completed")
    with serving(provider) as base:
        assert by_batches(tmp_path, base).run().status == "finished"
        assert judged(results(tmp_path)) == online(tmp_path, base)
    assert [len(batch.lines) for batch in provider.batches.values()] == [21, 11]
    assert paid_once(provider)


def test_a_cancelled_batch_is_taken_in_and_its_rest_stays_owed(tmp_path: Path) -> None:
    provider = Provider(polls=1000)
    with serving(provider) as base:
        assert by_batches(tmp_path, base, detach=True).run().status == "detached"
        cli.main(["batches", "cancel", str(tmp_path / "run")], standalone_mode=False)
        result = by_batches(tmp_path, base).run()
        assert result.status == "stopped"
        assert "11 requests of a batch that was cancelled" in str(result.reason)
        assert (result.judged, len(provider.batches)) == (10, 1)
        provider.polls = 1
        assert by_batches(tmp_path, base).run().status == "finished"
        assert judged(results(tmp_path)) == online(tmp_path, base)
    assert paid_once(provider)


def test_a_refused_batch_stops_the_run_and_is_made_anew_later(tmp_path: Path) -> None:
    provider = Provider(end=lambda number: "failed" if number == 0 else "completed")
    with serving(provider) as base:
        with pytest.raises(EndpointError, match=r"refused the batch 'batch_0' \(failed: that will not do\)"):
            by_batches(tmp_path, base).run()
        assert by_batches(tmp_path, base).run().status == "finished"
    assert paid_once(provider)


def test_a_provider_without_room_is_asked_again_later(tmp_path: Path) -> None:
    provider = Provider(end=lambda number: "declined" if number in {0, 1} else "completed")
    with serving(provider) as base:
        result = by_batches(tmp_path, base, generation__batch={"max_requests": 11, "poll_seconds": 0.05}).run()
        assert judged(results(tmp_path)) == online(tmp_path, base)
    assert result.status == "finished"
    assert paid_once(provider)


# ── steps that fail ──────────────────────────────────────────────────────────────────────────────────────────────────

FAULTS = [
    ("upload", ["before"]), ("upload", ["after"]), ("upload", ["429", "500"]),
    ("create", ["before"]), ("create", ["after"]), ("create", ["500 after"]), ("create", ["429", "500", "before"]),
    ("state", ["before", "500", "429"]), ("list", ["500", "before"]),
    ("content", ["cut"]), ("content", ["cut", "before", "500"]),
]  # fmt: skip


@pytest.mark.parametrize(("step", "faults"), FAULTS)
def test_a_step_that_fails_is_repeated_and_nothing_is_submitted_twice(
    tmp_path: Path, step: str, faults: list[str]
) -> None:
    script = {step: list(faults)}
    if step == "list":
        script["create"] = ["after"]
    provider = Provider(faults=script, page=1, polls=2)
    with serving(provider) as base:
        result = by_batches(tmp_path, base, generation__batch={"max_requests": 11, "poll_seconds": 0.01}).run()
        assert judged(results(tmp_path)) == online(tmp_path, base)
    assert result.status == "finished"
    assert all(not left for left in script.values())
    assert len(provider.batches) == 2
    assert set(provider.asked.values()) == {1}
    assert provider.complaints == []


def test_output_that_changes_between_fetches_is_taken_as_it_came_whole(tmp_path: Path) -> None:
    provider = Provider(faults={"content": ["cut"]})

    def reorder(step: str) -> None:
        if step == "content":
            for name in [name for name in provider.files if name.endswith("-output")]:
                provider.files[name] = b"".join(reversed(provider.files[name].splitlines(keepends=True)))

    provider.on_step = reorder
    with serving(provider) as base:
        by_batches(tmp_path, base).run()
        assert judged(results(tmp_path)) == online(tmp_path, base)


def test_output_that_is_gone_counts_as_lost(tmp_path: Path) -> None:
    provider = Provider()

    def lose(step: str) -> None:
        if step == "content" and len(provider.batches) == 1:
            provider.files.pop("batch_0-output", None)

    provider.on_step = lose
    with serving(provider) as base:
        assert by_batches(tmp_path, base).run().status == "finished"
        assert judged(results(tmp_path)) == online(tmp_path, base)
    assert len(provider.batches) == 2


def test_fetched_files_that_were_changed_are_fetched_again(tmp_path: Path) -> None:
    provider = Provider(end=lambda number: "expired", polls=1)  # so that the run is left with fetched files
    with serving(provider) as base:
        provider.faults = {"create": ["", "hang"]}
        pipeline = by_batches(tmp_path, base, generation__api_params={"max_retries": 0, "timeout": 1.0})
        with pytest.raises(RewardKitError):
            pipeline.run()
        fetched = tmp_path / "run/batches/0001.answers-1.jsonl"
        fetched.write_bytes(fetched.read_bytes().replace("→".encode(), b"->"))
        provider.end = lambda number: "completed"
        assert by_batches(tmp_path, base).run().status == "finished"
        assert judged(results(tmp_path)) == online(tmp_path, base)
    assert paid_once(provider)


def test_a_wrong_key_and_an_endpoint_without_batches_are_one_sentence(tmp_path: Path) -> None:
    with serving(Provider()) as base:
        os.environ["BATCH_KEY"] = "sk-wrong-wrong-wrong-wrong-wrong"
        with pytest.raises(AuthError, match="no such key"):
            by_batches(tmp_path, base).run()
        os.environ["BATCH_KEY"] = KEY
        with pytest.raises(EndpointError, match="interface for files and batches"):
            by_batches(tmp_path / "elsewhere", f"{base}/nowhere").run()


def test_an_echoed_key_reaches_no_file(tmp_path: Path) -> None:
    provider = Provider(fate=lambda body, _: (400, {"message": f"bad key {KEY}"}))
    with serving(provider) as base:
        by_batches(tmp_path, base).run()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


# ── money, cache, limits ─────────────────────────────────────────────────────────────────────────────────────────────


def test_max_cost_is_kept_before_anything_is_submitted(tmp_path: Path) -> None:
    provider = Provider()
    with serving(provider) as base:
        none = by_batches(tmp_path / "none", base, max_cost=0.0001).run()
        assert (none.status, len(provider.batches)) == ("stopped", 0)
        assert "by estimate" in str(none.reason) and "`max_cost`" in str(none.reason)
        some = by_batches(tmp_path, base, max_cost=0.02, generation__max_tokens=1000).run()
        assert some.status == "stopped"
        answered = len(results(tmp_path))
        assert 0 < answered < 21
        assert by_batches(tmp_path, base, max_cost=1.0, generation__max_tokens=1000).run().status == "finished"
        assert judged(results(tmp_path)) == online(tmp_path, base)
    assert paid_once(provider)


def test_the_cache_is_asked_first_and_filled_for_runs_of_either_transport(tmp_path: Path) -> None:
    cached: dict[str, Any] = {"generation__cache": {"enabled": True, "cache_dir": str(tmp_path / "cache")}}
    provider = Provider()
    with serving(provider) as base:
        first = by_batches(tmp_path / "one", base, **cached).run()
        again = by_batches(tmp_path / "two", base, **cached).run()
        plain = by_batches(tmp_path / "three", base, generation__transport="online", **cached).run()
        assert (first.counters.cached, again.counters.cached, plain.counters.cached) == (0, 21, 21)
        assert (len(provider.batches), provider.online) == (1, [])
        assert judged(results(tmp_path / "two")) == judged(results(tmp_path / "one"))
        more = by_batches(tmp_path / "four", base, n=4, **cached).run()
        assert (more.counters.cached, len(provider.batches["batch_1"].lines)) == (21, 7)


def test_the_same_prompt_under_two_ids_is_asked_once_where_there_is_a_cache(tmp_path: Path) -> None:
    rows = [{"id": name, "user_query": "What is 1?", "ground_truth_for_eval": "1"} for name in ("a", "b")]
    provider = Provider()
    with serving(provider) as base:
        values = by_batches(tmp_path, base, n=2, generation__cache__enabled=True).config.model_dump()
        write_rows(tmp_path / "dataset.jsonl", rows)
        values["generation"]["seed"] = None
        result = EvaluationPipeline(values).run()
    assert (result.judged, result.counters.cached) == (4, 2)
    assert [len(batch.lines) for batch in provider.batches.values()] == [2]


def test_files_stay_within_the_limits_and_what_fits_none_is_a_failure(tmp_path: Path) -> None:
    rows = [*questions(6), {"id": "huge", "user_query": "x" * 3000, "ground_truth_for_eval": "1"}]
    provider = Provider(most_bytes=2000, most_lines=50)
    with serving(provider) as base:
        pipeline = by_batches(tmp_path, base, generation__batch={"max_file_mb": 0.002, "poll_seconds": 0.01})
        write_rows(tmp_path / "dataset.jsonl", rows)
        result = pipeline.run()
    assert provider.complaints == []
    assert (result.judged, result.failed) == (18, 3)
    messages = [row["failure"]["message"] for row in results(tmp_path).values() if row.get("failure")]
    assert len(messages) == 3
    assert all("may have 2,000" in message and "transport=online" in message for message in messages)


def test_ids_and_texts_of_any_kind_come_through(tmp_path: Path) -> None:
    rows = [
        {"id": name, "user_query": f"{name} ?", "ground_truth_for_eval": "1"}
        for name in ("a#1#b", 'q"\\u0022', "日本", "x" * 200, "a#1", "~1", 'custom_id":"x"')
    ]
    provider = Provider(fate=lambda body, _: "twice")
    with serving(provider) as base:
        pipeline = by_batches(tmp_path, base)
        write_rows(tmp_path / "dataset.jsonl", rows)
        assert pipeline.run().judged == 21
        values = config(tmp_path, base, rows=rows, generation__n=3, generation__n_mode="fanout")
        values["output"]["output_dir"] = str(tmp_path / "online")
        EvaluationPipeline(values).run()
    assert judged(results(tmp_path)) == judged(results(tmp_path, "online"))
    assert provider.complaints == []


# ── leaving and coming back ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_may_be_left_and_entered_again_and_more_asked_for_meanwhile(tmp_path: Path) -> None:
    provider = Provider(polls=3)
    with serving(provider) as base:
        left = by_batches(tmp_path, base, n=1, detach=True).run()
        assert left.status == "detached"
        assert "reward-kit batches cancel" in str(left.reason)
        with pytest.raises(ConfigError, match="would be paid for twice"):
            by_batches(tmp_path, base, n=1, generation__transport="online").run()
        with pytest.raises(StorageError, match="other settings"):
            by_batches(tmp_path, base, n=1, generation__temperature=0.1).run()
        assert by_batches(tmp_path, base, detach=True).run().status == "detached"  # n is 3 now
        assert by_batches(tmp_path, base).run().status == "finished"
        assert judged(results(tmp_path)) == online(tmp_path, base)
    assert [len(batch.lines) for batch in provider.batches.values()] == [7, 14]
    assert paid_once(provider)


def test_a_prompt_that_changed_meanwhile_is_asked_anew(tmp_path: Path) -> None:
    provider = Provider(polls=2)
    with serving(provider) as base:
        by_batches(tmp_path, base, detach=True).run()
        pipeline = by_batches(tmp_path, base)
        write_rows(tmp_path / "dataset.jsonl", questions(7, "How much is {}?"))
        assert pipeline.run().status == "finished"
    assert {row["user_query"] for row in results(tmp_path).values()} == {f"How much is {i}?" for i in range(7)}


def test_batches_can_be_listed_and_given_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    provider = Provider(polls=100)
    with serving(provider) as base:
        by_batches(tmp_path, base, detach=True).run()
        run = str(tmp_path / "run")
        cli.main(["batches", "list", run], standalone_mode=False)
        assert "batch_0" in capsys.readouterr().out
        cli.main(["batches", "forget", run], standalone_mode=False)
        cli.main(["batches", "list", "--json", run], standalone_mode=False)
        assert '"given up"' in capsys.readouterr().out
        provider.polls = 1
        assert by_batches(tmp_path, base).run().status == "finished"
    assert len(provider.batches) == 2


def test_a_dry_run_shows_files_and_both_prices(tmp_path: Path) -> None:
    provider = Provider(polls=100)
    with serving(provider) as base:
        pipeline = by_batches(tmp_path, base, generation__batch={"max_requests": 10, "poll_seconds": 0.01})
        plan = pipeline.plan()
        assert provider.files == {}
        assert plan.batch is not None and plan.cost is not None
        assert (plan.batch.files, plan.batch.requests, plan.requests) == (3, 21, 21)
        assert plan.batch.online_cost == pytest.approx(2 * plan.cost)
        by_batches(tmp_path, base, detach=True).run()
        later = by_batches(tmp_path, base, n=4).plan()
        assert later.batch is not None
        assert (later.batch.under_way, later.batch.requests) == (21, 7)


# ── Fireworks ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("faults", [{}, {"upload": ["before"], "fill": ["after"], "create": ["after"],
                                         "state": ["500"], "content": ["cut", "500"]}])  # fmt: skip
def test_fireworks_batch_inference(tmp_path: Path, faults: dict[str, list[str]]) -> None:
    provider = Provider(faults=dict(faults), polls=2, end=lambda number: "completed" if number else "expired")
    fireworks = {"provider": "fireworks", "account": ACCOUNT, "poll_seconds": 0.01}
    with serving(provider) as base:
        there = base.replace("/v1", "/inference/v1")
        model: dict[str, Any] = {
            "generation__model_name": "accounts/fireworks/models/m",
            "generation__batch": fireworks,
        }
        result = by_batches(tmp_path, there, **model).run()
        expected = online(tmp_path, base)
    assert result.status == "finished"
    assert provider.complaints == []
    without_model = {key: {**row, "model": "m"} for key, row in judged(results(tmp_path)).items()}
    assert without_model == expected
    assert [len(batch.lines) for batch in provider.batches.values()] == [21, 11]
    assert paid_once(provider)


# ── the other commands ──────────────────────────────────────────────────────────────────────────────────────────────


def test_best_of_n_by_batches_has_the_table_of_one_online(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rows = [{"id": f"s{i}", "problem": f"What is {i}?", "answer": str(i), "split": "math"} for i in range(4)]
    write_rows(tmp_path / "data.jsonl", rows)
    provider = Provider(polls=2)
    with serving(provider) as base:
        for name, transport in (("batch", ["--transport", "batch"]), ("online", [])):
            words = [
                "best-of-n", "--dataset", str(tmp_path / "data.jsonl"), "--splits", "math", "--model", "m",
                "--base-url", base, "--api-key-env", "BATCH_KEY", "--num-candidates", "2", "--seed", "7",
                "--quiet", "--output", str(tmp_path / name / "table.parquet"),
                "--cache-dir", str(tmp_path / name / "cache"), *transport,
            ]  # fmt: skip
            assert left_with(words) == 0
    by_batch, by_requests = (pq.read_table(tmp_path / name / "table.parquet") for name in ("batch", "online"))
    columns = ["query_id", "candidate_idx", "is_verified"]
    assert by_batch.select(columns).to_pylist() == by_requests.select(columns).to_pylist()
    assert len(set(by_batch["response"].to_pylist())) == 8 and len(provider.batches) == 1 and provider.complaints == []
    assert paid_once(provider)


def test_shell_commands_are_written_by_batches_left_and_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.loopback.batches.text_for", lambda body, _: '{"command": "touch f"}')
    write_rows(tmp_path / "tasks.jsonl", [{"task": f"Make f{i}.", "success_condition": f"test -f f{i}"} for i in "abc"])
    provider = Provider(polls=2)
    with serving(provider) as base:
        words = [
            "shell", "--phase", "inference", "--model", "m", "--base-url", base, "--api-key-env", "BATCH_KEY",
            "--dataset", str(tmp_path / "tasks.jsonl"), "--output-dir", str(tmp_path / "run"), "-n", "2", "--quiet",
            "--transport", "batch", "--cache-dir", str(tmp_path / "cache"),
        ]  # fmt: skip
        assert left_with([*words, "--detach"]) == 6
        assert not (tmp_path / "run/commands.jsonl").exists() or not lines(tmp_path / "run/commands.jsonl")
        assert left_with(words) == 0
    made = lines(tmp_path / "run/commands.jsonl")
    assert len(made) == 6 and all(row["generated_command"] == "touch f" for row in made)
    assert len(provider.batches) == 1 and provider.complaints == []
    assert provider.online == [] and provider.answered.total() == 6


def left_with(words: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(words)
    return int(left.value.code or 0)
