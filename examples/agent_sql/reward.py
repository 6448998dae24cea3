# SPDX-License-Identifier: Apache-2.0
"""The reward for questions about the shop's database and for changes to it."""

from __future__ import annotations

import re
from typing import Any

from reward_kit import EvaluateResult, Message, reward_function
from reward_kit.agent import World

ANSWER = re.compile(r"^\s*answer:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


@reward_function
async def evaluate(
    messages: list[Message],
    ground_truth: Any = None,
    *,
    world: World | None = None,
    check_sql: str | None = None,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 for the right answer; for a change, if the database is then as `check_sql` asks.

    `world` is a fresh copy of the shop in which the episode's statements were run again, so an episode can be judged
    long after it was played.
    """
    if check_sql is not None:
        database: Any = world
        asked = {"query": check_sql, "fetch_mode": "val"}
        right = bool(await database.resource.step("execute_sql", asked))
        return EvaluateResult(
            score=float(right), reason="The database is as asked." if right else "It is not as asked."
        )
    found = ANSWER.findall(messages[-1].text)
    right = bool(found) and found[-1].casefold() == str(ground_truth).casefold()
    return EvaluateResult(score=float(right), reason=f"The answer was {found[-1] if found else 'none'}.")
