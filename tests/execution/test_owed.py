# SPDX-License-Identifier: Apache-2.0
"""What is owed: each source of work beside what the journals hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.datasets import content_digest, samples_from_rows
from reward_kit.errors import StorageError
from reward_kit.execution.owed import Ledger, RolloutsInHand, RolloutsOnDisk, SamplesToAnswer, Work
from reward_kit.models import EvaluateResult, Failure, Message, Record, Rollout, Sample
from reward_kit.storage.journal import Journal
from reward_kit.storage.line_writer import LineWriter

ROWS = [{"id": f"s{number}", "user_query": f"{number}?", "ground_truth_for_eval": "1"} for number in range(3)]
LATE = Failure(stage="generate", type="ProviderError", message="late", retryable=True)
Key = tuple[str, int]


def samples() -> list[Sample]:
    return list(samples_from_rows(ROWS))


def rollout(sample: Sample, draw: int, failure: Failure | None = None) -> Rollout:
    return Rollout(
        sample=sample, response_index=draw, turns=[Message(role="assistant", content="1")], failure=failure
    )  # fmt: skip


def ledger(home: Path, made: dict[Key, Failure | None], judged: set[Key], *, groups: bool = False) -> Ledger:
    """Of journals that hold these rollouts, and verdicts on these."""
    by_id = {sample.id: sample for sample in samples()}
    (home / "rollouts.jsonl").unlink(missing_ok=True)
    (home / "results.jsonl").unlink(missing_ok=True)
    (home / "samples.jsonl").unlink(missing_ok=True)
    with Journal(home / "rollouts.jsonl") as rollouts, Journal(home / "results.jsonl") as results:
        writer = LineWriter(rollouts.samples)
        for (name, draw), failure in made.items():
            each = rollout(by_id[name], draw, failure)
            content = content_digest(each.sample)
            rollouts.append([writer.rollout_line(each, content)])
            if (name, draw) in judged:
                results.append([writer.result_line(Record.of(each, EvaluateResult(score=1.0)), content)])
    journal = Journal(home / "rollouts.jsonl", read_only=True)
    results = Journal(home / "results.jsonl", read_only=True)
    return Ledger(journal, journal.index(), results.index(), whole_groups=groups, results_journal=results)


def owed(works: list[Work]) -> tuple[set[Key], set[Key]]:
    draws = {(work.sample.id, draw) for work in works for draw in work.draws}
    unjudged = {(work.sample.id, each.response_index) for work in works for each in work.rollouts}
    return draws, unjudged


keys = st.tuples(st.sampled_from(["s0", "s1", "s2"]), st.integers(0, 3))


@settings(max_examples=40, deadline=None)
@given(made=st.dictionaries(keys, st.none() | st.just(LATE), max_size=8), judged=st.sets(keys), n=st.integers(1, 3))
def test_what_is_not_on_disk_is_owed_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, made: dict[Key, Failure | None], judged: set[Key], n: int
) -> None:
    judged = {key for key in judged if key in made and made[key] is None}
    known = ledger(tmp_path_factory.mktemp("run"), made, judged)
    works = list(SamplesToAnswer(samples_from_rows(ROWS), range(n)).works(known))
    wanted = {(f"s{number}", draw) for number in range(3) for draw in range(n)}
    answered = {key for key, failure in made.items() if failure is None}
    draws, unjudged = owed(works)
    assert draws == wanted - answered
    assert unjudged == (wanted & answered) - judged
    assert known.called_for == 3 * n


@settings(max_examples=25, deadline=None)
@given(made=st.sets(keys, max_size=8), judged=st.sets(keys), groups=st.booleans())
def test_rollouts_on_disk_and_in_hand_owe_the_same(
    tmp_path_factory: pytest.TempPathFactory, made: set[Key], judged: set[Key], groups: bool
) -> None:
    home = tmp_path_factory.mktemp("run")
    known = ledger(home, dict.fromkeys(sorted(made)), judged & made, groups=groups)
    by_id = {sample.id: sample for sample in samples()}
    in_hand = RolloutsInHand([rollout(by_id[name], draw) for name, draw in sorted(made)])
    on_disk = RolloutsOnDisk()
    _, unjudged = owed(list(on_disk.works(known)))
    assert unjudged == owed(list(in_hand.works(known)))[1]
    left = made - judged
    touched = {name for name, _ in left}
    assert unjudged == ({key for key in made if key[0] in touched} if groups else left)
    assert on_disk.expected(known) == in_hand.expected(known) == len(made)


def test_a_sample_that_changed_is_refused(tmp_path: Path) -> None:
    known = ledger(tmp_path, {("s0", 0): None}, set())
    changed = [{**ROWS[0], "user_query": "another question"}]
    with pytest.raises(StorageError, match="'s0' has changed since"):
        list(SamplesToAnswer(samples_from_rows(changed), range(1)).works(known))
