# SPDX-License-Identifier: Apache-2.0
"""A dataset of several splits as one stream of samples: all of the first split, then all of the second …

    nvidia/Nemotron-…      each split is loaded from the Hub
    folder/                math.jsonl, code-00000.parquet …: files named after their split, else as one file
    data/{split}.jsonl     the split's name is put into the path
    data.jsonl             rows say in the column `split` (or `category`) where they belong

Every row is given a prompt and a ground truth by the kind of its split (`ground_truths`). Where the rows hold their
answers, too, the stream is one of rollouts.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets.columns import CONTENT, USER_TURN, Columns, Reshaper, nearest_columns
from reward_kit.datasets.feed import Feed
from reward_kit.datasets.files import DataFile, file_format, files_in
from reward_kit.datasets.ground_truths import with_ground_truth
from reward_kit.datasets.loader import AnswersRead, RolloutStream, SampleStream
from reward_kit.datasets.row_ids import content_id
from reward_kit.datasets.rows import BadRow, BadRows, Row
from reward_kit.datasets.shapes import ShapeReader
from reward_kit.datasets.sources import Source, open_files, open_source
from reward_kit.datasets.truth_columns import id_by_content
from reward_kit.errors import DatasetError
from reward_kit.models import Rollout, Sample
from reward_kit.stores.addresses import is_stored, under

__all__ = ["Split", "SplitAnswers", "SplitStream", "is_local"]

_HOPELESS = 100
"""When so many rows of a split were read and none could be used, the others will not be better."""
_TESTS = ("test_cases", "tests", "unit_tests", "input_output")
"""Columns that hold what is right in a split of code."""
_READ_TO_COUNT = 20_000
"""A file that several splits share is read to count the rows of each, if it has no more rows than this."""


class Split(NamedTuple):
    """One split, and what kind of problems it holds."""

    name: str
    kind: str


def is_local(path: str) -> bool:
    """Whether `path` means files, and not a dataset of the Hub."""
    named = is_stored(path) or "{split}" in path or "*" in path or path.startswith(("/", "./", "../", "~"))
    return named or file_format(path) is not None or Path(path).exists()


class SplitStream(SampleStream):
    """Samples of several splits, each labelled with its own."""

    def __init__(
        self,
        config: DatasetConfig,
        splits: Sequence[Split],
        *,
        each: int | None = None,
        system_prompt: str | None = None,
        among: Collection[str] | None = None,
    ) -> None:
        """Of each split at most `each`. `among` names all splits that rows may belong to, where these are only some."""
        names = {split.name for split in splits} if among is None else {*among}
        self._splits = _SplitSource([_open(config, split, names) for split in splits], each)
        super().__init__(_feed(config, self._splits), system_prompt, None)

    def check(self) -> None:
        """Read up to the first usable row of every split; one that has none is a `DatasetError`."""
        self._splits.check()

    def _items(self, rows: Iterable[Row], bad: BadRows) -> Iterator[Sample]:
        self._splits.name_rows(former_ids=self.former_ids)
        return super()._items(rows, bad)


class SplitAnswers(RolloutStream):
    """The answers of several splits, each labelled with its own."""

    def __init__(
        self,
        config: DatasetConfig,
        splits: Sequence[Split],
        *,
        each: int | None = None,
        system_prompt: str | None = None,
        among: Collection[str] | None = None,
    ) -> None:
        """Those in `config.response_column`, of at most `each` queries of a split; `among` as for `SplitStream`."""
        names = {split.name for split in splits} if among is None else {*among}
        answer = config.response_column
        self._splits = _SplitSource([_open(config, split, names, answer) for split in splits], None)
        self._each = each
        super().__init__(_feed(config, self._splits), system_prompt, None)

    def check(self) -> None:
        """Read up to the first usable row of every split; one that has none is a `DatasetError`."""
        self._splits.check()

    def _items(self, rows: Iterable[Row], bad: BadRows) -> Iterator[Rollout]:
        """Split by split: a query may take several rows, so the rows of a split cannot be counted beforehand."""
        self._splits.name_rows(former_ids=self.former_ids)
        read = AnswersRead(self._interpreter, bad)
        for part in self._splits.parts:
            yield from read.rollouts(part.rows(bad), self._each)


def _feed(config: DatasetConfig, source: _SplitSource) -> Feed:
    """The rows of a split are reshaped before their ground truth is looked for, so not a second time."""
    done: dict[str, Any] = {
        "split": None, "column_mapping": {}, "preprocess": [], "choices": None, "prompt_template": None,
        "max_samples": None,
    }  # fmt: skip
    return Feed(config.model_copy(update=done), lambda _: source)


class _SplitSource:
    """The rows of all splits, one split after the other."""

    def __init__(self, parts: Sequence[_SplitRows], each: int | None) -> None:
        self.parts = parts
        self._each = each

    def rows(self, bad: BadRows) -> Iterator[Row]:
        for part in self.parts:
            yield from islice(part.rows(bad), self._each)

    def name_rows(self, *, former_ids: bool) -> None:
        """Say how rows without an id are named."""
        for part in self.parts:
            part.former_ids = former_ids

    def check(self) -> None:
        """Read up to the first usable row of every split; one that has none is a `DatasetError`."""
        for part in self.parts:
            next(part.rows(BadRows(skip=True)))

    def size_hint(self, up_to: int | None) -> int | None:
        """How many rows there are at most."""
        own = self._sum(part.source.size_hint(self._each) for part in self.parts if not part.is_shared)
        shared = self._size_of_shared([part for part in self.parts if part.is_shared])
        return None if own is None or shared is None else own + shared

    def _size_of_shared(self, parts: Sequence[_SplitRows]) -> int | None:
        """How many rows these splits have in the file that they share. A long file is not read to find out."""
        if not parts:
            return 0
        source = parts[0].source
        whole = source.size_hint(_READ_TO_COUNT + 1)
        if whole is not None and whole <= _READ_TO_COUNT:
            found = Counter(map(parts[0].split_of, source.rows(BadRows(skip=True))))
            return self._sum(found[part.split.name] for part in parts)
        at_most = self._sum(source.size_hint(self._each) for _ in parts)
        in_file = source.size_hint(at_most)
        return at_most if at_most is None or in_file is None else min(at_most, in_file)

    def _sum(self, sizes: Iterable[int | None]) -> int | None:
        total = 0
        for size in sizes:
            bounds = [bound for bound in (size, self._each) if bound is not None]
            if not bounds:
                return None
            total += min(bounds)
        return total

    def fingerprint(self) -> str:
        """Changes with the files, and with how much of them is asked for."""
        parts = [f"{part.split.name}\0{part.split.kind}\0{part.source.fingerprint()}" for part in self.parts]
        return hashlib.sha256("\n".join([*parts, str(self._each)]).encode()).hexdigest()[:16]


class _SplitRows:
    """The rows of one split, made ready to be interpreted."""

    def __init__(
        self,
        config: DatasetConfig,
        split: Split,
        source: Source,
        answer: str | None,
        among: set[str] | None = None,
    ) -> None:
        """`answer` is the column that holds the answer; None where a model is asked for it.

        `among` are the splits that rows of the source may belong to; None where all belong to this one.
        """
        self.split = split
        self._answer = answer
        self.source = source
        self._dataset = config.path_or_name
        self._among = among
        self.former_ids = False
        """As in the stream that the rows belong to."""
        self._truths = {config.column_mapping.get("ground_truth", ""), *(_TESTS if split.kind == "code" else ())}
        self._reshaper = Reshaper(config)
        self.shapes = ShapeReader(config.format)

    @property
    def is_shared(self) -> bool:
        """Whether the source may hold rows of other splits, too."""
        return self._among is not None

    def split_of(self, row: Row) -> str | None:
        """The split that a row of the source belongs to; None where it does not say so."""
        try:
            return self.split.name if self._among is None else _split_of(row.columns, self._among)
        except BadRow:
            return None

    def _has(self, columns: Columns) -> bool:
        return self._among is None or _split_of(columns, self._among) == self.split.name

    def rows(self, bad: BadRows) -> Iterator[Row]:
        """The usable rows; a split without any is an error, and so is one that begins with nothing else."""
        usable, hopeless = 0, 0
        reason = ""
        for row in self.source.rows(bad):
            try:
                ready = self._ready(row, bad) if self._has(row.columns) else []
            except BadRow as problem:
                bad.report(row.origin, row.number, str(problem))
                hopeless, reason = hopeless + 1, reason or f"{row.where}: {problem}"
                if not usable and hopeless >= _HOPELESS:
                    break
                continue
            usable += len(ready)
            yield from ready
        if not usable:
            raise self._unusable(hopeless, reason)

    def _ready(self, row: Row, bad: BadRows) -> list[Row]:
        """The rows that a row becomes, each with its split and ground truth."""
        reshaped = self._reshaper.reshape([row], bad)
        return [each._replace(columns=self._with_truth(each.columns)) for each in reshaped]

    def _with_truth(self, columns: Columns) -> Columns:
        """Named after what the row held before, so that a run over the same rows gives it the same id."""
        answer: Columns = {}
        if self._answer is not None:  # neither what is asked nor what it is judged by
            columns, answer = _without_answer(columns, self._answer)
        content = self._content(columns)
        known = columns if "messages" in columns else self.shapes.read(columns, only_shape=self.split.kind == "code")
        truth = with_ground_truth(known, self.split.kind)
        return {**truth, **answer, CONTENT: content, "split": self.split.name}

    def _content(self, columns: Columns) -> str:
        """What the row is called where it has no id of its own."""
        named = {name: value for name, value in columns.items() if name not in ("id", USER_TURN)}
        return content_id(named) if self.former_ids else id_by_content(named, self._truths)

    def _unusable(self, hopeless: int, reason: str) -> DatasetError:
        if hopeless:
            return DatasetError(
                f"None of the first {hopeless} rows of split {self.split.name!r} can be used, the first one because "
                f"{reason}. Correct the rows, or leave the split out."
            )
        return DatasetError(
            f"{self._dataset!r} has no row of split {self.split.name!r}. "
            "Check `splits`, and the column 'split' of the rows."
        )


def _without_answer(columns: Columns, name: str) -> tuple[Columns, Columns]:
    """The row without its answer, and the answer with its number."""
    if name not in columns:
        raise BadRow(f"there is no column {name!r} with the answer ({nearest_columns(name, columns)})")
    theirs = (name, "response_index")
    rest = {column: value for column, value in columns.items() if column not in theirs}
    return rest, {column: columns[column] for column in theirs if column in columns}


def _open(config: DatasetConfig, split: Split, names: set[str], answer: str | None = None) -> _SplitRows:
    """The rows of a split; `names` are all splits that the rows of a single file may belong to."""
    path = config.path_or_name or ""
    if config.source_type == "huggingface" or not is_local(path):
        whole = config.model_copy(update={"split": split.name, "source_type": "huggingface"})
        return _SplitRows(config, split, open_source(whole), answer)
    if "{split}" in path:
        named = config.model_copy(update={"path_or_name": path.replace("{split}", split.name)})
        return _SplitRows(config, split, open_source(named), answer)
    if own := _files_named_after(split.name, path, config.storage_options):
        return _SplitRows(config, split, open_files(own), answer)
    return _SplitRows(config, split, open_source(config), answer, names)


def _files_named_after(split: str, path: str, options: Mapping[str, Any]) -> list[DataFile]:
    """The files of a folder that are named after the split, as the Hub lays them out, too: `data/math-00000-…`."""
    if file_format(path) is not None:
        return []
    files = [file for place in (path, under(path, "data")) for file in files_in(place, options)]
    for name in (split, split.partition("_")[0]):
        if own := [file for file in files if file.name.startswith((f"{name}.", f"{name}-"))]:
            return own
    return []


def _split_of(columns: Columns, names: set[str]) -> str | None:
    """The split a row says it belongs to; where only one is asked for, a row that says nothing belongs to it."""
    named = columns.get("split")
    if named is not None:
        return str(named)
    if columns.get("category") in names:
        return str(columns["category"])
    if len(names) == 1:
        return next(iter(names))
    if "category" in columns:
        return None
    raise BadRow("there is no column 'split' that says which of the splits the row belongs to")
