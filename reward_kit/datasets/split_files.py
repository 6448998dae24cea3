# SPDX-License-Identifier: Apache-2.0
"""Which files of a folder belong to a split, as Hugging Face tells it by their names.

data/NAME-00000-of-00005.parquet    any split: once one file is named so, these names count
test/a.jsonl, dev-v2/…              else the folders' names, by words for the three usual splits
test.jsonl, my_test-1.csv           else the files' names, by the same words
a.jsonl                             else all files are `train`
math.jsonl, math-1.jsonl, math/…    and a split of any other name has the files that begin with it
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from reward_kit.datasets.files import DataFile
from reward_kit.errors import DatasetError

__all__ = ["files_of_split"]

_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_BETWEEN = r"[-._ 0-9]"
_SHARD = re.compile(r"(?:^|.*/)data/([^/]+)-\d{5}-of-\d{5}[^/]*\.[^/]*")


def files_of_split(split: str, files: Sequence[DataFile], folder: str) -> list[DataFile]:
    """The files of a split, or of several with `+` between them; a `DatasetError` names those that are there."""
    found = _by_split(files, folder)
    names = [name.strip() for name in split.split("+")]
    chosen = [file for name in names for file in found.get(name) or _named_after(name, files, folder)]
    if missing := [name for name in names if not (found.get(name) or _named_after(name, files, folder))]:
        wanted = missing[0]
        there = ", ".join(map(repr, found))
        sliced = " A part of a split is not read from files: use `dataset.max_samples`." if "[" in wanted else ""
        raise DatasetError(
            f"{folder!r} has no split {wanted!r}: by the names of its files it has {there}.{sliced} Correct "
            "`dataset.split`, name the file itself in `dataset.path_or_name`, or call the files of that split "
            f"`{wanted.partition('[')[0]}.…`."
        )
    return chosen


def _by_split(files: Sequence[DataFile], folder: str) -> dict[str, list[DataFile]]:
    """The files of each split that the names tell."""
    places = {file: _inside(file, folder) for file in files}
    shards: dict[str, list[DataFile]] = {}
    for file, place in places.items():
        if (match := _SHARD.fullmatch(place)) is not None:
            shards.setdefault(match[1], []).append(file)
    by_folder = _by_words({file: PurePosixPath(place).parts[:-1] for file, place in places.items()})
    by_name = _by_words({file: PurePosixPath(place).parts[-1:] for file, place in places.items()})
    return shards or by_folder or by_name or {"train": [*files]}


def _by_words(parts: dict[DataFile, tuple[str, ...]]) -> dict[str, list[DataFile]]:
    """The files with a part whose name has a word of a split between its beginning, its end and marks."""
    found = {
        split: [file for file, names in parts.items() if any(_has_word(name, words) for name in names)]
        for split, words in _WORDS.items()
    }
    return {split: own for split, own in found.items() if own}


def _has_word(name: str, words: Sequence[str]) -> bool:
    return re.search(rf"(?:^|{_BETWEEN})(?:{'|'.join(words)})(?:{_BETWEEN}|$)", name) is not None


def _named_after(split: str, files: Sequence[DataFile], folder: str) -> list[DataFile]:
    """The files called after the split, or in a folder that is."""
    begins = re.compile(rf"(?:.*/)?{re.escape(split)}(?:[-./].*|/.*)")
    return [file for file in files if begins.fullmatch(_inside(file, folder))]


def _inside(file: DataFile, folder: str) -> str:
    """The file's path inside of the folder."""
    path, top = str(file).replace("\\", "/"), folder.rstrip("/")
    return path[len(top) + 1 :] if path.startswith(f"{top}/") else path.rpartition("/")[2]
