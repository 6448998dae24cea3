# SPDX-License-Identifier: Apache-2.0
"""Games and text environments of others that have `reset` and `step`, as worlds.

    GymWorld        gymnasium, GEM, verl-agent's games …: reset(seed=…) -> observation, or (observation, info);
                    step(action) -> (observation, reward, terminated, truncated, info), or the four of old gyms
    TextEnvWorld    SkyRL's BaseTextEnv: init(prompt) -> (prompt, info);
                    step(text) -> {"observations": …, "reward": …, "done": …}
    TextArenaWorld  TextArena, one player: reset(num_players=1, seed=…); get_observation() -> (player, text);
                    step(text) -> (done, info); close() -> rewards

What the model says is the action, as text; what the environment shows is what a user says. The reward of a step is kept
as it comes. Many of these draw from the global random generator: open them through `in_worker`, which seeds it by the
sample and keeps episodes apart.
"""

from __future__ import annotations

import inspect
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reward_kit.agent.environment import Answer, World
from reward_kit.errors import EnvironmentFailure
from reward_kit.models import Message, Sample
from reward_kit.utils.module_loader import load_function

__all__ = ["GymWorld", "TextArenaWorld", "TextEnvWorld"]

_OLD_GYM, _NEW_GYM = 4, 5


class _Stepped(World):
    """What these worlds have in common: an object of somebody else's class, and a sum of rewards."""

    def __init__(self, sample: Sample, make: Callable[..., Any] | str, params: Mapping[str, Any]) -> None:
        self._sample = sample
        function = load_function(make) if isinstance(make, str) else make
        self._env = function(**params)
        self._seed = int(sample.columns.get("seed", zlib.crc32(sample.id.encode("utf-8", "replace"))))
        self._earned = 0.0
        self._is_over = False

    def _answer(self, shown: Any, reward: Any, is_over: bool) -> Answer:
        self._earned += float(reward or 0.0)
        self._is_over = is_over
        text = _text(shown)
        messages = [Message(role="user", content=text)] if text else []
        return Answer(messages, reward=float(reward or 0.0), done=is_over)

    def facts(self) -> dict[str, Any]:
        """The sum of the rewards, and whether the environment itself ended the episode."""
        return {"earned": self._earned, "is_over": self._is_over}

    def close(self) -> None:
        """Close the environment, where it can be closed."""
        if callable(close := getattr(self._env, "close", None)):
            close()


def _text(shown: Any) -> str:
    return shown if isinstance(shown, str) else "" if shown is None else str(shown)


class GymWorld(_Stepped):
    """An object with gymnasium's `reset` and `step`.

    `make` makes it, a function or an import path, with the further params. The sample's column `seed` is handed to
    `reset`; without one it is made of the sample's id. With `actions`, a mapping, what the model says stands for an
    action: the last of these words in its text. `act` does the same as a function or by its import path.
    """

    def __init__(
        self, sample: Sample, *, make: Callable[..., Any] | str, actions: Mapping[str, Any] | None = None,
        act: Callable[[str], Any] | str | None = None, **params: Any,
    ) -> None:  # fmt: skip
        super().__init__(sample, make, params)
        self._actions = None if actions is None else {str(word).lower(): action for word, action in actions.items()}
        self._act = load_function(act) if isinstance(act, str) else act

    def start(self) -> str:
        """The first observation."""
        reset = self._env.reset
        takes_seed = any(
            name == "seed" or parameter.kind is parameter.VAR_KEYWORD
            for name, parameter in inspect.signature(reset).parameters.items()
        )
        shown = reset(seed=self._seed) if takes_seed else reset()
        return _text(shown[0] if isinstance(shown, tuple) else shown)

    def answer(self, message: Message) -> Answer:
        """What the action led to."""
        action = self._action(message.text)
        if action is None:
            known = ", ".join(self._actions or ())
            return Answer([Message(role="user", content=f"That names no action. There are: {known}.")])
        result = self._env.step(action)
        if len(result) == _NEW_GYM:
            shown, reward, terminated, truncated, _ = result
            return self._answer(shown, reward, bool(terminated or truncated))
        if len(result) == _OLD_GYM:
            shown, reward, is_over, _ = result
            return self._answer(shown, reward, bool(is_over))
        raise EnvironmentFailure(
            f"`step` returned {len(result)} values, but gyms return {_OLD_GYM} or {_NEW_GYM}. Correct `step`.",
            retryable=False,
        )

    def _action(self, text: str) -> Any:
        if self._act is not None:
            return self._act(text)
        if self._actions is None:
            return text
        found = re.findall("|".join(rf"\b{re.escape(word)}\b" for word in self._actions), text.lower())
        return self._actions[found[-1]] if found else None


class TextEnvWorld(_Stepped):
    """An object like SkyRL's `BaseTextEnv`. The sample's messages are the prompt that `init` is given."""

    def __init__(self, sample: Sample, *, make: Callable[..., Any] | str, **params: Any) -> None:
        super().__init__(sample, make, params)

    def start(self) -> list[Message]:
        """What `init` adds to the prompt."""
        prompt = [message.as_request() for message in self._sample.messages]
        begun, _ = self._env.init(prompt)
        return _messages(list(begun)[len(prompt) :])

    def answer(self, message: Message) -> Answer:
        """What the environment says to the model's text."""
        result = self._env.step(message.text)
        answer = self._answer(None, result["reward"], bool(result["done"]))
        answer.messages = _messages(result["observations"])
        return answer

    def facts(self) -> dict[str, Any]:
        """The environment's own metrics, beside the sum of the rewards."""
        metrics = self._env.get_metrics() if hasattr(self._env, "get_metrics") else {}
        return {**super().facts(), "metrics": metrics}


def _messages(shown: Sequence[Mapping[str, Any]]) -> list[Message]:
    return [Message.model_validate(dict(message)) for message in shown]


class TextArenaWorld(_Stepped):
    """A game of TextArena for one player: `make` is its `textarena.make`, or a class like its environments."""

    def __init__(self, sample: Sample, *, make: Callable[..., Any] | str, **params: Any) -> None:
        super().__init__(sample, make, params)

    def start(self) -> str:
        """What the player sees first."""
        self._env.reset(num_players=1, seed=self._seed)
        return _text(self._env.get_observation()[1])

    def answer(self, message: Message) -> Answer:
        """What the player sees after the move; the reward comes with the end."""
        is_over, _ = self._env.step(message.text)
        if not is_over:
            return self._answer(self._env.get_observation()[1], 0.0, False)
        rewards = self._env.close()
        earned = rewards[0] if isinstance(rewards, tuple) else rewards
        return self._answer(None, earned[0] if isinstance(earned, Mapping) else earned, True)

    def close(self) -> None:
        """Games are closed when they end, which gives the reward."""
