# SPDX-License-Identifier: Apache-2.0
"""What is made without being checked is what checking would have made."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from reward_kit.models import Completion, EvaluateResult, Message, Rollout, Sample, Usage
from reward_kit.utils import trusted as trusted_module
from reward_kit.utils.trusted import copied, text_message, trusted

ASKED = Sample(id="a", messages=[Message(role="user", content="2+2?")], ground_truth="4")
CHECKED: list[BaseModel] = [
    Message(role="user", content="2+2?"),
    Usage(prompt_tokens=1),
    Completion(message=Message(role="assistant", content="4"), finish_reason="stop", latency_ms=0.5),
    ASKED,
    Rollout(sample=ASKED, response_index=1, turns=[Message(role="assistant", content="4")], cost=0.0),
    EvaluateResult(score=1.0),
]


def unchecked(value: BaseModel) -> BaseModel:
    return trusted(type(value))(**{name: getattr(value, name) for name in value.model_fields_set})


@pytest.mark.parametrize("value", CHECKED, ids=lambda value: type(value).__name__)
def test_it_is_the_same_value(value: BaseModel) -> None:
    made = unchecked(value)
    assert type(made) is type(value) and made == value and repr(made) == repr(value)
    assert made.model_fields_set == value.model_fields_set
    assert list(made.__dict__) == list(type(value).model_fields), "in the fields' order, which files rest on"
    assert made.model_dump_json(exclude_unset=True) == value.model_dump_json(exclude_unset=True)
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made.model_copy() == value


@pytest.mark.parametrize("value", CHECKED, ids=lambda value: type(value).__name__)
def test_it_stays_frozen_if_its_kind_is(value: BaseModel) -> None:
    made: Any = unchecked(value)
    name = next(iter(type(value).model_fields))
    if value.model_config.get("frozen"):
        with pytest.raises(ValidationError):
            setattr(made, name, None)
    else:
        setattr(made, name, getattr(value, name))


def test_a_turn_of_text_is_a_message() -> None:
    made, checked = text_message("assistant", "4"), Message(role="assistant", content="4")
    assert made == checked and list(made.__dict__) == list(checked.__dict__)
    assert made.model_fields_set == checked.model_fields_set
    made.name = "somebody"
    assert "name" not in text_message("assistant", "4").model_fields_set, "no two of them share what can change"


def test_a_copy_has_the_same_values_and_shares_no_names() -> None:
    value = Message(role="user", content="2+2?")
    copy = copied(value)
    copy.name = "somebody"
    assert (value.name, value.model_fields_set) == (None, {"role", "content"})
    assert copy == Message(role="user", content="2+2?", name="somebody")


def test_defaults_that_can_change_are_not_shared() -> None:
    result = trusted(EvaluateResult)
    first, second = result(score=1.0), result(score=0.0)
    assert first.metrics == {} and first.metrics is not second.metrics


def test_a_name_that_no_field_has_and_a_missing_one_are_errors_at_the_first_call_and_later() -> None:
    turn, reason = Message(role="assistant", content="4"), "stop"
    wrong: list[dict[str, Any]] = [{"message": turn, "reason": reason}, {"finish_reason": reason}, {}]
    for names in wrong:
        with pytest.raises(TypeError, match="message"):
            trusted(Completion)(**names)
    make = trusted(Completion)
    make(message=turn, finish_reason=reason)
    for names in ({"message": turn}, *wrong, {"message": turn, "finish_reason": reason, "cached": True}):
        with pytest.raises(TypeError, match="message"):
            make(**names)


@pytest.mark.parametrize(
    ("name", "value"),
    [("_SLOTS", ("__dict__", "__pydantic_fields_set__")), ("_set_given", trusted_module._no_slot)],
    ids=["a fifth slot", "a slot that is gone"],
)
def test_where_pydantic_is_inside_otherwise_values_are_checked(
    name: str, value: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trusted_module, name, value)
    make = trusted(Usage)
    assert make(prompt_tokens=1) == Usage(prompt_tokens=1)
    with pytest.raises(ValidationError):
        make(prompt_tokens="many")
    assert len(caplog.records) == 1
    turn = Message(role="user", content="x")
    assert copied(turn) == turn
