"""What is made without being checked is what checking would have made."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from reward_kit.generation.play import _ANSWERED
from reward_kit.models import Completion, EvaluateResult, Message, Rollout, Sample, Usage
from reward_kit.utils.trusted import text_message, trusted

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
    return trusted(type(value), dict(value.__dict__), set(value.model_fields_set))


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


def test_every_field_of_an_answered_rollout_is_given() -> None:
    assert Rollout.model_fields.keys() == _ANSWERED | {"failure"}
