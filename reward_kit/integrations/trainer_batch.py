# SPDX-License-Identifier: Apache-2.0
"""What a trainer hands over in one step, as payloads for the reward.

    prompts, completions, columns ─▶ one payload per completion, or one per group ─▶ and back to the items' order

Trainers speak in parallel lists: the i-th prompt has the i-th completion and the i-th value of each column.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from reward_kit.errors import ConfigError, RewardError
from reward_kit.integrations.turns import completion_turns, prompt_turns
from reward_kit.models import Failure, Verdict
from reward_kit.reward_call import Payload, RewardCall

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
    payloads: list[Payload]
    places: list[list[int]]
    """For each payload, the items it judges."""
    refused: dict[int, Verdict]
    """Items that cannot even be put to the reward."""

    def verdicts(self, judged: Sequence[Sequence[Verdict]]) -> list[Verdict]:
        """One verdict per item, in the trainer's order, from what was said of each payload."""
        verdicts = [self.refused.get(item, _NOBODY) for item in range(self.size)]
        for items, found in zip(self.places, judged, strict=True):
            for item, verdict in zip(items, found, strict=True):
                verdicts[item] = verdict
        return verdicts


class BatchReader(NamedTuple):
    """How a trainer's lists are read."""

    call: RewardCall
    columns: Mapping[str, str] | None = None
    """Dataset columns to reward parameters. None: every column by its own name, and `solution` is a ground truth."""
    defaults: Mapping[str, Any] = {}
    """Given where the dataset has no such column."""
    user_message_fn: Callable[[Any], str] | None = None
    assistant_message_fn: Callable[[Any], str] | None = None

    def batch(self, prompts: Sequence[Any], completions: Sequence[Any] | None, columns: Mapping[str, Any]) -> Batch:
        """The payloads of one step. Lists that do not fit together, and columns that are not there, are refused."""
        size = len(prompts)
        if completions is not None and len(completions) != size:
            raise ValueError(f"{size} prompts came with {len(completions)} completions; give one for each.")
        rows = self._rows(columns, size)
        payloads: list[Payload] = []
        places: list[list[int]] = []
        refused: dict[int, Verdict] = {}
        for i, prompt in enumerate(prompts):
            try:
                messages = self._messages(prompt, None if completions is None else completions[i], completions is None)
            except RewardError as error:
                refused[i] = Failure.of(error, "score")
                continue
            payloads.append(self._payload(messages, rows[i]))
            places.append([i])
        if self.call.mode == "batch":
            payloads, places = _grouped(payloads, places, prompts)
        return Batch(size, payloads, places, refused)

    def _rows(self, columns: Mapping[str, Any], size: int) -> list[dict[str, Any]]:
        """The columns of each item. A list has one value per item; anything else is the same for all."""
        chosen = {**self.defaults, **self._choose(columns)}
        if missing := self.call.unfilled(chosen):
            raise ConfigError(
                f"Reward {self.call.name!r} needs {missing[0]!r}, and the trainer gives nothing of that name; there "
                f"are {sorted(chosen)}. Add the column to the dataset, or map one to it."
            )
        if not chosen.keys() & {"ground_truth", "solution"} and self.call.wants("ground_truth"):
            _warn_of_no_ground_truth(self.call.name, tuple(sorted(chosen)))
        by_item: dict[str, Sequence[Any]] = {}
        for name, value in chosen.items():
            if isinstance(value, (list, tuple)) and name not in self.defaults.keys() - columns.keys():
                if len(value) != size:
                    raise ValueError(f"Column {name!r} has {len(value)} values for {size} prompts; give one for each.")
                by_item[name] = value
        shared = {name: value for name, value in chosen.items() if name not in by_item}
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
        mapped = {parameter: columns[column] for column, parameter in self.columns.items()}
        return {**{n: v for n, v in given.items() if n in TRAINER_NAMES}, **mapped}

    def _messages(self, prompt: Any, completion: Any, whole: bool) -> list[Any]:
        """The conversation to judge; `whole`: the prompt is all of it."""
        if self.user_message_fn is not None:
            prompt = self.user_message_fn(prompt)
        if whole:
            return prompt_turns(prompt)
        if self.assistant_message_fn is not None:
            completion = self.assistant_message_fn(completion)
        return [*prompt_turns(prompt), *completion_turns(completion)]

    def _payload(self, messages: list[Any], columns: dict[str, Any]) -> Payload:
        ground_truth = _unwrapped(columns.pop("ground_truth", None))
        if self.columns is None and "solution" in columns:
            columns["solution"] = _unwrapped(columns["solution"])
            ground_truth = columns["solution"] if ground_truth is None else ground_truth
        return Payload(messages=messages, ground_truth=ground_truth, columns=columns)


@functools.cache  # once for a reward and its columns, not once a step
def _warn_of_no_ground_truth(reward: str, columns: tuple[str, ...]) -> None:
    there = f"there are {', '.join(map(repr, columns))}" if columns else "there is none"
    _log.warning(
        "No column gives reward %r a ground truth (%s), so it gets None. If it needs one, call the column "
        "'ground_truth' or 'solution', or map it with create_trl_adapter(dataset_to_reward_kwargs_map=…).",
        reward, there,
    )  # fmt: skip


def _unwrapped(answer: Any) -> Any:
    """The text in a list that holds nothing else: TRL's own datasets keep each solution in a list.

    A list of calls, of test cases or of messages stays one, and so does a list of several texts.
    """
    if isinstance(answer, list | tuple) and len(answer) == 1 and isinstance(answer[0], str):
        return answer[0]
    return answer


def _grouped(
    payloads: Sequence[Payload], places: Sequence[list[int]], prompts: Sequence[Any]
) -> tuple[list[Payload], list[list[int]]]:
    """One payload per group: the completions of the same prompt with the same ground truth, wherever they stand.

    What differs within a group, such as what a rollout function adds, is taken from its first completion.
    """
    groups: dict[str, list[tuple[Payload, int]]] = {}
    for payload, (item,) in zip(payloads, places, strict=True):
        groups.setdefault(repr((prompts[item], payload["ground_truth"])), []).append((payload, item))
    together = [
        Payload(
            rollouts_messages=[payload["messages"] for payload, _ in group],
            ground_truth=group[0][0]["ground_truth"],
            columns=group[0][0]["columns"],
        )
        for group in groups.values()
    ]
    return together, [[item for _, item in group] for group in groups.values()]
