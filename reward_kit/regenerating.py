# SPDX-License-Identifier: Apache-2.0
"""`regenerate`: new answers to prompts that were answered before, compared with the old answers prompt by prompt.

    stored answers ─┬─▶ old: judged as they are ──┬─▶ paired by prompt: which are better, by how much, how sure
                    └─▶ new: asked again, judged ─┘

Both sides are judged by the same reward, so only the answers differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets.loader import load_rollouts, rollouts_from_rows
from reward_kit.errors import DatasetError
from reward_kit.evaluating import evaluate
from reward_kit.execution.result import RunResult
from reward_kit.generation.client import ModelClient
from reward_kit.models import Rollout, Sample
from reward_kit.storage.journal import Journal
from reward_kit.storage.tables import rollout_from_line

if TYPE_CHECKING:
    from reward_kit.analysis import RunComparison

__all__ = ["Regenerated", "regenerate"]

_ROLLOUTS = "rollouts.jsonl"


@dataclass(frozen=True)
class Regenerated:
    """The old answers and the new ones, judged alike, and how they compare."""

    old: RunResult
    new: RunResult
    comparison: RunComparison
    """The new answers against the old ones, paired on the prompts that both have a verdict for."""

    @property
    def conclusion(self) -> str:
        """In words: which answers are better, by how much, and how sure that is."""
        from reward_kit.analysis.present.conclusions import comparison_conclusion

        return "\n".join(comparison_conclusion(self.comparison))

    def lines(self) -> list[str]:
        """The mean score of each side with its interval, then the conclusion."""
        return [*(f"{name} answers: {_mean_of(run)}" for name, run in (("old", self.old), ("new", self.new))),
                self.conclusion]  # fmt: skip


def regenerate(
    stored: str | Path | Iterable[Mapping[str, Any]],
    /,
    reward: Callable[..., Any] | str,
    *,
    model: str | ModelClient,
    n: int = 1,
    params: Mapping[str, Any] | None = None,
    reward_settings: Mapping[str, Any] | None = None,
    output_dir: str | Path | None = None,
    **settings: Any,
) -> Regenerated:
    """Ask `model` the prompts of stored answers again, judge old and new answers, and compare them prompt by prompt.

    `stored` is the directory of a run, a file, or rows, with answers in it: conversations that end with the assistant's
    turn, or prompts with an `assistant_response`. Both sides are judged now, by `reward`. With an `output_dir` they are
    two durable runs, `old` and `new`, and calling again resumes them. All other keywords are those of `evaluate`; they
    hold for the new answers. Comparing needs the extra `analysis`.

        found = regenerate("answers.jsonl", "math", model="fireworks/qwen3-8b", output_dir="outputs/again")
        print(found.conclusion)
    """
    from reward_kit.analysis import compare, load  # first, so that a missing extra costs no answers

    samples, answers = _taken_apart(_rollouts(stored))
    judged_by: dict[str, Any] = {"reward": reward, "params": params, "reward_settings": reward_settings}
    place = None if output_dir is None else Path(output_dir)
    shared = {name: value for name, value in settings.items() if name in {"judge", "progress", "sandbox"}}
    old = evaluate(answers, **judged_by, output_dir=place and place / "old", **shared)
    if old.status == "interrupted":  # whoever stopped this does not want a model to be asked now
        raise KeyboardInterrupt
    new = evaluate(samples, **judged_by, model=model, n=n, output_dir=place and place / "new", **settings)
    comparison = compare(load(old.output_dir, name="old"), load(new.output_dir, name="new"))
    return Regenerated(old, new, comparison)


def _mean_of(run: RunResult) -> str:
    if run.mean_score is None:
        return f"none of {run.failed} could be judged"
    around = "" if run.interval is None else f" (95 % interval {run.interval.low:.3f} to {run.interval.high:.3f})"
    failed = f", {run.failed} could not be judged" if run.failed else ""
    return f"mean score {run.mean_score:.3f}{around}, {run.judged} judged{failed}"


def _rollouts(stored: str | Path | Iterable[Mapping[str, Any]]) -> Iterator[Rollout]:
    """The stored answers, without those that a run never got."""
    if not isinstance(stored, str | Path):
        yield from rollouts_from_rows(stored)
        return
    file = Path(stored) / _ROLLOUTS if (Path(stored) / _ROLLOUTS).is_file() else Path(stored)
    if file.name != _ROLLOUTS:
        yield from load_rollouts(DatasetConfig(path_or_name=str(stored)))
        return
    with Journal(file, read_only=True) as journal:
        kept = map(rollout_from_line, journal.in_order())
        yield from (rollout for rollout in kept if rollout.failure is None)


def _taken_apart(rollouts: Iterable[Rollout]) -> tuple[list[Sample], list[dict[str, Any]]]:
    """Each prompt once, and each answer as a row that says which prompt it belongs to."""
    samples: dict[str, Sample] = {}
    answers: list[dict[str, Any]] = []
    for rollout in rollouts:
        sample = samples.setdefault(rollout.sample.id, rollout.sample)
        turns = [turn.model_dump(exclude_none=True) for turn in rollout.messages]
        known = {"ground_truth": sample.ground_truth, "tools": sample.tools, "split": sample.split}
        answers.append(
            {
                **sample.columns,
                **{name: value for name, value in known.items() if value is not None},
                "id": sample.id,
                "messages": turns,
            }
        )
    if not samples:
        raise DatasetError(
            "There are no stored answers. Give a run's directory, or conversations that end with the assistant's turn."
        )
    return list(samples.values()), answers
