# SPDX-License-Identifier: Apache-2.0
"""A world stepped through by somebody else's loop, and the shapes in which trainers step."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from typing import Any, Literal

import pytest

from reward_kit.agent import Answer, World, tool
from reward_kit.errors import ConfigError, ItemError
from reward_kit.integrations.agent_environments import trl_environment
from reward_kit.integrations.world_session import WorldSession, environment_from, sample_from_row
from reward_kit.models import Message, Sample
from tests.agent.worlds import Account, Walk

ROW = {"prompt": [{"role": "user", "content": "Save 10."}], "answer": 10, "level": 3}


def saved(messages: list[Message], facts: dict[str, Any], ground_truth: int, level: int) -> float:
    """1.0 where the account holds what was asked for."""
    assert level == 3
    return float(facts["balance"] == ground_truth)


def raises(messages: list[Message]) -> float:
    """Never judges."""
    raise ValueError("broken")


def test_a_row_becomes_a_sample() -> None:
    sample = sample_from_row(ROW)
    assert [message.content for message in sample.messages] == ["Save 10."]
    assert (sample.ground_truth, sample.columns) == (10, {"answer": 10, "level": 3})
    assert sample_from_row(ROW, "level").ground_truth == 3


@pytest.mark.parametrize("row", [{}, {"prompt": ""}, {"prompt": []}, {"messages": [], "label": 7, "start": []}])
def test_a_row_without_a_prompt_is_for_a_world_that_opens_by_itself(row: dict[str, Any]) -> None:
    sample = sample_from_row(row)
    assert [(turn.role, turn.content) for turn in sample.messages] == [("user", "")]
    assert sample.ground_truth == row.get("label")
    assert sample.columns.get("start") == row.get("start")


def test_tools_are_called_one_by_one_and_the_episode_is_what_a_run_would_keep() -> None:
    session = WorldSession(environment_from(Account, {"start": 1}))
    assert session.reset(ROW) == []
    assert session.call("deposit", {"amount": 4}) == "The balance is 5."
    assert "schema" in session.call("deposit", {"sum": 4}) and session.last_call_failed
    assert session.say("Done.").done
    rollout = session.rollout()
    assert rollout.facts == {"balance": 5, "history": [4]}
    assert rollout.ended == "answered"
    assert [turn.role for turn in rollout.turns] == ["assistant", "tool", "assistant", "tool", "assistant"]
    assert rollout.steps is not None
    assert [[use.error for use in step.calls] for step in rollout.steps] == [[None], ["schema"], []]
    session.close()


def test_calls_written_into_the_text_are_made() -> None:
    session = WorldSession(environment_from(Account))
    session.reset(ROW)
    answer = session.say('<tool_call>{"name": "deposit", "arguments": {"amount": 7}}</tool_call>')
    assert [message.content for message in answer.messages] == ["The balance is 7."]
    assert not answer.done
    session.close()


def test_each_reset_begins_anew_and_worlds_are_closed() -> None:
    Account.opened = Account.closed = 0
    session = WorldSession(environment_from(Account))
    for _ in range(3):
        session.reset(ROW)
        assert session.call("deposit", {"amount": 1}) == "The balance is 1."
    session.close()
    assert (Account.opened, Account.closed) == (3, 3)
    with pytest.raises(ItemError, match="reset"):
        session.say("more")


async def test_it_also_works_inside_a_running_loop() -> None:
    sessions = [WorldSession(environment_from(Walk)) for _ in range(8)]
    openings = await asyncio.gather(*(session.reset_async(ROW) for session in sessions))
    assert [[message.text for message in opening] for opening in openings] == [["You stand at 0."]] * 8
    for _ in range(5):
        answers = await asyncio.gather(*(session.say_async("right") for session in sessions))
    assert all(answer.done for answer in answers)
    assert [session.rewards for session in sessions] == [[1, 2, 3, 4, 5]] * 8
    await asyncio.gather(*(session.close_async() for session in sessions))


# ── TRL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_trl_sees_the_tools_as_methods_with_their_schema() -> None:
    kind = trl_environment(Account, saved)
    members = {name for name, _ in inspect.getmembers(kind, predicate=inspect.isfunction) if not name.startswith("_")}
    assert members == {"reset", "get_reward", "deposit", "balance_now"}
    environment = kind()
    assert str(inspect.signature(environment.deposit)) == "(*, amount: int) -> str"
    assert inspect.getdoc(environment.deposit) == "Put money in.\n\nArgs:\n    amount: how much"


def test_trl_plays_an_episode_and_is_told_what_it_was_worth() -> None:
    environment = trl_environment(Account, saved)()
    for amount, worth in ((10, 1.0), (9, 0.0)):
        assert environment.reset(**ROW) is None
        assert environment.deposit(amount=amount) == f"The balance is {amount}."
        assert environment.get_reward() == worth


def test_trl_is_told_none_where_an_episode_cannot_be_judged() -> None:
    environment = trl_environment(Account, raises)()
    environment.reset(**ROW)
    assert environment.get_reward() is None


def test_without_a_reward_the_rewards_of_the_steps_count() -> None:
    environment = trl_environment(Walk)()
    assert environment.reset(**ROW) == "\n\nYou stand at 0.", "TRL joins it to the prompt as it is"
    assert environment.reset() == "You stand at 0."
    assert environment.get_reward() == 0.0


class Moody(World):
    """A world that fails when it is told to: when it is opened, or in its second turn."""

    def __init__(self, sample: Sample) -> None:
        if sample.columns.get("fails") == "open":
            raise OSError("no disk")
        self.fails, self.turns = sample.columns.get("fails"), 0

    @tool
    def touch(self, how: Literal["softly", "hard"] = "softly", often: int | None = None) -> str:
        """Touch it.

        Args:
            how: the way
            often: how many times
        """
        return "It moves."

    async def answer(self, message: Message) -> Answer:
        self.turns += 1
        if self.turns == 2 and self.fails:
            raise OSError("the server is gone")
        return Answer(await self.use_tools(message), reward=1.0, done=self.turns == 3)


@pytest.mark.parametrize("reward", [None, lambda messages: 1.0], ids=["steps", "judged"])
@pytest.mark.parametrize("fails", ["open", "later"])
def test_trl_is_told_none_where_the_world_failed_and_the_next_episode_is_judged(fails: str, reward: Any) -> None:
    environment = trl_environment(Moody, reward)()
    environment.reset(**ROW, fails=fails)
    for _ in range(3):
        with contextlib.suppress(ItemError):  # which TRL shows to the model
            environment.touch()
    assert environment.get_reward() is None
    environment.reset(**ROW)
    assert environment.touch(how="hard") == "It moves."
    assert environment.get_reward() == 1.0


def test_what_is_over_is_over_also_for_trl() -> None:
    environment = trl_environment(Moody)()
    environment.reset(**ROW)
    shown = [environment.touch() for _ in range(5)]
    assert shown == ["It moves."] * 3 + ["The episode is over."] * 2
    assert environment.get_reward() == 3.0


def test_choices_and_what_may_be_left_out_are_in_the_signature() -> None:
    touch = trl_environment(Moody).touch
    assert str(inspect.signature(touch)) == "(self, *, how: str = 'softly', often: int | None = None) -> str"
    assert 'how: the way (choices: ["softly", "hard"])' in (inspect.getdoc(touch) or "")


def test_tools_that_cannot_be_known_beforehand_are_asked_for() -> None:
    with pytest.raises(ConfigError, match="Give `tools`"):
        trl_environment("tests.agent.worlds:double")
