"""Values of the spine made without being checked, where what they are made of is known to be right.

Pydantic checks every field of a model that is made. That is right for whatever comes from outside, and is done there
once. What our own code puts together from checked values needs no second look, and a run makes several for each record.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel

from reward_kit.models import Message

__all__ = ["text_message", "trusted"]

Model = TypeVar("Model", bound=BaseModel)

# What pydantic's `model_construct` does, but that it looks up defaults and aliases, which takes longer than checking.
_set_values = BaseModel.__dict__["__dict__"].__set__
_set_given = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__


def trusted(kind: type[Model], fields: dict[str, Any], given: set[str]) -> Model:
    """A model with exactly these values: one for each of its fields, in their order. `given` are those set on purpose.

    `fields` become the model's own, and `given` too, unless the model is frozen. Nothing is checked; a model that has
    private attributes or takes extra fields is not to be made so.
    """
    value = object.__new__(kind)
    _set_values(value, fields)
    _set_given(value, given)
    _set_extra(value, None)
    _set_private(value, None)
    return value


def text_message(role: str, content: str) -> Message:
    """A turn that is text and nothing else."""
    fields = {
        "role": role, "content": content, "name": None, "tool_call_id": None, "tool_calls": None,
        "function_call": None, "reasoning_content": None,
    }  # fmt: skip
    return trusted(Message, fields, {"role", "content"})
