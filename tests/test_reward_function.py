# SPDX-License-Identifier: Apache-2.0
"""`RewardFunction`: local, remote against a real server, and inside a trainer."""

from __future__ import annotations

import json
import pickle
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import AuthError, RewardError, RewardTimeoutError
from reward_kit.integrations.trl import TRLAdapter
from reward_kit.models import EvaluateResult, Message
from reward_kit.reward_function import RewardFunction, reward_function

TURNS: Any = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]


@reward_function
def exact(messages: list[Message], ground_truth: Any = None, weight: float = 1.0, **kwargs: Any) -> EvaluateResult:
    return EvaluateResult(score=weight * (messages[-1].text == ground_truth), reason=repr(ground_truth))


@reward_function
async def exact_async(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> bool:
    return bool(messages[-1].text == ground_truth)


@reward_function
def picky(messages: list[Message], **kwargs: Any) -> EvaluateResult:
    """Raises at 'bad', gives no verdict on 'unsure'."""
    if messages[-1].text == "bad":
        raise KeyError("cannot read it")
    return EvaluateResult(score=0.5, is_score_valid=messages[-1].text != "unsure")


# ── local ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_local_reward_by_function_or_by_path(tmp_path: Path) -> None:
    module = tmp_path / "mine.py"
    module.write_text("def reward(messages, ground_truth): return messages[-1].text == ground_truth\n")
    assert RewardFunction(func=exact)(TURNS, ground_truth="4").score == 1.0
    assert RewardFunction(func_path=f"{module}:reward")(TURNS, ground_truth="5").score == 0.0
    with pytest.raises(ImportError):
        RewardFunction(func_path="no_such_module.reward")


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="`func` or `func_path`"):
        RewardFunction()
    with pytest.raises(ValueError, match="`endpoint` or `name`"):
        RewardFunction(mode="remote")
    with pytest.raises(ValueError, match="`model_id`"):
        RewardFunction(mode="fireworks_hosted")
    with pytest.raises(ValueError, match="'nowhere'"):
        RewardFunction(func=exact, mode="nowhere")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="https://"):
        RewardFunction(mode="remote", endpoint="file:///etc/passwd")


def test_fireworks_addresses() -> None:
    assert RewardFunction(mode="remote", name="mine").endpoint == "https://api.fireworks.ai/v1/reward/mine"
    hosted = RewardFunction(mode="fireworks_hosted", model_id="accounts/a/models/m")
    assert hosted.endpoint == "https://api.fireworks.ai/v1/models/accounts/a/models/m/reward"


def test_without_ground_truth_it_is_the_prompt() -> None:
    assert RewardFunction(func=exact)(TURNS).reason == repr(TURNS[:-1])


def test_constructor_keywords_are_defaults() -> None:
    weighted = RewardFunction(func=exact, weight=0.5)
    assert weighted(TURNS, ground_truth="4").score == 0.5
    assert weighted(TURNS, ground_truth="4", weight=0.25).score == 0.25


async def test_an_async_reward_is_awaited_by_the_caller() -> None:
    assert (await RewardFunction(func=exact_async)(TURNS, ground_truth="4")).score == 1.0


def test_a_batch_reward_has_no_single_conversation_to_judge() -> None:
    @reward_function(mode="batch")
    def group(rollouts_messages: list[list[Message]], **kwargs: Any) -> list[EvaluateResult]:
        return []

    with pytest.raises(ValueError, match="'group' judges all rollouts"):
        RewardFunction(func=group)


# ── remote ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Service:
    """A reward service on this machine: what it is asked, and what it says."""

    url: str = ""
    status: int = 200
    answer: bytes = b'{"score": 0.75, "reason": "far away"}'
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    asked: list[tuple[dict[str, Any], str | None]] = field(default_factory=list)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("FIREWORKS_API_KEY", "fw-secret")
    state = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked.append((body, self.headers["Authorization"]))
            time.sleep(state.delay)
            self.send_response(state.status)
            for name, value in state.headers.items():
                self.send_header(name, value)
            with suppress(BrokenPipeError, ConnectionResetError):  # the caller gave up waiting
                self.end_headers()
                self.wfile.write(state.answer)

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/reward"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


def remote(service: Service, **settings: Any) -> RewardFunction:
    """One attempt and no more: what comes of further ones is tried in `tests/remote`."""
    return RewardFunction(
        mode="remote", endpoint=service.url, remote={"max_retries": 0, "max_outage": 0, "max_wait": 0}, **settings
    )


def test_a_remote_reward_is_posted_everything_with_the_key(service: Service) -> None:
    messages = [Message.model_validate(turn) for turn in TURNS]
    result = remote(service, strict=True)(messages, ground_truth=messages[:1], level=2)
    assert result == EvaluateResult(score=0.75, reason="far away")
    assert service.asked == [
        ({"messages": TURNS, "ground_truth": TURNS[:1], "strict": True, "level": 2}, "Bearer fw-secret")
    ]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_an_auth_error_that_does_not_show_it(service: Service, status: int) -> None:
    service.status, service.answer = status, b"who are you?"
    with pytest.raises(AuthError, match=rf"{status}.*who are you") as caught:
        remote(service)(TURNS)
    assert "fw-secret" not in str(caught.value)


@pytest.mark.parametrize(("status", "retryable"), [(429, True), (500, True), (503, True), (400, False), (404, False)])
def test_other_refusals_are_reward_errors(service: Service, status: int, retryable: bool) -> None:
    service.status = status
    with pytest.raises(RewardError, match=str(status)) as caught:
        remote(service)(TURNS)
    assert caught.value.retryable is retryable


def test_a_redirect_is_not_followed_with_the_key(service: Service) -> None:
    service.status, service.headers = 302, {"Location": service.url}
    with pytest.raises(RewardError, match="302"):
        remote(service)(TURNS)
    assert len(service.asked) == 1


@pytest.mark.parametrize("answer", [b"<html>", b"", b"[1]", b'{"reason": "no score"}', b'{"score": NaN}'])
def test_an_answer_that_is_no_result_is_a_reward_error(service: Service, answer: bytes) -> None:
    service.answer = answer
    with pytest.raises(RewardError):
        remote(service)(TURNS)


def test_an_answer_that_breaks_off_is_a_reward_error(service: Service) -> None:
    service.headers = {"Content-Length": "1000"}
    with pytest.raises(RewardError, match="broke off") as caught:
        remote(service)(TURNS)
    assert caught.value.retryable


def test_a_slow_service_is_a_timeout(service: Service) -> None:
    service.delay = 0.5
    with pytest.raises(RewardTimeoutError, match=r"0\.05 s.*request_timeout"):
        remote(service, request_timeout=0.05)(TURNS)


def test_nobody_there_is_a_retryable_reward_error(service: Service) -> None:
    gone = RewardFunction(mode="remote", endpoint="http://127.0.0.1:9/", remote={"max_outage": 0})
    with pytest.raises(RewardError, match="Nobody answers at") as caught:
        gone(TURNS)
    assert caught.value.retryable


def test_the_key_never_travels_unencrypted_through_the_open(service: Service) -> None:
    with pytest.raises(AuthError, match="https://"):
        settings = {"api_key_env": "FIREWORKS_API_KEY"}
        RewardFunction(mode="remote", endpoint="http://rewards.example.com/", remote=settings)(TURNS)


def test_without_a_key(service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FIREWORKS_API_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert remote(service)(TURNS).score == 0.75
    assert service.asked[0][1] is None
    with pytest.raises(AuthError, match="FIREWORKS_API_KEY"):
        RewardFunction(mode="remote", name="mine")(TURNS)


# ── inside a trainer ─────────────────────────────────────────────────────────────────────────────────────────────────

TRAINER = {"completion_ids": [[1], [2]], "trainer_state": object(), "log_extra": print, "log_metric": print}


def test_columns_reach_the_reward_by_name_and_solution_is_the_ground_truth() -> None:
    given: list[Any] = []

    @reward_function
    def reward(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> bool:
        given.append(kwargs)
        return bool(messages[-1].text == ground_truth)

    adapter = RewardFunction(func=reward, scale=3).get_trl_adapter(workers=0)
    scores = adapter(prompts=["2+2?", "3+3?"], completions=["4", "7"], solution=["4", "6"], shared="x", **TRAINER)
    assert scores == [1.0, 0.0]
    asked = (("2+2?", "4"), ("3+3?", "6"))
    assert given == [{"prompt": q, "solution": truth, "shared": "x", "scale": 3} for q, truth in asked]


def test_ground_truth_comes_before_solution_and_a_column_before_a_default() -> None:
    adapter = RewardFunction(func=exact, weight=0.5).get_trl_adapter()
    assert adapter(["q"], ["a"], ground_truth=["a"], solution=["b"]) == [0.5]
    assert adapter(["q"], ["a"], ground_truth=["a"], weight=[0.25]) == [0.25]
    assert adapter(["q"], ["a"], ground_truth=["a"], weight=0.25) == [0.25]


def test_without_a_ground_truth_the_reward_gets_none_and_a_warning_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def told(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> float:
        return float(ground_truth is None)

    adapter = RewardFunction(func=told).get_trl_adapter()
    assert adapter(["2+2?"], ["4"], hint=["4"]) == [1.0]
    assert adapter(["2+2?"], ["4"], hint=["4"]) == [1.0]
    (warning,) = (message for message in caplog.messages if "ground truth" in message)
    assert "there are 'hint'" in warning and "dataset_to_reward_kwargs_map" in warning


def test_texts_message_lists_and_whole_conversations() -> None:
    adapter = RewardFunction(func=exact).get_trl_adapter()
    assert adapter([TURNS[:1]], [TURNS[1:]], solution=["4"]) == [1.0]
    assert adapter([TURNS], solution=["4"]) == [1.0]
    assert adapter([TURNS[:1]], ["4"], solution=["4"]) == [1.0]


def test_an_item_that_cannot_be_judged_is_none_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    adapter = RewardFunction(func=picky).get_trl_adapter()
    assert adapter(["q"] * 4, ["fine", "bad", "unsure", "bad"]) == [0.5, None, None, None]
    assert adapter(["q"], ["bad"]) == [None]
    assert adapter.failures == 4
    assert [record.message for record in caplog.records if "cannot read it" in record.message] == [caplog.messages[0]]
    assert len(caplog.records) == 1


def test_async_rewards_run_together() -> None:
    adapter = RewardFunction(func=exact_async).get_trl_adapter()
    assert adapter(["q"] * 3, ["1", "2", "3"], solution=["1", "2", "x"]) == [1.0, 1.0, 0.0]


def test_a_remote_reward_in_a_trainer(service: Service) -> None:
    adapter = remote(service, name="far").get_trl_adapter()
    assert adapter.__name__ == "far"
    assert adapter(["q"], ["a"], solution=["a"]) == [0.75]
    service.status = 500
    assert adapter(["q"], ["a"], solution=["a"]) == [None]
    service.status = 401
    with pytest.raises(AuthError):
        adapter(["q"], ["a"], solution=["a"])


def test_the_adapter_is_named_pickles_and_counts_its_items() -> None:
    adapter = RewardFunction(func=exact).get_trl_adapter()
    assert adapter.__name__ == "exact"
    copy: TRLAdapter = pickle.loads(pickle.dumps(adapter))
    assert copy(["q"], ["a"], solution=["a"]) == [1.0]
    with pytest.raises(ValueError, match="2 prompts came with 1 completions"):
        adapter(["a", "b"], ["c"])
