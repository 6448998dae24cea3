# SPDX-License-Identifier: Apache-2.0
"""What a model thought aloud is not its answer."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Thought", "split_reasoning", "without_reasoning"]

_REASONING = re.compile(
    r"<(?P<close>/)?(?:think|thinking|thought|thoughts|reasoning|reflection)\b[^<>]{0,200}>", re.IGNORECASE
)


class Thought(NamedTuple):
    """A model's text in two parts: what it thought aloud, and what it then answered."""

    reasoning: str
    """What was thought aloud, without its tags; empty where nothing was."""
    answer: str


def split_reasoning(text: str) -> Thought:
    """What was thought aloud, and the answer without it; of a thought that never ends, nothing is answer.

    >>> split_reasoning("<think>7 * 6</think>It is 42.")
    Thought(reasoning='7 * 6', answer='It is 42.')
    """
    thought: list[str] = []
    kept: list[str] = []
    thinking, position = False, 0
    for tag in _REASONING.finditer(text):
        if tag["close"]:
            if not thinking:  # many templates open the thought before the answer begins
                thought += kept
                kept.clear()
            thought.append(text[position : tag.start()])
            thinking, position = False, tag.end()
        elif not thinking:
            kept.append(text[position : tag.start()])
            thinking, position = True, tag.end()
    (thought if thinking else kept).append(text[position:])
    return Thought("".join(thought), "".join(kept))


def without_reasoning(answer: str) -> str:
    """The answer without what was thought aloud before it; of a thought that never ends, nothing is kept."""
    return split_reasoning(answer).answer
