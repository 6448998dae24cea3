# SPDX-License-Identifier: Apache-2.0
"""What is already on disk, and what is missing: worked out before a stage runs, one sample at a time.

    Workload    where work comes from: samples, answers that came with the data, rollouts on disk or in hand
    Ledger      what the two journals hold
    Work        one sample with what it still needs

Resume, the two phases, growing n and re-scoring are all this one question, asked of the two journals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby, takewhile
from typing import TypedDict

from reward_kit.config_models import DatasetConfig, PipelineConfig
from reward_kit.datasets import (
    RolloutStream,
    SampleStream,
    content_digest,
    load_rollouts,
    load_samples,
    rollouts_from_rows,
    samples_from_rows,
)
from reward_kit.datasets.sources import Given
from reward_kit.datasets.truth_columns import without_truth
from reward_kit.errors import ConfigError, StorageError
from reward_kit.execution.result import Phase
from reward_kit.models import Rollout, Sample
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_index import JournalIndex
from reward_kit.storage.journal_lines import Entry, Head, Status, content_in
from reward_kit.storage.tables import rollout_from_line
from reward_kit.stores.addresses import is_stored
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = [
    "AnswersInTheData", "Ledger", "RolloutsInHand", "RolloutsOnDisk", "SamplesToAnswer", "Work", "Workload",
    "open_workload", "owe_failures_again",
]  # fmt: skip


@dataclass(slots=True)
class Work:
    """One sample with what it still needs: draws to generate, and rollouts to score."""

    sample: Sample
    content: str
    """The digest of the sample's content."""
    draws: list[int] = field(default_factory=list)
    """Draws that must be generated."""
    rollouts: list[Rollout] = field(default_factory=list)
    """Rollouts that must be scored; the generate stage adds what it draws."""
    new: list[Rollout] = field(default_factory=list)
    """Rollouts that came with the data and are not in the journal yet."""
    retold: list[Rollout] = field(default_factory=list)
    """Rollouts that are in the journal with another ground truth of their sample, and are written again with this."""
    before: dict[int, Rollout] = field(default_factory=dict)
    """What earlier entries made of the draws, in vain."""
    regrouped: bool = False
    """The rollouts are judged already, and are to be judged again only together with the draws."""


@dataclass
class Ledger:
    """What the two journals held when the run was entered."""

    journal: Journal
    """The rollouts, to read back those that are to be scored."""
    rollouts: JournalIndex
    results: JournalIndex
    whole_groups: bool = False
    """The reward judges all rollouts of a sample together: when one is owed, all are."""
    retry_failed: bool = False
    """Owe failures that are not expected to mend, too; a run that is entered notes that in its journals instead."""
    scoring: bool = True
    """False when only rollouts are wanted."""
    called_for: int | None = None
    """Answers that the samples or rows gone through so far call for; None where there are none but the rollouts."""
    results_journal: Journal | None = None
    """The results, to look up their samples; None where a second file has samples of its own, which are judged."""
    lost_samples: bool = False
    """Samples are lost that the rollouts name, and are written again as they come by."""
    _positions: DigestMap = field(default_factory=DigestMap)

    def position_of(self, head: Head) -> int:
        """Where the sample of a line stands now; rows may have moved since the line was written."""
        return self._positions.get(digest64(head.id), head.position)

    @property
    def has_backlog(self) -> bool:
        """Whether there may be rollouts on disk that nobody has judged."""
        return self.scoring and len(self.rollouts) > len(self.results)

    @property
    def has_verdicts(self) -> bool:
        """Whether anything was judged already."""
        return any(entry.status == "ok" for entry in self.results.entries())

    def read(self, sample_id: str, draws: list[int]) -> list[Rollout]:
        """These rollouts of a sample, from the journal."""
        offsets = [self.rollouts.offset(sample_id, draw) for draw in draws]
        return [self.rollout(self.journal.line_at(offset)) for offset in offsets if offset is not None]

    def rollout(self, line: bytes) -> Rollout:
        """The rollout that a line of the journal holds."""
        return rollout_from_line(line, self.journal.samples)

    def known(self, sample_id: str, draw: int) -> Rollout | None:
        """A rollout of an earlier entry of the run, where there is one."""
        return next(iter(self.read(sample_id, [draw])), None)

    def unjudged(self, rollouts: list[Rollout], content: str) -> list[Rollout]:
        """Those of a sample's rollouts that must be judged; all of them where they are judged together."""
        if not self.scoring:
            return []
        owed = [r for r in rollouts if self.is_owed(self.judged(r.sample.id, r.response_index, content))]
        return rollouts if owed and self.whole_groups else owed

    def judged(self, sample_id: str, draw: int, content: str) -> Status | None:
        """How judging a rollout went; None where it was not judged, or as one of a sample with other content."""
        status = self.results.status(sample_id, draw)
        if status is None or self.results_journal is None or not self.results.has_other_content(sample_id, content):
            return status
        offset = self.results.offset(sample_id, draw)
        line = b"" if offset is None else self.results_journal.line_at(offset)
        return status if content_in(line) == content else None

    def retold(self, sample: Sample, content: str, asked: Iterable[int], truths: Collection[str]) -> list[Rollout]:
        """The rollouts on disk of this sample with another ground truth, as rollouts of the sample as it is now.

        They are kept, and judged again. `truths` are the columns that the config names as those with the ground truth.
        A sample that differs in anything else is refused.
        """
        if not self.rollouts.has_other_content(sample.id, content):
            return []
        behind = takewhile(lambda draw: self.rollouts.offset(sample.id, draw) is not None, count())
        stale = [r for r in self.read(sample.id, sorted({*asked, *behind})) if content_digest(r.sample) != content]
        if any(not _differs_in_truth_alone(rollout.sample, sample, truths) for rollout in stale):
            self.refuse_changed(sample, content)
        return [rollout.model_copy(update={"sample": sample}) for rollout in stale]

    def is_owed(self, status: Status | None) -> bool:
        """Whether what is on disk with this status, or is not there, must be made (again)."""
        return status in (None, "retry") or (status == "failed" and self.retry_failed)

    def note_position(self, sample: Sample) -> None:
        """Remember where a sample stands now."""
        if len(self.rollouts):  # in a fresh run every line says where its sample stands
            self._positions.put(digest64(sample.id), sample.position)
        if self.lost_samples:
            self.journal.samples.keep(sample)

    def refuse_other_answers(self, rollouts: Iterable[Rollout]) -> None:
        """Answers come from the data here: one that differs from the one that was judged is another answer."""
        for rollout in rollouts:
            offset = self.rollouts.offset(rollout.sample.id, rollout.response_index)
            known = None if offset is None else self.rollout(self.journal.line_at(offset)).turns
            if known is not None and known != rollout.turns:
                raise StorageError(
                    f"Answer {rollout.response_index} of sample {rollout.sample.id!r} has changed since "
                    f"{str(self.journal.path)!r} was made. Restore the dataset, or choose another `output.output_dir`."
                )

    def refuse_changed(self, sample: Sample, content: str, known: JournalIndex | None = None) -> None:
        """Stop at a sample that is not what the rollouts (or what else is `known`) were made from."""
        if (self.rollouts if known is None else known).has_other_content(sample.id, content):
            raise StorageError(
                f"Sample {sample.id!r} has changed since this run was started: its prompt, tools or columns are "
                "different. Restore the dataset, or choose another `output.output_dir`."
            )


# ── where work comes from ────────────────────────────────────────────────────────────────────────────────────────────


class Workload(ABC):
    """All that a run may have to do."""

    needs_model: bool = False
    """Whether answers still have to be generated."""
    blocking: bool = False
    """Whether reading may wait for the network."""
    fingerprint: str | None = None
    """Identifies the content, where that is cheap to know."""

    look: Callable[[Iterator[Work]], Iterator[Work]] = iter
    """What sees the works first: a run looks at its first rows before it asks anything."""

    def works(self, ledger: Ledger) -> Iterator[Work]:
        """What is owed, sample by sample."""
        return self.look(self._owed(ledger))

    @abstractmethod
    def _owed(self, ledger: Ledger) -> Iterator[Work]:
        """What is owed, sample by sample."""

    @abstractmethod
    def expected(self, ledger: Ledger) -> int | None:
        """How many rollouts there will be in the end, where that is cheap to know."""

    def keep_former_ids(self) -> None:  # noqa: B027 - only rows without an id of their own are named
        """Name rows as they were named when the directory was begun: after their ground truth, too."""

    @property
    def formats(self) -> dict[str, str]:
        """The shapes of rows that were recognised so far, and what each means."""
        return {}

    @property
    def skipped(self) -> int:
        """How many rows could not be read and were skipped, as asked."""
        return 0


class SamplesToAnswer(Workload):
    """Samples, each to be answered n times."""

    needs_model = True

    def __init__(self, samples: SampleStream, draws: Sequence[int], *, blocking: bool = False) -> None:
        """Have each of `samples` answered once for each of `draws`."""
        self._samples, self._draws, self.blocking = samples, draws, blocking
        self.fingerprint = samples.fingerprint()

    def _owed(self, ledger: Ledger) -> Iterator[Work]:
        asked, ledger.called_for = self._draws, 0
        for sample in self._samples:
            ledger.called_for += len(asked)
            content = content_digest(sample)
            ledger.note_position(sample)
            if not ledger.rollouts.lines:
                yield Work(sample, content, [*asked])
                continue
            retold = ledger.retold(sample, content, asked, self._samples.truth_columns)
            draws = [draw for draw in asked if ledger.is_owed(ledger.rollouts.status(sample.id, draw))]
            failed = [draw for draw in draws if ledger.rollouts.status(sample.id, draw) is not None]
            before = {rollout.response_index: rollout for rollout in ledger.read(sample.id, failed)}
            present = [draw for draw in asked if draw not in draws]
            beyond = [r.response_index for r in retold if r.response_index not in asked]
            unjudged = [d for d in (*present, *beyond) if ledger.is_owed(ledger.judged(sample.id, d, content))]
            whole = ledger.whole_groups and bool(unjudged or draws)
            rollouts = ledger.read(sample.id, [*present, *beyond] if whole else unjudged) if ledger.scoring else []
            now = {rollout.response_index: rollout for rollout in retold}
            rollouts = [now.get(rollout.response_index, rollout) for rollout in rollouts]
            kept = [rollout for rollout in retold if rollout.response_index not in draws]
            regrouped = whole and not unjudged
            yield Work(sample, content, draws, rollouts, retold=kept, before=before, regrouped=regrouped)

    def expected(self, ledger: Ledger) -> int | None:
        """How many records there will be: n for each sample; None where samples cannot be counted beforehand."""
        rows = self._samples.size_hint()
        return None if rows is None else rows * len(self._draws)

    def keep_former_ids(self) -> None:
        """Name rows as they were named when the directory was begun."""
        self._samples.former_ids = True

    @property
    def skipped(self) -> int:
        """How many rows could not be read."""
        return self._samples.skipped

    @property
    def formats(self) -> dict[str, str]:
        """As the stream of rows met them."""
        return self._samples.formats


class AnswersInTheData(Workload):
    """Answers that came with the data; rows of a sample that follow each other are a group."""

    def __init__(self, answers: RolloutStream, *, blocking: bool = False) -> None:
        """Take the stream of answers that are to be judged; `blocking` where reading it means waiting."""
        self._answers, self.blocking = answers, blocking
        self.fingerprint = answers.fingerprint()

    def _owed(self, ledger: Ledger) -> Iterator[Work]:
        ledger.called_for = 0
        for rollouts in _by_sample(self._answers):
            ledger.called_for += len(rollouts)
            sample = rollouts[0].sample
            content = content_digest(sample)
            asked = [rollout.response_index for rollout in rollouts]
            for rollout in rollouts:
                ledger.note_position(rollout.sample)
            retold = ledger.retold(sample, content, asked, self._answers.truth_columns)
            ledger.refuse_other_answers(rollouts)
            new = [r for r in rollouts if ledger.rollouts.status(sample.id, r.response_index) is None]
            yield Work(sample, content, rollouts=ledger.unjudged(rollouts, content), new=new, retold=retold)

    def expected(self, ledger: Ledger) -> int | None:
        """How many records there will be: one for each row; None where rows cannot be counted beforehand."""
        return self._answers.size_hint()

    def keep_former_ids(self) -> None:
        """Name rows as they were named when the directory was begun."""
        self._answers.former_ids = True

    @property
    def skipped(self) -> int:
        """How many rows could not be read."""
        return self._answers.skipped

    @property
    def formats(self) -> dict[str, str]:
        """As the stream of rows met them."""
        return self._answers.formats


class RolloutsOnDisk(Workload):
    """Rollouts already generated, without their dataset."""

    def _owed(self, ledger: Ledger) -> Iterator[Work]:
        for rollouts in _by_sample(map(ledger.rollout, ledger.journal.in_order())):
            sample = rollouts[0].sample
            content = content_digest(sample)
            yield Work(sample, content, rollouts=ledger.unjudged(rollouts, content))

    def expected(self, ledger: Ledger) -> int | None:
        """How many records there will be: one for each rollout on disk."""
        return len(ledger.rollouts)


class UnjudgedOnDisk(Workload):
    """Rollouts of a finished run that have lost their results. Nothing but these is read, least of all the dataset."""

    def _owed(self, ledger: Ledger) -> Iterator[Work]:
        """The rollouts must be in order, and each judged by itself."""
        results = ledger.rollouts.statuses_in(ledger.results)
        lines = zip(ledger.rollouts.entries(), results, strict=True)
        owed = (entry.offset for entry, result in lines if ledger.is_owed(result))
        for rollouts in _by_sample(ledger.rollout(ledger.journal.line_at(offset)) for offset in owed):
            sample = rollouts[0].sample
            yield Work(sample, content_digest(sample), rollouts=rollouts)

    def expected(self, ledger: Ledger) -> int | None:
        """How many records there will be: one for each rollout on disk."""
        return len(ledger.rollouts)

    @staticmethod
    def suits(ledger: Ledger) -> bool:
        """Whether what is owed can be told line by line: no answer is owed again, no group is judged together."""
        index = ledger.rollouts
        if not ledger.scoring or ledger.whole_groups or not index.is_in_order:
            return False
        return not any(ledger.is_owed(entry.status) for entry in index.entries())


class RolloutsInHand(Workload):
    """Rollouts that the caller holds and keeps; neighbours of one sample are a group."""

    def __init__(self, rollouts: Collection[Rollout]) -> None:
        """Take the rollouts that are to be judged."""
        self._rollouts = rollouts

    def _owed(self, ledger: Ledger) -> Iterator[Work]:
        for rollouts in _by_sample(self._rollouts):
            sample = rollouts[0].sample
            content = content_digest(sample)
            ledger.refuse_changed(sample, content, ledger.results)
            yield Work(sample, content, rollouts=ledger.unjudged(rollouts, content))

    def expected(self, ledger: Ledger) -> int | None:
        """How many records there will be: one for each rollout that was given."""
        return len(self._rollouts)


def open_workload(
    config: PipelineConfig,
    phase: Phase,
    samples: Iterable[Given] | RolloutStream | None,
    rollouts: Collection[Rollout] | None = None,
) -> Workload:
    """The work a run's config and phase call for. Nothing is read yet."""
    if phase == "execution":
        return RolloutsOnDisk() if rollouts is None else RolloutsInHand(rollouts)
    stream, blocking = _stream(config, samples), _is_remote(config.dataset)
    if isinstance(stream, RolloutStream):
        return AnswersInTheData(stream, blocking=blocking)
    return SamplesToAnswer(stream, config.draws, blocking=blocking)


def _stream(config: PipelineConfig, samples: Iterable[Given] | RolloutStream | None) -> SampleStream | RolloutStream:
    """What is to be answered; or, with generation disabled, the answers that are there."""
    stream = _stream_of(config, samples)
    return stream.let_worlds_open() if config.agent is not None else stream


def _stream_of(config: PipelineConfig, samples: Iterable[Given] | RolloutStream | None) -> SampleStream | RolloutStream:
    if isinstance(samples, SampleStream | RolloutStream):
        return samples
    enabled, options = (
        config.generation.enabled,
        _LoadOptions(system_prompt=config.system_prompt, limit=config.sample_limit),
    )
    if samples is not None:
        read = samples_from_rows if enabled else rollouts_from_rows
        return read(samples, **options) if config.dataset is None else read(samples, **options, settings=config.dataset)
    if config.dataset is None:
        raise ConfigError("No dataset is configured. Set `dataset.path_or_name` to a file or a Hugging Face name.")
    load = load_samples if enabled else load_rollouts
    return load(config.dataset, **options)


class _LoadOptions(TypedDict):
    """What a run tells whoever reads its rows."""

    system_prompt: str | None
    limit: int | None


def _differs_in_truth_alone(one: Sample, other: Sample, truths: Collection[str]) -> bool:
    rest, now = (without_truth(sample.columns, truths) for sample in (one, other))
    return (one.messages, one.tools, rest) == (other.messages, other.tools, now)


def _by_sample(rollouts: Iterable[Rollout]) -> Iterator[list[Rollout]]:
    for _, group in groupby(rollouts, key=lambda rollout: rollout.sample.id):
        yield list(group)


def _is_remote(dataset: DatasetConfig | None) -> bool:
    if dataset is None:
        return False
    if dataset.source_type == "huggingface" or is_stored(dataset.path_or_name):
        return True
    return _is_remote(dataset.base_dataset)


# ── owing again ──────────────────────────────────────────────────────────────────────────────────────────────────────


def owe_failures_again(journal: Journal) -> None:
    """Note in the journal that its failures are to be tried again, so that this holds however the run ends.

    What was tried again before a crash is not tried a third time, and what was not needs no word from anybody.
    """
    index = journal.index()
    failed: dict[tuple[str, int], Entry] = {}
    for entry in journal.entries():
        key = entry.head.id, entry.head.response_index
        if entry.head.status == "failed" and index.status(*key) == "failed":
            failed[key] = Entry(entry.head._replace(status="retry"), entry.body)
    if failed:
        journal.append(list(failed.values()))
