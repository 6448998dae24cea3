# SPDX-License-Identifier: Apache-2.0
"""Folders of metrics: each has a `main.py` with a function `evaluate`. Several of them judge as one reward.

    by_metrics({"words": "metrics/words/main.py:evaluate", "form": "metrics/form/main.py:evaluate"})

The score is the mean of the metrics' scores. It is valid only if each of them is: a metric that could not judge is
never a zero in the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from reward_kit.errors import ConfigError, RewardError
from reward_kit.models import EvaluateResult, MetricResult, Rollout, Sample
from reward_kit.reward_call import RewardCall, run_blocking

__all__ = ["by_metrics", "check_folder", "named_folders"]

ENTRY = "main.py"
FUNCTION = "evaluate"


def named_folders(given: Sequence[str]) -> dict[str, Path]:
    """Metrics by name, from items such as `words=metrics/words`."""
    folders: dict[str, Path] = {}
    for item in given:
        name, equals, path = item.partition("=")
        if not equals or not name or not path:
            raise ConfigError(
                f"A metric's folder is given as {item!r}; expected NAME=PATH, such as words=metrics/words."
            )
        if name in folders:
            raise ConfigError(f"The metric {name!r} is given twice. Give each its own name.")
        folders[name] = check_folder(Path(path))
    return folders


def check_folder(folder: Path) -> Path:
    """The folder, if it holds a metric."""
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {str(folder)!r}. Give the folder of a metric, with a {ENTRY} in it.")
    entry = folder / ENTRY
    if not entry.is_file():
        raise ConfigError(f"The folder {str(folder)!r} has no {ENTRY}. Write one, with a function `{FUNCTION}` in it.")
    if FUNCTION not in entry.read_text(encoding="utf-8", errors="replace"):
        raise ConfigError(
            f"{str(entry)!r} has no function `{FUNCTION}`. Write one that takes `messages` and returns a score."
        )
    return folder


def by_metrics(rewards: Mapping[str, str], params: Mapping[str, Any] | None = None) -> Callable[..., EvaluateResult]:
    """One reward that judges by several, given by their import paths; `params` reach each of them."""
    loaded: dict[str, RewardCall] = {}

    def evaluate(
        messages: list[dict[str, Any]], ground_truth: Any = None, rollout: Rollout | None = None, **kwargs: Any
    ) -> EvaluateResult:
        if not loaded:  # where it runs
            loaded.update({name: _loaded(path, params) for name, path in rewards.items()})
        whole = rollout or Rollout.of_conversation(messages, ground_truth, kwargs)
        if whole.sample.ground_truth is None:
            whole = whole.model_copy(update={"sample": _with_prompt_as_truth(whole)})
        return _together({name: _judged(name, reward, whole) for name, reward in loaded.items()})

    return evaluate


def _loaded(path: str, params: Mapping[str, Any] | None) -> RewardCall:
    call = RewardCall(path, params)
    if call.mode == "batch":
        raise ConfigError(f"The metric {call.name!r} judges all answers of a sample at once. Give one that judges one.")
    return call


def _with_prompt_as_truth(rollout: Rollout) -> Sample:
    """The sample of an answer that nothing says the truth of: Fireworks hands over what came before the answer."""
    before = [turn.model_dump(exclude_unset=True) for turn in rollout.messages[:-1]]
    return rollout.sample.model_copy(update={"ground_truth": before})


def _judged(name: str, call: RewardCall, rollout: Rollout) -> EvaluateResult:
    try:
        arguments = call.arguments_of([rollout])
        result = run_blocking(call.call_async(arguments)) if call.is_async else call.call(arguments)
    except Exception as error:
        raise RewardError(f"The metric {name!r} could not judge: {type(error).__name__}: {error}") from error
    assert isinstance(result, EvaluateResult)
    return result


def _together(results: Mapping[str, EvaluateResult]) -> EvaluateResult:
    metrics = {
        name: MetricResult(score=result.score, is_score_valid=result.is_score_valid, reason=result.reason or "")
        for name, result in results.items()
    }
    valid = all(metric.is_score_valid for metric in metrics.values())
    told = ", ".join(f"{name} {metric.score:g}" for name, metric in metrics.items())
    return EvaluateResult(
        score=fmean(metric.score for metric in metrics.values()),
        is_score_valid=valid,
        reason=f"the mean of {told}" if len(metrics) > 1 else next(iter(results.values())).reason,
        metrics=metrics if len(metrics) > 1 else next(iter(results.values())).metrics or metrics,
    )
