# SPDX-License-Identifier: Apache-2.0
"""Environments and worlds: what an agent acts in.

An *environment* opens a *world* for each episode. A world offers tools, says what comes back when the model has acted,
and in the end tells facts for rewards to read. The least one can write is a class with a tool:

    class Counter(World):
        def __init__(self, sample):
            self.value = 0

        @tool
        def add(self, amount: int) -> int:
            '''Add to the number.'''
            self.value += amount
            return self.value

        def facts(self):
            return {"value": self.value}

Named in a config as `agent.environment: counter.py:Counter`. Every method may be a `def` or an `async def`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from reward_kit.agent.blocking import in_a_thread
from reward_kit.agent.calls import ToolRunner
from reward_kit.agent.tools import Tool, tool_of, tools_of
from reward_kit.errors import ConfigError, EnvironmentFailure, boundary
from reward_kit.models import Message, Sample

__all__ = [
    "Answer",
    "Attached",
    "Durability",
    "Environment",
    "FunctionsWorld",
    "World",
    "WorldAround",
    "environment_of",
    "finished",
    "may_block",
    "opened",
]

T = TypeVar("T")

Durability = Literal["replay", "snapshot", "restart"]
"""How a world is had again after a crash: by playing the recorded steps, from a snapshot, or not: from the start."""


@dataclass(slots=True)
class Answer:
    """What comes back from a world after the model has acted."""

    messages: Sequence[Message] = ()
    """What the model is shown next: the results of its tool calls, an observation, what a user says."""
    reward: float | None = None
    """What the action was worth, where the world says so."""
    done: bool = False
    """Whether the episode is over."""
    state: str | None = None
    """Names the state that the model now sees, where that is not told by the messages alone."""
    cost: float = 0.0
    """Money that the world spent on the answer, such as on a model that plays the user."""
    cost_is_at_most: bool = False
    """Whether nobody told what a part of that took: it counts with the most that it may have been."""
    noted: Any = None
    """What happened beside what is shown and cannot be had again, such as what a model said out of sight: plain data,
    kept with the answer. When the turn is played again, `runner.noted` holds it."""


@dataclass(frozen=True, slots=True)
class Attached:
    """Tools that are added to a world, what they know in the end, and how they are closed."""

    tools: Sequence[Tool]
    facts: Callable[[], Any] | None = None
    close: Callable[[], Any] | None = None
    state: dict[str, Any] | None = field(default_factory=dict)
    """What the tools remember: plain data, kept with a world's snapshots. None: it cannot be had so."""


class World:
    """The object that one episode acts on. Override the methods you need; the others have a default."""

    durability: ClassVar[Durability] = "replay"
    """How this world is had again after a crash. `replay` asks that the same calls give the same results."""

    on_the_loop: bool = False
    """Whether its plain methods are quick, and may run on the event loop. Without it they run in threads, where one
    that hangs holds up nobody; with it a turn costs less, and episodes take their turns in a fixed order."""
    draw: int = 0
    """Which of the episodes of its sample this is; of a branch, which one it left. Set before the world is started."""

    needs_question: bool = True
    """Whether the model must have been asked something before its first turn, by the row or by `start`. False where a
    system prompt and tools are enough, as for an agent that works alone."""

    _runner: ToolRunner | None = None
    _tools: list[Tool] | None = None
    _attached: tuple[Attached, ...] = ()

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools as they are now; they may change from turn to turn. Usual: the methods marked with `@tool`."""
        if self._tools is None:
            self._tools = tools_of(self)
        return self._tools

    def start(self) -> Any:
        """What the model is shown before its first turn, beside the sample's messages: messages, a text, or nothing."""
        return ()

    def answer(self, message: Message) -> Any:
        """What comes back after the model said `message`: an `Answer`, messages, or a text that a user says.

        The usual: its tool calls are run; where it made none, the episode is over.
        """
        return self._usual_answer(message)

    async def _usual_answer(self, message: Message) -> Answer:
        return Answer(await self.use_tools(message), done=not message.tool_calls)

    def facts(self) -> Any:
        """What rewards may read of the world in the end: plain data that can be written as JSON."""
        return {}

    def close(self) -> Any:
        """Give back what the world holds."""

    def snapshot(self) -> Any:
        """All of the world's state as bytes, where its durability is `snapshot`."""
        raise NotImplementedError(f"{type(self).__name__} has the durability 'snapshot', and no method `snapshot`")

    def restore(self, state: bytes) -> Any:
        """Become what the world was when `snapshot` gave these bytes."""
        raise NotImplementedError(f"{type(self).__name__} has the durability 'snapshot', and no method `restore`")

    # -- for those who write `answer` themselves

    async def use_tools(self, message: Message) -> list[Message]:
        """Run the tool calls of a message: one message for each, whatever happened."""
        return await self.runner.run(await self.all_tools(), message) if message.tool_calls else []

    # -- what others add to a world

    def attach(self, attached: Attached) -> None:
        """Offer further tools in this world, which somebody else made."""
        self._attached = (*self._attached, attached)

    @property
    def all_attached(self) -> Sequence[Attached]:
        """What others have added to the world, and to those that it wraps."""
        return self._attached

    def take_user(self, user: Any) -> bool:
        """Whether the world has `user` (`agent.user`) talk by itself; else the user has the last word of each turn."""
        return False

    async def called(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """What a method of the world returns. A plain `def` runs in a thread, where it holds up nobody."""
        if self.on_the_loop or not may_block(method):
            return await finished(method(*arguments))
        return await finished(await in_a_thread(method, *arguments))

    @property
    def offered(self) -> Sequence[Tool]:
        """All tools as they are now: the world's own, and those attached to it."""
        if not self._attached:
            return self.tools
        return [*self.tools, *(tool for attached in self._attached for tool in attached.tools)]

    @property
    def has_tools_at_hand(self) -> bool:
        """Whether `offered` runs nobody's code: a property `tools` that somebody wrote may ask a server, or hang."""
        found = getattr(type(self), "tools", None)
        written = getattr(found, "fget", None) or getattr(found, "func", None)
        return self.on_the_loop or written is None or not may_block(written)

    async def all_tools(self) -> Sequence[Tool]:
        """What is `offered`, found out in a thread where that may take its time."""
        return self.offered if self.has_tools_at_hand else await in_a_thread(lambda: self.offered)

    async def all_facts(self) -> Any:
        """The world's facts, beside those of what is attached to it."""
        facts = await self.called(self.facts)
        if not any(attached.facts for attached in self._attached) or not isinstance(facts, dict):
            return facts
        others = [await finished(attached.facts()) for attached in self._attached if attached.facts is not None]
        return {**{name: value for found in others for name, value in found.items()}, **facts}

    async def close_all(self) -> None:
        """Close the world, and what is attached to it."""
        try:
            await self.called(self.close)
        finally:
            for attached in self._attached:
                if attached.close is not None:
                    await finished(attached.close())

    @property
    def runner(self) -> ToolRunner:
        """What runs the tool calls, and knows how they went."""
        if self._runner is None:
            self._runner = ToolRunner()
        return self._runner

    @runner.setter
    def runner(self, runner: ToolRunner) -> None:
        self._runner = runner


class WorldAround(World):
    """A world around another one, which it passes on as it is. Override what is to be different."""

    def __init__(self, inner: World) -> None:
        """Pass on `inner`."""
        self._inner = inner

    @property
    def durability(self) -> Durability:  # type: ignore[override]  # the inner world's, which may differ by world
        """The inner world's."""
        return self._inner.durability

    @property
    def needs_question(self) -> bool:  # type: ignore[override]  # the inner world's
        """The inner world's."""
        return self._inner.needs_question

    @property
    def tools(self) -> Sequence[Tool]:
        """All that the inner world offers."""
        return self._inner.offered

    @property
    def has_tools_at_hand(self) -> bool:
        """Whether the inner world has."""
        return self._inner.has_tools_at_hand

    @property
    def all_attached(self) -> Sequence[Attached]:
        """What others have added to either."""
        return (*self._inner.all_attached, *self._attached)

    @property
    def runner(self) -> ToolRunner:
        """The inner world's: it runs the calls."""
        return self._inner.runner

    @runner.setter
    def runner(self, runner: ToolRunner) -> None:
        self._inner.runner = runner

    async def start(self) -> Any:
        """What the inner world begins with."""
        self._inner.draw = self.draw
        return await self._inner.called(self._inner.start)

    async def answer(self, message: Message) -> Any:
        """What the inner world answers."""
        return await self._inner.called(self._inner.answer, message)

    async def facts(self) -> Any:
        """What the inner world tells of itself."""
        return await self._inner.all_facts()

    async def close(self) -> None:
        """Close the inner world."""
        await self._inner.close_all()

    async def snapshot(self) -> Any:
        """The inner world's state."""
        return await self._inner.called(self._inner.snapshot)

    async def restore(self, state: bytes) -> Any:
        """Bring the inner world back."""
        return await self._inner.called(self._inner.restore, state)


class Environment:
    """Opens worlds. Subclass it if all worlds need one shared thing, such as a database or a server."""

    @classmethod
    def settings_elsewhere(cls, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Settings that these params only name, such as a file that holds them: what episodes depend on as on params.

        A run directory whose episodes were played with others is refused.
        """
        return {}

    async def open(self, sample: Sample) -> World:
        """A world of its own for one episode of `sample`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Give back what all episodes shared."""


# ── from whatever a config names ─────────────────────────────────────────────────────────────────────────────────────

Opener: TypeAlias = Callable[..., "World | Awaitable[World]"]


@dataclass(slots=True)
class _Opening(Environment):
    """An environment that is a class of worlds, or a function that opens one."""

    opener: Opener
    params: Mapping[str, Any] = field(default_factory=dict)

    async def open(self, sample: Sample) -> World:
        name = getattr(self.opener, "__qualname__", repr(self.opener))
        with boundary(EnvironmentFailure, f"Opening {name!r}"):
            opener: Any = self.opener
            if getattr(opener, "on_the_loop", False) or not may_block(opener):
                opened = opener(sample, **self.params)
            else:
                opened = await in_a_thread(opener, sample, **self.params)
            world: World = await finished(opened)
            return world


class FunctionsWorld(World):
    """A world that is nothing but functions. Each episode has a `state` (a dict) of its own, for those that want it."""

    def __init__(self, functions: Sequence[Callable[..., Any]], sample: Sample, params: Mapping[str, Any]) -> None:
        """Offer these functions. Their hidden parameters may be called `state`, `sample`, or like a param."""
        self.state: dict[str, Any] = {}
        hidden = {**params, "state": self.state, "sample": sample}
        self._tools = [tool_of(function, hidden) for function in functions]

    def facts(self) -> dict[str, Any]:
        """The episode's state as the functions left it."""
        return self.state


def environment_of(
    named: Any, functions: Sequence[Callable[..., Any]] = (), params: Mapping[str, Any] | None = None
) -> Environment:
    """What a config names, as an environment: one, a class of them, a class of worlds, or a function that opens one.

    `functions` are offered as tools beside those of the world; with nothing else named, they are all there is.
    """
    given = dict(params or {})
    if named is None:
        if not functions:
            raise ConfigError("An agent needs an `agent.environment`, or `agent.tools`. Name one of them.")
        return _Opening(lambda sample: FunctionsWorld(functions, sample, given))
    if isinstance(named, type) and issubclass(named, Environment):
        named = named(**given)
    if not isinstance(named, Environment):
        if not callable(named):
            raise ConfigError(
                f"`agent.environment` names a {type(named).__name__}. Name a class of worlds (`World`), an "
                "`Environment`, or a function that takes a sample and returns a world."
            )
        named = _Opening(named, given)
    return _WithTools(named, functions, given) if functions else named


@dataclass(slots=True)
class _WithTools(Environment):
    """An environment whose worlds offer some functions more."""

    inner: Environment
    functions: Sequence[Callable[..., Any]]
    params: Mapping[str, Any]

    async def open(self, sample: Sample) -> World:
        world = await opened(self.inner, sample)
        state: dict[str, Any] = {}
        hidden = {**self.params, "state": state, "sample": sample, "world": world}
        world.attach(Attached([tool_of(function, hidden) for function in self.functions], state=state))
        return world

    async def close(self) -> None:
        await finished(self.inner.close())


async def opened(environment: Environment, sample: Sample) -> World:
    """A world of the environment. A plain `def open` runs in a thread, where it holds up nobody."""
    method: Any = environment.open
    world = await finished(await in_a_thread(method, sample) if may_block(method) else method(sample))
    if isinstance(world, World):
        return world
    raise EnvironmentFailure(
        f"The environment opened a {type(world).__name__}, and not a world. Derive it from `reward_kit.agent.World`.",
        retryable=False,
    )


def may_block(function: Any) -> bool:
    """Whether calling it runs somebody's code before anything can be awaited: a plain `def`, or a class, not ours."""
    function = getattr(function, "__func__", function)
    if inspect.isclass(function):
        return any(map(_is_plain, _run_by_a_call_of(function)))
    return _is_plain(function)


def _run_by_a_call_of(kind: type) -> Iterator[Any]:
    """What runs when an object of the class is made: the first of each kind that somebody wrote."""
    for name, made_by in (("__call__", type(kind)), ("__new__", kind), ("__init__", kind)):
        yield next((found for cls in inspect.getmro(made_by) if (found := cls.__dict__.get(name)) is not None), None)


def _is_plain(function: Any) -> bool:
    function = getattr(function, "__func__", function)  # `__new__` is a static method
    ours = str(getattr(function, "__module__", "") or "reward_kit.").startswith("reward_kit.")
    return not ours and not inspect.iscoroutinefunction(function)


async def finished(value: Any) -> Any:
    """The value, awaited where it must be."""
    return await value if inspect.isawaitable(value) else value
