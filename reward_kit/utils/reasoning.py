"""What a model thought aloud is not its answer."""

from __future__ import annotations

import re

__all__ = ["without_reasoning"]

_REASONING = re.compile(
    r"<(?P<close>/)?(?:think|thinking|thought|thoughts|reasoning|reflection)\b[^<>]{0,200}>", re.IGNORECASE
)


def without_reasoning(answer: str) -> str:
    """The answer without what was thought aloud before it; of a thought that never ends, nothing is kept."""
    kept: list[str] = []
    thinking, position = False, 0
    for tag in _REASONING.finditer(answer):
        if tag["close"]:
            if not thinking:
                kept.clear()  # many templates open the thought before the answer begins
            thinking, position = False, tag.end()
        elif not thinking:
            kept.append(answer[position : tag.start()])
            thinking = True
    return "".join(kept if thinking else [*kept, answer[position:]])
