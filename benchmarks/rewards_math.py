# SPDX-License-Identifier: Apache-2.0
"""Mathematics: how often the equivalence is right, and how fast, beside math-verify in the same run.

    python -m benchmarks.rewards_math                pairs written for this benchmark
    python -m benchmarks.rewards_math PAIRS.jsonl    labelled pairs: gold, answer, label ("true", "false"), sources

Both sides judge the same pairs, one after the other. Math-verify parses both answers and verifies, with its own
time-outs. Wall-clock time, so that our last resort, another process, counts; our kept verdicts are dropped before.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import Report, Row, as_text
from reward_kit.mathematics import equivalence
from reward_kit.rewards.math import answers_match

__all__ = ["Pair", "main"]

SAMPLE = 150
"""Pairs a source that are timed."""


class Pair(NamedTuple):
    """A right answer, another one, whether they are equal, and where they come from."""

    gold: str
    answer: str
    equal: bool
    source: str


OWN = (
    Pair("72", "72.0", True, "numbers"),
    Pair("1,000", "1000", True, "numbers"),
    Pair("0.75", r"\frac{3}{4}", True, "numbers"),
    Pair("2021", "2022", False, "numbers"),
    Pair("18", "The total is 18 dollars.", True, "numbers"),
    Pair(r"\frac{\sqrt{6}-\sqrt{2}}{2}", r"\sqrt{2-\sqrt{3}}", True, "surds"),
    Pair(r"\frac{\pi}{2}", "pi/2", True, "surds"),
    Pair(r"5\sqrt[3]{4}", r"5 \cdot 2^{2/3}", True, "surds"),
    Pair(r"\frac{1}{2^{99}}", r"\frac{1}{2^{98}}", False, "surds"),
    Pair("(x+1)^2", "x^2+2x+1", True, "formulas"),
    Pair(r"\tan^2 x + 1", r"\sec^2 x", True, "formulas"),
    Pair("2x+4y-3=0", r"y = -\frac{1}{2}x + \frac{3}{4}", True, "formulas"),
    Pair("3x-y+13=0", "3x+4y+14=0", False, "formulas"),
    Pair("(0, 1)", "0 < x < 1", True, "sets"),
    Pair(r"(-\infty, 2) \cup (5, \infty)", r"x < 2 \text{ or } x > 5", True, "sets"),
    Pair("[0, 9)", "(0, 9)", False, "sets"),
    Pair("(1, 2), (3, 4)", "(3, 4), (1, 2)", True, "sets"),
)
"""A few pairs of each kind."""


def main(*, quick: bool = False, path: str | None = None) -> Report:
    """Judge, compare with the labels, and time both."""
    pairs = list(_read(Path(path))) if path is not None else list(OWN)
    rows = [*_accuracy(pairs), *_speed(_sampled(pairs, 10 if quick else SAMPLE))]
    return Report("rewards_math", "how right and how fast is answers_match?", rows)


def _read(path: Path) -> Iterable[Pair]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["label"] in ("true", "false"):
                for source in row["sources"]:
                    yield Pair(row["gold"], row["answer"], row["label"] == "true", source)


def _accuracy(pairs: list[Pair]) -> list[Row]:
    unique = {(pair.gold, pair.answer): pair.equal for pair in pairs}
    verdicts = [(answers_match(*pair), equal) for pair, equal in unique.items()]
    right = sum(verdict is True and equal for verdict, equal in verdicts)
    wrong = sum(verdict is True and not equal for verdict, equal in verdicts)
    wanted = sum(equal for _, equal in verdicts)
    unknown = sum(verdict is None for verdict, _ in verdicts)
    recall, precision = right / max(1, wanted), right / max(1, right + wrong)
    return [
        Row("recall", recall, f"{right} of {wanted} equal pairs", at_least=0.97, unit=""),
        Row("precision", precision, f"{wrong} pairs called equal against the label", at_least=0.998, unit=""),
        Row("not judged", unknown / len(verdicts), f"{unknown} of {len(verdicts)}", unit=""),
    ]


def _sampled(pairs: list[Pair], count: int) -> dict[str, list[Pair]]:
    by_source: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_source[pair.source].append(pair)
    draw = random.Random(0)
    return {source: draw.sample(found, min(count, len(found))) for source, found in sorted(by_source.items())}


def _speed(by_source: dict[str, list[Pair]]) -> list[Row]:
    verify = _math_verify()
    answers_match("1", r"\int_0^1 2x dx")  # whatever is loaded at first use is not what a pair costs
    rows, ratios = [], []
    for source, pairs in by_source.items():
        equivalence.forget()
        ours = _seconds(lambda pair: answers_match(pair.gold, pair.answer), pairs)
        theirs = _seconds(lambda pair: verify(pair.gold, pair.answer), pairs)
        ratios.append(theirs / ours)
        told = f"{1e6 * ours / len(pairs):.0f} µs against {1e3 * theirs / len(pairs):.1f} ms, {len(pairs)} pairs"
        rows.append(Row(f"speed on {source}", theirs / ours, told, at_least=3))
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return [*rows, Row("speed, geometric mean", mean, f"{len(ratios)} sources", at_least=10)]


def _seconds(judge: Callable[[Pair], object], pairs: list[Pair]) -> float:
    start = time.perf_counter()
    for pair in pairs:
        judge(pair)
    return time.perf_counter() - start


def _math_verify() -> Callable[[str, str], Any]:
    import math_verify

    def judge(gold: str, answer: str) -> Any:
        sides = [math_verify.parse(f"\\boxed{{{text}}}", parsing_timeout=5) for text in (gold, answer)]
        return math_verify.verify(*sides, timeout_seconds=5)

    judge("1", "1")
    return judge


if __name__ == "__main__":
    print(as_text(main(path=sys.argv[1] if len(sys.argv) > 1 else None)))
