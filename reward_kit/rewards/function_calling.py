# SPDX-License-Identifier: Apache-2.0
"""Tool calls: did the model call what it should have, with the right arguments?

* `exact_tool_match_reward`: the calls are those of the ground truth;
* `valid_tool_call_reward`: the calls are such that the offered tools could be called (no ground truth needed).

Which formats are read, and what counts as the same value: docs/tool-rewards.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from reward_kit.answers.bounded_json import read_json
from reward_kit.answers.tool_calls.calls import CallError, FoundCalls, ToolCall, call_from_object
from reward_kit.answers.tool_calls.formats import calls_in_text, read_calls
from reward_kit.answers.tool_calls.tools import Tools, read_tools
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.schemas import SchemaProblem, violations
from reward_kit.rewards._support.verdicts import check, no_verdict, reply_of, wrong
from reward_kit.rewards._tool_calls.agreement import Agreement, CallComparer, f1
from reward_kit.rewards._tool_calls.bfcl_rules import bfcl_matches
from reward_kit.rewards._tool_calls.expected_calls import ExpectedCall, read_expected
from reward_kit.rewards._tool_calls.typed_arguments import Strictness, argument_report
from reward_kit.typed_interface import reward_function

__all__ = [
    "calculate_jaccard_similarity",
    "compare_tool_calls",
    "exact_tool_match_reward",
    "extract_schema_properties",
    "match_function_call",
    "normalize_schema",
    "parse_tool_calls",
    "valid_tool_call_reward",
]

_SHOWN = 500
"""Characters of a reason: it may quote names of any length."""

Rules = Literal["strict", "lenient", "bfcl"]
"""How arguments are compared: see `exact_tool_match_reward`."""


# ── rewards ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function
def exact_tool_match_reward(
    messages: list[Message],
    ground_truth: Any = None,
    *,
    tools: Any = None,
    rules: Rules = "strict",
    ordered: bool = True,
    unordered_arguments: Collection[str] = (),
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 if the last message makes exactly the calls of the ground truth, 0.0 if not.

    The ground truth is a list of calls (OpenAI's shape, `{name, arguments}`, `"f(x=1)"`, BFCL's acceptable values), an
    assistant's turn, or the JSON text of either; `[]` says that no call is expected. If the ground truth is missing or
    cannot be read, there is no verdict. The order of the calls counts; with `ordered=False` they may come in any order,
    and are paired so that as many agree as can. `tools` are those that were offered; an argument that equals its
    declared default may as well be left out.

    `rules`: `strict` accepts 1 for 1.0 at every depth, and otherwise only equal values; `lenient` also accepts other
    letter case and spaces, and "5" for 5; `bfcl` gives the verdicts of BFCL's own checker, including its mistakes; it
    ignores the order of calls and needs `tools`. `unordered_arguments` names arrays whose order does not count.

    Metrics: `function_name_match`, `arguments_match`: F1 over the calls by name, and as a whole.
    Cost: linear in the answer, about 50 µs for a call or two.
    Does not detect: a call that would do the same with other arguments, or another series of calls to the same end
    (`bfcl_reward` compares states).

    >>> reply = Message(role="assistant", content='<tool_call>{"name": "add", "arguments": {"x": 2}}</tool_call>')
    >>> exact_tool_match_reward([reply], ground_truth=[{"name": "add", "arguments": {"x": 2.0}}]).score
    1.0
    >>> exact_tool_match_reward([reply], ground_truth=[]).score
    0.0
    """
    reply = reply_of(messages)
    try:
        offered = read_tools(tools) if tools else {}
        expected = read_expected(ground_truth, offered)
        reading = read_calls(reply, offered)
        if rules == "bfcl":
            agreement = _by_bfcl(expected, reading.calls, offered)
        else:
            agreement = CallComparer(offered, rules, ordered, unordered_arguments).of(expected, reading.calls)
    except ValueError as error:
        return no_verdict(
            f"The ground truth or the tools cannot be used: {error}. Give a list of calls, or [] if none is expected."
        )
    return _verdict(agreement, reading)


@reward_function
def valid_tool_call_reward(
    messages: list[Message], *, tools: Any = None, call_required: bool = True, **kwargs: Any
) -> EvaluateResult:
    """1.0 if every call of the last message names an offered tool and has valid arguments for it, 0.0 if not.

    Validity is that of JSON Schema. Arguments a tool does not declare are refused, unless it says
    `additionalProperties`. Without `call_required` an answer without calls is accepted, too. No ground truth is needed.

    Metrics: `function_name_match`, `arguments_match`.
    Needs: extra `schema`.
    Cost: linear in the answer, about 1 ms per call.
    Does not detect: a valid call of the wrong tool, or with the wrong values.

    >>> tools = [{"name": "add", "parameters": {"properties": {"x": {"type": "integer"}}, "required": ["x"]}}]
    >>> call = lambda text: valid_tool_call_reward([Message(role="assistant", content=text)], tools=tools).score
    >>> call("[add(x=2)]"), call("[add(x='two')]"), call("[add(x=2, y=3)]"), call("It is 2.")
    (1.0, 0.0, 0.0, 0.0)
    """
    reply = reply_of(messages)
    try:
        offered = read_tools(tools) if tools else {}
        if not offered:
            raise CallError("none were given")
        reading = read_calls(reply, offered)
        problem = reading.problem or _invalid(reading.calls, offered)
        problem = problem[:_SHOWN] if problem else None
    except (CallError, SchemaProblem) as error:
        return no_verdict(f"The tools cannot be used: {error}. Give the tools that were offered, with their schemas.")
    if not reading.calls and not problem and call_required:
        problem = "no tool was called"
    known = reading.problem is None and all(call.name in offered for call in reading.calls)
    metrics = {
        "function_name_match": check(known, "every call names an offered tool" if known else str(problem)),
        "arguments_match": check(problem is None, problem or "valid"),
    }
    if problem is not None:
        return wrong(f"Not a valid call: {problem}."[:_SHOWN], metrics)
    return EvaluateResult(score=1.0, reason=f"{len(reading.calls)} valid calls.", metrics=metrics)


def _by_bfcl(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], tools: Tools) -> Agreement:
    matched = bfcl_matches(expected, calls, tools)
    names = CallComparer(tools, "lenient").of([wanted._replace(arguments={}) for wanted in expected], calls).names
    same = matched == len(expected) == len(calls)
    return Agreement(len(expected), len(calls), names, matched, None if same else "BFCL's rules refuse it")


def _verdict(agreement: Agreement, reading: FoundCalls) -> EvaluateResult:
    expected, made = agreement.expected, agreement.made
    right = agreement.complete and reading.problem is None
    reason = f"The calls cannot be read: {reading.problem}." if reading.problem else _reason(agreement)
    score = 0.0 if reading.problem else f1(agreement.matched, expected, made)
    named = 0.0 if reading.problem else f1(agreement.names, expected, made)
    metrics = {
        "function_name_match": MetricResult(
            score=named, is_score_valid=named == 1.0, reason=f"{agreement.names} of {expected} expected names"
        ),
        "arguments_match": MetricResult(
            score=score, is_score_valid=right, reason=f"{agreement.matched} of {expected} expected calls, {made} made"
        ),
    }
    return EvaluateResult(score=float(right), reason=reason[:_SHOWN], metrics=metrics)


def _reason(agreement: Agreement) -> str:
    if not agreement.complete:
        return f"Not the expected calls: {agreement.first_difference}."
    return f"All {agreement.expected} expected calls." if agreement.expected else "No call, as expected."


def _invalid(calls: Sequence[ToolCall], tools: Tools) -> str | None:
    for call in calls:
        tool = tools.get(call.name)
        if tool is None:
            return f"{call.name!r} is not among the tools: {', '.join(list(tools)[:10])}"
        schema = {"type": "object", "additionalProperties": False, **tool.schema}
        for path, message in violations(schema, dict(call.arguments)):
            return f"{path or 'the arguments'} of {call.name!r}: {message}"
    return None


# ── inherited helpers ────────────────────────────────────────────────────────────────────────────────────────────────


def parse_tool_calls(completion: str) -> list[dict[str, Any]]:
    """The calls in a text, in whatever format, as `{name, arguments}`; none where there are none that can be read.

    >>> parse_tool_calls('<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>')
    [{'name': 'f', 'arguments': {'x': 1}}]
    """
    try:
        calls = calls_in_text(completion)
    except CallError:
        return []
    return [{"name": call.name, "arguments": dict(call.arguments)} for call in calls]


def compare_tool_calls(generated_tool_calls: Sequence[Any], gt_tool_calls: Sequence[Any]) -> bool:
    """Whether the calls are the same, in any order. A ground truth that is no list of calls is a ValueError.

    >>> compare_tool_calls([{"name": "f", "arguments": {"x": 1}}], [{"name": "f", "arguments": '{"x": 1.0}'}])
    True
    """
    expected = [ExpectedCall.exactly(call_from_object(call)) for call in gt_tool_calls]
    try:
        made = [call_from_object(call) for call in generated_tool_calls]
    except CallError:
        return False
    return CallComparer({}).of(expected, made).complete


def match_function_call(
    messages: Sequence[Any],
    function_name: str,
    parsed_arguments: Mapping[str, Any],
    expected_call_schema: Mapping[str, Any],
    argument_match_strictness: Strictness = "exact",
    **kwargs: Any,
) -> EvaluateResult:
    """How a call fits `{name, arguments: {argument: {type}}}`: half for the name, half for the arguments' types.

    `exact` wants every argument and no other; `partial` allows some to be missing; `permissive` (or `flexible`) allows
    others besides.

    >>> schema = {"name": "f", "arguments": {"x": {"type": "number"}}}
    >>> match_function_call([], "f", {"x": 1}, schema).score, match_function_call([], "f", {"x": "1"}, schema).score
    (1.0, 0.5)
    """
    expected = expected_call_schema.get("name", "")
    named = function_name == expected
    report = argument_report(parsed_arguments, expected_call_schema.get("arguments") or {}, argument_match_strictness)
    name_reason = f"Expected {expected!r}, and {function_name!r} was called."
    metrics = {"function_name_match": check(named, name_reason), "arguments_match": report}
    score = (float(named) + report.score) / 2
    return EvaluateResult(score=score, reason=f"{name_reason} Arguments: {report.reason}", metrics=metrics)


def calculate_jaccard_similarity(set1: Collection[Any], set2: Collection[Any]) -> float:
    """What two sets have in common, of all they have; 1.0 for two empty ones.

    >>> calculate_jaccard_similarity({1, 2}, {2, 3})
    0.3333333333333333
    """
    first, second = set(set1), set(set2)
    return len(first & second) / len(first | second) if first or second else 1.0


def extract_schema_properties(schema: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The properties of a JSON Schema as (path, type), nested ones included.

    >>> sorted(extract_schema_properties({"properties": {"a": {"type": "array", "items": {"type": "string"}}}}))
    [('a', 'array'), ('a[]', 'string')]
    """
    found: set[tuple[str, str]] = set()
    pending: list[tuple[str, Any]] = [("", schema)]
    for path, part in pending:  # grows while it is gone through
        if not isinstance(part, Mapping):
            continue
        inner = {f"{path}.{name}" if path else str(name): value for name, value in _named(part, "properties")}
        inner |= {f"{path}[{name}]": value for name, value in _named(part, "patternProperties")}
        if isinstance(part.get("items"), Mapping):
            inner[f"{path}[]"] = part["items"]
        found.update((name, _type_name(value)) for name, value in inner.items())
        pending.extend(inner.items())
    return found


def normalize_schema(schema: Any) -> dict[str, Any]:
    """A schema given as an object or as JSON text, as an object; empty where it is neither.

    >>> normalize_schema('{"type": "object"}'), normalize_schema("no schema")
    ({'type': 'object'}, {})
    """
    if isinstance(schema, str):
        try:
            schema = read_json(schema)
        except ValueError:
            return {}
    return dict(schema) if isinstance(schema, Mapping) else {}


def _named(schema: Mapping[str, Any], keyword: str) -> list[tuple[Any, Any]]:
    found = schema.get(keyword)
    return list(found.items()) if isinstance(found, Mapping) else []


def _type_name(schema: Any) -> str:
    declared = schema.get("type", "any") if isinstance(schema, Mapping) else "any"
    return "|".join(map(str, declared)) if isinstance(declared, list) else str(declared)


# ── inherited names that now mean `exact_tool_match_reward`; left out of `__all__`, and so of the catalogue ──────────


@reward_function
def schema_jaccard_reward(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
    """Deprecated: use `exact_tool_match_reward`, to which this delegates."""
    return _delegated("schema_jaccard_reward", messages, ground_truth, kwargs)


@reward_function
def llm_judge_reward(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
    """Deprecated: use `exact_tool_match_reward`, to which this delegates, or `judge.judge_reward`."""
    return _delegated("llm_judge_reward", messages, ground_truth, kwargs)


@reward_function
def composite_function_call_reward(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
    """Deprecated: use `exact_tool_match_reward`, to which this delegates, or `composite.composite_reward`."""
    return _delegated("composite_function_call_reward", messages, ground_truth, kwargs)


_EXACT_OPTIONS = ("tools", "rules", "ordered", "unordered_arguments")


def _delegated(name: str, messages: list[Message], ground_truth: Any, options: Mapping[str, Any]) -> EvaluateResult:
    warnings.warn(f"{name} is deprecated; use exact_tool_match_reward.", DeprecationWarning, stacklevel=4)
    kept = {key: options[key] for key in _EXACT_OPTIONS if key in options}
    return exact_tool_match_reward(messages, ground_truth, **kept)
