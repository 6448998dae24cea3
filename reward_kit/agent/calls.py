# SPDX-License-Identifier: Apache-2.0
"""Running the tool calls of a model's turn. Whatever a model calls and whatever a tool does, a message comes back.

    unknown_tool   there is no such tool            timeout       the tool took longer than it may
    bad_json       the arguments are no JSON        exception     the tool raised
    schema         the arguments do not fit         output        what it returned cannot be shown as text
    too_many       too many calls in one turn       refused       somebody did not approve of the call

Each is told to the model as `{"error": {"kind": …, "message": …}}`, so that it can do better, and noted in the step.
Only a world that fails itself (`EnvironmentFailure`, `SandboxError`) ends the episode.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from reward_kit.agent.tools import Tool, ToolError
from reward_kit.errors import RewardKitError, message_of
from reward_kit.models import ChatCompletionMessageToolCall, Message, ToolUse
from reward_kit.utils import exact_json

__all__ = ["BAD_CALLS", "UNREADABLE", "Approval", "ToolRunner", "shown", "text_of"]

BAD_CALLS = frozenset({"unknown_tool", "bad_json", "schema", "too_many"})
"""Errors that the model made by itself."""
UNREADABLE = "unreadable_tool_call"
"""The name of a call that stands for calls in a text which could not be read; its arguments say why."""
MOST_CALLS_PER_TURN = 64
"""Calls of one turn that are run; a model that asks for more is told so for each of the others."""
_LONGEST_ARGUMENTS = 1 << 20
_LONGEST_MESSAGE = 2_000

Approval: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[str | None]]
"""Asked before each call, with the tool's name and the arguments: None lets it run, a text refuses it and says why."""

Keep: TypeAlias = Callable[[Any, float, bool], Awaitable[None]]
"""Keeps what a world notes in the middle of a turn, what it cost so far, and whether that is the most it may have."""

_Call: TypeAlias = ChatCompletionMessageToolCall


class _Result(NamedTuple):
    """What one call came to."""

    content: str | list[dict[str, Any]]
    error: str | None


class ToolRunner:
    """Runs calls for one world, and keeps how each of the present turn went."""

    def __init__(self, approve: Approval | None = None) -> None:
        """`approve` is asked before each call."""
        self.uses: list[ToolUse] = []
        """The calls of the present turn."""
        self.recorded: Mapping[str, Message] = {}
        """While recorded steps are played again: what each call of this turn returned, by the call's id."""
        self.played_again: Sequence[Message] = ()
        """While recorded steps are played again: all that came back in this turn."""
        self.noted: Any = None
        """What the world noted of this turn when it was played before, to its end or until it was cut off."""
        self.is_played_again = False
        """Whether this turn is on disk already: then nobody is asked, or paid, again."""
        self.conversation: Sequence[Message] = ()
        """All that was said so far, what the model has just said included."""
        self.draw = 0
        """Which of the episodes of its sample this is: a branch is one of its own, in the world of another."""
        self.keep: Keep | None = None
        """Keeps on disk what is noted in the middle of a turn, where there is a journal."""
        self.approve = approve

    @property
    def on_record(self) -> tuple[Sequence[Message] | None, Any]:
        """What `begin_turn` was told, for a runner in another process."""
        return (self.played_again if self.is_played_again else None), self.noted

    def begin_turn(self, recorded: Sequence[Message] | None = None, noted: Any = None) -> None:
        """Forget the calls of the turn before. Of a turn that is played again: its messages, and what was noted."""
        self.uses = []
        self.is_played_again, self.noted = recorded is not None, noted
        self.played_again = recorded or ()
        self.recorded = {m.tool_call_id: m for m in recorded if m.tool_call_id is not None} if recorded else {}

    async def note(self, noted: Any, cost: float = 0.0, *, cost_is_at_most: bool = False) -> None:
        """Have on disk what happened in this turn so far, and what it cost, before the turn goes on.

        Plain data, as `Answer.noted`. If the turn is cut off, `noted` holds it when it is begun again.
        """
        if self.keep is not None:
            await self.keep(noted, cost, cost_is_at_most)

    async def run(self, tools: Sequence[Tool], message: Message) -> list[Message]:
        """One tool message for each call, in their order."""
        calls = message.tool_calls or []
        if not calls:
            return []
        by_name = {tool.name: tool for tool in tools}
        if len(calls) == 1:
            return [await self._one(by_name, calls[0], 0)]
        replies: list[Message] = []
        for together in _in_order(by_name, calls):
            if len(together) == 1:
                replies.append(await self._one(by_name, *together[0]))
            else:
                replies += await asyncio.gather(*(self._one(by_name, call, place) for call, place in together))
        order = {call.id: place for place, call in enumerate(calls)}
        self.uses.sort(key=lambda use: order.get(use.id, 0))
        return replies

    async def _one(self, tools: Mapping[str, Tool], call: _Call, place: int) -> Message:
        name, started = call.function.name, time.perf_counter()
        if place >= MOST_CALLS_PER_TURN:
            result = _error_result(
                "too_many", f"At most {MOST_CALLS_PER_TURN} calls are run in one turn. Call again later."
            )
        else:
            result = await self._result(tools, call)
        seconds = round(time.perf_counter() - started, 6)
        self.uses.append(ToolUse(id=call.id, name=name, error=result.error, seconds=seconds))
        return Message(role="tool", content=result.content, tool_call_id=call.id, name=name)

    async def _result(self, tools: Mapping[str, Tool], call: _Call) -> _Result:
        tool = tools.get(call.function.name)
        if tool is None:
            return _no_such_tool(tools, call)
        if tool.reads and (known_reply := self.recorded.get(call.id)) is not None:
            return _Result(known_reply.content or "", None)
        try:
            result = await self._called(tool, _arguments(call.function.arguments))
            recorded = self.recorded.get(call.id) if not tool.same_again else None
            return result if recorded is None else _Result(recorded.content or "", result.error)
        except ToolError as error:
            return _error_result(error.kind, message_of(error, _LONGEST_MESSAGE))
        except TimeoutError:
            return _error_result("timeout", f"The tool did not answer within {tool.timeout:g} seconds.")
        except (RewardKitError, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a named boundary: a tool may raise anything, SystemExit too
            return _error_result("exception", f"{type(error).__name__}: {message_of(error, _LONGEST_MESSAGE)}")

    async def _called(self, tool: Tool, arguments: dict[str, Any]) -> _Result:
        checked = arguments if tool.check is None else tool.check(arguments)
        if self.approve is not None and (refusal := await self.approve(tool.name, arguments)) is not None:
            raise ToolError(refusal, "refused")
        return _shown_result(await _within(tool.timeout, tool.call(checked)), tool.max_output)


def _no_such_tool(tools: Mapping[str, Tool], call: _Call) -> _Result:
    if call.function.name == UNREADABLE:
        return _error_result("bad_json", f"The tool call cannot be read: {call.function.arguments}")
    known = ", ".join(tools) or "none"
    return _error_result("unknown_tool", f"There is no tool {call.function.name[:100]!r}. There are: {known}.")


def _in_order(tools: Mapping[str, Tool], calls: Sequence[_Call]) -> Iterator[list[tuple[_Call, int]]]:
    """Calls that may run together, together; each of the others alone, in its place."""

    def may_run_beside(item: tuple[int, _Call]) -> int:
        place, call = item
        tool = tools.get(call.function.name)
        return -1 if tool is not None and tool.parallel else place

    for _, group in groupby(enumerate(calls), key=may_run_beside):
        yield [(call, place) for place, call in group]


def _arguments(text: str) -> dict[str, Any]:
    if len(text) > _LONGEST_ARGUMENTS:
        raise ToolError(f"The arguments have {len(text)} characters, and at most {_LONGEST_ARGUMENTS} are read.")
    try:
        value = exact_json.loads(text) if text.strip() else {}
    except (exact_json.JSONDecodeError, UnicodeEncodeError) as error:
        raise ToolError(f"The arguments are not valid JSON: {error}. Write one JSON object.", "bad_json") from None
    if not isinstance(value, dict):
        raise ToolError("The arguments are not a JSON object. Write one, such as {}.", "bad_json")
    return value


async def _within(seconds: float | None, call: Awaitable[Any]) -> Any:
    """What the call returns. One that does not end in time, nor when it is asked to, is left behind."""
    if seconds is None:
        return await call
    task = asyncio.ensure_future(_without_leaving(call))
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        task.add_done_callback(_forget)
        raise TimeoutError
    if task.cancelled():
        raise ToolError("The tool was cancelled by its own code.")
    if (error := task.exception()) is not None:
        raise ToolError(message_of(error, _LONGEST_MESSAGE), "exception") if isinstance(error, TimeoutError) else error
    return task.result()


async def _without_leaving(call: Awaitable[Any]) -> Any:
    """What the call returns. A tool that wants to end the program fails instead: a task would pass that wish on."""
    try:
        return await call
    except SystemExit as error:
        raise ToolError(f"The tool tried to end the program: SystemExit({error.code}).") from None


def _forget(task: asyncio.Future[Any]) -> None:
    """Nobody waits for it any more; its error is nobody's business."""
    if not task.cancelled():
        task.exception()


# ── what a tool returned, as a model is shown it ─────────────────────────────────────────────────────────────────────


def _error_result(kind: str, message: str) -> _Result:
    text, _ = shown(message, _LONGEST_MESSAGE)
    return _Result(exact_json.dumps({"error": {"kind": kind, "message": text}}).decode(), kind)


def _shown_result(value: Any, most: int) -> _Result:
    if isinstance(value, list) and value and all(_is_part(part) for part in value):
        return _Result(value, None)
    text, cut = shown(text_of(value, most), most)
    return _Result(text, "output_cut" if cut else None)


def _is_part(part: object) -> bool:
    """Whether it is a piece of content as endpoints take it, such as an image."""
    return isinstance(part, dict) and part.get("type") in {"text", "image_url", "input_audio"} and len(part) > 1


def text_of(value: Any, most: int) -> str:
    """What a tool returned, as text, not cut yet; of bytes, no more than `most` characters can need."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value[: 4 * most + 4].decode("utf-8", "replace")
    try:
        return exact_json.dumps(value, non_str_keys=True).decode()
    except (TypeError, RecursionError):
        raise ToolError(
            f"The tool returned a {type(value).__name__}, which cannot be shown. The tool must return text or plain "
            "data.",
            "output",
        ) from None


def shown(text: str, most: int) -> tuple[str, bool]:
    """The text as it can be written down, with its middle cut out where it is longer than `most`; whether it was."""
    cut = len(text) > most
    if cut:
        half = max(1, most // 2)
        text = f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
    if text.isascii():
        return text, cut
    return text.encode("utf-8", "replace").decode(), cut
