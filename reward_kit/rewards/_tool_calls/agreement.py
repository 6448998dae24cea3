# SPDX-License-Identifier: Apache-2.0
"""Whether the calls that were made are those that were expected, and how many of them are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from reward_kit.answers.tool_calls.calls import ToolCall
from reward_kit.answers.tool_calls.tools import Tools
from reward_kit.rewards._tool_calls.expected_calls import OMITTED, Acceptable, ExpectedCall
from reward_kit.rewards._tool_calls.matching import maximum_matching
from reward_kit.rewards._tool_calls.values import Coercion, as_multiset, value_key

__all__ = ["Agreement", "CallComparer", "f1"]

_SHOWN = 80
"""Characters of a wrong value that a reason quotes."""


class Agreement(NamedTuple):
    """How far the calls that were made agree with those that were expected, in counts."""

    expected: int
    made: int
    names: int
    """Calls of the right function, whatever their arguments."""
    matched: int
    """Calls that are right altogether."""
    first_difference: str | None = None

    @property
    def complete(self) -> bool:
        """Whether every expected call was made and no other."""
        return self.expected == self.made == self.matched


def f1(matched: int, expected: int, made: int) -> float:
    """The harmonic mean of precision and recall; 1.0 where nothing was expected and nothing came."""
    return 1.0 if expected + made == 0 else 2 * matched / (expected + made)


@dataclass(frozen=True)
class CallComparer:
    """Compares the calls that were made with those that were expected, by the rules that its fields set."""

    tools: Tools
    coercion: Coercion = "strict"
    ordered: bool = False
    """Whether the calls must come in the order they are expected in."""
    unordered_arguments: Collection[str] = ()
    """Arguments that are arrays whose order does not count: `name`, or `function.name`."""

    def of(self, expected: Sequence[ExpectedCall], made: Sequence[ToolCall]) -> Agreement:
        """Compare; calls out of order are paired so that as many as possible agree."""
        names = Counter(self._name(call.name) for call in expected) & Counter(self._name(call.name) for call in made)
        if self.ordered:
            pairs = zip(expected, made, strict=False)
            matched = sum(self.difference(wanted, call) is None for wanted, call in pairs)
        else:
            fits = [
                [at for at, call in enumerate(made) if self.difference(wanted, call) is None] for wanted in expected
            ]
            matched = len(maximum_matching(fits))
        difference = None if matched == len(expected) == len(made) else self._first_difference(expected, made)
        return Agreement(len(expected), len(made), names.total(), matched, difference)

    def difference(self, wanted: ExpectedCall, call: ToolCall) -> str | None:
        """The first thing in which `call` is not what was wanted."""
        if self._name(wanted.name) != self._name(call.name):
            return f"{call.name!r} was called and not {wanted.name!r}"
        if call.positional:
            return f"{call.name!r} is given arguments by place, and no tool says their names"
        return next(self._differences(wanted, call), None)

    def _differences(self, wanted: ExpectedCall, call: ToolCall) -> Iterator[str]:
        defaults = self._defaults(wanted.name)
        for name, acceptable in wanted.arguments.items():
            if name in call.arguments:
                if not self._accepts(acceptable, call.arguments[name], wanted.name, name):
                    yield f"{name!r} of {call.name!r} is {_shown(call.arguments[name])}"
            elif not (acceptable.may_be_omitted or self._accepts_default(acceptable, defaults, wanted.name, name)):
                yield f"{name!r} of {call.name!r} is missing"
        for name, value in call.arguments.items():
            if name not in wanted.arguments and not self._says_nothing(value, defaults, name):
                yield f"{name!r} of {call.name!r} is not expected"

    def _says_nothing(self, value: Any, defaults: Mapping[str, Any], name: str) -> bool:
        """Whether giving the value is the same as not giving it."""
        if value is None and self.coercion == "lenient":
            return True
        return name in defaults and value_key(value, self.coercion) == value_key(defaults[name], self.coercion)

    def _accepts_default(self, acceptable: Acceptable, defaults: Mapping[str, Any], function: str, name: str) -> bool:
        return name in defaults and self._accepts(acceptable, defaults[name], function, name)

    def _accepts(self, acceptable: Acceptable, value: Any, function: str, name: str) -> bool:
        any_order = name in self.unordered_arguments or f"{function}.{name}" in self.unordered_arguments
        key = self._key(value, any_order)
        for candidate in acceptable.values:
            if acceptable.choices and _holds_objects(candidate):
                if self._accepts_nested(candidate, value):
                    return True
            elif key == self._key(candidate, any_order) and not (acceptable.choices and _is_omission(candidate)):
                return True
        return False

    def _accepts_nested(self, candidate: Any, value: Any) -> bool:
        """BFCL's objects: each key holds the list of values it may have."""
        if isinstance(candidate, Mapping):
            if not isinstance(value, Mapping) or not value.keys() <= candidate.keys():
                return False
            return all(
                self._accepts(Acceptable(values, True), value[key], "", "") if key in value else OMITTED in values
                for key, values in candidate.items()
                if isinstance(values, list)
            )
        if isinstance(candidate, list):
            same_length = isinstance(value, (list, tuple)) and len(value) == len(candidate)
            return same_length and all(map(self._accepts_nested, candidate, value))
        return self._key(candidate, False) == self._key(value, False)

    def _key(self, value: Any, any_order: bool) -> Hashable:
        key = value_key(value, self.coercion)
        return as_multiset(key) if any_order else key

    def _defaults(self, name: str) -> Mapping[str, Any]:
        parameters = self.tools[name].parameters if name in self.tools else {}
        return {
            key: schema["default"]
            for key, schema in parameters.items()
            if isinstance(schema, Mapping) and "default" in schema
        }

    def _name(self, name: str) -> str:
        """Many endpoints allow no dot in a name and are told an underscore instead."""
        return name.replace(".", "_") if self.coercion == "lenient" else name

    def _first_difference(self, expected: Sequence[ExpectedCall], made: Sequence[ToolCall]) -> str:
        if len(expected) != len(made):
            return f"{len(made)} {'call was' if len(made) == 1 else 'calls were'} made, and {len(expected)} expected"
        pairs = zip(expected, made, strict=True)
        differences = (self.difference(wanted, call) for wanted, call in pairs)
        return next((difference for difference in differences if difference), "the calls cannot be paired")


def _is_omission(candidate: Any) -> bool:
    return isinstance(candidate, str) and candidate == OMITTED


def _holds_objects(candidate: Any) -> bool:
    return isinstance(candidate, Mapping) or (
        isinstance(candidate, list) and any(isinstance(item, Mapping) for item in candidate)
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
