# SPDX-License-Identifier: Apache-2.0
"""One copying of what is new in a run directory to its mirror: parts, then the list of them, then what is left over.

Files are followed by reading them, so that whoever writes them need not know of the mirror. A journal is copied up to
its last whole line. One that was rewritten meanwhile is recognised by its bytes, and what differs is copied anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from reward_kit.storage.batch_journal import BATCH_FILES, BATCHES
from reward_kit.storage.mirror.contents import MirroredFile, Part, part_name, parts_at, sha256_of
from reward_kit.storage.mirror.ownership import Claim
from reward_kit.storage.run_directory import RESULTS, ROLLOUTS
from reward_kit.storage.samples import SAMPLES
from reward_kit.storage.turn_journal import EPISODES
from reward_kit.stores.addresses import last_name, under
from reward_kit.stores.reasons import StoreError

__all__ = ["Copier"]

PART_BYTES = 8 << 20
"""A part has at most about so many bytes."""
TOGETHER = 16
"""So many small parts of one size are put together, so that neither the list nor the objects become too many."""
_WHOLE = 99
"""The tier of a part that is large enough, or a whole file: it is never put together with others."""
_JOURNALS = (BATCHES, RESULTS, "commands.jsonl", ROLLOUTS, SAMPLES, EPISODES)
"""Files that are appended to. In this order, so that there is no verdict in a mirror without its rollout, no rollout
without its sample, and no batch that is said to be absorbed without the rollouts that its answers became."""
_DOCUMENTS = ("manifest.json", "config.yaml", "summary.json")
"""Files that are replaced whole. First, so that the manifest never counts lines that are not mirrored."""
_SET_ASIDE = re.compile(r"(?:samples|rollouts|results)\.[\w.]+\.jsonl")


class Copier:
    """Keeps a mirror like its run directory. Calls may fail at any point, and be made again."""

    def __init__(self, claim: Claim, directory: Path, also: Iterable[str] = ()) -> None:
        """Copy the files of `directory` that a run makes, and those that it was told to make: `also`."""
        self._claim, self._directory = claim, directory
        self._also = tuple(also)
        self._listed = claim.contents.written()
        """The list as the store has it."""
        self._copies: set[str] = set()
        """The parts that were copied since the list was last written."""
        self._seen: dict[str, tuple[int, int]] = {}
        """The inode of each journal whose mirrored bytes are known to be those of the file, and how many they were."""

    def behind(self) -> int:
        """How many bytes of the journals are not mirrored."""
        files = self._claim.contents.files
        sizes = {name: self._size(name) for name in _JOURNALS}
        return sum(max(0, size - (files[name].size if name in files else 0)) for name, size in sizes.items())

    def copy_new(self) -> None:
        """Copy what was written since the last time."""
        contents = self._claim.contents
        documents = {name: self._document(name) for name in _DOCUMENTS}  # read before the journals, see above
        fresh: dict[str, MirroredFile] = {}
        for name in (*self._requests(), *_JOURNALS):
            if (file := self._journal(name)) is not None:
                fresh[name] = file
        for name, document in documents.items():
            if document is not None:
                fresh[name] = self._whole_document(name, *document)
        beside = {name: file for name, file in contents.files.items() if self._is_beside(name)}
        before, contents.files = contents.names(), {**beside, **fresh}
        contents.finished = contents.finished and contents.names() == before
        self._write_list()
        self._delete((before | self._copies) - contents.names())
        self._copies.clear()

    def publish(self) -> None:
        """Put every file into the mirror whole, under its own name, and forget the parts."""
        contents = self._claim.contents
        before = contents.names()
        ours = (*_DOCUMENTS, *self._requests(), *_JOURNALS, *self._others())
        names = [name for name in ours if self._size(name) or name in _DOCUMENTS]
        there = [name for name in names if (self._directory / name).is_file()]
        self._keep_what_is_replaced(there)
        for name in there:
            contents.files[name] = self._whole(name)
        contents.files = {name: contents.files[name] for name in there}
        contents.finished = True
        self._write_list()
        self._delete(before - contents.names())
        self._delete_unlisted()

    def _write_list(self) -> None:
        """Say what is mirrored, if that has changed. Everything that is on the list is there by now."""
        if (written := self._claim.contents.written()) != self._listed:
            self._claim.write_contents()
            self._listed = written

    # -- one file

    def _journal(self, name: str) -> MirroredFile | None:
        """The file with all its whole lines mirrored; None where there is no such file."""
        path = self._directory / name
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            status = os.fstat(descriptor)
            os.fsync(descriptor)  # a mirror that has more than the disk after a power cut would have it paid again
            known = self._known_parts(name, descriptor, status)
            parts = [*known, *self._new_parts(name, descriptor, known[-1].end if known else 0, status.st_size)]
            parts = self._put_together(name, descriptor, parts)
            self._seen[name] = (status.st_ino, parts[-1].end if parts else 0)
            return MirroredFile(parts, status.st_mtime_ns)
        finally:
            os.close(descriptor)

    def _known_parts(self, name: str, descriptor: int, status: os.stat_result) -> list[Part]:
        """The mirrored parts that are still what the file begins with."""
        mirrored = self._claim.contents.files.get(name)
        if mirrored is None:
            return []
        inode, size = self._seen.get(name, (-1, 0))
        if inode == status.st_ino and status.st_size >= mirrored.size == size:
            return mirrored.parts
        known: list[Part] = []
        for part in mirrored.parts:
            if part.end > status.st_size or _digest(descriptor, part.start, part.end) != part.sha256:
                break
            known.append(part)
        return known

    def _new_parts(self, name: str, descriptor: int, start: int, end: int) -> Iterable[Part]:
        """Copy the whole lines between two places of a file."""
        while start < end:
            data = os.pread(descriptor, min(PART_BYTES, end - start), start)
            length = data.rfind(b"\n") + 1
            while not length and start + len(data) < end:  # one line that is longer than a part
                data += os.pread(descriptor, min(PART_BYTES, end - start - len(data)), start + len(data))
                length = data.rfind(b"\n") + 1
            if not length:
                return
            yield self._copied(name, start, data[:length])
            start += length

    def _copied(self, name: str, start: int, data: bytes, tier: int = 0) -> Part:
        part = Part.of(name, start, data, _WHOLE if len(data) >= PART_BYTES // 2 else tier)
        self._claim.store.write(under(self._claim.mirror, part.name), data)
        self._copies.add(part.name)
        return part

    def _put_together(self, name: str, descriptor: int, parts: list[Part]) -> list[Part]:
        """Where many small parts follow each other, copy their bytes again as one."""
        while len(parts) >= TOGETHER and parts[-1].tier < _WHOLE:
            last = parts[-TOGETHER:]
            if {part.tier for part in last} != {last[0].tier}:
                break
            data = os.pread(descriptor, last[-1].end - last[0].start, last[0].start)
            parts = [*parts[:-TOGETHER], self._copied(name, last[0].start, data, last[0].tier + 1)]
        return parts

    def _document(self, name: str) -> tuple[bytes, int] | None:
        path = self._directory / name
        try:
            modified = path.stat().st_mtime_ns
            return path.read_bytes(), modified
        except FileNotFoundError:
            return None

    def _whole_document(self, name: str, data: bytes, modified_ns: int) -> MirroredFile:
        mirrored = self._claim.contents.files.get(name)
        if mirrored is not None and [part.sha256 for part in mirrored.parts] == [sha256_of(data)]:
            return MirroredFile(mirrored.parts, modified_ns)
        return MirroredFile([self._copied(name, 0, data, _WHOLE)], modified_ns)

    def _whole(self, name: str) -> MirroredFile:
        """The file under its own name in the mirror."""
        path = self._directory / name
        status = path.stat()
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        part = Part(0, status.st_size, digest, name, _WHOLE)
        mirrored = self._claim.contents.files.get(name)
        if mirrored is None or mirrored.parts != [part]:
            self._claim.store.put(path, under(self._claim.mirror, name))
        return MirroredFile([part], status.st_mtime_ns)

    def _keep_what_is_replaced(self, names: Iterable[str]) -> None:
        """The list may name a whole file that is about to be replaced: keep its bytes under a name that stays."""
        contents, store, mirror = self._claim.contents, self._claim.store, self._claim.mirror
        moved = False
        for name in names:
            file = contents.files.get(name)
            first = file.parts[0] if file is not None and file.parts else None
            if file is None or first is None or first.name != name or _is_same(self._directory / name, file.parts):
                continue
            kept = first._replace(name=part_name(name, 0, first.end, first.sha256))
            store.copy(under(mirror, name), under(mirror, kept.name))
            file.parts[0], moved = kept, True
        if moved:
            contents.finished = False
            self._write_list()

    # -- which files

    def _requests(self) -> list[str]:
        """What batches were asked. Before their journal, which says when these are gone; answers are fetched again."""
        found = (self._directory / BATCH_FILES).glob("*.requests.jsonl")
        return sorted(f"{BATCH_FILES}/{path.name}" for path in found)

    def _others(self) -> list[str]:
        """Files that were set aside, and copies that the run was told to make in its directory."""
        aside = [path.name for path in self._directory.iterdir() if _SET_ASIDE.fullmatch(path.name)]
        return sorted({*aside, *self._also} - {*_JOURNALS, *_DOCUMENTS})

    def _is_beside(self, name: str) -> bool:
        return name not in _JOURNALS and name not in _DOCUMENTS and (self._directory / name).exists()

    def _size(self, name: str) -> int:
        try:
            return (self._directory / name).stat().st_size
        except OSError:
            return 0

    # -- what is left over

    def _delete(self, names: Iterable[str]) -> None:
        """What no list names any more. Where that fails, it takes room and does no harm."""
        with contextlib.suppress(StoreError):
            self._claim.store.delete(under(self._claim.mirror, name) for name in names if "/" in name)

    def _delete_unlisted(self) -> None:
        """The parts that no list names, also those of writers who were killed."""
        store, needed = self._claim.store, self._claim.contents.names()
        with contextlib.suppress(StoreError):
            for folder in store.inside(parts_at(self._claim.mirror)):
                for facts in store.inside(folder.address):
                    if f"mirror/parts/{last_name(folder.address)}/{last_name(facts.address)}" not in needed:
                        store.delete([facts.address])


def _is_same(path: Path, parts: list[Part]) -> bool:
    if len(parts) != 1 or path.stat().st_size != parts[0].end:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == parts[0].sha256


def _digest(descriptor: int, start: int, end: int) -> str:
    digest = hashlib.sha256()
    while start < end:
        data = os.pread(descriptor, min(PART_BYTES, end - start), start)
        if not data:
            break
        digest.update(data)
        start += len(data)
    return digest.hexdigest()
