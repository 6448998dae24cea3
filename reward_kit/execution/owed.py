"""What is already on disk, and what is still owed: worked out before a stage runs, one sample at a time.

Resume, the two phases, growing n and re-scoring are all this one question, asked of the two journals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from reward_kit.datasets import content_digest
from reward_kit.errors import StorageError
from reward_kit.models import Rollout, Sample
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_index import JournalIndex
from reward_kit.storage.journal_lines import Entry, Head, Status
from reward_kit.storage.tables import rollout_from_line
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["Ledger", "Work", "owe_failures_again"]


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
    asked: int | None = None
    """Answers that the samples or rows gone through so far call for; None where there are none but the rollouts."""
    _positions: DigestMap = field(default_factory=DigestMap)

    def position_of(self, head: Head) -> int:
        """Where the sample of a line stands now; rows may have moved since the line was written."""
        return self._positions.get(digest64(head.id), head.position)

    def from_samples(self, samples: Iterable[Sample], n: int) -> Iterator[Work]:
        """What is owed to each sample that is to be answered n times."""
        self.asked = 0
        for sample in samples:
            self.asked += n
            content = content_digest(sample)
            self._refuse_changed(sample, content)
            self._note_position(sample)
            if not self.rollouts.lines:
                yield Work(sample, content, list(range(n)))
                continue
            draws = [draw for draw in range(n) if self._is_owed(self.rollouts.status(sample.id, draw))]
            present = [draw for draw in range(n) if draw not in draws]
            unjudged = [draw for draw in present if self._is_owed(self.results.status(sample.id, draw))]
            whole = self.whole_groups and bool(unjudged or draws)
            rollouts = self._read(sample.id, present if whole else unjudged) if self.scoring else []
            yield Work(sample, content, draws, rollouts, regrouped=whole and not unjudged)

    def from_answers(self, answers: Iterable[Rollout]) -> Iterator[Work]:
        """What is owed to answers that came with the data; rows of a sample that follow each other are a group."""
        self.asked = 0
        for _, group in groupby(answers, key=lambda rollout: rollout.sample.id):
            rollouts = list(group)
            self.asked += len(rollouts)
            sample = rollouts[0].sample
            content = content_digest(sample)
            self._refuse_changed(sample, content)
            self._note_position(sample)
            self._refuse_other_answers(rollouts)
            new = [r for r in rollouts if self.rollouts.status(sample.id, r.response_index) is None]
            yield Work(sample, content, rollouts=self._unjudged(rollouts), new=new)

    def from_rollouts(self) -> Iterator[Work]:
        """What is owed to rollouts already generated, without their dataset."""
        answers = map(rollout_from_line, self.journal.in_order())
        for _, group in groupby(answers, key=lambda rollout: rollout.sample.id):
            rollouts = list(group)
            sample = rollouts[0].sample
            yield Work(sample, content_digest(sample), rollouts=self._unjudged(rollouts))

    def from_given(self, given: Iterable[Rollout]) -> Iterator[Work]:
        """What is owed to rollouts that the caller holds and keeps; neighbours of one sample are a group."""
        for _, group in groupby(given, key=lambda rollout: rollout.sample.id):
            rollouts = list(group)
            sample = rollouts[0].sample
            content = content_digest(sample)
            self._refuse_changed(sample, content, self.results)
            yield Work(sample, content, rollouts=self._unjudged(rollouts))

    @property
    def has_backlog(self) -> bool:
        """Whether there may be rollouts on disk that nobody has judged."""
        return self.scoring and len(self.rollouts) > len(self.results)

    def _read(self, sample_id: str, draws: list[int]) -> list[Rollout]:
        offsets = [self.rollouts.offset(sample_id, draw) for draw in draws]
        return [rollout_from_line(self.journal.line_at(offset)) for offset in offsets if offset is not None]

    def _unjudged(self, rollouts: list[Rollout]) -> list[Rollout]:
        if not self.scoring:
            return []
        owed = [r for r in rollouts if self._is_owed(self.results.status(r.sample.id, r.response_index))]
        return rollouts if owed and self.whole_groups else owed

    def _is_owed(self, status: Status | None) -> bool:
        return status in (None, "retry") or (status == "failed" and self.retry_failed)

    def _note_position(self, sample: Sample) -> None:
        if len(self.rollouts):  # in a fresh run every line says where its sample stands
            self._positions.put(digest64(sample.id), sample.position)

    def _refuse_other_answers(self, rollouts: Iterable[Rollout]) -> None:
        """Answers come from the data here: one that differs from the one that was judged is another answer."""
        for rollout in rollouts:
            offset = self.rollouts.offset(rollout.sample.id, rollout.response_index)
            known = None if offset is None else rollout_from_line(self.journal.line_at(offset)).turns
            if known is not None and known != rollout.turns:
                raise StorageError(
                    f"Answer {rollout.response_index} of sample {rollout.sample.id!r} is not what it was when "
                    f"{str(self.journal.path)!r} was made. Restore the dataset, or choose another `output.output_dir`."
                )

    def _refuse_changed(self, sample: Sample, content: str, known: JournalIndex | None = None) -> None:
        if (self.rollouts if known is None else known).has_other_content(sample.id, content):
            raise StorageError(
                f"Sample {sample.id!r} is not what it was when this run was begun: "
                "its prompt, ground truth or columns changed. "
                "Restore the dataset, or choose another `output.output_dir`."
            )


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
