# SPDX-License-Identifier: Apache-2.0
"""Where rows come from: JSON lines, CSV and Parquet files, functions, and rows already in memory.

A source can be read any number of times, from its beginning, one row (or batch) in memory at a time. Hugging Face
datasets are in `huggingface`.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias, cast

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets.files import (
    DataFile,
    Format,
    count_lines,
    file_format,
    files_below,
    files_of,
    fingerprint,
    open_bytes,
)
from reward_kit.datasets.huggingface import HuggingFaceSource
from reward_kit.datasets.rows import (
    BadRow,
    BadRows,
    Columns,
    Origin,
    Row,
    Written,
    as_json,
    as_python,
    as_table,
    as_told,
    as_written,
    cells,
    check_depth,
    plain,
)
from reward_kit.datasets.split_files import files_of_split
from reward_kit.errors import DatasetError, needs_extra
from reward_kit.models import Sample
from reward_kit.stores.addresses import is_stored
from reward_kit.stores.reasons import StoreError
from reward_kit.utils import exact_json
from reward_kit.utils.module_loader import load_function, source_digest

__all__ = [
    "CsvSource",
    "FunctionSource",
    "JsonlSource",
    "MemorySource",
    "ParquetSource",
    "Source",
    "open_files",
    "open_source",
]

_IMPORT_PATH = re.compile(r"(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|(?!\w+://).+\.py):[A-Za-z_]\w*")
"""`pkg.mod:function` or `file.py:function`."""
_BATCH = 1024
"""Parquet rows in memory at a time."""
_BOM = b"\xef\xbb\xbf"
_NESTED = 100
"""A line with no more brackets than this is not too deep."""
_BEGINNING = 4096
"""Bytes of a file in which its first character must stand."""


class Source(Protocol):
    """Rows that can be read again and again."""

    def rows(self, bad: BadRows) -> Iterator[Row]:
        """The rows from the beginning; unreadable ones are reported to `bad`."""

    def size_hint(self, up_to: int | None) -> int | None:
        """About how many rows there are, where that is cheap to know. Counting may stop at `up_to`."""

    def fingerprint(self) -> str | None:
        """A cheap identity of the current content; None where there is none."""


def open_source(config: DatasetConfig) -> Source:
    """The source that `config` names. Local files must exist; nothing is read yet."""
    path = config.path_or_name
    if path is None:
        raise DatasetError(
            "The dataset names no source. Set `dataset.path_or_name` to a file or a Hugging Face dataset."
        )
    kind = config.source_type or ("python" if _IMPORT_PATH.fullmatch(path) else None) or file_format(path)
    if kind not in {"huggingface", "python"} and (own := _files_of_split(config, path)):
        return open_files(own) if kind is None else _FILE_SOURCES[cast(Format, kind)](own)
    kind = kind or _format_on_disk(path, config.storage_options) or "huggingface"
    if kind == "huggingface":
        return HuggingFaceSource(config, path)
    if kind == "python":
        return FunctionSource(path, config.config_name)
    return _FILE_SOURCES[kind](files_of(path, config.storage_options))


def _files_of_split(config: DatasetConfig, path: str) -> list[DataFile]:
    """The files of the split in a folder; none where the path means no folder, or no split is named.

    A single file, or those of a pattern, were chosen by whoever named them: the split is a label then.
    """
    if config.split is None or any(sign in path for sign in "*?[") or file_format(path) is not None:
        return []
    folder = path if is_stored(path) else str(Path(path).expanduser())
    files = files_below(folder, config.storage_options) if is_stored(path) or Path(folder).is_dir() else []
    return files_of_split(config.split, files, folder) if files else []


def open_files(paths: list[DataFile]) -> Source:
    """The rows of these files, which are of one format, one file after the other."""
    formats = {file_format(path) for path in paths}
    kind = formats.pop()
    if kind is None or formats:
        raise DatasetError(
            f"{', '.join(map(str, paths))} do not have one known format. Name files with the same suffix."
        )
    return _FILE_SOURCES[kind](paths)


def _format_on_disk(path: str, options: Mapping[str, Any]) -> Format | None:
    """The format of files that `path` means although it has no telling suffix: a directory, a glob, `./data`."""
    named = is_stored(path) or "*" in path or path.startswith(("/", "./", "../", "~"))
    if not (named or Path(path).expanduser().exists()):
        return None
    files = files_of(path, options)
    formats = {file_format(file) for file in files}
    found = formats.pop()
    if found is None or formats:
        problem = "they differ" if formats else "no known suffix"
        raise DatasetError(
            f"The format of {path!r} is unclear from its file names ({problem}). Set `dataset.source_type`."
        )
    return found


class _FileSource:
    """Some files, one after the other."""

    def __init__(self, paths: Sequence[DataFile]) -> None:
        self.paths = paths

    def rows(self, bad: BadRows) -> Iterator[Row]:
        """The rows of each file in turn."""
        for path in self.paths:
            origin = Origin(str(path))
            try:
                yield from self._rows_of(path, origin, bad)
            except StoreError as error:
                raise DatasetError(
                    f"Cannot read {str(path)!r} to its end: {error}. Run the same command again to go on."
                ) from error
            except (EOFError, zlib.error, OSError) as error:
                raise DatasetError(
                    f"Cannot read {str(path)!r} to its end: {error}. Replace it with a complete file."
                ) from error

    def _rows_of(self, path: DataFile, origin: Origin, bad: BadRows) -> Iterator[Row]:
        raise NotImplementedError

    def size_hint(self, up_to: int | None) -> int | None:
        """The number of lines, unless a file is compressed."""
        return count_lines(self.paths, up_to)

    def fingerprint(self) -> str | None:
        """Changes with the files' names, sizes and modification times, or versions in a store."""
        return fingerprint(self.paths)


class JsonlSource(_FileSource):
    """JSON lines, one JSON array, or one object over several lines.

    Blank lines, CRLF and a byte order mark are tolerated. An object with a key twice says two things, and is refused.
    """

    def _rows_of(self, path: DataFile, origin: Origin, bad: BadRows) -> Iterator[Row]:
        with open_bytes(path) as file:
            lines: Iterator[tuple[int, bytes]] = enumerate(_without_bom(file), start=1)
            for number, line in lines:
                if line.lstrip().startswith(b"["):
                    yield from _array(b"".join([line, *(rest for _, rest in lines)]), number, path, bad)
                    return
                whole, lines = _one_object(line, lines) if _goes_on(line) else (line, lines)
                if (row := _row_of(whole, origin, number, bad)) is not None:
                    yield row
                if line.strip():
                    break
            for number, line in lines:
                if (row := _row_of(line, origin, number, bad)) is not None:
                    yield row

    def size_hint(self, up_to: int | None) -> int | None:
        """The number of lines, unless a file is compressed; unknown where a file is one JSON document."""
        return None if any(map(_is_document, self.paths)) else super().size_hint(up_to)


def _row_of(line: bytes, origin: Origin, number: int, bad: BadRows) -> Row | None:
    """The row with what its line holds; None where the line is blank or bad."""
    try:
        columns = exact_json.loads(line, unique_keys=True)
        written: Written = as_json
        if isinstance(columns, dict) and _writes_otherwise(line, columns):
            columns, texts = exact_json.loads_with_texts(line, unique_keys=True)
            written = as_written(texts) if texts else as_json
        if line.count(b"[") + line.count(b"{") > _NESTED:
            check_depth(columns)
        if not isinstance(columns, dict):
            raise BadRow(f"expected a JSON object, found {_shown(columns)}")
    except (ValueError, RecursionError) as error:
        if line.strip():
            bad.report(origin, number, _why_not_json(line, error))
    except BadRow as problem:
        bad.report(origin, number, str(problem))
    else:
        return Row(origin, number, columns, written)
    return None


def _array(text: bytes, number: int, path: DataFile, bad: BadRows) -> Iterator[Row]:
    """The rows of a file that is one JSON array of objects, which begins in line `number`."""
    try:
        items, texts = exact_json.loads_with_texts(text, unique_keys=True)
    except (ValueError, RecursionError) as error:
        raise DatasetError(
            f"{str(path)!r} begins with '[' in line {number}, but is no JSON array: {error}. Correct the file, or "
            "write JSON lines: one object per line, without brackets and commas around them."
        ) from None
    origin, written = Origin(str(path), "item"), as_written(texts) if texts else as_json
    for place, item in enumerate(items, start=1):
        try:
            check_depth(item)
        except BadRow as problem:
            bad.report(origin, place, str(problem))
            continue
        if isinstance(item, dict):
            yield Row(origin, place, item, written)
        else:
            bad.report(origin, place, f"expected a JSON object, found {item!r}")


def _goes_on(line: bytes) -> bool:
    """Whether an object begins in the line and is written over several lines."""
    return line.lstrip().startswith(b"{") and line.rstrip().endswith((b"{", b"[", b","))


def _one_object(line: bytes, lines: Iterator[tuple[int, bytes]]) -> tuple[bytes, Iterator[tuple[int, bytes]]]:
    """The whole file as one line, where it is one object over several; else this line, and those that follow."""
    rest = [*lines]
    whole = b"".join([line, *(text for _, text in rest)])
    try:
        exact_json.loads(whole)
    except (ValueError, RecursionError):
        return line, iter(rest)
    return whole, iter(())


def _is_document(path: DataFile) -> bool:
    """Whether a local file begins as a JSON array does, or as an object over several lines."""
    if not isinstance(path, Path):
        return False
    with open_bytes(path) as file:
        beginning = file.read(_BEGINNING).removeprefix(_BOM).lstrip()
    return beginning.startswith(b"[") or _goes_on(beginning.partition(b"\n")[0])


_MAY_HOLD_FLOATS = frozenset({float, dict})


def _writes_otherwise(line: bytes, columns: Mapping[str, Any]) -> bool:
    """Whether the line may write a float otherwise than Python, in a column or under a name inside one.

    Only such a value can be a ground truth. What stands behind its name tells it; a name in two places is looked at
    more closely.
    """
    if _MAY_HOLD_FLOATS.isdisjoint(map(type, columns.values())):
        return False
    for name, value in columns.items():
        kind = type(value)
        if kind is float and {*_numbers_behind(name)(line)} != {repr(value).encode()}:
            return True
        if kind is dict and _writes_otherwise(line, value):
            return True
    return False


@functools.lru_cache(maxsize=1024)
def _numbers_behind(name: str) -> Callable[[bytes], list[bytes]]:
    key = re.escape(json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return re.compile(key + rb"\s*:\s*([-+.0-9eE]+)").findall


def _without_bom(file: BinaryIO) -> Iterator[bytes]:
    first = file.readline()
    if first:
        yield first.removeprefix(_BOM)
    yield from file


def _why_not_json(line: bytes, error: Exception) -> str:
    if _goes_on(line) or line.strip() == b"[":
        return (
            "the JSON object does not end on its line; this is a JSON document, not JSON lines (one object a line). "
            "Write `jq -c . FILE > ROWS.jsonl` and name that file"
        )
    try:
        line.decode()
    except UnicodeDecodeError as problem:
        return f"not UTF-8 text (byte {problem.start + 1} of the line)"
    return f"not valid JSON: {re.sub(r'line 1 column', 'column', str(error))}"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "a list; this is a JSON document, not JSON lines (one object a line)"
    return repr(value)


class CsvSource(_FileSource):
    """CSV with a header line (tabs instead of commas in `.tsv`). All values are text; an empty cell is empty text.

    Where the usual delimiter leaves the header in one piece, the one of comma, semicolon and tab counts that does not.
    """

    def _rows_of(self, path: DataFile, origin: Origin, bad: BadRows) -> Iterator[Row]:
        csv.field_size_limit(2**31 - 1)  # the default of 128 KiB is less than some prompts
        # Bytes that are not UTF-8 come through as surrogates, so that they cost their row and not the whole file.
        with TextIOWrapper(open_bytes(path), "utf-8-sig", "surrogateescape", newline="") as text:
            first = text.readline()
            delimiter = _delimiter(first, "\t" if ".tsv" in path.suffixes else ",")
            reader = csv.reader(chain([first], text), delimiter=delimiter, strict=True)
            header = _header(reader, origin)
            while True:
                number = reader.line_num + 1
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    bad.report(origin, number, f"not valid CSV: {error}")
                    continue
                if problem := _problem_with(cells, header):
                    bad.report(origin, number, problem)
                elif cells:
                    yield Row(origin, number, dict(zip(header, cells, strict=True)))

    def size_hint(self, up_to: int | None) -> int | None:
        """The number of lines less the headers; too high where cells hold line breaks."""
        lines = count_lines(self.paths, None if up_to is None else up_to + len(self.paths))
        return None if lines is None else max(0, lines - len(self.paths))


def _delimiter(header: str, usual: str) -> str:
    """What stands between the cells, by the header."""
    if _count_cells(header, usual) > 1:
        return usual
    return max((usual, ",", ";", "\t"), key=lambda delimiter: _count_cells(header, delimiter))


def _count_cells(header: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([header], delimiter=delimiter), []))
    except csv.Error:
        return 0


def _header(reader: Iterator[list[str]], origin: Origin) -> list[str]:
    try:
        header = next(reader, [])
    except csv.Error as error:
        raise DatasetError(f"{origin.name!r} has no readable header line: {error}. Correct the file.") from error
    if _problem_with(header, header):
        raise DatasetError(f"{origin.name!r}: line 1 is not UTF-8 text. Save the file as UTF-8.")
    if len(set(header)) < len(header) or "" in header:
        raise DatasetError(f"{origin.name!r}: every column needs a name of its own, not {header!r}. Correct line 1.")
    return header


def _problem_with(cells: list[str], header: list[str]) -> str | None:
    if cells and len(cells) != len(header):
        return f"{len(cells)} cells where the header has {len(header)}"
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return "not UTF-8 text"
    return None


class ParquetSource(_FileSource):
    """Rows of Parquet files, read one batch at a time, so that a file need not fit into memory."""

    def _rows_of(self, path: DataFile, origin: Origin, bad: BadRows) -> Iterator[Row]:
        origin = Origin(str(path), "row")
        number = 0
        for batch in _batches(path):
            for columns in batch:
                number += 1
                try:
                    yield Row(origin, number, cells(columns, tuples=True), as_table)
                except BadRow as problem:
                    bad.report(origin, number, str(problem))

    def size_hint(self, up_to: int | None) -> int | None:
        """The number of rows, from the files' footers."""
        total = 0
        for path in self.paths:
            with _parquet_file(path) as file:
                total += file.metadata.num_rows
        return total


def _batches(path: DataFile) -> Iterator[list[dict[str, Any]]]:
    with _parquet_file(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH):
            yield batch.to_pylist()


@contextmanager
def _parquet_file(path: DataFile) -> Iterator[Any]:
    """An open Parquet file; whatever is wrong with it is a `DatasetError`."""
    with needs_extra(f"Reading {str(path)!r}", "parquet"):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    try:
        with ParquetFile(path if isinstance(path, Path) else cast(BinaryIO, path.open_raw())) as file:
            yield file
    except (ArrowException, OSError) as error:
        raise DatasetError(f"{str(path)!r} is not readable as Parquet: {error}. Correct the file.") from error


Given: TypeAlias = Mapping[str, Any] | Sample | Row
"""A row that a program holds: a dict, a sample that it once became, or a row as some file has it."""


class MemorySource:
    """Rows or samples that the caller holds."""

    def __init__(self, rows: Iterable[Given], name: str = "the given rows") -> None:
        # An iterator can be read once only; everything else is read where it lies.
        given, self._read = _rows_of_table(rows)
        self._given = list(given) if isinstance(given, Iterator) else given
        self._origin = Origin(name, "row")

    def rows(self, bad: BadRows) -> Iterator[Row]:
        """Each row as plain data."""
        for number, given in enumerate(self._given, start=1):
            try:
                columns, written = self._read(given)
            except BadRow as problem:
                bad.report(self._origin, number, str(problem))
            else:
                yield Row(self._origin, number, columns, written)

    def size_hint(self, up_to: int | None) -> int | None:
        """How many rows were given; None for an iterator, which cannot be counted beforehand."""
        return len(self._given) if isinstance(self._given, Sized) else None

    def fingerprint(self) -> str | None:
        """None: rows in memory are told apart by their own ids and digests only."""
        return None


class FunctionSource:
    """The rows that a function returns: `f()`, or `f(config_name)` where the dataset names a configuration."""

    def __init__(self, path: str, config_name: str | None) -> None:
        self._path = path
        self._arguments = [] if config_name is None else [config_name]
        try:
            self._function = load_function(path)
        except ImportError as error:
            raise DatasetError(f"`dataset.path_or_name` is {path!r}, which cannot be loaded: {error}") from error

    def rows(self, bad: BadRows) -> Iterator[Row]:
        """The rows, each as plain data; the function is called anew each time."""
        try:
            given = list(self._function(*self._arguments))
        except Exception as error:  # somebody else's function may raise anything
            raise DatasetError(
                f"{self._path!r}, the source of the dataset, raised {type(error).__name__}: {error}. Correct it."
            ) from error
        yield from MemorySource(given, self._path).rows(bad)

    def size_hint(self, up_to: int | None) -> int | None:
        """Unknown until the function has been called."""
        return None

    def fingerprint(self) -> str:
        """Changes with the function's source, and with what it is called with."""
        parts = [self._path, *self._arguments, source_digest(self._function)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


_Read = Callable[[Any], tuple[Columns, Written]]
"""A row as it would stand in a file, and how its values would be written there."""


def _rows_of_table(given: Any) -> tuple[Iterable[Any], _Read]:
    """The rows of a pandas or polars DataFrame or an Arrow table, none of which is imported for it; else as given.

    A Hugging Face dataset that was told to hand out tensors or frames hands out its rows as they are.
    """
    if hasattr(given, "with_format") and not isinstance(given, Mapping):
        return given.with_format(None), _arrow_row
    for method, arguments, read in _TABLES:
        if hasattr(given, method) and not isinstance(given, Mapping) and hasattr(given, "columns"):
            return getattr(given, method)(**arguments), read
    return given, _given_row


def _arrow_row(given: Any) -> tuple[Columns, Written]:
    return cells(given, tuples=True), as_table


def _frame_row(given: Any) -> tuple[Columns, Written]:
    return cells(given), as_table


_TABLES: tuple[tuple[str, dict[str, Any], _Read], ...] = (
    ("to_pylist", {}, _arrow_row),
    ("iter_rows", {"named": True}, _frame_row),
    ("to_dict", {"orient": "records"}, _frame_row),
)
"""How the tables that people have hand out their rows."""


def _given_row(given: Given) -> tuple[Columns, Written]:
    """A row that a program gives; a sample becomes the row it could have come from, a row of a file stays one."""
    if isinstance(given, Row):
        return plain(given.columns), given.written
    if not isinstance(given, Sample):
        if not isinstance(given, Mapping):
            raise BadRow(f"expected a dict or a Sample, found a {type(given).__name__}")
        return plain(given), as_python
    fields = given.model_dump(exclude={"columns", "position", "ground_truth", "ground_truth_text"}, exclude_none=True)
    columns = {**plain(given.columns), **plain(fields), "ground_truth": given.ground_truth}  # what is right is decided
    return columns, as_told(given.ground_truth_text)


_FILE_SOURCES: dict[Format, type[_FileSource]] = {"jsonl": JsonlSource, "csv": CsvSource, "parquet": ParquetSource}
