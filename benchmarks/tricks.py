# SPDX-License-Identifier: Apache-2.0
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
import inspect
import statistics
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

from pydantic import BaseModel

from benchmarks import scene
from benchmarks.scene import Workshop, mock_server, remote, timed_run, workshop
from reward_kit import reward_call
from reward_kit.http import transport
from reward_kit.models import Message
from reward_kit.storage.journal import Journal
from reward_kit.storage.line_writer import LineWriter
from reward_kit.utils import event_loop
from reward_kit.utils.batcher import Batcher
from reward_kit.utils.deadlines import Deadlines

__all__ = ["TRICKS", "main"]

PROMPTS = 3_000
PAIRS = 12
CONCURRENCY = 64


# ── the plain ways ───────────────────────────────────────────────────────────────────────────────────────────────────


def _sessions() -> contextlib.AbstractContextManager[Any]:
    return patch.object(transport.Transport, "_raw_exchange", lambda _: None)


@contextlib.contextmanager
def _checked_values() -> Iterator[None]:
    """Every maker that a module keeps is replaced by the model it makes."""
    modules = [module for name, module in sys.modules.items() if name.startswith("reward_kit.")]
    with contextlib.ExitStack() as patched:
        for module in modules:
            for name, held in [*vars(module).items()]:
                if kind := _made_by(held):
                    patched.enter_context(patch.object(module, name, kind))
        patched.enter_context(patch.object(reward_call, "copied", Message.model_copy))
        yield


def _made_by(held: object) -> type[BaseModel] | None:
    """The model that `held` makes without checking it, if it is such a maker."""
    if not inspect.isfunction(held) or held.__qualname__ != "trusted.<locals>.make":
        return None
    kind: type[BaseModel] = inspect.getclosurevars(held).nonlocals["kind"]
    return kind


class _TimeoutEach:
    """`asyncio.timeout` around each call."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeouts: dict[asyncio.Task[Any], asyncio.Timeout] = {}

    def begin(self, task: asyncio.Task[Any]) -> None:
        timeout = self._timeouts[task] = asyncio.timeout(self._seconds)
        _at_once(timeout.__aenter__())

    def end(self, task: asyncio.Task[Any]) -> None:
        _at_once(self._timeouts.pop(task).__aexit__(None, None, None))

    def was_missed_by(self, task: asyncio.Task[Any]) -> bool:
        return False

    def stop(self) -> None:
        """Each call stops its own."""


def _at_once(coroutine: Coroutine[Any, Any, object]) -> None:
    with contextlib.suppress(StopIteration):
        coroutine.send(None)


@contextlib.contextmanager
def _a_timeout_each() -> Iterator[None]:
    users = [module for module in sys.modules.values() if vars(module).get("Deadlines") is Deadlines]
    with contextlib.ExitStack() as patched:
        for module in users:
            patched.enter_context(patch.object(module, "Deadlines", _TimeoutEach))
        yield


def _a_write_each() -> contextlib.AbstractContextManager[Any]:
    return patch.object(Batcher, "_flush_at_the_end_of_this_turn", Batcher.flush)


def _collections_as_ever() -> contextlib.AbstractContextManager[Any]:
    return patch.object(scene, "collect_rarely", lambda: None)


def _loop_of_the_library() -> contextlib.AbstractContextManager[Any]:
    return patch.object(event_loop, "_loop_factory", lambda: None)


def _order_looked_up() -> contextlib.AbstractContextManager[Any]:
    opened = Journal.__init__

    def without_order(self: Journal, *given: Any, **named: Any) -> None:
        opened(self, *given, **named)
        self._written = None

    return patch.object(Journal, "__init__", without_order)


def _whole_lines() -> contextlib.AbstractContextManager[Any]:
    """Each row is written as a whole, as it is for what the pieces cannot hold."""
    return patch.object(LineWriter, "_text", side_effect=TypeError)


class Trick(NamedTuple):
    """One trick, and the plain way that is put in its place."""

    name: str
    plain: Callable[[], contextlib.AbstractContextManager[Any]]


TRICKS = {
    trick.name: trick
    for trick in (
        Trick("raw_exchange", _sessions),
        Trick("trusted", _checked_values),
        Trick("deadlines", _a_timeout_each),
        Trick("batcher", _a_write_each),
        Trick("line_writer", _whole_lines),
        Trick("written_order", _order_looked_up),
        Trick("collect_rarely", _collections_as_ever),
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
