# SPDX-License-Identifier: Apache-2.0
"""Whole runs against endpoints that refuse, break off, stall and lie: right records or failures, and never a zero."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import AuthError, EndpointError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from tests.generation.http.refused_replies import REPLIES, Recorded
from tests.generation.loopback import Misbehave, Reaction, Says, complains
from tests.loopback.endpoint import honest, prompt_of, serving
from tests.loopback.runs import config, judged, lines, questions, results

SECRET = "sk-do-not-tell-anyone-0123456789"


def run(home: Path, api_base: str, count: int = 4, **settings: Any) -> RunResult:
    params = {"max_concurrent_requests": 4, "timeout": 1.0, **settings.pop("params", {})}
    told = config(home, api_base, rows=questions(count), generation__api_params=params, **settings)
    return EvaluationPipeline(told).run()


async def reset(writer: asyncio.StreamWriter) -> None:
    """Break the connection off in the middle of an answer."""
    writer.write(Says(200, b"x" * 500).encoded()[:200])
    await writer.drain()
    writer.transport.abort()


async def hang(writer: asyncio.StreamWriter) -> None:
    """Accept the request and say nothing."""
    await asyncio.sleep(600)


def drip(reply: Says) -> Misbehave:
    """Send an answer byte by byte, slower than anybody waits."""

    async def slowly(writer: asyncio.StreamWriter) -> None:
        for byte in reply.encoded():
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.2)

    return slowly


def in_pieces(reply: Says) -> Misbehave:
    """Send an answer in pieces with pauses, but in time."""

    async def piecemeal(writer: asyncio.StreamWriter) -> None:
        whole = reply.encoded()
        for start in range(0, len(whole), 100):
            writer.write(whole[start : start + 100])
            await writer.drain()
            await asyncio.sleep(0.01)

    return piecemeal


def truncated(body: dict[str, Any], number: int) -> Says:
    return Says(200, honest(body, number).encoded().partition(b"\r\n\r\n")[2][:-20])


# ── what passes: the first answer to each prompt is the fault, the second is right ───────────────────────────────────

PASSING: dict[str, Any] = {
    "429 in seconds": lambda body, number: complains(429, "slow down", {"Retry-After": "0"}),
    "429 with a date": lambda body, number: complains(
        429, "slow down", {"Retry-After": formatdate(time.time(), usegmt=True)}
    ),
    "429 with rubbish": lambda body, number: complains(429, "slow down", {"Retry-After": "soon"}),
    "500": lambda body, number: complains(500, "oops"),
    "503": lambda body, number: complains(503, "overloaded"),
    "truncated JSON": truncated,
    "no JSON": lambda body, number: Says(200, b"<html>busy</html>"),
    "an error in place of choices": lambda body, number: Says(200, {"error": {"message": "upstream", "code": 502}}),
    "reset": lambda body, number: reset,
    "hang": lambda body, number: hang,
}


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_leaves_no_trace_in_the_records(tmp_path: Path, fault: str) -> None:
    seen: set[str] = set()

    def react(body: dict[str, Any], number: int) -> Reaction:
        if prompt_of(body) in seen:
            return honest(body, number)
        seen.add(prompt_of(body))
        reaction: Reaction = PASSING[fault](body, number)
        return reaction

    with serving(honest) as endpoint:
        (tmp_path / "quiet").mkdir()
        run(tmp_path / "quiet", endpoint.api_base)
    with serving(react) as endpoint:
        result = run(tmp_path, endpoint.api_base)
    assert (result.judged, result.failed) == (4, 0)
    assert judged(results(tmp_path)) == judged(results(tmp_path / "quiet"))


def test_slow_bytes_that_come_in_time_are_an_answer(tmp_path: Path) -> None:
    with serving(lambda body, number: in_pieces(honest(body, number))) as endpoint:
        assert run(tmp_path, endpoint.api_base).judged == 4


# ── what does not pass: a failure on each record, in bounded time ────────────────────────────────────────────────────

LASTING: dict[str, tuple[Any, str]] = {
    "429": (lambda body, number: complains(429, "slow down", {"Retry-After": "0"}), "RateLimitError"),
    "500": (lambda body, number: complains(500, "oops"), "ProviderError"),
    "truncated JSON": (truncated, "ProviderError"),
    "no choices": (lambda body, number: Says(200, {"choices": []}), "UnreadableReplyError"),
    "reset": (lambda body, number: reset, "ProviderError"),
    "hang": (lambda body, number: hang, "ProviderError"),
    "drip": (lambda body, number: drip(honest(body, number)), "ProviderError"),
    "400": (lambda body, number: complains(400, "the prompt is rude"), "BadRequestError"),
    "too long": (lambda body, number: complains(400, "maximum context length is 8 tokens"), "ContextLengthError"),
}


@pytest.mark.parametrize("fault", LASTING)
def test_a_fault_that_lasts_is_a_failure_and_never_a_zero(tmp_path: Path, fault: str) -> None:
    react, kind = LASTING[fault]

    def on_one_prompt(body: dict[str, Any], number: int) -> Reaction:
        reaction: Reaction = react(body, number) if prompt_of(body) == "What is 1?" else honest(body, number)
        return reaction

    with serving(on_one_prompt) as endpoint:
        result = run(tmp_path, endpoint.api_base, params={"max_retries": 1, "max_wait": 0})
        tries = sum(prompt_of(body) == "What is 1?" for body in endpoint.requests)
    assert (result.judged, result.failed) == (3, 1)
    row = results(tmp_path)["s1", 0]
    assert row["failure"]["type"] == kind
    assert (row["evaluation_score"], row["assistant_response"]) == (None, None)
    assert tries == (2 if kind == "ProviderError" else 1)
    assert result.summary["failures_by_kind"] == {f"generate: {kind}": 1}
    good = [row["evaluation_score"] for key, row in results(tmp_path).items() if key != ("s1", 0)]
    assert result.mean_score == pytest.approx(sum(good) / 3), "the mean is over what was judged"


def test_one_bad_draw_costs_that_draw_only(tmp_path: Path) -> None:
    refused: list[int] = []

    def react(body: dict[str, Any], number: int) -> Reaction:
        if prompt_of(body) == "What is 1?" and (not refused or body["seed"] in refused):
            refused.append(body["seed"])
            return complains(400, "not this one")
        return honest(body, number)

    with serving(react) as endpoint:
        result = run(tmp_path, endpoint.api_base, generation__n=3, generation__n_mode="fanout")
    assert (result.judged, result.failed) == (11, 1)
    assert sum(row["evaluation_score"] is None for row in results(tmp_path).values()) == 1


def test_a_group_with_a_failed_draw_is_judged_without_it(tmp_path: Path) -> None:
    def react(body: dict[str, Any], number: int) -> Reaction:
        return complains(400, "no") if number == 2 else honest(body, number)

    with serving(react) as endpoint:
        run(tmp_path, endpoint.api_base, count=1, reward="ranking", generation__n=3, generation__n_mode="fanout")
    reasons = [row["evaluation_reason"] for row in results(tmp_path).values()]
    assert sorted(reasons, key=str) == ["1 of 2", "1 of 2", None]


@pytest.mark.parametrize("said", ["n must be 1", "Only one completion choice is allowed"])
def test_an_endpoint_that_refuses_n_is_asked_once_for_each(tmp_path: Path, said: str) -> None:
    def react(body: dict[str, Any], number: int) -> Reaction:
        return complains(400, said, param="n") if body.get("n", 1) > 1 else honest(body, number)

    with serving(react) as endpoint:
        result = run(tmp_path, endpoint.api_base, generation__n=3)
    assert (result.judged, result.failed) == (12, 0)
    assert len({row["assistant_response"] for row in results(tmp_path).values()}) == 12


def test_an_endpoint_that_ignores_n_is_asked_once_for_each(tmp_path: Path) -> None:
    with serving(lambda body, number: honest({**body, "n": 1}, number)) as endpoint:
        result = run(tmp_path, endpoint.api_base, generation__n=3)
    assert (result.judged, result.failed) == (12, 0)
    assert len({row["assistant_response"] for row in results(tmp_path).values()}) == 12


def test_a_parameter_the_endpoint_refuses_is_dropped_and_noted(tmp_path: Path) -> None:
    def react(body: dict[str, Any], number: int) -> Reaction:
        if "top_k" in body:
            return complains(400, "Unsupported parameter: 'top_k'", param="top_k")
        return honest(body, number)

    with serving(react) as endpoint:
        assert run(tmp_path, endpoint.api_base, generation__top_k=5).judged == 4
    assert '"top_k"' in (tmp_path / "run" / "manifest.json").read_text()


# ── what stops the run ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_stop_the_run_at_once_and_lose_nothing(tmp_path: Path, status: int) -> None:
    def react(body: dict[str, Any], number: int) -> Reaction:
        return honest(body, number) if number <= 3 else complains(status, f"bad key {SECRET}")

    with serving(react) as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_KEY", SECRET)
        with pytest.raises(AuthError) as caught:
            run(tmp_path, endpoint.api_base, count=50, generation__api_key_env="MY_KEY")
        sent = len(endpoint.requests)
    assert sent <= 12, "no more was asked once the key was refused"
    assert SECRET not in str(caught.value)
    assert len(lines(tmp_path / "run" / "rollouts.jsonl")) >= 3
    assert len(results(tmp_path)) == len(lines(tmp_path / "run" / "rollouts.jsonl")), "what was paid for is judged"
    for path in (tmp_path / "run").iterdir():
        assert SECRET not in path.read_text(), path.name


@pytest.mark.parametrize(
    "reaction",
    [complains(404, "no such model"), complains(402, "pay first"), Says(302, b"", {"Location": "http://else/"})],
)
def test_an_endpoint_that_cannot_serve_the_run_stops_it(tmp_path: Path, reaction: Says) -> None:
    with serving(lambda body, number: reaction) as endpoint:
        with pytest.raises(EndpointError):
            run(tmp_path, endpoint.api_base, count=50)
        assert len(endpoint.requests) <= 8


def test_nobody_at_home_ends_the_run_and_what_was_there_is_kept(tmp_path: Path) -> None:
    with serving(honest) as endpoint:
        address = endpoint.api_base
        run(tmp_path, address, count=2)
    with pytest.raises(EndpointError, match="does not answer"):
        run(tmp_path, address, count=60, params={"max_retries": 0})
    assert {("s0", 0), ("s1", 0)} <= set(results(tmp_path))


def test_a_key_that_is_echoed_or_typed_is_in_no_file(tmp_path: Path) -> None:
    def react(body: dict[str, Any], number: int) -> Reaction:
        return complains(400, f"Your request with Bearer {SECRET} is malformed")

    with serving(react) as endpoint:
        result = run(tmp_path, endpoint.api_base, generation__api_key=SECRET)
        assert all(f"Bearer {SECRET}" in head for head in endpoint.heads)
    assert result.failed == 4
    for path in (tmp_path / "run").iterdir():
        assert SECRET not in path.read_text(), path.name
    assert SECRET not in repr(result.summary)


STOPPING = [
    reply
    for reply in REPLIES
    if reply.consequence.startswith("stop") and reply.preset in {"gemini", "xai", "fireworks"}
    and not re.search("tool|function call", str(reply.body), re.IGNORECASE)  # which stop those alone who send tools
]  # fmt: skip


@pytest.mark.parametrize("reply", STOPPING, ids=lambda reply: f"{reply.preset}-{reply.status}-{reply.consequence}")
def test_once_the_key_or_the_account_is_mended_the_same_command_goes_on(reply: Recorded, tmp_path: Path) -> None:
    mended = False

    def react(body: dict[str, Any], number: int) -> Reaction:
        return honest(body, number) if mended or number <= 2 else Says(reply.status, reply.body)

    with serving(react) as endpoint:
        with pytest.raises((AuthError, EndpointError), match="run again to go on"):
            run(tmp_path, endpoint.api_base, count=8, params={"max_concurrent_requests": 1})
        assert len(endpoint.requests) <= 4, "nobody else is asked"
        mended = True
        result = run(tmp_path, endpoint.api_base, count=8, params={"max_concurrent_requests": 1})
    assert (result.judged, result.failed) == (8, 0)
    assert not any("failure" in row for row in results(tmp_path).values())


def test_a_run_waits_for_an_endpoint_that_is_busy(tmp_path: Path) -> None:
    """Every request is turned away more often than it may be tried again, each in another way."""
    busy = [
        complains(429, headers={"Retry-After": "0"}), complains(503, headers={"retry-after-ms": "1"}),
        complains(429, "Please retry in 0.01s."), complains(529, headers={"Retry-After": "0"}),
    ]  # fmt: skip
    asked: Counter[str] = Counter()

    def react(body: dict[str, Any], number: int) -> Reaction:
        asked[prompt_of(body)] += 1
        times = asked[prompt_of(body)]
        return busy[(times + number) % 4] if times <= 2 else honest(body, number)

    with serving(react) as endpoint:
        result = run(tmp_path, endpoint.api_base, count=3, params={"max_retries": 0})
    assert (result.judged, result.failed) == (3, 0)


def test_filtered_and_unreadable_answers_are_failures_that_are_not_asked_again(tmp_path: Path) -> None:
    filtered = Says(200, {"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}]})
    replies = [filtered, Says(200, {"choices": []})]
    empty = Says(200, {"choices": [{"message": {"content": None}, "finish_reason": "length"}]})

    def react(body: dict[str, Any], _: int) -> Reaction:
        number = int(prompt_of(body).strip("What is?"))
        return [*replies, empty, empty][number]

    mended = False

    def react_or_mend(body: dict[str, Any], number: int) -> Reaction:
        return honest(body, number) if mended else react(body, number)

    with serving(react_or_mend) as endpoint:
        for requests in (4, 4):
            result = run(tmp_path, endpoint.api_base)
            assert len(endpoint.requests) == requests, "the same command leaves them as they are"
        kinds = {key[0]: row.get("failure", {}).get("type") for key, row in results(tmp_path).items()}
        assert kinds == {"s0": "FilteredError", "s1": "UnreadableReplyError", "s2": None, "s3": None}
        assert (result.summary["records"], result.summary["judged"]) == (4, 2)
        mended = True
        params = {"max_concurrent_requests": 4, "timeout": 1.0}
        told = config(tmp_path, endpoint.api_base, rows=questions(4), generation__api_params=params)
        assert EvaluationPipeline(told, retry_failed=True).run().summary["judged"] == 4
        assert len(endpoint.requests) == 6
