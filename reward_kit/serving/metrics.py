# SPDX-License-Identifier: Apache-2.0
"""Figures of a server as Prometheus reads them: requests, latency, what waits, failures by kind, scores.

Every label comes from a closed set (routes, rewards, statuses, kinds of failure), so that no caller can grow them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from reward_kit.models import Failure, Verdict

__all__ = ["CONTENT_TYPE", "Gauge", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_SCORES = (-1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
_MOST_KINDS = 100


class Gauge(NamedTuple):
    """A figure that is looked up when somebody asks."""

    name: str
    help: str
    values: Callable[[], Iterable[tuple[str, float]]]
    """Pairs of labels, such as `reward="math"`, and value."""


class _Histogram:
    """How many values are below each of some bounds."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str, labels: str) -> Iterable[str]:
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{labels},le="{bound}"}} {total}'
        yield f"{name}_sum{{{labels}}} {self._sum!r}"
        yield f"{name}_count{{{labels}}} {total}"


class Metrics:
    """What has happened so far."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, _Histogram] = {}
        self._refused: Counter[str] = Counter()
        self._judged: Counter[str] = Counter()
        self._failures: Counter[tuple[str, str]] = Counter()
        self._scores: dict[str, _Histogram] = {}
        self._bytes_in = self._bytes_out = 0
        self.gauges: list[Gauge] = []

    def request(self, method: str, route: str, status: int, seconds: float, size_in: int, size_out: int) -> None:
        """A request was answered."""
        self._requests[method, route, status] += 1
        histogram = self._seconds.get(route)
        if histogram is None:
            histogram = self._seconds[route] = _Histogram(_SECONDS)
        histogram.add(seconds)
        self._bytes_in += size_in
        self._bytes_out += size_out

    def refused(self, kind: str) -> None:
        """A request was not served."""
        self._refused[kind] += 1

    def judged(self, reward: str, verdicts: Sequence[Verdict]) -> int:
        """Verdicts were given; how many of them are failures."""
        failures = 0
        scores = self._scores.get(reward)
        if scores is None:
            scores = self._scores[reward] = _Histogram(_SCORES)
        for verdict in verdicts:
            if isinstance(verdict, Failure):
                failures += 1
                kind = verdict.type if len(self._failures) < _MOST_KINDS else "other"
                self._failures[reward, kind] += 1
            else:
                scores.add(verdict.score)
        self._judged[reward] += len(verdicts)
        return failures

    def text(self) -> str:
        """Everything, in Prometheus' text format."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterable[str]:
        name = "reward_kit_requests_total"
        yield from _head(name, "counter", "Requests answered.")
        for (method, route, status), count in self._requests.items():
            yield f'{name}{{method="{method}",route="{route}",status="{status}"}} {count}'
        name = "reward_kit_request_seconds"
        yield from _head(name, "histogram", "Seconds from the first to the last byte of handling a request.")
        for route, histogram in self._seconds.items():
            yield from histogram.lines(name, f'route="{route}"')
        name = "reward_kit_refused_total"
        yield from _head(name, "counter", "Requests not served, by kind.")
        yield from (f'{name}{{kind="{kind}"}} {count}' for kind, count in self._refused.items())
        name = "reward_kit_answers_total"
        yield from _head(name, "counter", "Answers judged, failures included.")
        yield from (f'{name}{{reward="{reward}"}} {count}' for reward, count in self._judged.items())
        name = "reward_kit_failures_total"
        yield from _head(name, "counter", "Answers that could not be judged, by type of failure.")
        for (reward, kind), count in self._failures.items():
            yield f'{name}{{reward="{reward}",type="{kind}"}} {count}'
        name = "reward_kit_score"
        yield from _head(name, "histogram", "Scores that were given.")
        for reward, histogram in self._scores.items():
            yield from histogram.lines(name, f'reward="{reward}"')
        for name, size in (("received", self._bytes_in), ("sent", self._bytes_out)):
            yield from _head(f"reward_kit_{name}_bytes_total", "counter", f"Bytes of bodies {name}.")
            yield f"reward_kit_{name}_bytes_total {size}"
        for gauge in self.gauges:
            yield from _head(gauge.name, "gauge", gauge.help)
            for labels, value in gauge.values():
                yield f"{gauge.name}{f'{{{labels}}}' if labels else ''} {value:g}"


def _head(name: str, kind: str, text: str) -> Iterable[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
