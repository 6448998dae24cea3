# SPDX-License-Identifier: Apache-2.0
"""How often the intervals of `reward-kit review` hold the truth, for records drawn at random and with preference.

    python -m benchmarks.review_coverage [REPETITIONS]

Verdicts are simulated: samples of four answers, of which some are contested; faults are likelier there, and come
together in a sample. Records are drawn as the program draws them, one after another from those that are left. Each line
is a setting with the share of repetitions in which the 95 % interval held the value of all records.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass

from reward_kit.statistics import DrawnItem, Estimate, agreement_beyond_chance, draw_weights, weighted_rate

N = 4
LIKELIER = 5.0
"""Faults are so much likelier among records with a sign of doubt."""


@dataclass(frozen=True, slots=True)
class Setting:
    samples: int
    drawn: int
    floor: float
    """How often a draw is from all records; 1: always."""
    faults: float
    """The share of passes that are wrong; half as many failures are."""
    passes: float = 0.6


@dataclass(frozen=True, slots=True)
class Record:
    sample: int
    passed: bool
    human: bool
    group: int
    """0: without a sign of doubt."""


def population(setting: Setting, lot: random.Random) -> list[Record]:
    records = []
    for sample in range(setting.samples):
        ability = lot.betavariate(1.2, 1.2 * (1 - setting.passes) / setting.passes)
        verdicts = [lot.random() < ability for _ in range(N)]
        contested = any(verdicts) and not all(verdicts)
        trouble = lot.gammavariate(0.5, 2.0)
        for passed in verdicts:
            group = 2 if lot.random() < 0.02 else 1 if contested else 0
            rate = setting.faults * (1.0 if passed else 0.5) * trouble * (LIKELIER if group else 1.0) / 2
            records.append(Record(sample, passed, passed ^ (lot.random() < rate), group))
    return records


def draw(records: list[Record], setting: Setting, lot: random.Random) -> list[tuple[Record, float, int]]:
    """Drawn as `reward_kit.viewer.reviewing.choosing` does it."""
    left: dict[int, list[Record]] = {}
    for record in records:
        left.setdefault(record.group, []).append(record)
    found = []
    for made in range(min(setting.drawn, len(records))):
        pool = len(records) - made
        groups = [group for group, members in left.items() if group and members]
        floor = setting.floor if groups else 1.0
        group = (
            lot.choices(list(left), [len(members) for members in left.values()])[0]
            if lot.random() < floor
            else lot.choice(groups)
        )
        members = left[group]
        probability = floor / pool + ((1 - floor) / (len(groups) * len(members)) if group else 0.0)
        place = lot.randrange(len(members))
        members[place], members[-1] = members[-1], members[place]
        found.append((members.pop(), probability, pool))
    return found


def rates(items: list[DrawnItem]) -> dict[str, Estimate | None]:
    return {
        "right": weighted_rate((item.cluster, item.weight, item.first is item.second) for item in items),
        "precision": weighted_rate((item.cluster, item.weight, item.second) for item in items if item.first),
        "recall": weighted_rate((item.cluster, item.weight, item.first) for item in items if item.second),
        "kappa": agreement_beyond_chance(items),
    }


def covered(setting: Setting, *, repetitions: int, lot: random.Random) -> dict[str, float]:
    """The share of repetitions in which each interval holds the value of all records; of those that have one."""
    held: Counter[str] = Counter()
    known: Counter[str] = Counter()
    for _ in range(repetitions):
        records = population(setting, lot)
        truth = rates([DrawnItem(record.sample, 1.0, record.passed, record.human) for record in records])
        drawn = draw(records, setting, lot)
        weights = draw_weights([(probability, pool) for _, probability, pool in drawn], len(records))
        items = [
            DrawnItem(record.sample, weight, record.passed, record.human)
            for (record, _, _), weight in zip(drawn, weights, strict=True)
        ]
        for name, found in rates(items).items():
            value = truth[name]
            if found is not None and value is not None:
                known[name] += 1
                held[name] += found.low - 1e-12 <= value.value <= found.high + 1e-12
    return {name: held[name] / known[name] for name in known}


def main(repetitions: int = 400) -> None:
    print("| samples | drawn | floor | faults | passes | right | precision | recall | kappa |")
    print("|---|---|---|---|---|---|---|---|---|")
    lot = random.Random(0)
    for samples in (100, 2_000):
        for drawn in (10, 30, 100, 300):
            for floor in (1.0, 0.3):
                for faults, passes in ((0.0, 0.6), (0.01, 0.6), (0.1, 0.6), (0.3, 0.6), (0.1, 0.1)):
                    setting = Setting(samples, drawn, floor, faults, passes)
                    found = covered(setting, repetitions=repetitions, lot=lot)
                    cells = [f"{found[name]:.3f}" for name in ("right", "precision", "recall", "kappa")]
                    print(f"| {samples} | {drawn} | {floor} | {faults} | {passes} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
