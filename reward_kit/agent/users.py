# SPDX-License-Identifier: Apache-2.0
"""Users: somebody who goes on talking when the model has answered. Scripted turns, or a model that plays the user."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from reward_kit.agent.environment import Answer, Environment, World, WorldAround, finished, opened
from reward_kit.agent.open_world import as_answer
from reward_kit.config_models import Price, Sampling
from reward_kit.errors import ConfigError, DatasetError, EnvironmentFailure
from reward_kit.generation.client import ModelClient
from reward_kit.generation.prices import spending
from reward_kit.generation.usage import used_by
from reward_kit.models import ChatCompletionMessageToolCall, Failure, FunctionCall, Message, Sample

__all__ = ["Acted", "ModelUser", "ScriptedUser", "Spoken", "User", "WithUser", "as_message", "call_from"]


class Spoken(NamedTuple):
    """What a user says next."""

    text: str | None
    """None where the user has nothing more to say."""
    leaves: bool = False
    """Whether that is the last thing the user says."""
    cost: float = 0.0
    cost_is_at_most: bool = False


class Acted(NamedTuple):
    """What a user that has tools does next."""

    message: Message
    cost: float = 0.0
    cost_is_at_most: bool = False


class User(Protocol):
    """Whoever answers the model in an episode."""

    async def speak(self, sample: Sample, conversation: Sequence[Message], draw: int) -> Spoken:
        """What the user says after `conversation`, in which the user and the model have spoken."""
        ...

    async def act(
        self, sample: Sample, conversation: Sequence[Message], draw: int, tools: Sequence[dict[str, Any]]
    ) -> Acted:
        """What a user with `tools` does next: calls or words."""
        ...


class ScriptedUser:
    """Says the same things in every episode of a sample, one after another."""

    def __init__(self, script: Sequence[Any] | str) -> None:
        """The turns, or the column of the sample that holds them: texts, or messages, which may have calls."""
        self._script = script

    async def speak(self, sample: Sample, conversation: Sequence[Message], draw: int) -> Spoken:
        """The next turn of the script."""
        added = [message.role for message in conversation[len(sample.messages) :]]
        answered = added[added.index("assistant") :] if "assistant" in added else []  # before that, the world spoke
        turn = self._turn(sample, answered.count("user"))
        return Spoken(None if turn is None else turn.text)

    def _turn(self, sample: Sample, said: int) -> Message | None:
        """What comes after so many turns."""
        if isinstance(self._script, str) and self._script not in sample.columns:
            raise DatasetError(
                f"Sample {sample.id!r} has no column {self._script!r}, which `agent.user.script` names. It has: "
                f"{', '.join(sample.columns) or 'none'}."
            )
        script = sample.columns[self._script] if isinstance(self._script, str) else self._script
        if not isinstance(script, Sequence) or isinstance(script, str):
            raise DatasetError(
                f"The column {self._script!r} of sample {sample.id!r} is not a list of turns. Correct the dataset."
            )
        return as_message(script[said]) if said < len(script) else None

    async def act(
        self, sample: Sample, conversation: Sequence[Message], draw: int, tools: Sequence[dict[str, Any]]
    ) -> Acted:
        """The next turn of the script. After its end the user leaves."""
        asked = sum(message.role == "user" for message in sample.messages)
        turn = self._turn(sample, sum(message.role == "user" for message in conversation) - asked)
        return Acted(turn or Message(role="user", content="###STOP###"))


def as_message(turn: Any) -> Message:
    """A turn as a message: of a text, or of the fields that tau2-bench or a chat endpoint would write."""
    if isinstance(turn, Message):
        return turn
    if not isinstance(turn, Mapping):
        return Message(role="user", content=str(turn))
    calls = [call_from(call) for call in turn.get("tool_calls") or ()] or None
    return Message(role=turn.get("role") or "user", content=turn.get("content"), tool_calls=calls)


def call_from(fields: Mapping[str, Any]) -> ChatCompletionMessageToolCall:
    """A call, of the fields that tau2-bench or a chat endpoint would write."""
    function = fields.get("function") or fields
    arguments = function["arguments"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ChatCompletionMessageToolCall(
        id=fields.get("id") or "", function=FunctionCall(name=function["name"], arguments=text)
    )


class ModelUser:
    """A model that plays the user. It sees what the user would see: no system prompt and no tool of the agent."""

    def __init__(
        self, client: ModelClient, sampling: Sampling, price: Price | None, prompt: str, last_words: str
    ) -> None:
        """Play by `prompt`, a Jinja template over the sample's columns; a reply with the `last_words` is the last."""
        from jinja2 import StrictUndefined, TemplateSyntaxError, meta
        from jinja2.sandbox import SandboxedEnvironment

        self._client, self._sampling, self._price, self._last_words = client, sampling, price, last_words
        templates = SandboxedEnvironment(undefined=StrictUndefined)
        try:
            self._prompt, parsed = templates.from_string(prompt), templates.parse(prompt)
        except TemplateSyntaxError as error:
            raise ConfigError(f"`agent.user.prompt` is not a valid Jinja template: {error}. Correct it.") from error
        self._variables = meta.find_undeclared_variables(parsed)

    async def speak(self, sample: Sample, conversation: Sequence[Message], draw: int) -> Spoken:
        """What the model says in the user's place."""
        acted = await self.act(sample, _spoken(conversation), draw, ())
        text = acted.message.text
        return Spoken(text, self.is_last(text), acted.cost, acted.cost_is_at_most)

    async def act(
        self, sample: Sample, conversation: Sequence[Message], draw: int, tools: Sequence[dict[str, Any]]
    ) -> Acted:
        """What the model does in the user's place."""
        known: Mapping[str, Any] = {**sample.columns, "ground_truth": sample.ground_truth, "id": sample.id}
        prompt = Message(role="system", content=self._prompt_for(sample.id, known))
        (reply,) = await self._client.generate(
            [prompt, *map(_turned, conversation)],
            draws=(draw,),
            sampling=self._sampling,
            tools=[*tools] or None,
            sample_id=f"{sample.id}/user",
        )
        used = used_by(reply)
        cost, at_most = spending(used, self._price) or 0.0, any(usage.at_most for usage in used)
        if isinstance(reply, Failure):
            failure = EnvironmentFailure(
                f"The model that plays the user failed: {reply.message}", retryable=reply.retryable
            )
            failure.cost, failure.cost_is_at_most = cost, at_most
            raise failure
        said = reply.message
        return Acted(_as_role("user", said), cost, at_most)

    def _prompt_for(self, sample_id: str, known: Mapping[str, Any]) -> str:
        from jinja2 import TemplateError

        try:
            return self._prompt.render(**known)
        except TemplateError as error:
            missing = ", ".join(map(repr, sorted(self._variables - known.keys())))
            no_column = f"there is no column {missing}" if missing else str(error)
            raise DatasetError(
                f"`agent.user.prompt` cannot be filled in for sample {sample_id!r}: {no_column}. There are: "
                f"{', '.join(sorted(known))}. Correct the prompt, or the dataset."
            ) from error

    def is_last(self, text: str) -> bool:
        """Whether the user leaves with these words."""
        return self._last_words in text


def _spoken(conversation: Sequence[Message]) -> list[Message]:
    return [message for message in conversation if message.role in {"user", "assistant"} and message.text.strip()]


def _turned(message: Message) -> Message:
    """A message as the other side sees it. The results of the user's own calls are shown as they are."""
    if message.role == "tool":
        return message
    if message.role == "user":
        return _as_role("assistant", message)
    return Message(role="user", content=message.text)


def _as_role(role: str, said: Message) -> Message:
    """What somebody said or called, in that role; with what its own endpoint wants back."""
    kept = said.sent_back
    thoughts = None if kept is None else said.reasoning_content
    return Message(
        role=role, content=said.content, tool_calls=said.tool_calls, reasoning_content=thoughts, sent_back=kept
    )


class WithUser(Environment):
    """An environment in whose worlds a user goes on talking where the model would have had the last word."""

    def __init__(self, inner: Environment, user: User) -> None:
        """Have `user` talk in each world of `inner`."""
        self._inner, self._user = inner, user

    async def open(self, sample: Sample) -> World:
        """A world of the inner environment, with the user in it."""
        world = await opened(self._inner, sample)
        return world if world.take_user(self._user) else _UserWorld(world, self._user, sample)

    async def close(self) -> None:
        """Close the inner environment."""
        await finished(self._inner.close())


class _UserWorld(WorldAround):
    """A world with a user in it. All but the last word is the inner world's, and so is all that changes."""

    def __init__(self, inner: World, user: User, sample: Sample) -> None:
        super().__init__(inner)
        self._user, self._sample = user, sample

    async def answer(self, message: Message) -> Answer:
        answer = as_answer(await super().answer(message))
        if not answer.done or message.tool_calls or answer.messages:
            return answer
        spoken = await self._spoken()
        if spoken.text is None:
            return answer
        said = Message(role="user", content=spoken.text)
        cost, at_most = answer.cost + spoken.cost, answer.cost_is_at_most or spoken.cost_is_at_most
        return replace(answer, messages=[said], done=spoken.leaves, cost=cost, cost_is_at_most=at_most)

    async def _spoken(self) -> Spoken:
        """What the user says; of a turn that is played again, what was said then."""
        recorded = self.runner.played_again
        if recorded and recorded[-1].role == "user" and isinstance(self._user, ModelUser):
            text = recorded[-1].text
            return Spoken(text, leaves=self._user.is_last(text))
        return await self._user.speak(self._sample, self.runner.conversation, self.runner.draw)
