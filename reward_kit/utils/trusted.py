# SPDX-License-Identifier: Apache-2.0
"""Values of the spine made without being checked, where what they are made of is known to be right.

    _rollout = trusted(Rollout)                                 # once, beside the code that makes them
    _rollout(sample=sample, response_index=0, turns=turns)      # all other fields have their defaults

Pydantic checks every field of a model that is made. That is right for whatever comes from outside, and is done there
once. What our own code puts together from checked values needs no second look, and a run makes several for each record:
so made, they cost about half as much.

This rests on a model of pydantic being four slots: its values, the names that were given, extra and private fields.
The first value of each maker is compared with the one that pydantic's own `model_construct` makes, which checks nothing
either, but costs more than checking. Where they differ, or the slots are others, values are checked as ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from reward_kit.models import Message

__all__ = ["copied", "rebuilt", "text_message", "trusted"]

_log = logging.getLogger(__name__)

Model = TypeVar("Model", bound=BaseModel)

_SLOTS = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")


def trusted(kind: type[Model]) -> Callable[..., Model]:
    """A maker of such models, by keyword arguments of the same names at each call. Their values are not checked.

    A name that no field has, or a required one that is missing, is a `TypeError`. A model that has private attributes
    or takes extra fields is not to be made so.
    """
    names: set[str] = set()
    template: dict[str, Any] = {}
    made_anew: list[tuple[str, Callable[[], Any]]] = []
    is_frozen = bool(kind.model_config.get("frozen"))
    is_quick = False
    count = size = 0

    def make(**given: Any) -> Model:
        nonlocal is_quick, count, size
        if not is_quick:
            if not names:
                names.update(_checked_names(kind, given))
                template.update(_defaults(kind))
                made_anew.extend(_factories(kind, names))
                count, size = len(names), len(template)
                is_quick = _slots_are_as_expected(kind, given)
            if not is_quick:
                return kind(**given)
        values = {**template, **given}
        if len(given) != count or len(values) != size:
            raise TypeError(f"{kind.__name__} was made of {sorted(names)} before, and now of {sorted(given)}")
        if made_anew:
            for name, default in made_anew:
                values[name] = default()
        value = _new(kind)  # as `_by_slots` does it, without a call: this is made for every record, more than once
        _set_values(value, values)
        _set_given(value, names if is_frozen else names.copy())
        _set_extra(value, None)
        _set_private(value, None)
        return value

    return make


def copied(value: Model) -> Model:
    """Another model with the very same values in its fields."""
    try:
        other = _new(type(value))  # as `_by_slots` does it, without a call
        _set_values(other, value.__dict__.copy())
        _set_given(other, value.__pydantic_fields_set__.copy())
        _set_extra(other, None)
        _set_private(other, None)
        return other
    except (AttributeError, TypeError):
        return value.model_copy()


def rebuilt(kind: type[Model], values: dict[str, Any], given: set[str]) -> Model:
    """The model that had these values, and was made of those given; for one that comes from another process of ours."""
    try:
        return _by_slots(kind, values, given)
    except (AttributeError, TypeError):
        made = kind.model_construct(_fields_set=given)
        made.__dict__.update(values)
        return made


_text_message = trusted(Message)


def text_message(role: str, content: str) -> Message:
    """A turn that is text and nothing else."""
    return _text_message(role=role, content=content)


# ── what is known of a kind of model ─────────────────────────────────────────────────────────────────────────────────


def _checked_names(kind: type[BaseModel], given: Iterable[str]) -> set[str]:
    names = set(given)
    required = {name for name, field in kind.model_fields.items() if field.is_required()}
    if not required <= names <= kind.model_fields.keys():
        raise TypeError(f"{kind.__name__} is made of {[*kind.model_fields]}, of which {sorted(required)} must be given")
    return names


def _defaults(kind: type[BaseModel]) -> dict[str, Any]:
    """A value for each field, in their order, which files rest on."""
    has_none = {name for name, field in kind.model_fields.items() if field.is_required() or field.default_factory}
    return {name: None if name in has_none else field.default for name, field in kind.model_fields.items()}


def _factories(kind: type[BaseModel], given: set[str]) -> list[tuple[str, Callable[[], Any]]]:
    """What makes the defaults that no two values may share, such as a list; of the fields that are not given."""
    found: list[tuple[str, Callable[[], Any]]] = []
    for name, field in kind.model_fields.items():
        factory: Any = field.default_factory
        if factory is not None and name not in given:  # what it takes is asked once: pydantic would ask at each call
            found.append((name, partial(factory, {}) if field.default_factory_takes_validated_data else factory))
    return found


# ── pydantic's slots ─────────────────────────────────────────────────────────────────────────────────────────────────


def _by_slots(kind: type[Model], values: dict[str, Any], given: set[str]) -> Model:
    value = _new(kind)
    _set_values(value, values)
    _set_given(value, given)
    _set_extra(value, None)
    _set_private(value, None)
    return value


def _slots_are_as_expected(kind: type[BaseModel], given: dict[str, Any]) -> bool:
    """Whether a model made by its slots is the one that pydantic makes of the same values."""
    plain = kind.model_construct(**given)
    try:
        made = _by_slots(kind, {**plain.__dict__}, {*given})
        expected = BaseModel.__slots__ == _SLOTS and made == plain and made.__reduce_ex__(2) == plain.__reduce_ex__(2)
    except (AttributeError, TypeError):
        expected = False
    if not expected:
        _log.warning("pydantic is inside not as expected: each %s is checked, which takes longer.", kind.__name__)
    return expected


def _no_slot(*_: object) -> None:
    raise AttributeError("pydantic's slots are others")


_new = object.__new__
_set_values, _set_given, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__ if name in BaseModel.__dict__ else _no_slot for name in _SLOTS
)
