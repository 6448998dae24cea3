# SPDX-License-Identifier: Apache-2.0
"""pass@k and pass^k: how often at least one, or each, of k answers is right, from n answers to each sample.

The interval is that of a clustered proportion (see `proportion`). Only the share, how far the draws of k answers from
one sample agree, takes more than to look at them: draws of which all k fail may be too rare to say. So it is read off
the single answers first. They say how far they are alike, believed by the samples that show the rarer outcome of one
answer and of k. If the samples' chances then follow a beta distribution, the share of draws of k follows. What the
draws themselves show replaces it, the sooner the more of them show the rarer outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import comb, fsum, sqrt
from typing import NamedTuple

from reward_kit.statistics.estimate import Estimate
from reward_kit.statistics.proportion import belief, proportion_interval

__all__ = ["PassAtK", "ladder", "pass_at_k", "pass_hat_k"]

_ALL_UP_TO = 16
"""So many k are each worth a line; beyond, the curve is told at ever larger steps."""


def ladder(most: int) -> list[int]:
    """Every k while there are few; then about four to each doubling, and the last."""
    ks = list(range(1, min(most, _ALL_UP_TO) + 1))
    step = _ALL_UP_TO // 4
    while ks and ks[-1] < most:
        nearest_power = 1 << (ks[-1].bit_length() - 1)
        step = max(step, nearest_power // 4)
        ks.append(min(most, ks[-1] + step))
    return ks


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that of k answers drawn from n, c of them right, at least one is right: 1 - C(n-c, k) / C(n, k).

    Averaged over samples it is unbiased, which 1 - (1 - c/n)**k is not.
    """
    _check(n, c, k)
    every = comb(n, k)
    return (every - comb(n - c, k)) / every


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The chance that of k answers drawn from n, c of them right, each is right: C(c, k) / C(n, k)."""
    _check(n, c, k)
    return comb(c, k) / comb(n, k)


_Value = Callable[[int, int, int], float]
"""What a sample of n answers, c of them right, says of k answers."""
_Terms = tuple[tuple[int, int], ...]
"""A value but for a constant: each term is the chance that so many answers are all alike, and its sign."""


class PassAtK:
    """The mean of pass@k over samples, for each k up to `k_max`, with intervals.

    A sample counts for k when at least k of its answers were judged. What is kept is how often each (n, c) came, so
    memory does not grow with the samples.

    More answers never make pass@k smaller. So what is known of fewer answers to the same samples binds what is said of
    more: neither end of an interval lies below that of a smaller k (for pass^k: above).
    """

    def __init__(self, k_max: int) -> None:
        """Start with no samples."""
        self.k_max = k_max
        self._counts: Counter[tuple[int, int]] = Counter()
        self._found: dict[tuple[_Value, int], Estimate | None] = {}

    def add(self, n: int, c: int, times: int = 1) -> None:
        """Count a sample with n judged answers, c of them right; or as many such samples as `times` says."""
        if not 0 <= c <= n:
            raise ValueError(f"{c!r} right answers of {n!r}; expected 0 to {n!r} of them")
        self._counts[n, c] += times
        self._found.clear()

    def estimate(self, k: int) -> Estimate | None:
        """Mean pass@k; None when no sample has k judged answers."""
        return self._bound(k, pass_at_k, max)

    def estimate_hat(self, k: int) -> Estimate | None:
        """Mean pass^k: how often each of k answers is right."""
        return self._bound(k, pass_hat_k, min)

    def gain(self, k: int, since: int | None = None) -> Estimate | None:
        """What k answers have over `since` of them (k - 1 unless told), each sample compared with itself."""
        before = k - 1 if since is None else since
        if not 0 <= before < k:
            raise ValueError(f"what {k!r} answers have over {before!r} is not defined; expected fewer than {k!r}")
        if not before:
            return self.estimate(k)
        return self._mean(k, lambda n, c, k: pass_at_k(n, c, k) - pass_at_k(n, c, before), ((before, 1), (k, -1)))

    def estimates(self) -> dict[int, Estimate]:
        """Every k for which there is an estimate."""
        found = ((k, self.estimate(k)) for k in range(1, self.k_max + 1))
        return {k: estimate for k, estimate in found if estimate is not None}

    def _bound(self, k: int, value: _Value, further: Callable[[float, float], float]) -> Estimate | None:
        """The estimate, its interval moved on to where a smaller k of the same samples ends."""
        estimate = self._known(k, value)
        if estimate is None:
            return None
        low, high = estimate.low, estimate.high
        for fewer in ladder(k - 1):
            before = self._known(fewer, value)
            if before is not None and before.count == estimate.count:
                low, high = further(low, before.low), further(high, before.high)
        return Estimate(estimate.value, low, high, estimate.count)

    def _known(self, k: int, value: _Value) -> Estimate | None:
        if (value, k) not in self._found:
            self._found[value, k] = self._mean(k, value, ((k, 1),))
        return self._found[value, k]

    def _mean(self, k: int, value: _Value, terms: _Terms) -> Estimate | None:
        """The mean over samples of a value between 0 and 1 that rests on k of a sample's answers."""
        able = [
            _Group(n, n - c if value is not pass_hat_k else c, value(n, c, k), times)
            for (n, c), times in self._counts.items()
            if n >= k
        ]
        samples = sum(group.times for group in able)
        if not samples:
            return None
        seen = _spread([(group.value, group.times) for group in able])
        share = _share(able, seen, terms) if samples > 1 else 1.0
        return Estimate(seen.mean, *proportion_interval(seen.mean, samples / share), samples)


class _Group(NamedTuple):
    """Samples with the same answers."""

    n: int
    alike: int
    """How many of the answers are of the kind of which a draw has only: wrong, or for pass^k right."""
    value: float
    times: int


class _Spread(NamedTuple):
    """Values between 0 and 1, one per sample."""

    mean: float
    share: float
    """Their variance as a share of the largest that values with this mean can have; 1 where all are 0 or all are 1."""
    showing: int
    """How many show the rarer outcome: are not 0, or are not 1."""
    rarer: float
    """The sum of the values, or of what they lack of 1, whichever is less."""


def _spread(values: list[tuple[float, int]]) -> _Spread:
    samples = sum(times for _, times in values)
    mean = min(1.0, fsum(value * times for value, times in values) / samples)
    share = 1.0
    if 0 < mean < 1 and samples > 1:
        squares = fsum((value - mean) ** 2 * times for value, times in values)
        share = min(1.0, squares / (samples - 1) / (mean * (1 - mean)))
    some = sum(times for value, times in values if value > 0)
    lacking = sum(times for value, times in values if value < 1)
    return _Spread(mean, share, min(some, lacking), samples * min(mean, 1 - mean))


def _share(able: list[_Group], seen: _Spread, terms: _Terms) -> float:
    """How far the draws of k answers from one sample agree."""
    sizes: Counter[int] = Counter()
    for group in able:
        sizes[group.n] += group.times
    samples = sizes.total()
    single = _spread([(group.alike / group.n, group.times) for group in able])
    # What single answers share when they are independent of each other.
    least = fsum(times / n for n, times in sizes.items()) / samples
    share = max(least, single.share)
    share = float(share ** belief(share, sqrt(single.showing * seen.showing)))
    if terms == ((1, 1),) or least == 1:
        return share
    alike = (share - least) / (1 - least)
    expected = _expected_share(sizes, terms, single.mean, alike)
    found = max(seen.share, _expected_share(sizes, terms, single.mean, 0.0))
    # The larger of the two: queries need not follow that distribution, and draws that fail together may be too rare to
    # have been met yet.
    return max(found, expected)


def _expected_share(sizes: Counter[int], terms: _Terms, chance: float, alike: float) -> float:
    """The share, when samples' chances follow the beta distribution with this mean and this correlation of answers."""
    most = max(drawn for drawn, _ in terms)
    together = _all_alike(chance, alike, 2 * most)
    mean = fsum(sign * together[drawn] for drawn, sign in terms)
    most_variance = abs(mean) * (1 - abs(mean))
    if most_variance <= 0:
        return 1.0
    squares = fsum(
        times * one * other * _both_alike(n, first, second, together)
        for n, times in sizes.items()
        for first, one in terms
        for second, other in terms
    )
    return min(1.0, max(0.0, squares / sizes.total() - mean * mean) / most_variance)


def _all_alike(chance: float, alike: float, most: int) -> list[float]:
    """The chance that 0, 1, … `most` answers to one sample are all of a kind that comes with this chance.

    It is that of the beta-binomial distribution.
    """
    chances = [1.0]
    for drawn in range(most):
        free = 1 - alike + drawn * alike
        chances.append(chances[-1] * ((chance * (1 - alike) + drawn * alike) / free if free else chance))
    return chances


def _both_alike(n: int, first: int, second: int, together: list[float]) -> float:
    """The chance that two draws from the same n answers are both all of the kind; they may have answers in common."""
    every = comb(n, second)
    shared = range(max(0, first + second - n), min(first, second) + 1)
    return fsum(
        comb(first, common) * comb(n - first, second - common) / every * together[first + second - common]
        for common in shared
    )


def _check(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"n={n!r}, c={c!r}, k={k!r}: c must be between 0 and n, and k between 1 and n")
