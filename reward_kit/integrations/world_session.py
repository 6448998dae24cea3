# SPDX-License-Identifier: Apache-2.0
"""A world that somebody else steps through: trainers have loops of their own, and ask only what an action came to.

    session = WorldSession(environment_from("savings.py:Savings"))
    session.reset({"prompt": "Save 10.", "ground_truth": 10})
    session.call("deposit", {"amount": 10})        what the tool shows
    session.say("Done.")                           an `Answer`: what comes back, its reward, whether it is over
    session.rollout()                              all of it, as a run would have kept it; rewards judge this

Every trainer's adapter is a thin layer over this. All methods wait; the worlds live on a loop in the background.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from reward_kit.agent.calls_in_text import with_calls_in_text
from reward_kit.agent.environment import Answer, Environment, World, environment_of
from reward_kit.agent.open_world import as_answer, ask_world, facts_of, open_world
from reward_kit.agent.tools import Tool
from reward_kit.agent.transcript import Limits, Transcript, was_cut_off
from reward_kit.config_models import AgentConfig, Price
from reward_kit.datasets.ground_truths import EXPLICIT
from reward_kit.datasets.interpret import RowReader
from reward_kit.datasets.rows import Written, as_table
from reward_kit.errors import ConfigError, EnvironmentFailure, ItemError
from reward_kit.models import ChatCompletionMessageToolCall, Completion, Ended, FunctionCall, Message, Rollout, Sample
from reward_kit.utils.event_loop import background_loop
from reward_kit.utils.module_loader import load_object

__all__ = ["WorldSession", "environment_from", "sample_from_row"]

T = TypeVar("T")

_ROWS = RowReader()


def environment_from(named: Any, params: Mapping[str, Any] | None = None) -> Environment:
    """An environment, or whatever opens worlds, or the import path of one of these."""
    if isinstance(named, str):
        try:
            named = load_object(named)
        except ImportError as error:
            raise ConfigError(f"The environment cannot be loaded: {error}") from error
    return named if isinstance(named, Environment) else environment_of(named, (), params)


def sample_from_row(row: Mapping[str, Any], ground_truth: str | None = None, *, written: Written = as_table) -> Sample:
    """A trainer's row as a sample, read as every row is; `ground_truth` may name the column that says what is right.

    A row that asks nothing is one whose world opens by itself: its user turn is empty.
    """
    if ground_truth is not None:
        others = {name: value for name, value in row.items() if name not in EXPLICIT}
        row = {**others, "ground_truth": row.get(ground_truth)}
    return _ROWS.sample_or_opening(row, written)


class WorldSession:
    """One world at a time, for a loop that is not ours."""

    def __init__(self, environment: Environment, config: AgentConfig | None = None, price: Price | None = None) -> None:
        """Open worlds of `environment`, within the limits of `config`; `max_cost` counts at this price."""
        self._environment = environment
        self._config = config or AgentConfig()
        self._limits, self._price = Limits(self._config), price
        self._held = contextlib.AsyncExitStack()
        self._world: World | None = None
        self._transcript: Transcript | None = None
        self._sample: Sample | None = None
        self._ended: Ended | None = None
        self._failure: ItemError | None = None

    # -- for loops that wait

    def reset(self, row: Mapping[str, Any] | Sample) -> list[Message]:
        """Begin a new episode; what the world shows first, beside the prompt."""
        return _wait(self.reset_async(row))

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Have one tool called; what the model is shown of it."""
        return _wait(self.call_async(name, arguments))

    def say(self, text: str) -> Answer:
        """Have the world answer a text, in which tool calls may be written."""
        return _wait(self.say_async(text))

    def last_words(self, said: Message | Completion) -> None:
        """Have the world told what the model said in the end, where the trainer's own loop tells nobody."""
        _wait(self.last_words_async(said))

    def rollout(self) -> Rollout:
        """The episode up to now, with the world's facts."""
        return _wait(self.rollout_async())

    def close(self) -> None:
        """Close the world."""
        _wait(self.close_async())

    # -- the same, for an event loop; the worlds live on the one in the background all the same

    async def reset_async(self, row: Mapping[str, Any] | Sample) -> list[Message]:
        """Begin a new episode; what the world shows first, beside the prompt."""
        return await _elsewhere(self._reset(row if isinstance(row, Sample) else sample_from_row(row)))

    async def call_async(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Have one tool called; what the model is shown of it."""
        from reward_kit.utils import exact_json

        number = len(self._open[1].steps)
        function = FunctionCall(name=name, arguments=exact_json.dumps(dict(arguments)).decode())
        call = ChatCompletionMessageToolCall(id=f"call_{number}_0", function=function)
        answer = await self.act_async(Message(role="assistant", content=None, tool_calls=[call]))
        return "\n".join(message.text for message in answer.messages)

    async def say_async(self, text: str) -> Answer:
        """Have the world answer a text, in which tool calls may be written."""
        message, world = Message(role="assistant", content=text), self._open[0]
        message = with_calls_in_text(message, world.offered) if world.offered else message
        calls = [
            each.model_copy(update={"id": f"call_{len(self._open[1].steps)}_{place}"})
            for place, each in enumerate(message.tool_calls or ())
        ]
        return await self.act_async(message.model_copy(update={"tool_calls": calls or None}))

    async def act_async(self, said: Message | Completion) -> Answer:
        """Have the world answer what the model said. The limits of tokens and money need to know its usage as well."""
        return await _elsewhere(self._act(Completion(message=said) if isinstance(said, Message) else said))

    async def last_words_async(self, said: Message | Completion) -> None:
        """Have the world told what the model said in the end, where the trainer's own loop tells nobody."""
        if self._ended is None and self._failure is None:
            with contextlib.suppress(ItemError):  # it is noted: the episode is not judged
                await self.act_async(said)

    async def rollout_async(self) -> Rollout:
        """The episode up to now, with the world's facts."""
        return await _elsewhere(self._rollout())

    async def close_async(self) -> None:
        """Close the world."""
        await _elsewhere(self._close())

    # -- what is known without asking

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools as they are now."""
        return self._open[0].offered

    @property
    def rewards(self) -> list[float]:
        """What the world gave for the steps so far; a step without a reward gave 0."""
        return [step.reward or 0.0 for step in self._open[1].steps]

    @property
    def last_call_failed(self) -> bool:
        """Whether the last tool call went wrong."""
        calls = [call for step in self._open[1].steps[-1:] for call in step.calls]
        return bool(calls) and calls[-1].error is not None

    @property
    def ended(self) -> Ended | None:
        """How the episode ended, once it has."""
        return self._ended

    @property
    def failure(self) -> ItemError | None:
        """How the world failed, if it has. Such an episode is worth nothing that could be told, not 0."""
        return self._failure

    @property
    def _open(self) -> tuple[World, Transcript, Sample]:
        if self._world is None or self._transcript is None or self._sample is None:
            raise EnvironmentFailure("There is no episode yet. Call `reset` first.", retryable=False)
        return self._world, self._transcript, self._sample

    async def _reset(self, sample: Sample) -> list[Message]:
        await self._close()
        self._failure = self._ended = None
        with self._noting_failure():
            return await self._begin(sample)

    async def _begin(self, sample: Sample) -> list[Message]:
        self._world = await self._held.enter_async_context(open_world(self._environment, sample, self._config))
        self._transcript, self._sample, self._ended = Transcript(sample, self._price), sample, None
        opening = as_answer(await ask_world(self._config, "start", self._world.start))
        self._transcript.open(opening)
        return [*opening.messages]

    async def _act(self, completion: Completion) -> Answer:
        (world, transcript, _), message = self._open, completion.message
        transcript.reply(completion)
        world.runner.begin_turn()
        with self._noting_failure():
            answer = as_answer(await ask_world(self._config, "answer", world.answer, message))
        transcript.answer(answer, world.runner.uses)
        self._ended = self._limits.end_of(message, answer) or self._limits.reached(transcript)
        return answer

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except ItemError as error:
            self._failure = error
            raise

    async def _rollout(self) -> Rollout:
        if self._failure is not None:
            raise self._failure
        world, transcript, sample = self._open
        facts = await facts_of(world, self._config)
        return Rollout(
            sample=sample, response_index=0, turns=transcript.turns, steps=transcript.steps, ended=self._ended,
            truncated=was_cut_off(self._ended, transcript), facts=facts, opening=transcript.opening,
        )  # fmt: skip

    async def _close(self) -> None:
        self._world = None
        await self._held.aclose()


def _wait(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(coroutine, background_loop()).result()


async def _elsewhere(coroutine: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns, run where the worlds live."""
    loop = background_loop()
    if asyncio.get_running_loop() is loop:
        return await coroutine
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))
