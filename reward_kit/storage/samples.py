# SPDX-License-Identifier: Apache-2.0
"""`samples.jsonl`: what was asked, each sample once. The lines of a run name it by its digest.

    {"schema":3,"sample":"5f…","position":0,"id":"…","messages":[…],"ground_truth":…,"columns":{…},"check":"…"}
                 └─ rollouts.jsonl names it in every line, results.jsonl where large parts of it are named by digest

A sample is on disk before the first line that names it, so a crash leaves at most a sample that nobody names. Its name
is a digest of its JSON without the position, which only orders the file.
"""

from __future__ import annotations

import hashlib
import re
import threading
from array import array
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from reward_kit.errors import StorageError
from reward_kit.models import SCHEMA_VERSION, Sample
from reward_kit.storage.files import GrowingFile, find_line
from reward_kit.storage.journal_lines import ends_foreign, is_whole
from reward_kit.storage.row_json import forgiving_json
from reward_kit.utils.checksums import sealed_line
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["LARGE", "SAMPLES", "SAMPLE_HEAD", "Samples", "is_large", "sample_json", "sample_name"]

SAMPLES = "samples.jsonl"
"""The name of the file in a run directory."""
LARGE = 16 << 10
"""Bytes of a part that other lines name by its digest."""
SAMPLE_HEAD = re.compile(rb'\{"schema":\d+,"sample":"([0-9a-f]{32})","position":(\d+),')
"""How every line begins: the sample's name, and where it stands in its dataset."""
_NAMED = b'"sample":"%b"'
_SOUGHT = 2
"""So many samples are looked for in the file; whoever asks for more gets an index of it."""


class Samples:
    """The file beside the other files of a run. It is opened when it is first needed."""

    def __init__(self, path: Path, *, read_only: bool = False, always_on_disk: bool = False) -> None:
        """Read and append to `path`, or only read. `always_on_disk`: as of the lines that name the samples."""
        self.path = path
        self.read_only = read_only
        self._always_on_disk = always_on_disk
        self._file: GrowingFile | None = None
        self._pending: list[bytes] = []
        self._sought = 0
        self._last: tuple[bytes, Sample | None] = b"", None
        self._alone = threading.Lock()
        """Held while a sample is read: the viewer's threads share one reader."""
        self.damaged: set[int] = set()
        """The numbers of damaged lines. Nothing finds them; a run that meets their samples writes these again."""
        self._forget()

    def _forget(self) -> None:
        self._offsets, self._positions, self._begins = DigestMap(), array("Q"), array("Q")
        self._end, self._lines = 0, 0
        self.damaged.clear()

    @property
    def keys(self) -> int:
        """How many samples there are."""
        self._look()
        return len(self._offsets)

    @property
    def keys_at_hand(self) -> int | None:
        """How many are on disk, where that need not be looked up."""
        return None if self._file is None else len(self._offsets) - len(self._pending)

    # -- writing

    def put(self, name: bytes, text: bytes, position: int) -> None:
        """Have the sample of this name, whose JSON is `text`, on disk before the next line of a journal."""
        if self._file is None:
            self._look(create=True)
        if digest64(name) not in self._offsets:
            head = b'{"schema":%d,"sample":"%b","position":%d,' % (SCHEMA_VERSION, name, position)
            self._append(name, position, sealed_line(b"%b%b\n" % (head, text[1:])))

    def _append(self, name: bytes, position: int, line: bytes) -> None:
        if self._note(name, position, len(line)):
            self._pending.append(line)

    def keep(self, sample: Sample) -> bytes:
        """Put a sample that may be there already; its name."""
        text = sample_json(sample)
        name = sample_name(text)
        self.put(name, text, sample.position)
        return name

    def take(self, others: Samples) -> None:
        """Append those of another file that are not here. A damaged line of that is an error."""
        if self._file is None:
            self._look(create=True)
        if others.keys and others.damaged:
            raise StorageError(f"{str(others.path)!r}, line {min(others.damaged)}, is damaged. Restore the file.")
        for begin in others._begins:
            line = b"" if others._file is None else others._file.line_at(begin)
            if (head := SAMPLE_HEAD.match(line)) is not None:
                self._append(head[1], int(head[2]), line)
        self.flush()

    def flush(self) -> None:
        """Write what was put. After a `StorageError` nothing of it counts as put."""
        if self._pending and self._file is not None:
            block, self._pending = b"".join(self._pending), []
            try:
                self._file.append(block)
            except StorageError:
                self._forget()
                self._look()
                raise

    def sync(self) -> None:
        """Ask the operating system to put everything written so far on the disk itself."""
        self.flush()
        if self._file is not None:
            self._file.sync()

    def compact(self) -> None:
        """Rewrite the file in dataset order and without damaged lines, atomically, unless it is so already."""
        self.flush()
        self._look()
        places = sorted(zip(self._positions, self._begins, strict=True))
        if self._file is not None and (self.damaged or not _rise(begin for _, begin in places)):
            self._file.write_anew(self._moved(self._file, [begin for _, begin in places]))

    def _moved(self, file: GrowingFile, begins: Iterable[int]) -> Iterator[bytes]:
        """The lines that begin there, noted as the file that they will be."""
        self._forget()
        for begin in begins:
            line = file.line_at(begin)
            self._found(line)
            yield line

    def __del__(self) -> None:
        if self.read_only:  # whoever reads single rows of a run keeps no block around that
            self.close()

    def close(self) -> None:
        """Write what is left and let go of the file."""
        if self._file is not None:
            file, self._file = self._file, None
            try:
                if self._pending:
                    file.append(b"".join(self._pending))
            finally:
                self._pending = []
                self._forget()
                file.close()

    # -- reading

    def sample(self, name: bytes, position: int) -> Sample:
        """The sample of this name, which stands at `position`. Lines that follow each other get the same object."""
        with self._alone:
            known, sample = self._last
            if sample is None or known != name:
                sample = self._read(name)
            if sample.position != position:
                sample = sample.model_copy(update={"position": position})
            self._last = name, sample
            return sample

    def _read(self, name: bytes) -> Sample:
        try:
            sample = Sample.model_validate_json(self.line(name))
        except ValidationError as error:
            raise StorageError(f"{str(self.path)!r} holds a line that is no sample. Restore the file.") from error
        for message in sample.messages:
            if "content" not in message.model_fields_set:  # left out because it was None, not because it was empty
                message.content = None
        return sample

    def line(self, name: bytes) -> bytes:
        """The line of the sample of this name."""
        self.flush()
        line = self._line(name)
        if line is None or is_whole(line, SAMPLE_HEAD) is False:
            lost = "is damaged" if line is not None or self.damaged else "is not there"
            raise StorageError(
                f"The sample {name.decode()}, which other files of the run name, {lost} in {str(self.path)!r}. Restore "
                "the file, or run the same command again with its dataset, which writes the sample again."
            )
        return line

    def _line(self, name: bytes) -> bytes | None:
        if self._file is None and self.read_only and self._sought < _SOUGHT:
            self._sought += 1
            return find_line(self.path, _NAMED % name, len(b'{"schema":00,'))
        offset = self._offsets.get(digest64(name))
        if offset < 0:
            self._look()  # it may have been appended by the run that is being looked at
            offset = self._offsets.get(digest64(name))
        if offset < 0 or self._file is None:
            return None
        line = self._file.line_at(offset)
        return line if _NAMED % name in line[:64] else None

    def _look(self, *, create: bool = False) -> None:
        """Find the lines that were not found yet."""
        if self._file is None:
            if not create and not self.path.exists():
                return
            self._file = GrowingFile(self.path, read_only=self.read_only, always_on_disk=self._always_on_disk)
            if not self.read_only:
                self._refuse_foreign(self._file)
                self._file.cut_torn_line()
        elif self.read_only:
            self._file.look_again()
        for line in self._file.lines(self._end):
            self._found(line)

    def _found(self, line: bytes) -> None:
        """Take account of a line of the file."""
        self._lines += 1
        head = SAMPLE_HEAD.match(line)
        if head is None or is_whole(line, SAMPLE_HEAD) is False:
            self.damaged.add(self._lines)
            self._end += len(line)
        elif not self._note(head[1], int(head[2]), len(line)):
            self._end += len(line)

    def _note(self, name: bytes, position: int, length: int) -> bool:
        """Remember that the next line is the sample's; False where one before it is."""
        if self._offsets.put_first(digest64(name), self._end) >= 0:
            return False
        self._positions.append(position)
        self._begins.append(self._end)
        self._end += length
        return True

    def _refuse_foreign(self, file: GrowingFile) -> None:
        """Leave a file alone that is not a run's: a dataset may have this name, too."""
        if ends_foreign(file) or (file.end and not any(map(SAMPLE_HEAD.match, file.lines()))):
            raise StorageError(
                f"{str(self.path)!r} is not a file that a run wrote. Move it away, or choose another output directory."
            )


def _rise(numbers: Iterable[int]) -> bool:
    return all(one < following for one, following in pairwise(numbers))


def sample_json(sample: Sample) -> bytes:
    """The sample as JSON, whatever it holds, without where it stands."""
    try:
        return sample.__pydantic_serializer__.to_json(sample, exclude={"position"}, exclude_none=True)
    except PydanticSerializationError:  # text that is not valid Unicode
        return forgiving_json(sample.model_dump(exclude={"position"}, exclude_none=True))


def sample_name(text: bytes) -> bytes:
    """The name of the sample whose JSON this is."""
    return hashlib.sha256(text).hexdigest()[:32].encode()


def is_large(text: bytes) -> bool:
    """Whether a sample's JSON may hold parts that are named by digest where they would be told again."""
    return len(text) > LARGE or b"data:image/" in text
