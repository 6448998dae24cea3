# SPDX-License-Identifier: Apache-2.0
"""BFCL's multi-turn tasks: did the agent leave the world in the right state, by the right calls?

For BFCL's single-turn tasks, with their lists of acceptable values, see `exact_tool_match_reward(rules="bfcl")`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.answers.tool_calls.calls import CallError, ToolCall, call_from_object
from reward_kit.answers.tool_calls.python_calls import read_python_calls
from reward_kit.answers.tool_calls.tools import Tools, read_tools
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._support.verdicts import check, no_verdict, reply_of
from reward_kit.rewards._tool_calls.agreement import CallComparer
from reward_kit.rewards._tool_calls.expected_calls import ExpectedCall
from reward_kit.rewards._tool_calls.matching import maximum_matching
from reward_kit.rewards._tool_calls.values import value_key
from reward_kit.typed_interface import reward_function

__all__ = ["bfcl_reward"]

_PLACE = "pos_arg_"
"""How BFCL's simulators name an argument given by place: this, and its place."""
_IS_PLACE = re.compile(rf"{_PLACE}\d{{1,4}}", re.ASCII)
_SHOWN = 300


@reward_function
def bfcl_reward(
    messages: list[Message], ground_truth: Any = None, state: Any = None, *, tools: Any = None, **kwargs: Any
) -> EvaluateResult:
    """1.0 if the final state is the expected one, every expected call was made, and the agent spoke; else 0.0.

    The ground truth is `{function_calls: [[call, …] a turn], comparable_state: {…}}`, a call being text such as
    `"mv(source='a', destination='b')"`. `state` holds what happened: `successful_func_calls` (a list of calls a turn,
    `{name, args}`), and `comparable_state`, or a `resource` whose `get_comparable_state()` gives it. Turns are compared
    one by one; within a turn calls may come in any order. Further calls do not lower the score by themselves, but the
    state shows what they change. `tools` say which parameter a positional argument is for; without them, the only
    argument of a call may be given by position or by name. If the task or the state cannot be read, there is no
    verdict.

    Metrics: `state_match`, `function_call_match`, `format_check`.
    Cost: linear in the calls, tens of microseconds.
    Does not detect: what neither the state nor a successful call shows.

    >>> truth = {"function_calls": [["cd('docs')"]], "comparable_state": {"fs": {"cwd": "docs"}}}
    >>> done = {"successful_func_calls": [[{"name": "cd", "args": {"folder": "docs"}}]],
    ...         "comparable_state": {"fs": {"cwd": "docs"}}}
    >>> bfcl_reward([Message(role="assistant", content="Done.")], ground_truth=truth, state=done).score
    1.0
    """
    reply_of(messages, "state_match", "function_call_match", "format_check")
    try:
        offered = read_tools(tools) if tools else {}
        expected_calls, expected_state = _expected(ground_truth)
        made, found_state = _happened(state)
        matched = [_turn_matches(wanted, turn, offered) for wanted, turn in zip(expected_calls, made, strict=False)]
    except CallError as error:
        return no_verdict(f"The task or what happened cannot be read: {error}. Correct the ground truth or the state.")
    differing = _differences(found_state, expected_state)
    called = len(made) == len(expected_calls) and all(matched)
    spoke = any(turn.text.strip() or turn.tool_calls for turn in messages if turn.role == "assistant")
    reason = f"{sum(matched)} of {len(expected_calls)} turns match, of {len(made)} with calls"
    metrics = {
        "state_match": check(not differing, differing or "the state is the expected one"),
        "function_call_match": check(called, reason),
        "format_check": check(spoke, "the agent spoke or called" if spoke else "the agent said nothing at all"),
    }
    failed = [f"{name}: {metric.reason}" for name, metric in metrics.items() if not metric.is_score_valid]
    reason = "; ".join(failed) or "State and calls are those expected."
    return EvaluateResult(score=float(not failed), reason=reason, metrics=metrics)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _expected(ground_truth: Any) -> tuple[list[list[ToolCall]], Mapping[str, Any]]:
    if not isinstance(ground_truth, Mapping):
        raise CallError("the ground truth is not an object")
    turns, state = ground_truth.get("function_calls"), ground_truth.get("comparable_state")
    if not isinstance(turns, list) or not isinstance(state, Mapping):
        raise CallError("the ground truth lacks 'function_calls' or 'comparable_state'")
    return [_calls(turn) for turn in turns], state


def _happened(state: Any) -> tuple[list[list[ToolCall]], Mapping[str, Any]]:
    if not isinstance(state, Mapping):
        raise CallError("there is no state")
    turns = state.get("successful_func_calls")
    if not isinstance(turns, list):
        raise CallError("the state lacks 'successful_func_calls'")
    found = state.get("comparable_state")
    resource = state.get("resource")
    if found is None and resource is not None and hasattr(resource, "get_comparable_state"):
        found = resource.get_comparable_state()
    if not isinstance(found, Mapping):
        raise CallError("the state has neither 'comparable_state' nor a 'resource' that tells it")
    return [_calls(turn) for turn in turns], found


def _calls(turn: Any) -> list[ToolCall]:
    if not isinstance(turn, list):
        raise CallError(f"a turn's calls are a {type(turn).__name__} and not a list")
    return [call for entry in turn for call in _read(entry)]


def _read(entry: Any) -> Sequence[ToolCall]:
    if isinstance(entry, str):
        return read_python_calls(entry)
    call = call_from_object(entry)
    places = {int(name.removeprefix(_PLACE)): name for name in call.arguments if _IS_PLACE.fullmatch(name)}
    placed = [places[place] for place in sorted(places)]
    named = {name: value for name, value in call.arguments.items() if name not in placed}
    return [ToolCall(call.name, named, tuple(call.arguments[name] for name in placed))]


# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _turn_matches(wanted: Sequence[ToolCall], made: Sequence[ToolCall], tools: Tools) -> bool:
    fits = [[at for at, call in enumerate(made) if _same_call(one, call, tools)] for one in wanted]
    return len(maximum_matching(fits)) == len(wanted)


def _same_call(wanted: ToolCall, made: ToolCall, tools: Tools) -> bool:
    if wanted.name != made.name:
        return False
    one, other = _by_name(wanted, tools), _by_name(made, tools)
    if not one.positional and not other.positional:
        return CallComparer(tools).difference(ExpectedCall.exactly(one), other) is None
    values = [[*call.positional, *call.arguments.values()] for call in (one, other)]
    both_placed = len(one.positional) == len(other.positional)
    if both_placed:
        return value_key([one.positional, one.arguments], "strict") == value_key(
            [other.positional, other.arguments], "strict"
        )
    only_argument = len(values[0]) == len(values[1]) == 1
    return only_argument and value_key(values[0], "strict") == value_key(values[1], "strict")


def _by_name(call: ToolCall, tools: Tools) -> ToolCall:
    names = list(tools[call.name].parameters) if call.name in tools else []
    if not call.positional or len(names) < len(call.positional):
        return call
    return ToolCall(call.name, {**dict(zip(names, call.positional, strict=False)), **call.arguments})


def _differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """What is not as expected, in words; empty if all is."""
    odd = sorted(str(name) for name in found.keys() ^ expected.keys())
    if odd:
        return f"only one of the states has {', '.join(odd)}"[:_SHOWN]
    differing = [name for name in expected if not _same(found[name], expected[name])]
    differences = [f"{name} is {found[name]!r} and should be {expected[name]!r}" for name in differing]
    return "; ".join(differences)[:_SHOWN]


def _same(found: Any, expected: Any) -> bool:
    try:
        return value_key(found, "exact") == value_key(expected, "exact")
    except ValueError:  # objects of a simulator, which know themselves when they are equal
        return bool(found == expected)
