# SPDX-License-Identifier: Apache-2.0
"""The values: what people author, and what moves along the spine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reward_kit.models import (
    EvaluateResult,
    Failure,
    Message,
    MetricResult,
    Record,
    Rollout,
    Sample,
    StepOutput,
    TaskDefinitionModel,
)

CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


def test_a_message_needs_a_role_and_nothing_else() -> None:
    assert Message(role="user").content == ""
    assert Message.model_validate({"role": "assistant", "content": None, "tool_calls": [CALL]}).content is None
    with pytest.raises(ValueError, match="Role is required"):
        Message.model_validate({"content": "hi"})


def test_unknown_fields_of_a_message_are_ignored() -> None:
    assert Message.model_validate({"role": "user", "content": "x", "refusal": None}) == Message(
        role="user", content="x"
    )


def test_content_parts_read_as_text() -> None:
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "b"},
    ]
    assert Message(role="user", content=parts).text == "ab"
    assert Message(role="assistant", content=None).text == ""


def test_a_request_carries_only_what_was_said() -> None:
    assert Message(role="user", content="hi").as_request() == {"role": "user", "content": "hi"}
    spoken = Message.model_validate(
        {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "hm"}
    )
    assert spoken.as_request() == {"role": "assistant", "content": None, "tool_calls": [CALL]}


roles = st.sampled_from(["system", "user", "assistant", "tool"])
messages = st.builds(Message, role=roles, content=st.none() | st.text(), name=st.none() | st.text(min_size=1))


@given(messages)
def test_a_message_survives_json_and_plain_data(message: Message) -> None:
    assert Message.model_validate_json(message.model_dump_json()) == message
    assert Message.model_validate(message.model_dump(exclude_unset=True)) == message


def test_results_are_read_like_dicts() -> None:
    metric = MetricResult(score=1.0, reason="same")
    result = EvaluateResult(score=0.5, reason="half", metrics={"m": metric})
    assert result["score"] == 0.5 and result["metrics"]["m"] is metric
    assert metric["reason"] == "same" and list(metric) == ["score", "reason", "is_score_valid"]
    assert "error" in result and "nonsense" not in result and "get" not in result
    assert result.get("nonsense", 7) == 7 and result.get("reason") == "half"
    assert list(result) == list(result.keys()) == [name for name, _ in result.items()]
    assert dict(result.items())["metrics"] == {"m": metric}
    assert next(iter(result.values())) == 0.5
    with pytest.raises(KeyError):
        result["nonsense"]
    with pytest.raises(KeyError):
        result["model_dump"]


def test_a_score_is_unbounded_and_a_metrics_score_is_not() -> None:
    assert EvaluateResult(score=-3.5).score == -3.5
    with pytest.raises(ValidationError):
        MetricResult(score=1.1, reason="too good")


def test_steps_are_kept() -> None:
    result = EvaluateResult(score=1.0, step_outputs=[StepOutput(step_index=0, base_reward=0.2)])
    assert EvaluateResult.model_validate(result.model_dump()) == result


SAMPLE = Sample(id="a", messages=[Message(role="user", content="q")])
ROLLOUT = Rollout(sample=SAMPLE, response_index=0, turns=[Message(role="assistant", content="a")])
FAILURE = Failure(stage="score", type="RewardError", message="it raised")


def test_a_rollout_holds_the_whole_conversation_and_is_frozen() -> None:
    assert [message.content for message in ROLLOUT.messages] == ["q", "a"]
    with pytest.raises(ValidationError):
        ROLLOUT.response_index = 1  # type: ignore[misc]


def test_a_record_holds_a_result_or_a_failure() -> None:
    Record(rollout=ROLLOUT, result=EvaluateResult(score=0.0))
    Record(rollout=ROLLOUT, failure=FAILURE)
    with pytest.raises(ValidationError, match="exactly one"):
        Record(rollout=ROLLOUT)
    with pytest.raises(ValidationError, match="exactly one"):
        Record(rollout=ROLLOUT, result=EvaluateResult(score=0.0), failure=FAILURE)


def test_a_task_definition_keeps_what_it_does_not_know() -> None:
    task = TaskDefinitionModel.model_validate(
        {"name": "t", "resource_type": "sql", "reward_function_path": "m.f", "own_setting": 3}
    )
    assert task.model_extra == {"own_setting": 3}
    assert (task.poc_max_turns, task.num_rollouts) == (3, 1)


def test_a_message_reads_like_the_dict_that_older_rewards_expect() -> None:
    message = Message(role="assistant", content="hi")
    assert (message["content"], message.get("tool_calls"), message.get("nothing", 3)) == ("hi", None, 3)
    assert "role" in message and "nothing" not in message
    assert dict(message)["role"] == "assistant"
    with pytest.raises(KeyError):
        message["nothing"]
