# SPDX-License-Identifier: Apache-2.0
"""One process that is asked one thing after another, by whoever has the time to wait for it.

    with Host(factory, name="trial") as host:
        outcome = host.call("an answer", within=60.0)      # Done | Raised | TimedOut | Died

It runs the same program as the workers of a pool, needs no event loop, and may be asked from any thread, one at a time.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
import time
from collections.abc import Callable
from typing import Any, Self

from reward_kit.workers import child
from reward_kit.workers.outcomes import Died, Done, Outcome, Raised, TimedOut
from reward_kit.workers.process import Launch, how_it_ended, kill_group

__all__ = ["Host"]

_END_SECONDS = 1.0
_READ_BYTES = 1 << 20


class Host:
    """A process that calls what `factory` makes. It ends when it is closed, or when this process is gone."""

    def __init__(self, factory: Callable[[], Callable[..., Any]] | bytes, *, name: str, **how: Any) -> None:
        """Start it; an `OSError` says why that fails. `how` are further fields of a `Launch`.

        The factory may be pickled already. Where it raises, each call says so.
        """
        pickled = factory if isinstance(factory, bytes) else child.encode(factory)
        self._launch = Launch(name, pickled, **{"path": list(sys.path), "tied": False, **how})
        self._line, self._page, self._process = self._launch.start()
        self._calls = 0
        self._is_briefed = self._is_ready = False

    @property
    def pid(self) -> int:
        """The number of the process, and of its group."""
        return self._process.pid

    def has_ended(self) -> bool:
        """Whether there is nobody left to call."""
        return self._process.poll() is not None

    def brief(self) -> None:
        """Tell it what to load, and do not wait. The first call does that, too."""
        if not self._is_briefed:
            self._line.settimeout(None)
            self._line.sendall(child.pack(self._launch.orders))
            self._is_briefed = True

    def call(self, *args: Any, within: float) -> Outcome:
        """What came of a call. One that took too long, or in which the process ended, was the last."""
        deadline = time.monotonic() + within
        try:
            self.brief()
            if not self._is_ready:
                ok, complaint = pickle.loads(self._reply(deadline))
                if not ok:
                    return Raised(*complaint)
                self._is_ready = True
            self._line.settimeout(_left(deadline))
            self._line.sendall(child.pack([child.encode((args, {}))], self._calls))
            self._calls += 1
            ok, value = pickle.loads(self._reply(deadline))
        except TimeoutError:
            self.close()
            return TimedOut(within)
        except (EOFError, OSError):
            with contextlib.suppress(Exception):
                self._process.wait(_END_SECONDS)
            self.close()
            return Died(how_it_ended(self._process.returncode))
        return Done(value) if ok else Raised(*value)

    def _reply(self, deadline: float) -> bytes:
        _, length, count, _ = child.HEADER.unpack(self._read(child.HEADER.size, deadline))
        (blob,) = child.unpack(self._read(length, deadline), count)
        return blob

    def _read(self, length: int, deadline: float) -> bytes:
        parts = []
        while length:
            self._line.settimeout(_left(deadline))
            part = self._line.recv(min(length, _READ_BYTES))
            if not part:
                raise EOFError("the process has closed its connection")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def kill(self) -> None:
        """Kill it and all that it has started in its group."""
        if self._process.returncode is None:
            kill_group(self._process.pid)

    def close(self) -> None:
        """End it, whatever it is doing. May be called twice."""
        self.kill()
        self._process.wait()
        self.let_go()

    def let_go(self) -> None:
        """Give back what is held here, and leave the process alone: in a fork it is the parent's."""
        self._line.close()
        self._page.close()

    def __enter__(self) -> Self:
        """The host itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def _left(deadline: float) -> float:
    """Seconds that are left; a socket takes 0 for something else."""
    return max(0.001, deadline - time.monotonic())
