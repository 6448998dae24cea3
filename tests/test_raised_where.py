# SPDX-License-Identifier: Apache-2.0
"""Where an exception was raised, as text for a record."""

from __future__ import annotations

import asyncio
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import RewardError
from reward_kit.models import EvaluateResult, Failure, Rollout
from reward_kit.raised_where import raised_where
from reward_kit.reward_call import RewardCall

ANSWER = Rollout.of_conversation([{"role": "assistant", "content": "4"}])


def judged(reward: Any) -> EvaluateResult:
    call = RewardCall(reward)
    return call.judge(call.arguments_of([ANSWER]))


def failure_of(reward: Callable[..., Any]) -> Failure:
    with pytest.raises(RewardError) as raised:
        judged(reward)
    return Failure.of(raised.value, "score")


def deep(row: dict[str, int]) -> int:
    return row["nope"]


def shallow(**kwargs: Any) -> float:
    return deep({})


async def waiting(**kwargs: Any) -> float:
    await asyncio.sleep(0)
    return deep({})


@pytest.mark.parametrize("reward", [shallow, waiting])
def test_the_frames_of_the_reward_are_told_and_no_others(reward: Callable[..., Any]) -> None:
    trace = failure_of(reward).traceback
    assert trace is not None
    lines = trace.splitlines()
    files = [line for line in lines if line.startswith('  File "')]
    assert [line.rpartition(" ")[2] for line in files] == [reward.__name__, "deep"]
    assert lines[-3].endswith(f"line {deep.__code__.co_firstlineno + 1}, in deep")
    assert lines[-2:] == ['    return row["nope"]', "KeyError: 'nope'"]


def test_a_library_that_the_reward_calls_is_told_as_well() -> None:
    trace = failure_of(lambda response: json.loads("{")).traceback
    assert trace is not None and "test_raised_where.py" in trace.splitlines()[1] and "in raw_decode" in trace


def test_what_led_to_it_comes_first() -> None:
    def reward(**kwargs: Any) -> float:
        try:
            return deep({})
        except KeyError as error:
            raise ValueError("no such row") from error

    trace = failure_of(reward).traceback
    assert trace is not None
    assert trace.index("KeyError: 'nope'") < trace.index("It was the cause") < trace.index("ValueError: no such row")


def test_of_a_group_the_first_is_told() -> None:
    def reward(**kwargs: Any) -> float:
        raise ExceptionGroup("several", [ZeroDivisionError("by nothing"), ValueError()])

    trace = failure_of(reward).traceback
    assert trace is not None and trace.index("ZeroDivisionError: by nothing") < trace.index("ExceptionGroup: several")


def test_it_is_of_bounded_length() -> None:
    def reward(**kwargs: Any) -> float:
        return reward()

    def loud(**kwargs: Any) -> float:
        raise ValueError("x" * 10_000_000)

    for each in (reward, loud):
        trace = failure_of(each).traceback
        assert trace is not None and len(trace) < 6100
    assert "more …" in str(failure_of(reward).traceback)


def test_an_exception_that_cannot_be_read_is_still_told() -> None:
    class Nasty(Exception):
        def __str__(self) -> str:
            raise SystemExit

    def reward(**kwargs: Any) -> float:
        raise Nasty

    assert "Nasty: no readable message" in str(failure_of(reward).traceback)


def test_a_key_in_the_code_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("keyed.py").write_text(
        textwrap.dedent("""
        def reward(**kwargs):
            return 1 / len("sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD" * 0)
        """)
    )
    with pytest.raises(RewardError) as raised:
        judged("keyed.py:reward")
    trace = Failure.of(raised.value, "score").traceback
    assert trace is not None and "sk-abc" not in trace and 'len("***' in trace
    assert 'File "keyed.py", line 3, in reward' in trace  # named from the current directory


def test_an_error_of_ours_has_none() -> None:
    def reward(**kwargs: Any) -> float:
        raise RewardError("the service is down")

    failure = failure_of(reward)
    assert failure.traceback is None
    assert failure.model_dump() == {
        "stage": "score", "type": "RewardError", "message": "the service is down", "retryable": False,
    }  # fmt: skip


def test_an_exception_that_was_never_raised_has_its_message() -> None:
    assert raised_where(ValueError("quiet")) == "Traceback (most recent call last):\nValueError: quiet"
