# SPDX-License-Identifier: Apache-2.0
"""The inherited files of an agent evaluation, made from a run's own: a projection, which can be made again."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reward_kit.execution.result import RunResult
from reward_kit.storage.files import Draft
from reward_kit.storage.journal import Journal
from reward_kit.storage.row_json import json_line
from reward_kit.storage.vocabularies import RUN
from reward_kit.utils.clock import now_to_the_millisecond

__all__ = ["aggregate", "individual_results", "write_trajectory"]


def individual_results(task_id: str, result: RunResult) -> list[dict[str, Any]]:
    """One entry per episode that was judged or failed."""
    facts = _facts(result.rollouts_path)
    return [_individual(task_id, row, facts) for row in result.rows()]


def _facts(rollouts: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """What each world said in the end; that is in the rollouts only."""
    if not rollouts.exists():
        return {}
    with Journal(rollouts, read_only=True) as journal:
        return {(row["id"], row["response_index"]): row.get("facts") or {} for row in journal.rows()}


def _individual(
    task_id: str, row: Mapping[str, Any], facts: Mapping[tuple[str, int], dict[str, Any]]
) -> dict[str, Any]:
    told = facts.get((row["id"], row["response_index"]), {})
    common = {"task_id": task_id, "sample_id": row["id"], "rollout_index": row["response_index"]}
    inputs = {
        "messages": row["messages"],
        "state": {"successful_func_calls": told.get("successful_func_calls", []), "final_state": told.get("state")},
        "task_achieved": bool(told.get("task_achieved")),
        "task_definition_name": task_id,
        "ground_truth": row.get(RUN.ground_truth),
    }
    ending = {"ended": row.get("ended"), "truncated": row.get("truncated"), "steps": row.get("steps")}
    if row.get("error") is not None:
        return {**common, "error": row["error"], **ending, "reward_function_inputs": inputs}
    verdict = {
        "score": row[RUN.score],
        "reason": row.get(RUN.verification_reason),
        "metrics": row.get(RUN.metrics) or {},
    }
    return {**common, **verdict, **ending, "reward_function_inputs": inputs}


def aggregate(individual: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The inherited figures of a task. Failed episodes are counted, and are in no mean."""
    judged = [one for one in individual if "error" not in one]
    failed = [one for one in individual if "error" in one]
    scores = [float(one["score"]) for one in judged]
    figures: dict[str, Any] = {
        "aggregated": True,
        "num_rollouts": len(individual),
        "total_rollouts": len(individual),
        "successful_rollouts": len(judged),
        "failed_rollouts": len(failed),
        "success_rate": len(judged) / len(individual) if individual else 0.0,
        "individual_scores": scores,
        "individual_results": list(individual),
        "detailed_results": list(individual),
        "successful_results": judged,
        "failed_results": failed,
        "timestamp": now_to_the_millisecond(),
        "aggregated_metrics": _metrics(judged),
    }
    if not scores:
        first = failed[0]["error"] if failed else "no episode was played"
        return {**figures, "error": f"no episode could be judged: {first}"}
    mean = statistics.fmean(scores)
    return {
        **figures,
        "score": mean,
        "avg_score": mean,
        "average_score": mean,
        "std_dev": statistics.stdev(scores) if len(scores) > 1 else 0.0,
        "min_score": min(scores),
        "max_score": max(scores),
    }


def _metrics(judged: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, list[float]] = {}
    for one in judged:
        for name, metric in one["metrics"].items():
            found.setdefault(name, []).append(float(metric["score"]))
    return {
        name: {
            "avg_score": statistics.fmean(scores),
            "min_score": min(scores),
            "max_score": max(scores),
            "individual_scores": scores,
        }
        for name, scores in found.items()
    }


_LISTS = ("individual_results", "detailed_results", "successful_results", "failed_results")


def write_trajectory(task_id: str, figures: Mapping[str, Any], directory: Path) -> Path:
    """Write `trajectory_<task>_<time>.jsonl`: a line with the figures, then one for each episode.

    A run that is entered again writes a new file; older ones stay.
    """
    logs = directory / "evaluation_logs"
    stamp = "".join(sign for sign in figures["timestamp"].split("+")[0] if sign.isdigit())
    path = logs / f"trajectory_{directory.name}_{stamp}.jsonl"
    summary = {name: value for name, value in figures.items() if name not in _LISTS}
    lines = [{"type": "summary", "task_id": task_id, **summary}]
    lines += [
        {"type": "individual_result", "timestamp": figures["timestamp"], **one}
        for one in figures["individual_results"]
    ]  # fmt: skip
    with Draft(path, make_folder=True) as draft:
        draft.write_all(map(json_line, lines))
    return path
