# SPDX-License-Identifier: Apache-2.0
"""A run and its mirror: restored before the run is entered, kept up to date while it goes on, finished when it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from reward_kit.config_models import OutputConfig
from reward_kit.errors import ConfigError, StorageError
from reward_kit.execution.options import RunInputs
from reward_kit.execution.parts.part import Entry, Part
from reward_kit.execution.result import RunResult
from reward_kit.storage.run_directory import RunDirectory
from reward_kit.stores.addresses import is_stored, scheme_of
from reward_kit.stores.reasons import StoreError

if TYPE_CHECKING:
    from reward_kit.storage.mirror.background import Mirror
    from reward_kit.storage.mirror.ownership import Claim
    from reward_kit.stores.store import Store

__all__ = ["Mirroring", "copy_beside", "restored"]

Found = TypeVar("Found")

_PATIENCE = 60.0
"""Seconds that a failing store is tried for when a run is finished."""
_PATIENCE_WHEN_STOPPED = 10.0
"""The same where somebody waits for the run to stop."""
_ATTEMPTS = 3
"""Requests to the store before an attempt has failed; the mirror's own thread tries again later."""
_HISTORIES = ("hf",)
"""Stores that make a revision of every object that is written."""


class Mirroring(Part):
    """The mirror of one run; does nothing where none is asked for."""

    def __init__(self, inputs: RunInputs) -> None:
        """Refuse an address that cannot be a mirror's."""
        super().__init__(inputs)
        self._output = self.config.output
        if self._output.mirror is not None:
            _checked(self._output.mirror)
        self._claim: Claim | None = None
        self._mirror: Mirror | None = None
        if self.options.resume_from_mirror:
            _require_mirror(self._output)

    def check(self, *, planning: bool) -> None:
        """A plan is made of what is on this machine."""
        if planning and self.options.resume_from_mirror:
            raise ConfigError(
                "The files of the mirror are not on this machine yet, so no plan can be made. Leave out "
                "`resume_from_mirror`, or go on with the run."
            )

    async def prepare(self) -> None:
        """Make the run directory from its mirror, where that is asked for."""
        if self.options.resume_from_mirror:
            self._claim = await restored(self._output)

    async def enter(self, directory: RunDirectory) -> None:
        """Take the mirror, so that whatever is wrong with it is said before anything is paid, and begin to copy."""
        self._mirror = None
        if self._output.mirror is None:
            return
        from reward_kit.storage.mirror.background import Mirror
        from reward_kit.storage.mirror.restoring import take

        claim = self._claim
        if claim is None:
            claim = await _in_a_thread(lambda: _ask(self._output, directory.path, take))
        self._mirror = Mirror(claim, directory.path, self._output.mirror_seconds, self._also())
        self._mirror.start()

    async def before(self, entry: Entry) -> None:
        """Have whoever shows progress see the mirror, and what is paid for wait for it."""
        if self._mirror is not None:
            entry.counters.mirror, entry.hold = self._mirror, partial(_hold, self._mirror)

    async def leave(self, result: RunResult | None) -> RunResult | None:
        """Copy what is left; the result says where that failed."""
        mirror = self._mirror
        if mirror is None:
            return result
        finished = result is not None and result.status != "interrupted"
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        patience = _PATIENCE if finished else _PATIENCE_WHEN_STOPPED

        def when_done() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

        mirror.end(whole=finished, patience=patience, when_done=when_done)
        await done.wait()
        return result and replace(result, not_mirrored=mirror.not_mirrored)

    def _also(self) -> list[str]:
        """Copies of the results that are made in the run directory itself."""
        names = (self._output.results_file, self._output.preview_pairs_file)
        return [name for name in names if name is not None and Path(name).name == name]


async def restored(output: OutputConfig) -> Claim:
    """Make the run directory from its mirror; the mirror, which is ours from then on."""
    from reward_kit.storage.mirror.restoring import restore

    _require_mirror(output)
    return await _in_a_thread(lambda: _ask(output, Path(output.output_dir).absolute(), restore))


def _require_mirror(output: OutputConfig) -> None:
    if output.mirror is None:
        raise ConfigError("`resume_from_mirror` needs a mirror to go on from. Set `output.mirror`.")


async def _hold(mirror: Mirror) -> None:
    """Come back when all that is written so far is in the mirror: it must be known there before it is paid for."""
    try:
        await _in_a_thread(lambda: mirror.bring_up_to_date(_PATIENCE))
    except StorageError as error:
        raise StorageError(
            f"{str(error).rstrip('.')}. No batch was submitted, because another machine could not know of it. "
            "Check the store, then run the same command again."
        ) from error


def _ask(output: OutputConfig, directory: Path, action: Callable[[Store, str, Path, float], Claim]) -> Claim:
    from reward_kit.stores.store import Store

    address = _checked(output.mirror or "")
    try:
        store = Store(address, output.storage_options, attempts=_ATTEMPTS)
        return action(store, address, directory, output.mirror_seconds)
    except StoreError as error:
        raise StorageError(_unusable(address, error)) from error


def copy_beside(output: OutputConfig, path: Path) -> str | None:
    """Copy a file that was made of a run into its mirror; what is to be said where that failed."""
    if output.mirror is None:
        return None
    from reward_kit.stores.addresses import under
    from reward_kit.stores.fetching import send

    mirror = _checked(output.mirror)
    try:
        send(path, under(mirror, path.name), output.storage_options)
    except StoreError as error:
        return (
            f"{str(path)!r} is not in the mirror {mirror!r}: {error}. It is whole on this machine; run the same "
            "command again to copy it."
        )
    return None


def _checked(mirror: str) -> str:
    if not is_stored(mirror) or scheme_of(mirror) in _HISTORIES:
        raise ConfigError(f"`output.mirror` is {mirror!r}; expected the address of a folder, such as s3://bucket/run.")
    return mirror.rstrip("/")


def _unusable(address: str, error: StoreError) -> str:
    return (
        f"The mirror {address!r} cannot be used: {error}. Correct `output.mirror`, or check the bucket, your access "
        "rights and credentials (the store's own environment variables, or `output.storage_options`)."
    )


async def _in_a_thread(action: Callable[[], Found]) -> Found:
    """What the action returns. Its thread is nobody's to wait for: an interrupted command ends at once."""
    told: Future[Found] = Future()
    told.set_running_or_notify_cancel()

    def work() -> None:
        try:
            told.set_result(action())
        except BaseException as error:  # noqa: BLE001 - a named boundary: it is raised where somebody waits for it
            told.set_exception(error)

    threading.Thread(target=work, name="reward-kit mirror", daemon=True).start()
    return await asyncio.wrap_future(told)
