"""What each trick of `docs/performance.md` brings: whole runs with and without it, in turns, by processor time.

    python -m benchmarks.tricks                  all of them, some minutes
    python -m benchmarks.tricks raw_exchange     only these; --pairs N for how many runs of each

A trick is turned off by putting the plain way in its place. Figures are microseconds of processor time per record of
this process, and how many times as much a record costs without the trick, with a 95 % interval of the median. Where
the interval holds 1, the trick brings nothing that can be seen in a whole run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

from benchmarks import scene
from benchmarks.scene import Workshop, mock_server, remote, timed_run, workshop
from reward_kit.datasets import interpret
from reward_kit.generation import play, wire
from reward_kit.generation.http import transport
from reward_kit.models import Completion, Message, Rollout, Sample
from reward_kit.utils import event_loop
from reward_kit.utils import trusted as trusted_values
from reward_kit.utils.batcher import Batcher

__all__ = ["TRICKS", "main"]

PROMPTS = 3_000
PAIRS = 12
CONCURRENCY = 64


# ── the plain ways ───────────────────────────────────────────────────────────────────────────────────────────────────


def _sessions() -> contextlib.AbstractContextManager[Any]:
    return patch.object(transport.Transport, "_raw_exchange", lambda _: None)


@contextlib.contextmanager
def _checked_values() -> Iterator[None]:
    with contextlib.ExitStack() as patched:
        for module, name, kind in (
            (wire, "_completion", Completion),
            (play, "_answered", Rollout),
            (interpret, "_sample", Sample),
            (trusted_values, "_text_message", Message),
        ):
            patched.enter_context(patch.object(module, name, kind))
        yield


class _TimerEach:
    """A timer set for each call and cancelled when it ends."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timers: dict[asyncio.Task[Any], asyncio.TimerHandle] = {}

    def begin(self, task: asyncio.Task[Any]) -> None:
        self._timers[task] = task.get_loop().call_later(self._seconds, task.cancel)

    def end(self, task: asyncio.Task[Any]) -> None:
        self._timers.pop(task).cancel()

    def was_missed_by(self, task: asyncio.Task[Any]) -> bool:
        return False

    def stop(self) -> None:
        """Each call stops its own."""


def _a_timer_each() -> contextlib.AbstractContextManager[Any]:
    return patch.object(transport, "Deadlines", _TimerEach)


def _a_write_each() -> contextlib.AbstractContextManager[Any]:
    return patch.object(Batcher, "_flush_at_the_end_of_this_turn", Batcher.flush)


def _collections_as_ever() -> contextlib.AbstractContextManager[Any]:
    return patch.object(scene, "rare_collections", contextlib.nullcontext)


def _loop_of_the_library() -> contextlib.AbstractContextManager[Any]:
    return patch.object(event_loop, "_loop_factory", lambda: None)


class Trick(NamedTuple):
    """One trick, and the plain way that is put in its place."""

    name: str
    plain: Callable[[], contextlib.AbstractContextManager[Any]]


TRICKS = {
    trick.name: trick
    for trick in (
        Trick("raw_exchange", _sessions),
        Trick("trusted", _checked_values),
        Trick("deadlines", _a_timer_each),
        Trick("batcher", _a_write_each),
        Trick("rare_collections", _collections_as_ever),
        Trick("uvloop", _loop_of_the_library),
    )
}


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser("benchmarks.tricks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *TRICKS], metavar="NAME", help=", ".join(TRICKS))
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--prompts", type=int, default=PROMPTS)
    options = parser.parse_args(arguments)
    print(f"{'trick':<18}{'with':>10}{'without':>10}{'ratio':>8}   95 %")
    with workshop() as shop, mock_server() as api_base:
        timed_run(shop.config(100, remote(api_base, CONCURRENCY)), 100)
        for name in options.names or TRICKS:
            _print_row(TRICKS[name], lambda: _cost(shop, api_base, options.prompts), options.pairs)


def _print_row(trick: Trick, cost: Callable[[], float], pairs: int) -> None:
    seen = []
    for number in range(pairs):
        costs = {}
        for is_plain in (number % 2 == 0, number % 2 == 1):
            with trick.plain() if is_plain else contextlib.nullcontext():
                costs[is_plain] = cost()
        seen.append((costs[False], costs[True]))
    ratios = sorted(plain / ours for ours, plain in seen)
    margin = max(0, int(pairs / 2 - 0.98 * pairs**0.5))
    ours, plain = (statistics.median(column) for column in zip(*seen, strict=True))
    low, high = ratios[margin], ratios[-1 - margin]
    shown = f"{trick.name:<18}{ours:>7.1f} µs{plain:>7.1f} µs{statistics.median(ratios):>8.3f}   {low:.3f} … {high:.3f}"
    print(shown, flush=True)


def _cost(shop: Workshop, api_base: str, prompts: int) -> float:
    """Microseconds of processor time per record of a cold run."""
    gc.collect()
    start = time.process_time()
    timed_run(shop.config(prompts, remote(api_base, CONCURRENCY)), prompts)
    return (time.process_time() - start) / prompts * 1e6


if __name__ == "__main__":
    main()
