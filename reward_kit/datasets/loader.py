# SPDX-License-Identifier: Apache-2.0
"""Samples, and with generation disabled rollouts, from what a config calls its dataset.

    source → reshape (mapping, preprocess, template) → interpret → id and position → Sample
    └─ a base dataset is a source of rows that went through its own settings first

Streams are lazy and can be iterated again; each iteration reads the source from its beginning, in bounded memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Generic, Self, TypeVar

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets.as_dataset import load_and_process_dataset, load_derived_dataset
from reward_kit.datasets.feed import Feed
from reward_kit.datasets.interpret import Answered, RowReader
from reward_kit.datasets.row_ids import Places, Variants, prompt_digest
from reward_kit.datasets.rows import BadRow, BadRows, Row
from reward_kit.datasets.sources import Given, MemorySource, open_source
from reward_kit.errors import DatasetError
from reward_kit.models import Rollout, Sample

__all__ = [
    "RolloutStream",
    "SampleStream",
    "load_and_process_dataset",
    "load_derived_dataset",
    "load_rollouts",
    "load_samples",
    "rollouts_from_rows",
    "samples_from_rows",
]

Item = TypeVar("Item", Sample, Rollout)

_IN_MEMORY = DatasetConfig(path_or_name="the given rows")


def load_samples(config: DatasetConfig, *, system_prompt: str | None = None, limit: int | None = None) -> SampleStream:
    """The samples of a dataset. `system_prompt` is for those that neither their row nor the dataset gives one."""
    return SampleStream(Feed(config, open_source), system_prompt, limit)


def load_rollouts(
    config: DatasetConfig, *, system_prompt: str | None = None, limit: int | None = None
) -> RolloutStream:
    """The answers that a dataset already holds, as rollouts; `limit` counts samples."""
    return RolloutStream(Feed(config, open_source), system_prompt, limit)


def samples_from_rows(
    rows: Iterable[Given],
    *,
    system_prompt: str | None = None,
    limit: int | None = None,
    settings: DatasetConfig = _IN_MEMORY,
) -> SampleStream:
    """Samples from rows or samples in memory, by the same rules as from a file; `settings` as for a file."""
    return SampleStream(Feed(settings, lambda _: MemorySource(rows)), system_prompt, limit)


def rollouts_from_rows(
    rows: Iterable[Given],
    *,
    system_prompt: str | None = None,
    limit: int | None = None,
    settings: DatasetConfig = _IN_MEMORY,
) -> RolloutStream:
    """Rollouts from rows in memory that already hold their answers."""
    return RolloutStream(Feed(settings, lambda _: MemorySource(rows)), system_prompt, limit)


class _Stream(ABC, Generic[Item]):
    """Items read anew from their source each time they are iterated."""

    def __init__(self, feed: Feed, system_prompt: str | None, limit: int | None) -> None:
        self._feed = feed
        self._interpreter = feed.interpreter(system_prompt)
        self._limit = min((bound for bound in (limit, feed.max_samples) if bound is not None), default=None)
        self._bad = BadRows(skip=feed.skips_bad_rows)
        self.truth_columns = feed.truth_columns
        """The columns that the config names as those with the ground truth."""

    @property
    def former_ids(self) -> bool:
        """Whether rows without an id are named as they once were: after their ground truth, too."""
        return self._interpreter.former_ids

    @former_ids.setter
    def former_ids(self, former: bool) -> None:
        self._interpreter.former_ids = former

    def let_worlds_open(self) -> Self:
        """Take rows that ask nothing, too: a world opens their conversations."""
        self._interpreter.world_opens = True
        return self

    @property
    def skipped(self) -> int:
        """Bad rows that the latest iteration has skipped so far."""
        return self._bad.count

    @property
    def skip_reasons(self) -> list[str]:
        """Place and reason of the first of them."""
        return self._bad.reasons

    @property
    def formats(self) -> dict[str, str]:
        """The shapes of rows that were recognised so far, and what each means. Empty: our own columns."""
        return self._interpreter.formats

    def size_hint(self) -> int | None:
        """About how many samples there are, at most; None where that is not cheap to know."""
        return self._feed.size_hint(self._limit)

    def fingerprint(self) -> str | None:
        """A cheap identity of the source's current content: it changes when a local file does. None: there is none."""
        return self._feed.fingerprint()

    def __iter__(self) -> Iterator[Item]:
        bad = self._bad = BadRows(skip=self._feed.skips_bad_rows)
        if self._limit == 0:
            return
        empty = True
        for item in self._items(self._feed.rows(bad), bad):
            empty = False
            yield item
        if empty:
            raise DatasetError(_why_empty(bad))

    @abstractmethod
    def _items(self, rows: Iterable[Row], bad: BadRows) -> Iterator[Item]:
        """What the rows hold, up to the limit; a row that holds nothing right is reported to `bad`."""


class SampleStream(_Stream[Sample]):
    """Samples, at positions 0, 1, 2 …"""

    def _items(self, rows: Iterable[Row], bad: BadRows) -> Iterator[Sample]:
        places, position = Places(), 0
        for row in rows:
            try:
                sample = self._sample(row, places, position)
            except BadRow as problem:
                bad.report(row.origin, row.number, str(problem))
                continue
            yield sample
            position += 1
            if position == self._limit:
                return

    def _sample(self, row: Row, places: Places, position: int) -> Sample:
        question = self._interpreter.question(row.columns)
        if not question.named:
            return question.sample(self._name(question.name, row, places), position, row.written)
        if first := places.claim(question.name, row):
            raise BadRow(f"id {question.name!r} is already taken by {first}; ids must differ")
        return question.sample(question.name, position, row.written)

    def _name(self, content: str, row: Row, places: Places) -> str:
        """What a row without an id is called, after its content."""
        return places.claim_content(content, row)


class RolloutStream(_Stream[Rollout]):
    """Rollouts whose answers are in the data. Rows with the same id are variants of one sample, at its position.

    So are rows without an id that number their answers (`response_index`) and ask the same. Any other row is a sample
    of its own, also where two ask the same.

    With a limit, reading stops at the first row of a sample beyond it: the variants of a sample should stand together.
    """

    def _items(self, rows: Iterable[Row], bad: BadRows) -> Iterator[Rollout]:
        return AnswersRead(self._interpreter, bad).rollouts(rows, self._limit)


class AnswersRead:
    """The answers of rows, each at its place among those that were read before."""

    def __init__(self, interpreter: RowReader, bad: BadRows) -> None:
        self._interpreter, self._bad = interpreter, bad
        self._variants, self._places = Variants(), Places()

    def rollouts(self, rows: Iterable[Row], limit: int | None) -> Iterator[Rollout]:
        """The answers of further rows, up to the first row of a sample beyond `limit` more."""
        most = None if limit is None else len(self._variants) + limit
        for row in rows:
            try:
                answered = self._interpreter.answered(row.columns)
                if not answered.question.named and answered.response_index is None:
                    answered = answered.named(self._places.claim_content(answered.question.name, row))
                if len(self._variants) == most and not self._variants.knows(answered.question.name):
                    return
                rollouts = self._placed(answered, row)
            except BadRow as problem:
                self._bad.report(row.origin, row.number, str(problem))
                continue
            yield from rollouts

    def _placed(self, answered: Answered, row: Row) -> list[Rollout]:
        question, answers = answered.question, answered.answers
        digest = prompt_digest(question.messages, question.ground_truth)
        place = self._variants.place(question.name, digest, answered.response_index, len(answers), row)
        sample = question.sample(question.name, place.position, row.written)
        return [
            Rollout(sample=sample, response_index=index, turns=turns)
            for index, turns in enumerate(answers, start=place.response_index)
        ]


def _why_empty(bad: BadRows) -> str:
    if bad.count:
        return f"The dataset has no usable row: {bad.count} were skipped, the first one for {bad.reasons[0]}. Fix them."
    return (
        "The dataset is empty: its source has no row, or every row was dropped. Check the path, split and preprocess."
    )
