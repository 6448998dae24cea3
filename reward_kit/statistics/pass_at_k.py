"""pass@k and pass^k: how often at least one, or each, of k answers is right, from n answers to each sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import comb, fsum, inf, sqrt

from reward_kit.statistics.estimate import Estimate
from reward_kit.statistics.proportion import clustered_proportion_interval

__all__ = ["PassAtK", "pass_at_k", "pass_hat_k"]


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

    def add(self, n: int, c: int, times: int = 1) -> None:
        """Count a sample with n judged answers, c of them right; or as many such samples as `times` says."""
        if not 0 <= c <= n:
            raise ValueError(f"{c!r} right answers of {n!r}; expected 0 to {n!r} of them")
        self._counts[n, c] += times

    def estimate(self, k: int) -> Estimate | None:
        """Mean pass@k; None when no sample has k judged answers."""
        return self._mean(k, pass_at_k)

    def estimate_hat(self, k: int) -> Estimate | None:
        """Mean pass^k: how often each of k answers is right."""
        return self._mean(k, pass_hat_k)

    def gain(self, k: int, since: int | None = None) -> Estimate | None:
        """What k answers have over `since` of them (k - 1 unless told), each sample compared with itself."""
        before = k - 1 if since is None else since
        if not 0 <= before < k:
            raise ValueError(f"what {k!r} answers have over {before!r} cannot be told; expected fewer than {k!r}")
        if not before:
            return self.estimate(k)
        return self._mean(k, lambda n, c, k: pass_at_k(n, c, k) - pass_at_k(n, c, before))

    def estimates(self) -> dict[int, Estimate]:
        """Every k for which there is an estimate."""
        found = ((k, self.estimate(k)) for k in range(1, self.k_max + 1))
        return {k: estimate for k, estimate in found if estimate is not None}

    def _mean(self, k: int, value: Callable[[int, int, int], float]) -> Estimate | None:
        """The mean over samples of a value between 0 and 1 that rests on k of a sample's answers."""
        able = [(value(n, c, k), n, times) for (n, c), times in self._counts.items() if n >= k]
        samples = sum(times for _, _, times in able)
        if not samples:
            return None
        mean = min(1.0, fsum(value * times for value, _, times in able) / samples)
        squares = fsum((value - mean) ** 2 * times for value, _, times in able)
        low, high = clustered_proportion_interval(
            mean,
            sqrt(squares / (samples - 1) / samples) if samples > 1 else inf,
            clusters=samples,
            answers=sum(n * times for _, n, times in able),
            minority=min(
                sum(times for value, _, times in able if value > 0), sum(times for value, _, times in able if value < 1)
            ),
        )
        return Estimate(mean, low, high, samples)


def _check(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"n={n!r}, c={c!r}, k={k!r}: c must be between 0 and n, and k between 1 and n")
