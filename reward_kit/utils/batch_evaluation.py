# SPDX-License-Identifier: Apache-2.0
"""A batch reward over a file of batches, as `batch_transformation` makes them. The name is inherited."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from reward_kit.errors import DatasetError
from reward_kit.utils import exact_json
from reward_kit.utils.event_loop import run_sync
from reward_kit.utils.module_loader import load_function

__all__ = ["run_batch_evaluation"]

Row = dict[str, Any]

_BATCH_COLUMNS = ("request_id", "rollouts_messages", "num_variants", "response_ids")


def run_batch_evaluation(
    batch_jsonl_path: str | Path,
    reward_function_path: str,
    output_path: str | Path,
    reward_function_kwargs: Mapping[str, Any] | None = None,
) -> list[Row]:
    """Judge the answers of each batch together. Return one row per answer, and write the rows as JSON lines.

    The reward is called with `rollouts_messages`, the further columns of the batch, and `reward_function_kwargs`,
    which count before columns of the same name. A row has `request_id`, `response_id`, `rollout_index`, the verdict
    (`evaluation_score`, `evaluation_reason`, `is_score_valid`, `evaluation_metrics`) and the batch's further columns.
    When the reward raises, or does not return one result per answer, that is raised here, and nothing is written.
    """
    from reward_kit.common_utils import load_jsonl
    from reward_kit.storage.files import write_whole
    from reward_kit.typed_interface import checked

    reward = checked(load_function(reward_function_path), "batch")
    judged: list[Row] = []
    for number, batch in enumerate(load_jsonl(batch_jsonl_path), start=1):
        ids = _response_ids(batch, f"Row {number} of {str(batch_jsonl_path)!r}")
        judged += _verdicts(reward, batch, ids, reward_function_kwargs or {})
    write_whole(Path(output_path), b"".join(exact_json.dumps(row) + b"\n" for row in judged))
    return judged


def _response_ids(batch: Row, place: str) -> list[Any]:
    """What the answers of a batch are called: their numbers, where the batch does not say."""
    answers = batch.get("rollouts_messages")
    if not isinstance(answers, list):
        raise DatasetError(
            f"{place} has no list `rollouts_messages`. Make the file with "
            "`reward_kit.utils.batch_transformation.create_batch_evaluation_dataset`."
        )
    ids = batch.get("response_ids")
    if ids is None:
        return list(range(len(answers)))
    if not isinstance(ids, list) or len(ids) != len(answers):
        raise DatasetError(f"{place} has {len(answers)} answers, and other `response_ids`. Give one id per answer.")
    return ids


def _verdicts(reward: Callable[..., Any], batch: Row, ids: list[Any], given: Mapping[str, Any]) -> Iterator[Row]:
    further = {name: value for name, value in batch.items() if name not in _BATCH_COLUMNS}
    told = further | dict(given)

    async def judged() -> Any:
        results = reward(rollouts_messages=batch["rollouts_messages"], **told)
        return await results if inspect.isawaitable(results) else results

    # Not `asyncio.run`: this is called in notebooks, too, where a loop runs already.
    results = run_sync(judged)
    for index, (response_id, result) in enumerate(zip(ids, results, strict=True)):
        verdict = result.model_dump(include={"score", "reason", "metrics"})
        yield {
            **further,
            "request_id": batch.get("request_id"),
            "response_id": response_id,
            "rollout_index": index,
            **{f"evaluation_{name}": value for name, value in verdict.items()},
            "is_score_valid": result.is_score_valid,
        }
