"""pass@k and pass^k: how often at least one, or each, of k answers is right, from n answers to each sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import comb, fsum, inf, sqrt

from reward_kit.statistics.estimate import Estimate
from reward_kit.statistics.proportion import clustered_proportion_interval

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
            raise ValueError(f"what {k!r} answers have over {before!r} cannot be told; expected fewer than {k!r}")
        if not before:
            return self.estimate(k)
        return self._mean(k, lambda n, c, k: pass_at_k(n, c, k) - pass_at_k(n, c, before))

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
            self._found[value, k] = self._mean(k, value)
        return self._found[value, k]

    def _mean(self, k: int, value: _Value) -> Estimate | None:
        """The mean over samples of a value between 0 and 1 that rests on k of a sample's answers.

        A sample of n answers holds n / k separate draws of k, which is how soon it shows the rarer outcome.
        """
        able = [(value(n, c, k), n, times) for (n, c), times in self._counts.items() if n >= k]
        samples = sum(times for _, _, times in able)
        if not samples:
            return None
        mean = min(1.0, fsum(value * times for value, _, times in able) / samples)
        squares = fsum((value - mean) ** 2 * times for value, _, times in able)
        sizes: Counter[int] = Counter()
        for _, n, times in able:
            sizes[n] += times
        rare = mean if value is pass_hat_k else 1 - mean
        low, high = clustered_proportion_interval(
            mean,
            sqrt(squares / (samples - 1) / samples) if samples > 1 else inf,
            clusters=samples,
            least_share=fsum(times * _independent_share(n, k, rare) for n, times in sizes.items()) / samples,
            minority=min(
                fsum(min(1.0, value * n / k) * times for value, n, times in able),
                fsum(min(1.0, (1 - value) * n / k) * times for value, n, times in able),
            ),
        )
        return Estimate(mean, low, high, samples)


def _independent_share(n: int, k: int, failing: float) -> float:
    """What the draws of k from n independent answers share, when each of a draw's k answers fails with this chance.

    It is the variance of the mean over all draws, as a share of the variance of a single one: two draws that have j
    answers in common both fail with the chance q ** (2k - j), where q is that of one answer. 1 / n for k = 1, 1 for
    k = n.
    """
    if not 0 < failing < 1:
        return 1.0
    every, q = comb(n, k), failing ** (1 / k)
    common = (comb(k, j) * comb(n - k, k - j) / every * (q ** (k - j) - q**k) for j in range(max(0, 2 * k - n), k + 1))
    return min(1.0, max(0.0, fsum(common)) / (1 - failing))


def _check(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"n={n!r}, c={c!r}, k={k!r}: c must be between 0 and n, and k between 1 and n")
