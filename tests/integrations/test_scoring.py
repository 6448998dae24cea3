# SPDX-License-Identifier: Apache-2.0
"""Many completions judged at once: where, how fast they give up, and what is left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import ConfigError
from reward_kit.integrations.scoring import Scoring
from reward_kit.models import Failure, Message, Rollout, Verdict
from reward_kit.reward_call import RewardCall
from reward_kit.utils.event_loop import background_loop
from tests.integrations import trainer_rewards


def alone(*texts: str, **columns: Any) -> list[list[Rollout]]:
    return [[Rollout.of_conversation([{"role": "assistant", "content": text}], "a", columns)] for text in texts]


def scores(scoring: Scoring, *texts: str) -> list[float | None]:
    return [score_of(verdict) for (verdict,) in scoring.score(alone(*texts))]


def score_of(verdict: Verdict) -> float | None:
    return None if isinstance(verdict, Failure) else verdict.score


def message_of(verdict: Verdict) -> str:
    return verdict.message if isinstance(verdict, Failure) else ""


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return not Path(f"/proc/{process}/stat").exists() or " Z " not in Path(f"/proc/{process}/stat").read_text()


def test_a_step_ends_in_time_whatever_hangs_and_the_next_one_is_not_held_up() -> None:
    scoring = Scoring(RewardCall(trainer_rewards.perilous), workers=1, timeout=60, step_timeout=6)
    assert scores(scoring, "fine") == [1.0]
    verdicts = [verdict for (verdict,) in scoring.score(alone(*["hang"] * 20))]
    assert all("6 s" in message_of(verdict) for verdict in verdicts)
    assert scores(scoring, "fine") == [1.0]
    scoring.close()


def test_a_step_without_completions_is_over_at_once() -> None:
    scoring = Scoring(RewardCall(trainer_rewards.perilous), workers=1)
    assert scoring.score([]) == []
    scoring.close()


def test_a_quick_rewards_calls_travel_together_and_fail_alone() -> None:
    scoring = Scoring(RewardCall(trainer_rewards.perilous), workers=2, timeout=1)
    quick = ["fine"] * 64
    for _ in range(3):  # until it is known to be quick
        assert scores(scoring, *quick) == [1.0] * 64
    bad = {5: "hang", 6: "exit", 40: "raise"}
    judged = scores(scoring, *(bad.get(number, "fine") for number in range(64)))
    assert [number for number, score in enumerate(judged) if score is None] == list(bad)
    scoring.close()


def test_calls_that_travel_together_share_nothing() -> None:
    scoring = Scoring(RewardCall(trainer_rewards.counts_up), workers=1)
    shared: dict[str, list[int]] = {"seen": []}
    for _ in range(3):
        assert [score_of(verdict) for (verdict,) in scoring.score(alone(*["a"] * 64, **shared))] == [1.0] * 64
    scoring.close()


def test_an_asynchronous_reward_has_a_deadline_too() -> None:
    scoring = Scoring(RewardCall(trainer_rewards.slow_async), timeout=0.2)
    (verdict,) = scoring.score(alone("a"))[0]
    assert "0.2 s" in message_of(verdict)


async def test_judging_that_nobody_waits_for_any_more_is_given_up() -> None:
    begun, given_up = threading.Event(), threading.Event()

    async def patient(messages: list[Message], **kwargs: Any) -> float:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            given_up.set()
        return 1.0

    judging = asyncio.create_task(Scoring(RewardCall(patient)).score_async(alone("x")))
    assert await asyncio.to_thread(begun.wait, 30)
    judging.cancel()
    assert await asyncio.to_thread(given_up.wait, 30)


def test_the_rewards_own_timeout_is_kept_unless_another_is_given() -> None:
    (verdict,) = Scoring(RewardCall(trainer_rewards.perilous), workers=1).score(alone("hang"))[0]
    assert "within 1 s" in message_of(verdict)


def test_workers_stay_between_steps_and_end_with_their_owner() -> None:
    scoring = Scoring(RewardCall(trainer_rewards.process), workers=1)
    first, second = scores(scoring, "a")[0], scores(scoring, "a")[0]
    assert first == second and first is not None
    scoring.close()
    assert not alive(int(first))
    third = scores(scoring, "a")[0]
    assert third is not None and third != first
    del scoring
    gc.collect()
    assert not alive(int(third))


def test_a_copy_has_workers_of_its_own() -> None:
    scoring = Scoring(RewardCall(trainer_rewards.process), workers=1)
    copy: Scoring = pickle.loads(pickle.dumps(scoring))
    assert scores(scoring, "a") != scores(copy, "a")


def test_ranks_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    assert Scoring(RewardCall(trainer_rewards.exact))._size == 1


@pytest.mark.parametrize("wrong", [{"workers": -1}, {"timeout": -1.0}, {"step_timeout": 0.0}])
def test_numbers_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="above zero"):
        Scoring(RewardCall(trainer_rewards.exact), **wrong)


def test_a_forked_child_has_a_loop_of_its_own() -> None:
    code = """
import os, sys
from reward_kit.integrations.trl import create_trl_adapter
adapter = create_trl_adapter("tests.integrations.trainer_rewards:exact", workers=1)
assert adapter(["q"], ["a"], solution=["a"]) == [1.0]
child = os.fork()
if child == 0:
    os._exit(0 if adapter(["q"], ["a"], solution=["a"]) == [1.0] else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60, cwd=Path(__file__).parents[2])


def test_there_is_one_loop_a_process() -> None:
    assert background_loop() is background_loop()
