# SPDX-License-Identifier: Apache-2.0
"""Tool calls: whatever a model calls and whatever a tool does, a message comes back, in time and of bounded size."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.agent import Hidden, Tool, ToolError, tool
from reward_kit.agent.calls import MOST_CALLS_PER_TURN, ToolRunner, shown
from reward_kit.agent.tools import tool_of, tools_of
from reward_kit.errors import ConfigError, EnvironmentFailure
from reward_kit.models import Message
from tests.agent.worlds import call, calls


class Odd:
    """Tools that do whatever a tool may do wrong."""

    def __init__(self) -> None:
        self.finished: list[str] = []

    @tool
    async def right(self, number: int = 1, words: list[str] | None = None) -> Any:
        """Say what it was given."""
        return {"number": number, "words": words}

    @tool
    def in_a_thread(self) -> str:
        """Say which thread this is."""
        return threading.current_thread().name

    @tool
    async def raises(self) -> None:
        """Raise."""
        raise KeyError("missing")

    @tool
    async def refuses(self) -> None:
        """Refuse."""
        raise ToolError("Not today.", "closed")

    @tool
    async def leaves(self) -> None:
        """Leave the program."""
        raise SystemExit(3)

    @tool
    async def cancels(self) -> None:
        """Cancel itself."""
        raise asyncio.CancelledError

    @tool(timeout=0.05)
    async def hangs(self) -> None:
        """Take too long."""
        await asyncio.sleep(60)

    @tool(timeout=0.05)
    async def clings(self) -> str:
        """Take too long, and do not stop when asked to."""
        for _ in range(50):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
        self.finished.append("clings")
        return "late"

    @tool(timeout=0.05)
    def blocks(self) -> None:
        """Block a thread."""
        time.sleep(0.5)

    @tool
    async def floods(self) -> str:
        """Return a hundred megabytes."""
        return "x" * (100 << 20)

    @tool
    async def garbles(self) -> str:
        """Return what is no valid text."""
        return "a\ud800b\0c"

    @tool
    async def raw(self) -> bytes:
        """Return bytes that are no UTF-8."""
        return b"\xff\xfe ok"

    @tool
    async def alive(self) -> object:
        """Return a live object."""
        return threading.Lock()

    @tool
    async def nothing(self) -> None:
        """Return nothing."""

    @tool
    async def breaks(self) -> None:
        """Break the world."""
        raise EnvironmentFailure("the world is gone")

    @tool(parallel=True)
    async def beside(self, seconds: float) -> str:
        """Wait beside others."""
        await asyncio.sleep(seconds)
        self.finished.append(str(seconds))
        return str(seconds)


async def told(*made: dict[str, Any], runner: ToolRunner | None = None, odd: Odd | None = None) -> list[Message]:
    return await (runner or ToolRunner()).run(tools_of(odd or Odd()), calls(*made))


def error_of(message: Message) -> dict[str, str]:
    error: dict[str, str] = orjson.loads(message.text)["error"]
    return error


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("absent", {}, "unknown_tool"),
        ("right", "{", "bad_json"),
        ("right", "[1]", "bad_json"),
        ("right", '"x"', "bad_json"),
        ("right", "[" * 100_000, "bad_json"),
        ("right", "x" * (2 << 20), "exception"),
        ("right", {"number": "many"}, "schema"),
        ("right", {"numbr": 1}, "schema"),
        ("raises", {}, "exception"),
        ("refuses", {}, "closed"),
        ("leaves", {}, "exception"),
        ("cancels", {}, "exception"),
        ("hangs", {}, "timeout"),
        ("clings", {}, "timeout"),
        ("blocks", {}, "timeout"),
        ("alive", {}, "output"),
    ],
)
async def test_what_goes_wrong_is_told_to_the_model_with_its_kind(name: str, arguments: Any, kind: str) -> None:
    runner = ToolRunner()
    (message,) = await told(call(name, arguments, "c1"), runner=runner)
    assert (message.role, message.tool_call_id, message.name) == ("tool", "c1", name)
    assert error_of(message)["kind"] == kind
    assert len(message.text) < 10_000
    assert [(use.name, use.error) for use in runner.uses] == [(name, kind)]


async def test_a_schema_error_names_what_is_wrong() -> None:
    (message,) = await told(call("right", {"number": [], "wrong": 1}))
    assert "number" in error_of(message)["message"] and "wrong" in error_of(message)["message"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("right", '{"number":1,"words":null}'), ("nothing", ""), ("raw", "\ufffd\ufffd ok"), ("garbles", "a?b\0c")],
)
async def test_what_a_tool_returns_is_shown_as_text(name: str, expected: str) -> None:
    (message,) = await told(call(name))
    assert message.content == expected


async def test_too_much_output_is_cut_in_the_middle_and_said() -> None:
    runner = ToolRunner()
    (message,) = await told(call("floods"), runner=runner)
    assert len(message.text) < 20_000 and "characters left out" in message.text
    assert runner.uses[0].error == "output_cut"


async def test_a_plain_function_runs_in_a_thread_of_its_own() -> None:
    (message,) = await told(call("in_a_thread"))
    assert message.content != threading.current_thread().name


async def test_a_world_that_breaks_ends_the_episode() -> None:
    with pytest.raises(EnvironmentFailure, match="gone"):
        await told(call("breaks"))


async def test_calls_that_may_run_together_do_and_the_others_wait_for_their_turn() -> None:
    odd = Odd()
    made = [call("beside", {"seconds": 0.06}, "a"), call("beside", {"seconds": 0.01}, "b"), call("right", {}, "c")]
    made += [call("beside", {"seconds": 0.02}, "d")]
    messages = await told(*made, odd=odd)
    assert [message.tool_call_id for message in messages] == ["a", "b", "c", "d"]
    assert odd.finished == ["0.01", "0.06", "0.02"]


async def test_of_too_many_calls_at_once_some_are_run_and_all_are_answered() -> None:
    runner = ToolRunner()
    messages = await told(*[call("right", {}, f"c{i}") for i in range(200)], runner=runner)
    errors = [use.error for use in runner.uses]
    assert len(messages) == 200
    assert errors == [None] * MOST_CALLS_PER_TURN + ["too_many"] * (200 - MOST_CALLS_PER_TURN)


async def test_somebody_may_be_asked_before_each_call() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    async def approve(name: str, arguments: dict[str, Any]) -> str | None:
        asked.append((name, arguments))
        return None if arguments.get("number") == 1 else "Only one."

    runner = ToolRunner(approve)
    messages = await told(call("right", {"number": 1}), call("right", {"number": 2}, "x"), runner=runner)
    assert asked == [("right", {"number": 1}), ("right", {"number": 2})]
    assert error_of(messages[1]) == {"kind": "refused", "message": "Only one."}
    assert [use.error for use in runner.uses] == [None, "refused"]


@given(st.text(max_size=300), st.integers(2, 100))
def test_what_is_shown_is_valid_text_of_bounded_size(text: str, most: int) -> None:
    kept, cut = shown(text, most)
    kept.encode()
    assert cut == (len(text) > most)
    assert len(kept) <= most + 60


# ── functions as tools ───────────────────────────────────────────────────────────────────────────────────────────────


def search(query: str, limit: int = 5, *, state: Hidden[dict[str, Any]]) -> list[str]:
    """Find pages.

    Only the best are returned.

    Args:
        query: what to look for,
            in plain words
        limit (int): how many pages

    Returns:
        the titles
    """
    state["asked"] = query
    return ["a page"] * limit


async def test_the_schema_comes_from_signature_and_docstring() -> None:
    state: dict[str, Any] = {}
    made = tool_of(search, {"state": state})
    assert made.description == "Find pages.\n\nOnly the best are returned."
    assert made.parameters == {
        "properties": {
            "query": {"description": "what to look for, in plain words", "type": "string"},
            "limit": {"description": "how many pages", "type": "integer", "default": 5},
        },
        "required": ["query"],
        "type": "object",
    }
    assert await made.call({"query": "x", "limit": 2}) == ["a page", "a page"]
    assert state == {"asked": "x"}


def test_a_tool_that_a_model_cannot_call_is_refused_when_it_is_made() -> None:
    def anything(**whatever: int) -> None:
        """Take anything."""

    with pytest.raises(ConfigError, match="fill by name"):
        tool_of(anything)
    with pytest.raises(ConfigError, match="hidden parameter 'state'"):
        tool_of(search)


def test_a_tool_is_told_to_an_endpoint_as_it_wants_it() -> None:
    made = Tool("f", "Do it.", {"type": "object"}, call=lambda _: asyncio.sleep(0))
    assert made.spec == {
        "type": "function", "function": {"name": "f", "description": "Do it.", "parameters": {"type": "object"}},
    }  # fmt: skip
