# SPDX-License-Identifier: Apache-2.0
"""One writer at a time: how a mirror is taken, kept, given up, and how one who has lost it notices.

A writer takes the next generation by creating its list of contents, which the store lets only one do. Only then does it
put its name into `mirror.json`. It writes to the list of its own generation and to no other, so one that was replaced
and does not know it yet cannot spoil what its successor writes.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
import uuid
from pathlib import Path

import orjson

from reward_kit.errors import StorageError
from reward_kit.storage.files import Draft
from reward_kit.storage.mirror.contents import Contents, Owner, contents_at, owner_at
from reward_kit.stores.addresses import last_name, under
from reward_kit.stores.reasons import StoreError
from reward_kit.stores.store import Store

__all__ = ["Claim", "MirrorTakenError", "claim", "read_contents", "read_owner", "remembered"]

NOTE = ".mirror.json"
"""In a run directory: which writer of which mirror it was. Never mirrored."""
_REMEMBERED = 8
_BEATS_WAITED = 2.5
_LEAST_WAIT = 1.0


class MirrorTakenError(StorageError):
    """Another machine writes to the mirror."""


class Claim:
    """The right to write to a mirror, as long as nobody else has taken it."""

    def __init__(self, store: Store, mirror: str, owner: Owner, contents: Contents) -> None:
        """Keep what was claimed."""
        self.store, self.mirror, self.owner, self.contents = store, mirror, owner, contents

    def write_contents(self) -> None:
        """Publish the list of what is mirrored. Everything it names must be there."""
        self.store.write(contents_at(self.mirror, self.owner.generation), self.contents.written())

    def beat(self) -> None:
        """Say that this writer is alive; an error where another one has taken over."""
        self._refuse_if_taken()
        self.owner.beat += 1
        self.store.write(owner_at(self.mirror), self.owner.written())

    def release(self) -> None:
        """Leave the mirror, so that the next one need not wait."""
        self.owner.released = True
        self.beat()

    def _refuse_if_taken(self) -> None:
        now = read_owner(self.store, self.mirror)
        if now is None or now.id != self.owner.id:
            who = "Somebody" if now is None else f"Another machine ({now.host}, process {now.pid})"
            raise MirrorTakenError(
                f"{who} has taken over {self.mirror!r}, so nothing more is copied there from here. What this run has "
                "made is in its own directory; go on with one of the two."
            )


def read_owner(store: Store, mirror: str) -> Owner | None:
    """Who writes, or last wrote, to a mirror; None where there is no mirror."""
    try:
        return Owner.read(store.read_whole(owner_at(mirror)), owner_at(mirror))
    except StoreError as error:
        if error.missing:
            return None
        raise


def read_contents(store: Store, mirror: str, owner: Owner) -> Contents:
    """What is mirrored, as its writer last said."""
    where = contents_at(mirror, owner.generation)
    return Contents.read(store.read_whole(where), where)


def remembered(directory: Path, mirror: str) -> list[str]:
    """As which writers of the mirror this directory was used, the last one last."""
    try:
        note = orjson.loads((directory / NOTE).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return []
    return [str(one) for one in note["ids"]] if isinstance(note, dict) and note.get("mirror") == mirror else []


def _remember(directory: Path, mirror: str, writer: str) -> None:
    """Before the store is told: who is killed in between may have been either, the one before or this one."""
    directory.mkdir(parents=True, exist_ok=True)
    ids = [*remembered(directory, mirror), writer][-_REMEMBERED:]
    with Draft(directory / NOTE) as draft:
        draft.write(orjson.dumps({"mirror": mirror, "ids": ids}))


def claim(store: Store, mirror: str, directory: Path, every: float) -> Claim:
    """Take the mirror for the run in `directory`. Whether its contents are that run's is for the caller to see to."""
    before = read_owner(store, mirror)
    if before is not None and not _is_gone(before, directory, mirror):
        _wait_and_see(store, mirror, before)
    generation, contents = 1, Contents()
    if before is not None:
        contents = read_contents(store, mirror, before)
        generation = before.generation + 1
    contents.writer = uuid.uuid4().hex
    contents.generation = generation = max(generation, _newest(store, mirror) + 1)
    owner = Owner(generation, contents.writer, _machine(), platform.node(), os.getpid(), every)
    try:
        store.write(contents_at(mirror, generation), contents.written(), only_new=True)
    except StoreError as error:
        if not error.exists:
            raise
        raise MirrorTakenError(
            f"Another machine has just taken {mirror!r}. Wait for it, or choose another `output.mirror`."
        ) from error
    _remember(directory, mirror, owner.id)
    store.write(owner_at(mirror), owner.written())
    _forget_older(store, mirror, generation)
    return Claim(store, mirror, owner, contents)


def _is_gone(owner: Owner, directory: Path, mirror: str) -> bool:
    """Whether it is certain that the last writer writes no more."""
    if owner.released or owner.id in remembered(directory, mirror):
        return True  # its own directory is locked by us, so whoever worked in it has ended
    if owner.machine != _machine():
        return False
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return owner.pid == os.getpid()


def _wait_and_see(store: Store, mirror: str, owner: Owner) -> None:
    """Refuse a mirror whose writer is alive: wait until it should have given a sign, and look whether it did."""
    until = time.monotonic() + max(_LEAST_WAIT, _BEATS_WAITED * owner.every)
    while time.monotonic() < until:
        time.sleep(min(1.0, max(0.05, owner.every / 4)))
        now = read_owner(store, mirror)
        if now is not None and (now.id, now.beat) != (owner.id, owner.beat) and not now.released:
            raise MirrorTakenError(
                f"Another machine ({now.host}, process {now.pid}) is writing to {mirror!r}. Wait until it has ended, "
                "or choose another `output.mirror`."
            )


def _newest(store: Store, mirror: str) -> int:
    """The newest generation that anybody took, also one that ended before it said so."""
    names = (last_name(facts.address) for facts in store.inside(under(mirror, "mirror")) if not facts.is_folder)
    numbers = [int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdecimal()]
    return max(numbers, default=0)


def _forget_older(store: Store, mirror: str, generation: int) -> None:
    """Delete lists that nobody reads any more; one that cannot be deleted does no harm."""
    with contextlib.suppress(StoreError):
        old = [contents_at(mirror, number) for number in range(max(1, generation - 8), generation)]
        store.delete(address for address in old if store.facts(address) is not None)


def _machine() -> str:
    """Tells machines apart, and the containers on one: a process number means something only within these."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux
        return f"{platform.node()}/{uuid.getnode():x}"
