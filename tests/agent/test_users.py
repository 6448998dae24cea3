# SPDX-License-Identifier: Apache-2.0
"""Users: scripted turns, a model that plays the user, and that neither is asked twice for what was said before."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reward_kit.agent import Episodes
from reward_kit.agent.environment import environment_of
from reward_kit.agent.users import ModelUser, ScriptedUser, User, WithUser
from reward_kit.config_models import Price, Sampling, UserConfig
from reward_kit.errors import ConfigError, DatasetError
from reward_kit.models import Failure, Message, Rollout, Sample
from reward_kit.storage.turn_journal import TurnJournal
from tests.agent.worlds import Account, Model, call, calls, essence, says, settings

SAMPLE = Sample(
    id="s", messages=[Message(role="system", content="Be brief."), Message(role="user", content="Hello.")],
    columns={"persona": "a hurried person", "turns": ["And now?", "Goodbye."]},
)  # fmt: skip
AGENT = [says("Hi."), calls(call("deposit", {"amount": 2})), says("There are 2."), says("Bye."), says("Bye again.")]


async def played(user: User, model: Model | None = None, journal: TurnJournal | None = None) -> Rollout:
    environment = WithUser(environment_of(Account), user)
    play = Episodes(model or Model(AGENT), Sampling(), None, environment, settings(), journal=journal)
    (rollout,) = await play(SAMPLE, [3])
    return rollout


def said_by_the_user(rollout: Rollout) -> list[str]:
    return [turn.text for turn in rollout.turns if turn.role == "user"]


@pytest.mark.parametrize("script", ["turns", ["And now?", "Goodbye."]])
async def test_a_script_is_said_turn_by_turn_and_tools_do_not_disturb_it(script: Any) -> None:
    rollout = await played(ScriptedUser(script))
    assert said_by_the_user(rollout) == ["And now?", "Goodbye."]
    assert (rollout.ended, rollout.facts) == ("answered", {"balance": 2, "history": [2]})
    assert rollout.turns[-1].text == "Bye."


async def test_a_column_that_is_no_script_is_an_error_of_the_data() -> None:
    with pytest.raises(DatasetError, match="persona"):
        await played(ScriptedUser("persona"))


def talks(messages: Any, draw: int) -> Message:
    """A user that leaves after two turns."""
    return says(f"Please, {draw}." if sum(m.role == "assistant" for m in messages) < 2 else "Thanks ###STOP###")


def user_of(model: Model, price: Price | None = None) -> ModelUser:
    return ModelUser(model, Sampling(), price, "You are {{ persona }}.", "###STOP###")


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("You are {{ persona }}, called {{ name }}.", "no column 'name'. There are: ground_truth, id, persona, turns."),
        ("You like {{ persona.hobby }}.", "no attribute 'hobby'"),
    ],
)
async def test_a_prompt_that_cannot_be_filled_in_says_what_is_missing_and_what_there_is(prompt: str, told: str) -> None:
    user = ModelUser(Model(talks), Sampling(), None, prompt, "###STOP###")
    with pytest.raises(DatasetError, match=re.escape(told)):
        await played(user)


async def test_a_prompt_may_do_without_what_it_says_may_be_missing() -> None:
    user = ModelUser(Model(talks), Sampling(), None, "You are {{ name | default('somebody') }}.", "###STOP###")
    assert (await played(user)).failure is None


def test_a_prompt_that_is_no_template_is_told_before_anybody_speaks() -> None:
    with pytest.raises(ConfigError, match=r"agent\.user\.prompt"):
        ModelUser(Model(talks), Sampling(), None, "You are {{ persona }.", "###STOP###")


async def test_a_model_that_plays_the_user_sees_what_a_user_sees() -> None:
    seen: list[list[tuple[str, str]]] = []

    def noted(messages: Any, draw: int) -> Message:
        seen.append([(message.role, message.text) for message in messages])
        return talks(messages, draw)

    rollout = await played(user_of(Model(noted)))
    assert said_by_the_user(rollout) == ["Please, 3.", "Thanks ###STOP###"]
    assert rollout.ended == "done"
    assert seen[0] == [("system", "You are a hurried person."), ("assistant", "Hello."), ("user", "Hi.")]
    assert all("Be brief" not in text and "balance" not in text for turn in seen for _, text in turn)


async def test_what_the_user_costs_is_counted_with_the_episode() -> None:
    rollout = await played(user_of(Model(talks), Price(input=1e6, output=0.0)))
    assert rollout.cost is None, "the agent's own price is not known"
    assert rollout.steps is not None


async def test_an_episode_that_goes_on_does_not_ask_the_user_again(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    with TurnJournal(path) as journal:
        whole = await played(user_of(Model(talks)), journal=journal)
    written = path.read_bytes().splitlines(keepends=True)
    for kept in range(len(written) + 1):
        path.write_bytes(b"".join(written[:kept]))
        user, agent = Model(talks), Model(AGENT)
        with TurnJournal(path) as journal:
            assert essence(await played(user_of(user), agent, journal)) == essence(whole)
        spoken = sum(b'"role":"user"' in line for line in written[:kept])
        assert len(user.asked) == 2 - spoken
        assert len(agent.asked) == 3 - kept // 2


async def test_a_user_that_fails_is_a_failure_of_the_world() -> None:
    down = Failure(stage="generate", type="ProviderError", message="down", retryable=True)
    rollout = await played(user_of(Model([down])))
    assert rollout.failure is not None
    assert (rollout.failure.type, rollout.failure.retryable) == ("EnvironmentFailure", True)


@pytest.mark.parametrize("given", [{}, {"script": "a", "model_name": "m", "prompt": "p"}, {"model_name": "m"}])
def test_a_user_is_a_script_or_a_model_with_a_prompt(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="user"):
        UserConfig.model_validate(given)


async def test_a_scripted_turn_may_be_a_message_with_calls() -> None:
    turn = {"role": "user", "content": None, "tool_calls": [{"name": "look", "arguments": {"at": "é"}}]}
    user, asked = ScriptedUser([turn, "Done."]), SAMPLE.messages
    first = (await user.act(SAMPLE, asked, 0, ())).message
    assert [(each.function.name, each.function.arguments) for each in first.tool_calls or ()] == [
        ("look", '{"at": "é"}')
    ]
    assert (await user.act(SAMPLE, [*asked, first], 0, ())).message.text == "Done."
    assert (await ScriptedUser([]).act(SAMPLE, asked, 0, ())).message.text == "###STOP###"
