# SPDX-License-Identifier: Apache-2.0
"""Rewards behind an address: what is asked, together and again, and what the answers mean."""

from __future__ import annotations

import asyncio
import pickle
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from reward_kit.config_models import RemoteRewardConfig, RewardConfig
from reward_kit.errors import (
    AuthError,
    ConfigError,
    EndpointError,
    ItemError,
    RateLimitError,
    RewardError,
    RewardTimeoutError,
    SandboxError,
)
from reward_kit.integrations.scoring import Scoring
from reward_kit.models import EvaluateResult, Failure, Message, Rollout, Step
from reward_kit.remote.line import Line
from reward_kit.remote.protocol import body_of
from reward_kit.remote.reward import RemoteReward, open_remote
from reward_kit.reward_call import RewardCall
from reward_kit.scoring.rewards import Reward
from reward_kit.utils.event_loop import background_loop
from tests.remote.reward_server import RewardServer, Told, serving

TURNS: list[Any] = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
QUICK = {"max_retries": 3, "max_outage": 0.0}


@pytest.fixture
def server() -> Iterator[RewardServer]:
    with serving(RewardServer()) as state:
        yield state


def exact(item: Any) -> dict[str, Any]:
    answer = item["messages"][-1]["content"]
    return {
        "score": float(answer == item["ground_truth"]),
        "reason": answer,
        "metrics": {"length": {"score": 0.5, "reason": "short", "is_score_valid": False}},
        "step_outputs": [{"step_index": 0, "base_reward": -1.5, "metrics": {"a": [1]}, "reason": None}],
    }


async def ask_many(reward: RemoteReward, answers: list[str]) -> list[Any]:
    asked = (
        reward(messages=[TURNS[0], {"role": "assistant", "content": answer}], ground_truth="4") for answer in answers
    )
    return await asyncio.gather(*asked, return_exceptions=True)


async def ask_together(url: str, answers: list[str]) -> list[Any]:
    """All in one request, whatever else keeps this machine busy: on the loop of the line, at the same moment."""
    line = Line(url, RemoteRewardConfig.model_validate(QUICK), stops_run=False)
    bodies = [
        body_of({"messages": [TURNS[0], {"role": "assistant", "content": each}], "ground_truth": "4"}, nested=True)
        for each in answers
    ]
    try:
        return await asyncio.gather(*map(line.judge, bodies), return_exceptions=True)
    finally:
        await line.close()


# ── questions and results ────────────────────────────────────────────────────────────────────────────────────────────


async def test_everything_goes_there_and_everything_comes_back(server: RewardServer) -> None:
    server.judge = exact
    reward = RemoteReward(server.url, QUICK)
    messages = [Message.model_validate(turn) for turn in TURNS]
    steps = [Step(turn=0, reward=0.5)]
    result = await reward(messages=messages, ground_truth="4", level=2, steps=steps)
    assert isinstance(result, EvaluateResult)
    assert result == EvaluateResult.model_validate(exact({"messages": TURNS, "ground_truth": "4"}))
    (asked,) = server.posted
    assert asked.path == "/evaluate"
    assert asked.body["messages"] == TURNS and asked.body["kwargs"]["level"] == 2
    assert Step.model_validate(asked.body["rollout"]["steps"][0]) == steps[0]


async def test_questions_of_a_moment_go_together_over_few_connections(server: RewardServer) -> None:
    server.judge = exact
    reward = RemoteReward(server.url, {**QUICK, "batch_size": 64})
    answers = ["4", "5"] * 100
    results = await ask_many(reward, answers)
    assert [result.score for result in results] == [1.0, 0.0] * 100
    assert [result.reason for result in results] == answers
    assert len(server.posted) <= 150  # four or five where nothing else keeps this machine busy
    for _ in range(3):
        await ask_many(reward, answers)
    assert server.connections <= 64  # of the 800 questions: no more than may be in flight at a time
    assert any(each.path == "/evaluate/batch" for each in server.posted)


async def test_a_server_without_batches_is_asked_once_whether_it_has_them(server: RewardServer) -> None:
    server.judge, server.batch = exact, False
    reward = RemoteReward(server.url, QUICK)
    assert [result.score for result in await ask_many(reward, ["4", "5", "4"])] == [1.0, 0.0, 1.0]
    assert [result.score for result in await ask_many(reward, ["4", "5", "4"])] == [1.0, 0.0, 1.0]
    assert [each.path for each in server.posted].count("/evaluate/batch") == 1


async def test_one_bad_question_does_not_spoil_the_others(server: RewardServer) -> None:
    server.judge = exact
    server.before = [Told(422, {"detail": "items[1].messages is an empty list"})]
    results = await ask_together(server.url, ["4", "5"])
    assert [result.score for result in results] == [1.0, 0.0]


async def test_a_batch_that_is_too_large_goes_in_halves(server: RewardServer) -> None:
    server.judge = exact
    server.before = [Told(413), Told(413)]
    results = await ask_together(server.url, ["4", "5", "4", "4"])
    assert [result.score for result in results] == [1.0, 0.0, 1.0, 1.0]
    assert [len(each.body.get("items", "x")) for each in server.posted] == [4, 2, 1, 1, 2]


async def test_what_is_no_plain_data_is_a_failure_of_that_question(server: RewardServer) -> None:
    reward = RemoteReward(server.url, QUICK)
    for value in (object(), float("nan"), "\ud800", {1: {2, 3}}):
        with pytest.raises(RewardError, match="cannot be sent"):
            await reward(messages=TURNS, ground_truth=value)
    assert server.asked == []


def test_an_address_without_a_path_is_a_servers(server: RewardServer) -> None:
    root = server.url.removesuffix("/evaluate")
    for address in (root, f"{root}/", server.url):
        assert RemoteReward(address, QUICK).judge({"messages": TURNS}).score == 1.0
    assert {each.path for each in server.posted} == {"/evaluate"}


@pytest.mark.parametrize("address", ["ftp://host/x", "https://", "https://user:pass@host/evaluate", "host:80", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RemoteReward(address)
    assert "pass" not in str(caught.value)


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ({"type": "RewardError", "retryable": False}, RewardError),
        ({"type": "RewardTimeoutError", "retryable": True}, RewardTimeoutError),
        ({"type": "SandboxError", "retryable": True}, SandboxError),
        ({"type": "RateLimitError", "retryable": True}, RateLimitError),
        ({"type": "SomethingElse", "retryable": True}, RewardError),
    ],
)
async def test_a_failure_there_is_the_same_failure_here(
    server: RewardServer, failure: dict[str, Any], kind: type[ItemError]
) -> None:
    server.judge = lambda item: {"score": None, "is_score_valid": False, "error": "'f' raised", "failure": failure}
    (error,) = await ask_many(RemoteReward(server.url, QUICK), ["4"])
    assert type(error) is kind and str(error) == "'f' raised" and error.retryable is failure["retryable"]
    assert len(server.posted) == 1


async def test_failures_of_a_batch_are_those_of_their_questions(server: RewardServer) -> None:
    failed = {"score": None, "error": "no", "failure": {"type": "RewardError", "retryable": False}}
    server.judge = lambda item: failed if item["messages"][-1]["content"] == "5" else exact(item)
    first, second, third = await ask_together(server.url, ["4", "5", "3"])
    assert (first.score, third.score) == (1.0, 0.0)
    assert isinstance(second, RewardError)


@pytest.mark.parametrize("said", [{"score": None}, {"score": None, "error": "no", "is_score_valid": False}])
async def test_no_number_is_no_verdict_and_never_a_zero(server: RewardServer, said: dict[str, Any]) -> None:
    server.judge = lambda item: said
    (error,) = await ask_many(RemoteReward(server.url, QUICK), ["4"])
    assert isinstance(error, RewardError) and "gave no verdict" in str(error)


@pytest.mark.parametrize("results", [{"results": [{"score": 1}] * 3}, {"results": 3}, [1, 2], b"<html>"])
async def test_a_reply_that_is_no_list_of_results_fails_all(server: RewardServer, results: Any) -> None:
    server.before = [Told(200, results)]
    errors = await ask_together(server.url, ["4", "5"])
    assert all(isinstance(error, RewardError) and not error.retryable for error in errors)


async def test_a_500_of_the_reward_itself_is_not_sent_again(server: RewardServer) -> None:
    server.before = [Told(500, {"detail": "'f' raised KeyError: 'x'", "type": "RewardError", "failed": 1, "asked": 1})]
    (error,) = await ask_many(RemoteReward(server.url, QUICK), ["4"])
    assert str(error) == "'f' raised KeyError: 'x'" and len(server.posted) == 1


async def test_a_reward_that_cannot_work_at_all_stops_everything_at_once(server: RewardServer) -> None:
    server.before = [Told(500, {"detail": "It needs an optional package.", "type": "MissingExtraError"})]
    (error,) = await ask_many(RemoteReward(server.url, QUICK), ["4"])
    assert type(error) is EndpointError and "optional package" in str(error) and len(server.posted) == 1


# ── again ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 408])
async def test_what_may_pass_is_sent_again(server: RewardServer, status: int) -> None:
    server.before = [Told(status, {}, {"Retry-After": "0"}), Told(status, {}, {"Retry-After": "0"})]
    (result,) = await ask_many(RemoteReward(server.url, QUICK), ["4"])
    assert result.score == 1.0 and len(server.posted) == 3


async def test_retry_after_is_heeded(server: RewardServer) -> None:
    server.before = [Told(503, {}, {"Retry-After": "1"})]
    began = time.monotonic()
    (result,) = await ask_many(RemoteReward(server.url, QUICK), ["4"])
    assert result.score == 1.0 and time.monotonic() - began >= 1.0


async def test_a_busy_server_is_waited_for_and_then_a_failure_that_may_be_tried_again(server: RewardServer) -> None:
    server.before = [Told(503, {"detail": "busy"}, {"Retry-After": "0"})] * 4
    (result,) = await ask_many(RemoteReward(server.url, QUICK), ["4"])
    assert result.score == 1.0 and len(server.posted) == 5, "waiting uses up no retries"
    server.before = [Told(503, {"detail": "busy"}, {"Retry-After": "0"})]
    (error,) = await ask_many(RemoteReward(server.url, {**QUICK, "max_wait": 0.0}), ["4"])
    assert isinstance(error, RewardError) and error.retryable and "busy" in str(error)
    assert len(server.posted) == 6


async def test_a_slow_answer_is_a_timeout_and_not_asked_for_again(server: RewardServer) -> None:
    gone = threading.Event()

    def late() -> None:
        gone.wait(10)

    server.before = [late]
    (error,) = await ask_many(RemoteReward(server.url, {**QUICK, "timeout": 0.2}), ["4"])
    gone.set()
    assert isinstance(error, RewardTimeoutError) and error.retryable
    assert len(server.posted) == 1


async def test_a_server_that_comes_back_is_waited_for(server: RewardServer) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    reward = RemoteReward(f"http://127.0.0.1:{port}", {"max_outage": 60.0})
    asking = asyncio.create_task(ask_many(reward, ["4"]))
    await asyncio.sleep(0.3)
    assert not asking.done()
    with serving(RewardServer(), port=port):
        assert (await asking)[0].score == 1.0


async def test_nobody_there_ends_a_run_and_fails_a_call() -> None:
    gone = "http://127.0.0.1:9/evaluate"
    (error,) = await ask_many(RemoteReward(gone, QUICK, stops_run=True), ["4"])
    assert isinstance(error, EndpointError)
    (error,) = await ask_many(RemoteReward(gone, QUICK), ["4"])
    assert isinstance(error, RewardError) and error.retryable


@pytest.mark.parametrize(("status", "kind"), [(401, AuthError), (403, AuthError), (404, EndpointError)])
async def test_what_no_request_can_mend_stops_everything(
    server: RewardServer, status: int, kind: type[Exception]
) -> None:
    server.before = [Told(status, {"detail": "no"})]
    (error,) = await ask_many(RemoteReward(server.url, QUICK), ["4"])
    assert type(error) is kind
    assert len(server.posted) == 1


# ── what it is ───────────────────────────────────────────────────────────────────────────────────────────────────────

DESCRIPTION: dict[str, Any] = {
    "name": "exact", "mode": "pointwise", "batch": True, "takes_any": False,
    "identity": {"reward.function": "exact", "reward.source": "abc", "reward.params": {"strict": True}},
    "parameters": [{"name": "level", "required": True}, {"name": "finish_reason"}],
}  # fmt: skip


def test_a_reward_that_is_described_is_called_like_one_that_is_here(server: RewardServer) -> None:
    server.description, server.judge = DESCRIPTION, exact
    call = RewardCall(server.url, {"level": 3})
    assert (call.name, call.mode, call.is_async) == ("exact", "pointwise", True)
    assert call.wants("finish_reason") and not call.wants("sandbox")
    rollout = Rollout.of_conversation(TURNS, "4", {"unknown": 1}).model_copy(update={"finish_reason": "stop"})
    assert call.judge(call.arguments_of([rollout])).score == 1.0
    assert server.posted[0].body["kwargs"] == {"level": 3}
    assert server.posted[0].body["rollout"] == {"finish_reason": "stop"}
    with pytest.raises(ConfigError, match="no parameter 'levle'"):
        RewardCall(server.url, {"levle": 3})
    with pytest.raises(RewardError, match="needs 'level'"):
        RewardCall(server.url).arguments_of([rollout])


def test_what_determines_results_is_the_reward_where_it_is_told_and_else_its_address(server: RewardServer) -> None:
    unknown = Reward(RewardConfig(function_path=server.url, params={"a": 1}))
    assert unknown.identity == {"reward.endpoint": server.url, "reward.params": {"a": 1}}
    server.description = {**DESCRIPTION, "takes_any": True}
    told = Reward(RewardConfig(function_path=server.url, params={"level": 1}))
    assert told.identity == {
        "reward.function": "exact", "reward.source": "abc", "reward.params": {"level": 1, "strict": True},
    }  # fmt: skip


def test_a_server_that_is_not_there_or_refuses_us_is_said_at_the_start(server: RewardServer) -> None:
    server.before = [Told(401, {"detail": "who are you"})]
    with pytest.raises(AuthError, match="who are you"):
        RewardCall(server.url)
    with pytest.raises(EndpointError, match="Nobody answers at"):
        open_remote("http://127.0.0.1:9/evaluate", {"max_outage": 0})


async def test_a_group_is_sent_whole(server: RewardServer) -> None:
    server.description = {**DESCRIPTION, "mode": "batch", "parameters": [], "takes_any": True}
    failed = {"score": None, "error": "'exact' gave no verdict: odd", "failure": {"type": "RewardError"}}
    server.before = []
    server.judge = lambda body: {"results": [{"score": 1.0}, failed]}
    call = await asyncio.to_thread(RewardCall, server.url)
    assert call.mode == "batch"
    results = await call.judge_group_async(call.arguments_of([Rollout.of_conversation(TURNS, "4")] * 2))
    assert results[0].score == 1.0 and results[1].error == "odd"
    server.judge = lambda body: {"results": [failed, failed]}
    with pytest.raises(RewardError, match="odd"):
        await call.judge_group_async(call.arguments_of([Rollout.of_conversation(TURNS, "4")] * 2))


# ── where it is called from ──────────────────────────────────────────────────────────────────────────────────────────


def test_it_pickles_and_serves_threads_loops_and_plain_calls_over_the_same_connections(server: RewardServer) -> None:
    reward: RemoteReward = pickle.loads(pickle.dumps(RemoteReward(server.url, QUICK)))
    assert reward.judge({"messages": TURNS}).score == 1.0
    for _ in range(3):
        assert asyncio.run(ask_many(reward, ["4"]))[0].score == 1.0
    threads = [threading.Thread(target=reward.judge, args=({"messages": TURNS},)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 5 <= len(server.posted) <= 7
    assert server.connections <= 4


def test_waiting_for_the_loop_that_one_runs_on_is_an_error_and_no_deadlock(server: RewardServer) -> None:
    reward = RemoteReward(server.url, QUICK)

    async def ask() -> None:
        reward.judge({"messages": TURNS})

    with pytest.raises(RuntimeError, match="Await the reward"):
        asyncio.run_coroutine_threadsafe(ask(), background_loop()).result(30)


def test_trainers_are_given_failures_and_results(server: RewardServer) -> None:
    failed = {"score": None, "error": "no", "failure": {"type": "RewardError", "retryable": False}}
    server.judge = lambda item: failed if item["messages"][-1]["content"] == "bad" else exact(item)
    scoring = Scoring(RewardCall(server.url))
    answers = [[TURNS[0], {"role": "assistant", "content": answer}] for answer in ("4", "bad", "5")]
    (first,), (second,), (third,) = scoring.score([[Rollout.of_conversation(turns, "4")] for turns in answers])
    assert isinstance(second, Failure) and second.message == "no"
    assert isinstance(first, EvaluateResult) and first.score == 1.0
    assert isinstance(third, EvaluateResult) and third.score == 0.0


async def test_a_call_that_is_given_up_takes_no_other_with_it(server: RewardServer) -> None:
    server.judge = exact
    reward = RemoteReward(server.url, QUICK)
    given_up = asyncio.create_task(ask_many(reward, ["4"]))
    kept = asyncio.create_task(ask_many(reward, ["4"]))
    await asyncio.sleep(0)
    given_up.cancel()
    assert (await kept)[0].score == 1.0
