# SPDX-License-Identifier: Apache-2.0
"""What is told of money, beside the bill of an endpoint that keeps its own: every kind of reply, by every door.

Told is billed where usage is told; elsewhere told is no less than billed, and is said to be "at most". The bill is at
most the limit wherever max_tokens bounds a reply.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from tests.generation.loopback import Says
from tests.loopback import batches
from tests.loopback.bills import ALWAYS, FAULTS, KINDS, LIMITLESS, PRICE, Biller, kind_of
from tests.loopback.endpoint import serving
from tests.loopback.killing import KILLED, KillingBench
from tests.loopback.runs import config, lines
from tests.loopback.zygote import Zygote

SETTINGS: dict[str, Any] = {
    "generation__price": PRICE,
    "generation__max_tokens": 30,
    "generation__api_params": {"max_retries": 2, "timeout": 60.0, "max_concurrent_requests": 64},
}
SHORT: dict[str, Any] = {"generation__api_params": {"max_retries": 2, "timeout": 0.6, "max_concurrent_requests": 64}}
"""For replies that come too late. On a busy machine others do, too."""
LATE = {name for name in KINDS if name.startswith("late")}


def rows(kinds: list[str], each: int = 1) -> list[dict[str, Any]]:
    asked = [(kind, number) for number in range(each) for kind in kinds]
    return [{"id": f"{kind}-{n}", "user_query": f"{n}: kind={kind} please", "ground_truth": "x"} for kind, n in asked]


def run(home: Path, api_base: str, kinds: list[str], each: int = 1, **settings: Any) -> RunResult:
    timing = {} if LATE.isdisjoint(kinds) else SHORT
    home.mkdir(exist_ok=True)
    told = config(home, api_base, rows=rows(kinds, each), **{**SETTINGS, **timing, **settings})
    return EvaluationPipeline(told, keep_going=True).run()


def told_cost(result: RunResult) -> float:
    """The cost in a run's summary, where one must be told."""
    cost = result.summary["cost"]
    assert isinstance(cost, float)
    return cost


def check_told(told: float, billed: float, *, at_most: bool, exactly: bool) -> None:
    assert told >= billed * 0.99 - 1e-12
    if exactly:
        assert told <= billed * 1.01 + 1e-12
        assert not at_most
    elif billed:
        assert at_most


def check_records(home: Path, biller: Biller) -> None:
    """Each prompt's records tell the bill of the prompt."""
    for line in lines(home / "run" / "rollouts.jsonl"):
        prompt = line["sample"]["messages"][-1]["content"]
        told = sum(
            other["cost"] or 0.0
            for other in lines(home / "run" / "rollouts.jsonl")
            if other["sample"]["messages"][-1]["content"] == prompt
        )
        usage = line.get("usage") or {}
        at_most = bool(usage.get("at_most")) or line["response_index"] > 0
        exactly = KINDS[kind_of(prompt)].is_told
        billed = biller.by_prompt[prompt]
        assert told >= billed * 0.99 - 1e-12, (prompt, told, billed)
        if exactly:
            assert told == pytest.approx(billed, rel=0.01), prompt
        elif billed:
            assert at_most, prompt


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("mode", ["native", "fanout"])
def test_every_record_tells_its_own_bill(tmp_path: Path, n: int, mode: str) -> None:
    biller = Biller()
    kinds = [name for name in KINDS if name not in LATE]
    with serving(biller) as endpoint:
        result = run(tmp_path, endpoint.api_base, kinds, generation__n=n, generation__n_mode=mode)
    check_records(tmp_path, biller)
    check_told(result.summary["cost"] or 0.0, biller.bill, at_most=True, exactly=False)
    assert result.summary["cost_is_at_most"] is True
    tokens = result.summary["prompt_tokens"] + result.summary["completion_tokens"]
    assert tokens >= biller.tokens


def test_of_replies_that_tell_it_is_told_exactly(tmp_path: Path) -> None:
    biller = Biller()
    with serving(biller) as endpoint:
        result = run(tmp_path, endpoint.api_base, [name for name, kind in KINDS.items() if kind.is_told])
    assert result.summary["cost"] == pytest.approx(biller.bill, rel=0.01)
    assert "cost_is_at_most" not in result.summary
    tokens = result.summary["prompt_tokens"] + result.summary["completion_tokens"]
    assert tokens == pytest.approx(biller.tokens, rel=0.01)
    assert result.summary["this_entry"]["cost"] == pytest.approx(biller.bill, rel=0.01)


@pytest.mark.parametrize("kind", [name for name in KINDS if name not in LIMITLESS])
def test_no_kind_of_reply_passes_the_limit(tmp_path: Path, kind: str) -> None:
    biller = Biller()
    limit = 0.004
    with serving(biller) as endpoint:
        result = run(tmp_path, endpoint.api_base, [kind], 60, max_cost=limit)
    assert biller.bill <= limit
    check_told(result.summary["cost"] or 0.0, biller.bill, at_most="cost_is_at_most" in result.summary,
               exactly=KINDS[kind].is_told)  # fmt: skip
    assert (result.summary["cost"] or 0.0) <= limit + 1e-12


# ── more than one entry ──────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_paid_in_vain_is_told_when_the_answer_comes(tmp_path: Path) -> None:
    biller = Biller()
    kinds = [name for name in KINDS if name.endswith("_once") and name not in LATE]
    once: dict[str, Any] = {"generation__api_params": {"max_retries": 0}}
    with serving(biller) as endpoint:
        first = told_cost(run(tmp_path, endpoint.api_base, kinds, **once))
        assert first >= biller.bill * 0.99
        before = biller.bill
        result = run(tmp_path, endpoint.api_base, kinds, **once)
    check_records(tmp_path, biller)
    assert told_cost(result) >= biller.bill * 0.99 > before
    assert result.summary["this_entry"]["cost"] == pytest.approx(told_cost(result) - first)


@pytest.mark.parametrize("kind", ["plain", "usage_left_out", "null_content_once", "status_500_once", "late_once"])
def test_entries_together_keep_within_the_limit(tmp_path: Path, kind: str) -> None:
    biller = Biller()
    limits = [0.002, 0.002, 0.003, 0.005]
    timing = {"timeout": 0.6} if kind in LATE else {}
    once: dict[str, Any] = {"generation__api_params": {"max_retries": 0, **timing}}
    with serving(biller) as endpoint:
        for limit in limits:
            result = run(tmp_path, endpoint.api_base, [kind], 60, max_cost=limit, **once)
            assert biller.bill <= limit
            assert biller.bill * 0.99 <= (result.summary["cost"] or 0.0) <= limit + 1e-12


@pytest.mark.parametrize("max_cost", [None, 0.006])
def test_requests_under_way_in_a_crash_are_told_of(tmp_path: Path, max_cost: float | None) -> None:
    biller = Biller()
    with KillingBench(tmp_path, biller) as bench:
        settings = bench.run_settings(
            "run", n=2, at_once=8, cache=False, generation__price=PRICE, generation__max_tokens=30,
            rows=rows(["plain"], 20), **({} if max_cost is None else {"max_cost": max_cost}),
        )  # fmt: skip
        ends = [bench.enter(settings, {"request": request}) for request in (1, 9, 6)]
        bench.enter(settings)
    assert KILLED in ends
    summary = orjson.loads((tmp_path / "run" / "summary.json").read_bytes())
    check_told(summary["cost"], biller.bill, at_most=summary.get("cost_is_at_most", False), exactly=False)
    if max_cost is not None:
        assert max(biller.bill, summary["cost"]) <= max_cost


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────

OF_BATCHES = 0.5
"""Of the price of answers online."""


def replies_of(biller: Biller) -> Callable[[dict[str, Any]], Any]:
    """What stands in the lines of a batch."""

    def reply(body: dict[str, Any]) -> Any:
        said = biller(body, 0)
        assert isinstance(said, Says)
        return said.body

    return reply


@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("max_cost", [None, 1.0])
def test_batches_tell_their_bill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_cost: float | None, attempts: int
) -> None:
    monkeypatch.setenv("BATCH_KEY", batches.KEY)
    biller = Biller()
    of_these = ALWAYS if attempts == 1 else [*KINDS]
    in_a_line = [name for name in of_these if name not in LIMITLESS and is_a_reply_of_json(name)]

    with batches.serving(batches.Provider(reply=replies_of(biller))) as base:
        result = run(
            tmp_path, base, in_a_line, generation__transport="batch", generation__api_key_env="BATCH_KEY",
            generation__batch={"poll_seconds": 0.01, "attempts": attempts}, generation__model_name="m",
            max_cost=max_cost,
        )  # fmt: skip
    for line in lines(tmp_path / "run" / "rollouts.jsonl"):
        prompt = line["sample"]["messages"][-1]["content"]
        usage = line.get("usage") or {}
        check_told(line["cost"] or 0.0, biller.by_prompt[prompt] * OF_BATCHES, at_most=bool(usage.get("at_most")),
                   exactly=KINDS[kind_of(prompt)].is_told)  # fmt: skip
    assert told_cost(result) >= biller.bill * OF_BATCHES * 0.99
    assert result.summary["cost_is_at_most"]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("attempts", [1, 2])
@pytest.mark.parametrize("kind", ["bytes", "operation"])
def test_batches_killed_tell_a_line_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, attempts: int
) -> None:
    """Also one that failed and was written down before the run died, twice in a row, while it judged."""
    monkeypatch.setenv("BATCH_KEY", batches.KEY)
    kinds = ["plain", *(name for name in FAULTS if KINDS[name].is_told)]
    killed = 0
    processes = Zygote()
    for number, places in enumerate(itertools.pairwise(dying_at(kind))):
        biller = Biller()
        home = tmp_path / str(number)
        home.mkdir()
        with batches.serving(batches.Provider(reply=replies_of(biller))) as base:
            values = config(
                home, base, rows=rows(kinds, 2), generation__price=PRICE, generation__max_tokens=30,
                generation__transport="batch", generation__api_key_env="BATCH_KEY",
                generation__batch={"poll_seconds": 0.01, "attempts": attempts},
            )  # fmt: skip
            for place in places:
                killed += processes.run(config=values, die_at={kind: place}) == KILLED
            assert processes.run(config=values) == 0
        told = {line["id"]: line["cost"] for line in lines(home / "run" / "rollouts.jsonl")}
        billed = {row["id"]: biller.by_prompt[row["user_query"]] * OF_BATCHES for row in rows(kinds, 2)}
        assert told == pytest.approx(billed, rel=0.01), places
        summary = orjson.loads((home / "run" / "summary.json").read_bytes())
        assert summary["cost"] == pytest.approx(biller.bill * OF_BATCHES, rel=0.01), places
    assert killed >= 4


def dying_at(kind: str) -> range:
    """Places in an entry, most of them behind the moment at which its answers are here."""
    return range(2_000, 26_000, 4_000) if kind == "bytes" else range(20, 62, 7)


def is_a_reply_of_json(kind: str) -> bool:
    """Whether it can stand in a line of a batch, and is no told cost: what batches take is not told."""
    said = Biller()({"messages": [{"role": "user", "content": f"kind={kind}"}], "max_tokens": 9}, 0)
    return isinstance(said, Says) and said.status == 200 and isinstance(said.body, dict) and "cost" not in kind
