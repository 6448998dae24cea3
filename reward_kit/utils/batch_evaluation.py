# SPDX-License-Identifier: Apache-2.0
"""Judging rows of the batch format with a batch reward, under the name of the older package."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from reward_kit.errors import RewardError
from reward_kit.utils.module_loader import load_function

__all__ = ["run_batch_evaluation"]

Row = dict[str, Any]


def run_batch_evaluation(
    batch_jsonl_path: str | Path,
    reward_function_path: str,
    output_path: str | Path,
    reward_function_kwargs: Mapping[str, Any] | None = None,
) -> list[Row]:
    """Call a batch reward with each row of a file, and write one row for each answer.

    They have `request_id`, `response_id`, `rollout_index`, `evaluation_score`, `evaluation_reason`, `is_score_valid`,
    `evaluation_metrics`, and the row's other columns. The reward gets the row's columns by name. What it raises is
    raised: no answer is written with a score that nobody gave.
    """
    from reward_kit.common_utils import load_jsonl

    reward = load_function(reward_function_path)
    results = [
        judged
        for row in load_jsonl(batch_jsonl_path)
        for judged in _judged(reward, row, dict(reward_function_kwargs or {}))
    ]
    lines = (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in results)
    Path(output_path).write_bytes(b"".join(lines))
    return results


def _judged(reward: Any, row: Row, params: Row) -> list[Row]:
    others = {name: value for name, value in row.items() if name not in _OF_THE_BATCH}
    verdicts = reward(rollouts_messages=row["rollouts_messages"], **{**others, **params})
    if inspect.isawaitable(verdicts):
        verdicts = asyncio.run(_awaited(verdicts))
    ids = row.get("response_ids") or list(range(len(row["rollouts_messages"])))
    if len(verdicts) != len(ids):
        raise RewardError(f"The reward gave {len(verdicts)} results for {len(ids)} answers. Return one for each.")
    return [
        {
            **others,
            "request_id": row.get("request_id"),
            "response_id": response,
            "rollout_index": index,
            "evaluation_score": verdict.score,
            "evaluation_reason": verdict.reason,
            "is_score_valid": verdict.is_score_valid,
            "evaluation_metrics": {name: metric.model_dump() for name, metric in verdict.metrics.items()},
        }
        for index, (response, verdict) in enumerate(zip(ids, verdicts, strict=True))
    ]


_OF_THE_BATCH = frozenset({"request_id", "rollouts_messages", "num_variants", "response_ids"})


async def _awaited(verdicts: Any) -> Any:
    return await verdicts
