# SPDX-License-Identifier: Apache-2.0
"""Which steps were taken in the same state: the anchor groups of GiGPO.

States are equal by value, as Python compares them: `1`, `1.0` and `True` are one state, a list equals a tuple, and an
array is the row of its numbers, whatever its shape. A step whose state is `None` is alone.

With a similarity, texts that differ a little are one state, too. Each new text is compared with the first text of each
group, in the order in which the groups came up, and joins the first one that is similar enough. What that may cost is
bounded, see `LONGEST_COMPARED` and `MOST_COMPARED`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable, Mapping
from difflib import SequenceMatcher
from itertools import count
from math import isnan
from typing import Any

__all__ = ["LONGEST_COMPARED", "MOST_COMPARED", "StateGroups", "state_key"]

LONGEST_COMPARED = 4_000
"""Characters. A longer text joins only texts that are equal to it."""
MOST_COMPARED = 256
"""A text is compared with so many groups of its prompt, the oldest; later groups take only texts equal to their own."""

_NOT_A_NUMBER = ("not a number",)

log = logging.getLogger(__name__)


def state_key(state: Any) -> Hashable:
    """The state as something that can be looked up in a dict: equal for equal states, also for lists and dicts."""
    if isinstance(state, str):
        return state
    if isinstance(state, float) and isnan(state):
        return _NOT_A_NUMBER
    if isinstance(state, Mapping | list | tuple | set | frozenset):
        return _container_key(state)
    if hasattr(state, "ravel") and hasattr(state, "tolist"):  # an array of numpy or torch
        return _container_key(state.ravel().tolist())
    try:
        hash(state)
    except TypeError:
        kind = type(state).__name__
        raise TypeError(
            f"A state of type {kind!r} cannot be compared. Make it text, numbers, or lists and dicts of them."
        ) from None
    return state  # type: ignore[no-any-return]


def _container_key(state: Mapping[Any, Any] | list[Any] | tuple[Any, ...] | set[Any] | frozenset[Any]) -> Hashable:
    if isinstance(state, Mapping):
        return "a mapping", frozenset((state_key(name), state_key(held)) for name, held in state.items())
    if isinstance(state, set | frozenset):
        return "a set", frozenset(map(state_key, state))
    return tuple(map(state_key, state))


class _First:
    """The first text of a group of similar ones, which stands for them all."""

    __slots__ = ("_letters", "_matcher", "_size", "number")

    def __init__(self, text: str, letters: Counter[str], number: int) -> None:
        self.number = number
        self._size, self._letters = len(text), letters
        self._matcher = SequenceMatcher(None, "", text)

    def is_like(self, text: str, letters: Counter[str], similarity: float) -> bool:
        """Whether `difflib` finds the text similar enough. Most are told apart by the letters that both have."""
        needed = similarity * (len(text) + self._size)
        if 2 * min(len(text), self._size) < needed:
            return False  # even if the shorter text were all in the longer one
        own = self._letters
        if 2 * sum(min(times, own[letter]) for letter, times in letters.items()) < needed:
            return False  # even if the letters stood in the same order
        self._matcher.set_seq1(text)
        return self._matcher.ratio() >= similarity


class StateGroups:
    """Numbers for states: the same number for the same state of the same prompt."""

    def __init__(self, similarity: float | None = None) -> None:
        if similarity is not None and not 0 < similarity <= 1:
            raise ValueError(f"similarity is {similarity!r}; expected more than 0 and at most 1, or None for equality")
        self._similarity = similarity
        self._numbers = count()
        self._groups: dict[Hashable, dict[Hashable, int]] = {}
        self._firsts: dict[Hashable, list[_First]] = {}
        self._warned = False

    def number(self, prompt: Hashable, state: Any) -> int:
        """The number of this state's group."""
        if state is None:
            return next(self._numbers)
        groups = self._groups.setdefault(prompt, {})
        key = state_key(state)
        found = groups.get(key)
        if found is None:
            found = next(self._numbers) if self._similarity is None else self._similar(prompt, state)
            groups[key] = found
        return found

    def _similar(self, prompt: Hashable, state: Any) -> int:
        if not isinstance(state, str):
            raise TypeError(
                f"similarity compares texts, and a state is {state!r}. Give texts, or leave similarity out."
            )
        firsts = self._firsts.setdefault(prompt, [])
        if len(state) > LONGEST_COMPARED:
            self._warn(f"a state has {len(state):,} characters, and texts of up to {LONGEST_COMPARED:,} are compared")
            return next(self._numbers)
        letters = Counter(state)
        for first in firsts:
            if first.is_like(state, letters, self._similarity or 1.0):
                return first.number
        number = next(self._numbers)
        if len(firsts) < MOST_COMPARED:
            firsts.append(_First(state, letters, number))
        else:
            self._warn(f"a prompt has more than {MOST_COMPARED:,} groups of similar states")
        return number

    def _warn(self, what: str) -> None:
        if not self._warned:
            log.warning("GiGPO by similarity: %s. Others join only states that are equal to them.", what)
        self._warned = True
