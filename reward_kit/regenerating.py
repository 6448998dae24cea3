# SPDX-License-Identifier: Apache-2.0
"""`regenerate`: new answers to prompts that were answered before, compared with the old answers prompt by prompt.

    stored answers ─┬─▶ old: judged as they are ──┬─▶ paired by prompt: which are better, by how much, how sure
                    └─▶ new: asked again, judged ─┘

Both sides are judged by the same reward, so only the answers differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_kit.config_models import DatasetConfig, load_config, validated
from reward_kit.datasets.loader import load_rollouts, rollouts_from_rows
from reward_kit.datasets.rows import Origin, Row, as_told
from reward_kit.errors import AnswersFailedError, ConfigError, DatasetError, StorageError
from reward_kit.evaluating import check_evaluation, evaluate
from reward_kit.execution.result import RunResult
from reward_kit.generation.client import ModelClient
from reward_kit.models import Message, Rollout, Sample
from reward_kit.storage.journal import Journal
from reward_kit.storage.run_directory import RESULTS, ROLLOUTS, RunDirectory, set_run_aside
from reward_kit.storage.tables import rollout_from_line
from reward_kit.utils.strict_yaml import load_yaml, read_yaml_text

if TYPE_CHECKING:
    from reward_kit.analysis import RunComparison
    from reward_kit.config_models import PipelineConfig
    from reward_kit.execution.engine import Reporter

__all__ = ["Regenerated", "regenerate", "reward_of"]

Stored = str | Path | Iterable[Mapping[str, Any]]
Key = tuple[str, int]
"""An answer: the id of its prompt, and its number among the answers to that prompt."""


@dataclass(frozen=True)
class Regenerated:
    """The old answers and the new ones, judged alike, and how they compare."""

    old: RunResult
    new: RunResult
    comparison: RunComparison
    """The new answers against the old ones, paired on the prompts that both have a verdict for."""

    @property
    def was_complete(self) -> bool:
        """Whether this call had nothing to do: every answer was there, and judged."""
        sides = (self.old, self.new)
        done = any(side.counters.generated or side.counters.scored for side in sides)
        return not done and all(side.status == "finished" for side in sides)

    @property
    def conclusion(self) -> str:
        """In words: which answers are better, by how much, and how sure that is."""
        from reward_kit.analysis.present.conclusions import comparison_conclusion

        return "\n".join(comparison_conclusion(self.comparison))

    def lines(self) -> list[str]:
        """The mean score of each side with its interval, then the conclusion."""
        return [*(f"{name} answers: {_mean_of(run)}" for name, run in (("old", self.old), ("new", self.new))),
                self.conclusion]  # fmt: skip


def regenerate(  # noqa: PLR0913 - parts of two evaluations
    stored: Stored,
    /,
    reward: Callable[..., Any] | str | None = None,
    *,
    model: str | ModelClient,
    n: int = 1,
    params: Mapping[str, Any] | None = None,
    reward_settings: Mapping[str, Any] | None = None,
    dataset: Mapping[str, Any] | None = None,
    output_dir: str | Path | None = None,
    progress: bool | Reporter | None = None,
    rescore: bool = False,
    retry_failed: bool = False,
    keep_going: bool = False,
    **settings: Any,
) -> Regenerated:
    """Ask `model` the prompts of stored answers again, judge old and new answers, and compare them prompt by prompt.

    `stored` is the directory of a run, a file, or rows, with answers in it: conversations that end with the assistant's
    turn, or prompts with an `assistant_response`. `dataset` holds settings of how a file is read. Both sides are judged
    now, by `reward`; without one, by the reward of the stored run, with its settings. With an `output_dir` they are two
    durable runs, `old` and `new`, and calling again resumes them: with the same stored answers or more, and the same
    `n` or a larger one. `retry_failed` tries again what failed there; `rescore` judges what is there with another
    reward. All other keywords are those of `evaluate`; they hold for the new answers. Comparing needs the extra
    `analysis`.

        found = regenerate("answers.jsonl", "math", model="fireworks/qwen3-8b", output_dir="outputs/again")
        print(found.conclusion)
    """
    from reward_kit.analysis import compare, load  # first, so that a missing extra costs no answers

    samples, answers = _taken_apart(_rollouts(stored, dataset or {}))
    judging: dict[str, Any] = {"reward": reward, "params": params, "reward_settings": reward_settings}
    if reward is None:
        judging, settings = _as_the_run_judged(stored, params, reward_settings, settings)
    asking: dict[str, Any] = {**settings, **judging, "model": model, "n": n}
    place = None if output_dir is None else Path(output_dir)
    if place is not None:
        _refuse_place_of(stored, place)
    old_side = _Side(place and place / "old", {(r.sample.id, r.response_index) for r in rollouts_from_rows(answers)})
    new_side = _Side(place and place / "new", {(sample.id, draw) for sample in samples for draw in range(n)})
    for side in (old_side, new_side):
        side.refuse_others()
    check_evaluation(samples, **asking)  # before the old answers are judged, which may cost something
    shared = {name: value for name, value in settings.items() if name in {"judge", "sandbox"}}
    again: dict[str, Any] = {"progress": progress, "rescore": rescore, "retry_failed": retry_failed}
    again["keep_going"] = keep_going
    old = old_side.evaluate(answers, **judging, **shared, **again)
    if old.status == "interrupted":  # whoever stopped this does not want a model to be asked now
        raise KeyboardInterrupt
    if not old.judged:
        raise AnswersFailedError(_none_judged(old))
    new = new_side.evaluate(samples, **asking, **again)
    comparison = compare(load(old.output_dir, name="old"), load(new.output_dir, name="new"))
    return Regenerated(old, new, comparison)


def _mean_of(run: RunResult) -> str:
    if run.mean_score is None:
        return f"none of {run.failed} could be judged"
    around = "" if run.interval is None else f" (95 % interval {run.interval.low:.3f} to {run.interval.high:.3f})"
    failed = f", {run.failed} could not be judged" if run.failed else ""
    return f"mean score {run.mean_score:.3f}{around}, {run.judged} judged{failed}"


# ── the stored answers ───────────────────────────────────────────────────────────────────────────────────────────────


def reward_of(stored: Stored) -> str | None:
    """The reward that judged a stored run, by its config.yaml; None where there is no such file."""
    config = _config_of(stored)
    return None if config is None else config.reward.function_path


def _as_the_run_judged(
    stored: Stored,
    params: Mapping[str, Any] | None,
    reward_settings: Mapping[str, Any] | None,
    settings: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The reward of the stored run, and its settings with the run's judge and sandbox. What is given goes first."""
    config = _config_of(stored)
    if config is None:
        raise ConfigError(
            "No reward is given, and the stored answers are not the directory of a run, whose config.yaml would name "
            "one. Name what judges both sides with `reward.function_path`."
        )
    written = config.reward.model_dump(exclude={"function_path", "params"}, exclude_unset=True)
    judging = {
        "reward": config.reward.function_path,
        "params": {**config.reward.params, **(params or {})},
        "reward_settings": {**written, **(reward_settings or {})},
    }
    around = {name: getattr(config, name).model_dump(exclude_unset=True) for name in ("judge", "sandbox")}
    return judging, {**{name: part for name, part in around.items() if part}, **settings}


def _run_directory(stored: Stored) -> Path | None:
    """The directory of the run that the stored answers are of, where they are a run's."""
    if not isinstance(stored, str | Path):
        return None
    path = Path(stored)
    if path.is_dir():
        return path
    return path.parent if path.name in {ROLLOUTS, RESULTS} else None


def _config_of(stored: Stored) -> PipelineConfig | None:
    """The config of a stored run, as the run left it."""
    directory = _run_directory(stored)
    if directory is None or not (directory / "config.yaml").is_file():
        return None
    path = directory / "config.yaml"
    values = load_yaml(read_yaml_text(path, repr(str(path)), "Name a run directory."), repr(str(path)))
    if not isinstance(values, dict):
        raise ConfigError(f"{str(path)!r} is not the config of a run. Name another run, or a file with answers.")
    return load_config(values)


def _rollouts(stored: Stored, reading: Mapping[str, Any]) -> Iterator[Rollout]:
    """The stored answers, without those that a run never got. An agent's episodes are refused."""
    config = _config_of(stored)
    if config is not None and config.agent is not None:
        raise DatasetError(_EPISODES)
    for rollout in _read(stored, reading):
        if rollout.steps is not None or {"steps", "ended"} <= rollout.sample.columns.keys():
            raise DatasetError(_EPISODES)
        yield rollout


_EPISODES = (
    "The stored answers are an agent's episodes. Their prompts cannot be asked again by themselves: the agent's world "
    "is missing. Run both models with `reward-kit run`, each into its own directory, and compare them with "
    "`reward-kit inspect DIRECTORY_A DIRECTORY_B`."
)


def _read(stored: Stored, reading: Mapping[str, Any]) -> Iterator[Rollout]:
    if not isinstance(stored, str | Path):
        yield from rollouts_from_rows(stored)
        return
    directory = _run_directory(stored)
    if directory is None or not (directory / ROLLOUTS).is_file():
        yield from load_rollouts(validated(DatasetConfig, {**reading, "path_or_name": str(stored)}, section="dataset"))
        return
    with Journal(directory / ROLLOUTS, read_only=True) as journal:
        kept = (rollout_from_line(line, journal.samples) for line in journal.in_order())
        yield from (rollout for rollout in kept if rollout.failure is None)


_STORED = Origin("the stored answers", "answer")


def _taken_apart(rollouts: Iterable[Rollout]) -> tuple[list[Sample], list[Row]]:
    """Each prompt once, and each answer as a row that says which prompt it belongs to."""
    samples: dict[str, Sample] = {}
    answers: list[Row] = []
    for rollout in rollouts:
        sample = samples.setdefault(rollout.sample.id, rollout.sample)
        known = {"tools": sample.tools, "split": sample.split}
        columns = {
            **sample.columns,
            **{name: value for name, value in known.items() if value is not None},
            "ground_truth": sample.ground_truth,  # also None: no other column is asked
            "id": sample.id,
            "messages": _as_plain(sample.messages),
            "assistant_response": _as_plain(rollout.turns),
        }
        answers.append(Row(_STORED, len(answers) + 1, columns, as_told(sample.ground_truth_text)))
    if not samples:
        raise DatasetError(
            "There are no stored answers. Give a run's directory, or conversations that end with the assistant's turn."
        )
    return list(samples.values()), answers


def _as_plain(turns: Iterable[Message]) -> list[dict[str, Any]]:
    return [turn.model_dump(exclude_none=True) for turn in turns]


# ── the two sides on disk ────────────────────────────────────────────────────────────────────────────────────────────


class _Side:
    """One of the runs `old` and `new`; `directory` is None where the run is kept in a temporary place."""

    def __init__(self, directory: Path | None, called_for: set[Key]) -> None:
        self._directory = directory
        self._called_for = called_for
        self._held = set() if directory is None else _answers_in(directory / ROLLOUTS)

    def refuse_others(self) -> None:
        """Stop where answers are kept that nobody asks for now: they would be in the figures."""
        others = self._held - self._called_for
        if others and not self._is_worthless:
            name, number = min(others)
            raise StorageError(
                f"{str(self._directory)!r} holds {len(self._held):,} answers, and {len(others):,} of them are not "
                f"asked for now, such as answer {number + 1} to {name!r}. They would be in the figures. Choose another "
                "`output.output_dir`, or give the stored answers and `generation.n` of before, or more of them."
            )

    def evaluate(self, rows: Any, *, rescore: bool, **settings: Any) -> RunResult:
        """Judge what is owed here; with `rescore`, first what is there already, by another reward.

        A run of which nothing was judged or paid for is set aside, so that what failed there does not stand in the way.
        """
        if self._held and self._is_worthless and self._directory is not None:
            set_run_aside(self._directory)
        elif self._held and rescore:
            judged = evaluate(rows, output_dir=self._directory, rescore=True, **settings)
            if judged.status == "interrupted":
                return judged
        return evaluate(rows, output_dir=self._directory, **settings)

    @cached_property
    def _is_worthless(self) -> bool:
        """Whether nothing that is here was judged or paid for."""
        return self._directory is None or RunDirectory.seen_from_outside(self._directory).is_worthless("rollouts")


def _answers_in(rollouts: Path) -> set[Key]:
    """The answers that a file of rollouts holds, failed attempts included."""
    if not rollouts.is_file():
        return set()
    with Journal(rollouts, read_only=True, owed_again=True) as journal:
        return {(row["id"], row["response_index"]) for row in journal.rows()}


def _refuse_place_of(stored: Stored, place: Path) -> None:
    """Stop where the output would be put into the run whose answers are stored."""
    run = _run_directory(stored)
    if run is not None and run.resolve() in {part.resolve() for part in (place, place / "old", place / "new")}:
        raise ConfigError(
            f"{str(place)!r} holds the stored run itself, which must stay as it is. Choose another `output.output_dir`."
        )


def _none_judged(old: RunResult) -> str:
    example = next(iter(old.summary.get("failure_examples", {}).values()), "no reason is known")
    return (
        f"None of the {old.failed:,} stored answers could be judged, so the model was not asked. The first failure "
        f"was: {example.rstrip('.')}. Correct that, then call again with `retry_failed`."
    )
