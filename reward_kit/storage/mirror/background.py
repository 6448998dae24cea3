# SPDX-License-Identifier: Apache-2.0
"""The thread that keeps a mirror up to date while a run goes on. Whatever the store does, the run is not held up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from reward_kit.errors import RewardKitError, StorageError
from reward_kit.storage.mirror.copying import PART_BYTES, Copier
from reward_kit.storage.mirror.ownership import Claim, MirrorTakenError

__all__ = ["Mirror"]

_log = logging.getLogger(__name__)

_LOOKS_SECONDS = 1.0
"""How often it is looked whether more was written than fits one part."""
_BETWEEN_CHECKS = 0.02
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0


class Mirror:
    """A mirror that is kept up to date until it is ended."""

    def __init__(self, claim: Claim, directory: Path, every: float, also: Iterable[str] = ()) -> None:
        """Copy what is new in `directory` every so many seconds, and sooner where there is much of it."""
        self._claim, self._every = claim, every
        self.address = claim.mirror
        self._directory = directory
        self._copier = Copier(claim, directory, also)
        self._ending = threading.Event()
        self._wake = threading.Event()
        self._wanted = 0.0
        """Somebody waits until all that was written before this moment is mirrored."""
        self._done = threading.Event()
        self._whole = False
        self._patience = 0.0
        self._when_done: Callable[[], None] = lambda: None
        self.problem: str | None = None
        """Why the last attempt failed, if it did."""
        self._up_to_date = time.monotonic()
        self._failing_since: float | None = None
        self._lost = False
        self._thread = threading.Thread(target=self._run, name="reward-kit mirror", daemon=True)

    def start(self) -> None:
        """Begin to copy in the background."""
        self._thread.start()

    def end(self, *, whole: bool, patience: float, when_done: Callable[[], None]) -> None:
        """Copy what is left, put the files there `whole` if the run is finished, and leave the mirror.

        A store that fails is tried for so many seconds of `patience`. `when_done` is called in the thread.
        """
        self._whole, self._patience, self._when_done = whole, patience, when_done
        self._failing_since = None
        self._ending.set()
        self._wake.set()

    def bring_up_to_date(self, patience: float) -> None:
        """Come back when all that is written now is mirrored; an error where that fails for so many seconds."""
        asked = time.monotonic()
        self._wanted = max(self._wanted, asked)
        self._wake.set()
        while self._up_to_date < asked:
            if self._done.wait(_BETWEEN_CHECKS) or time.monotonic() - asked > patience:
                why = self.problem or "the store takes too long"
                raise StorageError(f"The mirror {self.address!r} could not be brought up to date: {why}")

    @property
    def not_mirrored(self) -> str | None:
        """What is to be said after the end: what the mirror lacks, and why; None where it has everything."""
        if self.problem is None:
            return None
        return (
            f"Not everything is in the mirror {self.address!r}: {self.problem.rstrip('.')}. All of it is in "
            f"{str(self._directory)!r}; run the same command again to copy the rest."
        )

    def lag(self) -> str | None:
        """How far the mirror is behind, in words; None where it keeps up."""
        seconds = time.monotonic() - self._up_to_date
        if self.problem is None and seconds < 3 * self._every + _LOOKS_SECONDS:
            return None
        return f"mirror {seconds:.0f} s behind"

    # -- the thread

    def _run(self) -> None:
        try:
            wait = self._every
            while not self._wait(wait):
                wait = self._every if self._attempt(self._copy_new) else self._longer(wait)
                if self._lost:
                    return
            self._finish()
        finally:
            self._done.set()
            self._when_done()

    def _wait(self, seconds: float) -> bool:
        """Wait; less where much was written meanwhile. Whether the end has come."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._wake.wait(min(left, _LOOKS_SECONDS))
            self._wake.clear()
            if self._ending.is_set():
                return True
            if self.problem is None and (self._wanted > self._up_to_date or self._copier.behind() >= PART_BYTES):
                return False
        return self._ending.is_set()

    def _longer(self, wait: float) -> float:
        return min(_LONGEST_WAIT, max(_FIRST_WAIT, 2 * wait))

    def _finish(self) -> None:
        wait = _FIRST_WAIT
        while not self._attempt(self._copy_last):
            waited = time.monotonic() - (self._failing_since or time.monotonic())
            if self._lost or waited + wait > self._patience:
                return
            time.sleep(wait)
            wait = min(_LONGEST_WAIT, 2 * wait)

    def _copy_new(self) -> None:
        self._copier.copy_new()
        self._claim.beat()

    def _copy_last(self) -> None:
        if self._whole:
            self._claim.beat()  # before anything is replaced or deleted: is it still ours?
            self._copier.publish()
        else:
            self._copier.copy_new()
        self._claim.release()

    def _attempt(self, copy: Callable[[], None]) -> bool:
        """Whether it went well. What did not is said once, and tried again later."""
        begun = time.monotonic()
        try:
            copy()
        except MirrorTakenError as error:
            self._lost, self.problem = True, str(error)
            _log.warning("%s", error)
        except (RewardKitError, OSError) as error:
            self._failing_since = self._failing_since or begun
            reason = str(error)
            if reason != self.problem:
                _log.warning(
                    "Cannot copy to the mirror %r: %s. The run goes on, and copying is tried again.",
                    self.address, reason.rstrip("."),
                )  # fmt: skip
            self.problem = reason
        else:
            self._up_to_date, self.problem, self._failing_since = begun, None, None
        return self.problem is None
