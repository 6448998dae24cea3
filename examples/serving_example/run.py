# SPDX-License-Identifier: Apache-2.0
"""One reward behind one server, asked by three trainers' clients and by a plain program: `python run.py [SERVER]`."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from served import served  # type: ignore[import-not-found]  # beside this file
from trainers import TRAINERS, NotJudged  # type: ignore[import-not-found]  # beside this file

from reward_kit import RewardFunction
from reward_kit.errors import RewardError

QUESTION, LABEL = "What is 6 x 7?", "42"
ANSWERS = ["It is 42.", "It is 41.", "No idea."]


def told(ask: Any, *question: str) -> str:
    """What a trainer is told, in a few words."""
    try:
        return f"{ask(*question):g}"
    except NotJudged as error:
        return f"not judged ({error})"


def main() -> None:
    """Have everybody ask, and print what they were told."""
    given = contextlib.nullcontext(sys.argv[1]) if len(sys.argv) > 1 else served()
    with given as server:
        for answer in ANSWERS:
            print(f"{answer!r}")
            for name, ask in TRAINERS.items():
                print(f"  {name:<10} {told(ask, server, QUESTION, answer, LABEL)}")
            reward = RewardFunction(mode="remote", endpoint=server)
            messages = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": answer}]
            try:
                result = reward(messages, ground_truth=LABEL)
                shown = (
                    f"{result.score:g}, {result.reason}" if result.is_score_valid else f"no verdict: {result.reason}"
                )
            except RewardError as error:
                shown = f"no verdict: {error}"
            print(f"  {'Python':<10} {shown}")


if __name__ == "__main__":
    main()
