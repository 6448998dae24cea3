# SPDX-License-Identifier: Apache-2.0
"""What a mirror holds, as plain values: the list of files and their parts, and the note of who writes there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from reward_kit.errors import StorageError
from reward_kit.stores.addresses import under
from reward_kit.utils.checksums import check_document, sealed_document

__all__ = ["Contents", "MirroredFile", "Owner", "Part", "contents_at", "owner_at", "part_name", "sha256_of"]

FORMAT = 1


def owner_at(mirror: str) -> str:
    """Where a mirror says who writes there."""
    return under(mirror, "mirror.json")


def contents_at(mirror: str, generation: int) -> str:
    """Where the list of what is mirrored is, of one generation."""
    return under(mirror, "mirror", f"{generation:06}.json")


def parts_at(mirror: str) -> str:
    """Where all parts are."""
    return under(mirror, "mirror", "parts")


def part_name(file: str, start: int, end: int, sha256: str) -> str:
    """The address of a part below the mirror. All parts of a file are in one folder, also where it is in a folder."""
    return f"mirror/parts/{file.replace('/', '~')}/{start:012}-{end:012}-{sha256[:16]}"


def sha256_of(data: bytes) -> str:
    """The checksum of some bytes."""
    return hashlib.sha256(data).hexdigest()


class Part(NamedTuple):
    """Some bytes of a file, as an object of their own."""

    start: int
    end: int
    sha256: str
    name: str
    """Its address below the mirror."""
    tier: int = 0
    """How often parts were put together to make it."""

    @classmethod
    def of(cls, file: str, start: int, data: bytes, tier: int = 0) -> Part:
        """The part that holds `data`, which begins at `start` of `file`. The same bytes always have the same name."""
        end, digest = start + len(data), sha256_of(data)
        return cls(start, end, digest, part_name(file, start, end, digest), tier)


@dataclass
class MirroredFile:
    """One file of a run directory as it was when it was last looked at."""

    parts: list[Part] = field(default_factory=list)
    modified_ns: int = 0

    @property
    def size(self) -> int:
        """How many of its bytes are mirrored."""
        return self.parts[-1].end if self.parts else 0


@dataclass
class Contents:
    """Everything that a mirror holds."""

    generation: int = 0
    writer: str = ""
    """The id of whoever wrote this."""
    finished: bool = False
    """Whether the files lie in the mirror whole, under their own names."""
    files: dict[str, MirroredFile] = field(default_factory=dict)

    def names(self) -> set[str]:
        """The objects that this list needs, by their addresses below the mirror."""
        return {part.name for file in self.files.values() for part in file.parts}

    def written(self) -> bytes:
        """As it stands in the store, with a checksum."""
        files = {
            name: {"modified_ns": file.modified_ns, "parts": [list(part) for part in file.parts]}
            for name, file in self.files.items()
        }
        fields = {"format": FORMAT, "generation": self.generation, "writer": self.writer}
        fields |= {"finished": self.finished, "files": files}
        return sealed_document(fields)

    @classmethod
    def read(cls, data: bytes, where: str) -> Contents:
        """What `written` wrote."""
        fields = _checked(data, where)
        files = {
            name: MirroredFile([Part(*part) for part in file["parts"]], file["modified_ns"])
            for name, file in fields["files"].items()
        }
        return cls(fields["generation"], fields["writer"], fields["finished"], files)


@dataclass
class Owner:
    """Who writes to a mirror."""

    generation: int
    id: str
    """Made up anew by each who takes the mirror."""
    machine: str
    """Tells machines, and containers on one, apart."""
    host: str
    pid: int
    every: float
    """Seconds between two beats."""
    beat: int = 0
    released: bool = False
    """Whether it has left the mirror as it should."""

    def written(self) -> bytes:
        """As it stands in the store, with a checksum."""
        return sealed_document({"format": FORMAT, **self.__dict__})

    @classmethod
    def read(cls, data: bytes, where: str) -> Owner:
        """What `written` wrote."""
        fields = _checked(data, where)
        return cls(**{name: fields[name] for name in cls.__dataclass_fields__})


def _checked(data: bytes, where: str) -> dict[str, Any]:
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError:
        fields = None
    if not isinstance(fields, dict) or "format" not in fields or check_document(fields) is not True:
        raise StorageError(f"{where!r} is not what a mirror's writer wrote. Choose another `output.mirror`.")
    if fields["format"] != FORMAT:
        raise StorageError(f"{where!r} was written by another version of reward-kit. Use that one, or another mirror.")
    return fields
