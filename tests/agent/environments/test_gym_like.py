# SPDX-License-Identifier: Apache-2.0
"""Other people's environments as worlds: the same actions give the same as when they are played directly."""

from __future__ import annotations

import random
from typing import Any

import pytest

from reward_kit.agent.environment import Answer, finished
from reward_kit.agent.environments.gym_like import GymWorld, TextArenaWorld, TextEnvWorld
from reward_kit.agent.worker_worlds import in_worker
from reward_kit.errors import EnvironmentFailure
from reward_kit.models import Message, Sample

SAMPLE = Sample(id="s", messages=[Message(role="user", content="guess")], columns={"seed": 7})
NUMBERS = ("50", "10", "90")


def say(text: str) -> Message:
    return Message(role="assistant", content=text)


class Guess:
    """A number to be guessed, drawn from the global generator, with gymnasium's methods."""

    def __init__(self, most: int = 100) -> None:
        self.most = most
        self.is_closed = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        random.seed(seed)
        self.secret = random.randint(1, self.most)
        self.tries = 0
        return f"A number from 1 to {self.most}.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.tries += 1
        number = int(action)
        if number == self.secret:
            return "Right.", 1.0, True, False, {}
        hint = "higher" if number < self.secret else "lower"
        return f"{hint}, {random.random():.3f}", -0.1, False, self.tries == len(NUMBERS), {}

    def close(self) -> None:
        self.is_closed = True


def directly(**params: Any) -> list[tuple[str, float | None, bool]]:
    env = Guess(**params)
    played: list[tuple[str, float | None, bool]] = [(env.reset(seed=7)[0], None, False)]
    for number in NUMBERS:
        shown, reward, terminated, truncated, _ = env.step(number)
        played.append((shown, reward, terminated or truncated))
    return played


async def through(world: GymWorld) -> list[tuple[str, float | None, bool]]:
    played: list[tuple[str, float | None, bool]] = [(world.start(), None, False)]
    for number in NUMBERS:
        answer: Answer = await finished(world.answer(say(number)))
        played.append(("".join(message.text for message in answer.messages), answer.reward, answer.done))
    return played


async def test_a_gym_gives_what_it_gives_when_it_is_played_directly() -> None:
    world = GymWorld(SAMPLE, make=Guess, most=500)
    assert await through(world) == directly(most=500)
    assert world.facts() == {"earned": pytest.approx(-0.3), "is_over": True}
    world.close()
    assert world._env.is_closed


async def test_games_on_the_global_generator_do_not_disturb_each_other_in_processes() -> None:
    environment = in_worker(GymWorld, {"make": Guess})
    one, other = await environment.open(SAMPLE), await environment.open(SAMPLE)
    expected = directly()
    assert await one.start() == await other.start() == expected[0][0]
    for number, (shown, reward, _) in zip(NUMBERS, expected[1:], strict=True):
        for world in (one, other):  # by turns: in one process, each would draw the other's numbers
            answer = await world.answer(say(number))
            assert (answer.messages[0].text, answer.reward) == (shown, reward)
    await environment.close()


class OldGuess:
    """The methods of old gyms: no seed, four values."""

    def reset(self) -> str:
        return "0"

    def step(self, action: Any) -> tuple[str, int, bool, dict[str, Any]]:
        return f"{action}!", 1, action == "stop", {}


def test_old_gyms_return_four_values() -> None:
    world = GymWorld(SAMPLE, make=OldGuess)
    assert world.start() == "0"
    assert world.answer(say("go")) == Answer([Message(role="user", content="go!")], 1.0, False)
    assert world.answer(say("stop")).done


def test_words_stand_for_actions() -> None:
    world = GymWorld(SAMPLE, make=OldGuess, actions={"left": 0, "right": 1})
    assert world.answer(say("Not LEFT, I go right.")).messages[0].text == "1!"
    refused = world.answer(say("upright"))
    assert refused.messages[0].text == "That names no action. There are: left, right." and not refused.done
    assert GymWorld(SAMPLE, make=OldGuess, act=str.upper).answer(say("up")).messages[0].text == "UP!"


class NoGym:
    def step(self, action: str) -> tuple[int, int]:
        return 1, 2


def test_something_else_than_a_gym_is_told() -> None:
    with pytest.raises(EnvironmentFailure, match="2 values"):
        GymWorld(SAMPLE, make=NoGym).answer(say("x"))


class TextEnv:
    """SkyRL's methods."""

    def __init__(self, turns: int = 2) -> None:
        self.turns = turns

    def init(self, prompt: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        return [*prompt, {"role": "user", "content": f"after {prompt[-1]['content']}"}], {}

    def step(self, action: str) -> dict[str, Any]:
        self.turns -= 1
        shown = [{"role": "user", "content": f"you said {action}"}] if self.turns else []
        return {"observations": shown, "reward": 0.25, "done": not self.turns, "metadata": {}}

    def get_metrics(self) -> dict[str, Any]:
        return {"left": self.turns}


def test_a_text_environment() -> None:
    world = TextEnvWorld(SAMPLE, make=TextEnv)
    assert [message.text for message in world.start()] == ["after guess"]
    assert world.answer(say("a")) == Answer([Message(role="user", content="you said a")], 0.25, False)
    assert world.answer(say("b")) == Answer([], 0.25, True)
    assert world.facts() == {"earned": 0.5, "is_over": True, "metrics": {"left": 0}}


class Arena:
    """TextArena's methods."""

    def reset(self, num_players: int, seed: int | None = None) -> None:
        self.said: list[str] = [f"{num_players} player, seed {seed}"]

    def get_observation(self) -> tuple[int, str]:
        return 0, "\n".join(self.said)

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        self.said.append(action)
        return action == "win", {}

    def close(self) -> tuple[dict[int, float], dict[int, Any]]:
        return {0: 1.0}, {0: {}}


def test_a_game_of_one_player() -> None:
    world = TextArenaWorld(SAMPLE, make=Arena)
    assert world.start() == "1 player, seed 7"
    assert world.answer(say("try")).messages[0].text == "1 player, seed 7\ntry"
    assert world.answer(say("win")) == Answer([], 1.0, True)
    assert world.facts() == {"earned": 1.0, "is_over": True}
