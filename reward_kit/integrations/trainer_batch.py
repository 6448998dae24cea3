# SPDX-License-Identifier: Apache-2.0
"""What a trainer hands over in one step, as rollouts for the reward.

    prompts, completions, columns ─▶ one rollout per completion, alone or in its group ─▶ and back to the items' order

Trainers speak in parallel lists: the i-th prompt has the i-th completion and the i-th value of each column.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from reward_kit.datasets.ground_truths import EXPLICIT, AmbiguousTruth, plain_truth
from reward_kit.errors import ConfigError, ItemError
from reward_kit.integrations.attempts import answered, attempt_of_turns, known_to, sample_for
from reward_kit.integrations.turns import prompt_turns
from reward_kit.models import Failure, Rollout, Verdict
from reward_kit.reward_call import RewardCall

__all__ = ["TRAINER_OBJECTS", "Batch", "BatchReader"]

_log = logging.getLogger(__name__)

TRAINER_OBJECTS = frozenset({"trainer_state", "log_extra", "log_metric", "environments"})
"""Live objects of the trainer. A reward that names one is judged in the trainer's process, for they cannot leave it."""
TRAINER_NAMES = TRAINER_OBJECTS | {"completion_ids"}
"""What TRL passes beside the dataset's columns; handed on only to a reward that names it."""

_NOBODY = Failure(stage="score", type="RewardError", message="nothing was said of it")


class Batch(NamedTuple):
    """One step's completions, ready to be judged."""

    size: int
    groups: list[list[Rollout]]
    """What each call of the reward judges."""
    places: list[list[int]]
    """For each of them, its items."""
    refused: dict[int, Verdict]
    """Items that cannot even be put to the reward."""

    def verdicts(self, judged: Sequence[Sequence[Verdict]]) -> list[Verdict]:
        """One verdict per item, in the trainer's order, from what each call came to."""
        verdicts = [self.refused.get(item, _NOBODY) for item in range(self.size)]
        for items, found in zip(self.places, judged, strict=True):
            for item, verdict in zip(items, found, strict=True):
                verdicts[item] = verdict
        return verdicts


class BatchReader(NamedTuple):
    """How a trainer's lists are read."""

    call: RewardCall
    columns: Mapping[str, str] | None = None
    """Dataset columns to reward parameters. None: every column by its own name."""
    defaults: Mapping[str, Any] = {}
    """Given where the dataset has no such column."""
    user_message_fn: Callable[[Any], str] | None = None
    assistant_message_fn: Callable[[Any], str] | None = None

    def batch(self, prompts: Sequence[Any], completions: Sequence[Any] | None, columns: Mapping[str, Any]) -> Batch:
        """The rollouts of one step. Lists that do not fit together, and columns that are not there, are refused."""
        size = len(prompts)
        if completions is not None and len(completions) != size:
            raise ValueError(f"{size} prompts came with {len(completions)} completions; give one for each.")
        rows = self._rows(columns, size)
        groups: list[list[Rollout]] = []
        places: list[list[int]] = []
        refused: dict[int, Verdict] = {}
        asked = _Asked({}, None)
        for i, prompt in enumerate(prompts):
            try:
                if completions is None:
                    groups.append([self._whole(prompt, rows[i])])
                else:
                    asked = self._asked(prompt, rows[i], asked)
                    groups.append([answered(asked.sample, self._completion(completions[i]))])
                places.append([i])
            except AmbiguousTruth as error:
                raise _unclear(self.call.name, error.candidates) from None
            except ItemError as error:
                refused[i] = Failure.of(error, "score")
        if groups and groups[0][0].sample.ground_truth is None and self.call.wants("ground_truth"):
            _warn_of_no_ground_truth(self.call.name, tuple(sorted(columns)))
        if self.call.mode == "batch":
            groups, places = _grouped(groups, places, prompts)
        return Batch(size, groups, places, refused)

    @property
    def _hands_prompts(self) -> bool:
        """Whether a prompt that is a text is a column, as it is in a run: where no columns are chosen or made."""
        return self.columns is None and self.user_message_fn is None

    def _rows(self, columns: Mapping[str, Any], size: int) -> list[dict[str, Any]]:
        """The columns of each item. A list has one value per item; anything else is the same for all."""
        chosen = {**self.defaults, **self._choose(columns)}
        if missing := self.call.unfilled([*chosen, "prompt"] if self._hands_prompts else chosen):
            raise ConfigError(
                f"Reward {self.call.name!r} needs {missing[0]!r}, and the trainer gives nothing of that name; there "
                f"are {sorted(chosen)}. Add the column to the dataset, or map one to it."
            )
        by_item: dict[str, Sequence[Any]] = {}
        for name, value in chosen.items():
            if isinstance(value, (list, tuple)) and name not in self.defaults.keys() - columns.keys():
                if len(value) != size:
                    raise ValueError(f"Column {name!r} has {len(value)} values for {size} prompts; give one for each.")
                by_item[name] = value
        shared = {name: value for name, value in chosen.items() if name not in by_item}
        if self.call.is_remote:  # what cannot be sent is not sent, and a reward elsewhere could do nothing with it
            shared, _ = known_to(self.call, shared)
            by_item, _ = known_to(self.call, by_item)
        if not by_item:
            return [dict(shared) for _ in range(size)]
        names = tuple(by_item)
        return [shared | dict(zip(names, values, strict=True)) for values in zip(*by_item.values(), strict=True)]

    def _choose(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        given = {n: v for n, v in columns.items() if n not in TRAINER_NAMES or self.call.wants(n)}
        if self.columns is None:
            return given
        if missing := sorted(self.columns.keys() - columns.keys()):
            raise ConfigError(
                f"The dataset has no column {missing[0]!r}; there are {sorted(columns)}. "
                "Correct dataset_to_reward_kwargs_map."
            )
        mapped = {parameter: _renamed(column, parameter, columns[column]) for column, parameter in self.columns.items()}
        return {**{n: v for n, v in given.items() if n in TRAINER_NAMES}, **mapped}

    def _whole(self, prompt: Any, columns: dict[str, Any]) -> Rollout:
        """A prompt that is all of the conversation, as a rollout."""
        objects = {name: columns.pop(name) for name in TRAINER_NAMES & columns.keys()}
        prompt = prompt if self.user_message_fn is None else self.user_message_fn(prompt)
        return attempt_of_turns(columns, prompt_turns(prompt), objects)

    def _asked(self, prompt: Any, columns: dict[str, Any], before: _Asked) -> _Asked:
        """What a row asks. Trainers give each row several times, one time behind the other: it is read once."""
        objects = {name: columns.pop(name) for name in TRAINER_NAMES & columns.keys()}
        row = {"prompt": prompt, **columns}
        if not objects and before.sample is not None and _is_same(row, before.row):
            return before
        prompt = prompt if self.user_message_fn is None else self.user_message_fn(prompt)
        sample = sample_for({**row, "prompt": prompt}, prompt, objects, named=self.call.needs_ids)
        if not self._hands_prompts:
            sample.columns.pop("prompt", None)
        return _Asked(row, sample)

    def _completion(self, completion: Any) -> Any:
        return completion if self.assistant_message_fn is None else self.assistant_message_fn(completion)


def _renamed(column: str, parameter: str, values: Any) -> Any:
    """A column under the name of a parameter: as the ground truth, it says what it would say under its own name."""
    if parameter not in EXPLICIT or not isinstance(values, list | tuple):
        return values
    return [plain_truth(column, value) for value in values]


class _Asked(NamedTuple):
    """A row of the trainer's, and what it asks."""

    row: Mapping[str, Any]
    sample: Any
    """The `Sample`; None before the first row."""


def _is_same(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two rows hold the same values, so far as that is told at a glance."""
    if row.keys() != other.keys():
        return False
    return all(
        v is other[name] or (type(v) is type(other[name]) is str and v == other[name]) for name, v in row.items()
    )


def _unclear(reward: str, candidates: Sequence[str]) -> ConfigError:
    first = candidates[0]
    return ConfigError(
        f"It is unclear what the ground truth of {reward!r} is: {' or '.join(map(repr, candidates))}. Say it: rename a "
        f"column to 'ground_truth', or map it with create_trl_adapter(dataset_to_reward_kwargs_map={{{first!r}: "
        "'ground_truth'})."
    )


@functools.cache  # once for a reward and its columns, not once a step
def _warn_of_no_ground_truth(reward: str, columns: tuple[str, ...]) -> None:
    there = f"there are {', '.join(map(repr, columns))}" if columns else "there is none"
    _log.warning(
        "No column gives reward %r a ground truth (%s), so it gets None. If it needs one, call the column "
        "'ground_truth', or map it with create_trl_adapter(dataset_to_reward_kwargs_map=…).",
        reward, there,
    )  # fmt: skip


def _grouped(
    alone: Sequence[Sequence[Rollout]], places: Sequence[list[int]], prompts: Sequence[Any]
) -> tuple[list[list[Rollout]], list[list[int]]]:
    """One group per prompt and ground truth: all completions of it, wherever they stand.

    What differs within a group, such as what a rollout function adds, is taken from its first completion.
    """
    groups: dict[str, tuple[list[Rollout], list[int]]] = {}
    for (rollout,), (item,) in zip(alone, places, strict=True):
        rollouts, items = groups.setdefault(repr((prompts[item], rollout.sample.ground_truth)), ([], []))
        rollouts.append(rollout)
        items.append(item)
    return [rollouts for rollouts, _ in groups.values()], [items for _, items in groups.values()]
