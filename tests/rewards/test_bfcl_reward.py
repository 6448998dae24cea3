# SPDX-License-Identifier: Apache-2.0
"""BFCL's multi-turn reward: state and calls, within [0, 1]."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.bfcl_reward import bfcl_reward

STATE: dict[str, Any] = {"fs": {"cwd": "/docs", "files": ["a", "b"], "locked": True}}
TRUTH = {
    "function_calls": [["cd('docs')", "sort(file_name='a')"], ["mv(source='a', destination='b')"]],
    "comparable_state": STATE,
}
CALLS: list[list[dict[str, Any]]] = [
    [
        {"name": "sort", "args": {"pos_arg_0": "a"}},
        {"name": "cd", "args": {"folder": "docs"}},
        {"name": "ls", "args": {}},
    ],
    [{"name": "mv", "args": {"destination": "b", "source": "a"}}],
]


def judge(truth: Any = TRUTH, text: str = "Done.", tools: Any = None, **state: Any) -> EvaluateResult:
    happened = {"successful_func_calls": CALLS, "comparable_state": STATE, **state}
    return bfcl_reward([Message(role="assistant", content=text)], ground_truth=truth, state=happened, tools=tools)


def failed(result: EvaluateResult) -> list[str]:
    return [name for name, metric in result.metrics.items() if not metric.is_score_valid]


def test_all_as_expected_is_one_and_no_more() -> None:
    result = judge()
    assert result.score == 1.0 and failed(result) == []
    assert set(result.metrics) == {"state_match", "function_call_match", "format_check"}


@pytest.mark.parametrize(
    "state",
    [
        {"fs": {**STATE["fs"], "cwd": "/"}},
        {"fs": {**STATE["fs"], "locked": 1}},
        {"fs": {**STATE["fs"], "files": ["b", "a"]}},
        {**STATE, "mail": {}},
        {},
    ],
)
def test_another_state(state: Any) -> None:
    result = judge(comparable_state=state)
    assert result.score == 0.0 and failed(result) == ["state_match"]


@pytest.mark.parametrize(
    "calls",
    [
        [CALLS[0]],
        [*CALLS, []],
        [CALLS[1], CALLS[0]],
        [CALLS[0][:1], CALLS[1]],
        [CALLS[0], [{"name": "mv", "args": {"destination": "a", "source": "b"}}]],
        [],
    ],
)
def test_other_calls(calls: Any) -> None:
    result = judge(successful_func_calls=calls)
    assert result.score == 0.0 and failed(result) == ["function_call_match"]


def test_a_silent_agent_fails_the_format() -> None:
    assert failed(judge(text="  ")) == ["format_check"] and judge(text="").score == 0.0


def test_a_call_expected_twice_must_be_made_twice() -> None:
    truth = {"function_calls": [["f()", "f()"]], "comparable_state": STATE}
    f = {"name": "f", "args": {}}
    assert judge(truth, successful_func_calls=[[f]]).score == 0.0
    assert judge(truth, successful_func_calls=[[f, f]]).score == 1.0


def test_places_and_names() -> None:
    truth = {"function_calls": [["mv('a', 'b')"]], "comparable_state": STATE}
    named = [[{"name": "mv", "args": {"source": "a", "destination": "b"}}]]
    tools = [{"name": "mv", "parameters": {"properties": {"source": {}, "destination": {}}}}]
    assert judge(truth, successful_func_calls=named).score == 0.0, "nobody says which place is which"
    assert judge(truth, tools=tools, successful_func_calls=named).score == 1.0
    placed = [[{"name": "mv", "args": {"pos_arg_0": "a", "pos_arg_1": "b"}}]]
    assert judge(truth, successful_func_calls=placed).score == 1.0


def test_places_are_counted_and_not_spelled() -> None:
    values = list("abcdefghijkl")
    truth = {"function_calls": [[f"f({', '.join(map(repr, values))})"]], "comparable_state": STATE}
    placed = {f"pos_arg_{place}": value for place, value in enumerate(values)}
    assert judge(truth, successful_func_calls=[[{"name": "f", "args": placed}]]).score == 1.0


class World:
    """A simulator that tells its state."""

    def get_comparable_state(self) -> dict[str, Any]:
        return STATE


def test_the_state_may_come_from_a_resource() -> None:
    assert judge(comparable_state=None, resource=World()).score == 1.0


@pytest.mark.parametrize(
    ("truth", "state"),
    [
        (None, {}),
        ({"function_calls": []}, {}),
        ({"comparable_state": {}}, {}),
        ({"function_calls": ["cd('docs')"], "comparable_state": {}}, {}),
        ({"function_calls": [["cd(docs)"]], "comparable_state": {}}, {}),
        (TRUTH, {"successful_func_calls": None}),
        (TRUTH, {"comparable_state": None}),
        (TRUTH, {"comparable_state": None, "resource": object()}),
        (TRUTH, {"successful_func_calls": [["nonsense"]]}),
    ],
)
def test_what_cannot_be_read_gives_no_verdict(truth: Any, state: dict[str, Any]) -> None:
    assert not judge(truth, **state).is_score_valid


def test_without_state_or_answer() -> None:
    answer = [Message(role="assistant", content="x")]
    assert not bfcl_reward(answer, ground_truth=TRUTH).is_score_valid
    assert bfcl_reward([Message(role="user")], ground_truth=TRUTH, state={}).metrics["error"].score == 0.0
