"""pass@k and pass^k: how often at least one, or each, of k answers is right, from n answers to each sample."""

from __future__ import annotations

from collections import Counter
from math import comb, fsum, sqrt

from reward_kit.statistics.estimate import Estimate, Interval
from reward_kit.statistics.proportion import wilson_interval
from reward_kit.statistics.quantiles import student_t_quantile

__all__ = ["PassAtK", "pass_at_k", "pass_hat_k"]

_ROUNDING = 1e-12
"""A variance of values between 0 and 1 that is zero but for rounding."""


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


class PassAtK:
    """The mean of pass@k over samples, for each k up to `k_max`, with intervals.

    A sample counts for k when at least k of its answers were judged. What is kept is how often each (n, c) came, so
    memory does not grow with the samples.
    """

    def __init__(self, k_max: int) -> None:
        """Start with no samples."""
        self.k_max = k_max
        self._counts: Counter[tuple[int, int]] = Counter()

    def add(self, n: int, c: int) -> None:
        """Count a sample with n judged answers, c of them right."""
        if not 0 <= c <= n:
            raise ValueError(f"{c!r} right answers of {n!r}; expected 0 to {n!r} of them")
        self._counts[n, c] += 1

    def estimate(self, k: int) -> Estimate | None:
        """Mean pass@k; None when no sample has k judged answers."""
        values = [(pass_at_k(n, c, k), times) for (n, c), times in self._counts.items() if n >= k]
        samples = sum(times for _, times in values)
        if not samples:
            return None
        mean = fsum(value * times for value, times in values) / samples
        squares = fsum((value - mean) ** 2 * times for value, times in values)
        low, high = _interval(min(1.0, mean), squares, samples)
        return Estimate(min(1.0, mean), low, high, samples)

    def estimates(self) -> dict[int, Estimate]:
        """Every k for which there is an estimate."""
        found = ((k, self.estimate(k)) for k in range(1, self.k_max + 1))
        return {k: estimate for k, estimate in found if estimate is not None}


def _interval(mean: float, squares: float, samples: int) -> Interval:
    """Student's interval over samples; Wilson's where the samples do not differ, or there is only one."""
    if samples == 1 or squares <= _ROUNDING * samples:
        return wilson_interval(mean * samples, samples)
    reach = student_t_quantile(0.975, samples - 1) * sqrt(squares / (samples - 1) / samples)
    return Interval(max(0.0, mean - reach), min(1.0, mean + reach))


def _check(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"n={n!r}, c={c!r}, k={k!r}: c must be between 0 and n, and k between 1 and n")
