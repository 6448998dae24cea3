# SPDX-License-Identifier: Apache-2.0
"""Read an experiment from wherever it is: Parquet, a run directory, JSON lines, a DataFrame, an Arrow table.

path ──▶ the columns figures are made of ──▶ judged_answers.arrange ──▶ JudgedAnswers
         (texts stay where they are, and are read row by row when they are shown)
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reward_kit.agent.figures import EpisodeFigures, is_branch, is_episode
from reward_kit.analysis.judged_answers import METRIC, Grouping, JudgedAnswers, Judging, arrange
from reward_kit.analysis.texts import JsonLines, Loaded, ParquetTexts, Texts
from reward_kit.errors import DatasetError, StorageError
from reward_kit.storage.at_hand import fetch_source
from reward_kit.storage.best_of_n_tables import refuse_damaged_parquet
from reward_kit.storage.judged import JudgedAnswer, row_of_line
from reward_kit.storage.run_directory import held_by, read_document
from reward_kit.storage.thresholds import Thresholds, thresholds_of
from reward_kit.storage.vocabularies import FIGURES, RUN, TEXTS, find_columns, verdict_of
from reward_kit.stores.addresses import is_stored
from reward_kit.utils import exact_json

__all__ = ["ResultsLike", "ResultsReader", "load"]

ResultsLike = Any
"""A path, a DataFrame (pandas, polars), an Arrow table, anything with the Arrow stream interface, or JudgedAnswers."""

_REPEATING = ("query_id", "split", "error", "error_type", "error_stage", "finish_reason", "model")
"""Text columns whose values repeat: read as dictionaries, which is faster and needs no second pass to number them."""
_VALID = "score_is_valid"
"""A column of results that says which scores are none."""


def load(
    source: ResultsLike, *, name: str | None = None, pass_threshold: float | None = None, by: str | None = None
) -> JudgedAnswers:
    """Read an experiment.

    `pass_threshold` says from which score on an answer counts as verified, where the file or its run does not say it,
    or should be overruled. `by` names a column of the dataset whose values figures are told apart by, as they are by
    split without it.
    """
    if isinstance(source, JudgedAnswers):
        found = source
    elif isinstance(source, str) and is_stored(source):
        found = _from_store(source, name, pass_threshold)
    elif isinstance(source, str | PathLike):
        found = _from_path(Path(source), name, pass_threshold)
    else:
        table = _as_table(source)
        figures = _renamed(table, _wanted(table.column_names, "The table"))
        found = _arranged(figures, table.schema.metadata, name or "table", Loaded(table), pass_threshold)
    return found if by is None else _grouped(found, by)


def _grouped(answers: JudgedAnswers, column: str) -> JudgedAnswers:
    """The same answers, their queries told apart by a column; that of a query is what its first row holds."""
    values = answers.texts.column(column, answers.source_rows[answers.starts[:-1]])
    if values is None:
        present = ", ".join(answers.texts.column_names()) or "none"
        raise DatasetError(f"{answers.name!r} has no column {column!r}. It has: {present}. Name one of them.")
    named = ["(none)" if value is None else value if isinstance(value, str) else str(value) for value in values]
    coded: Any = pa.array(named).dictionary_encode()
    grouping = Grouping(column, tuple(coded.dictionary.to_pylist()), coded.indices.to_numpy().astype(np.int64))
    return replace(answers, grouping=grouping)


def _from_store(address: str, name: str | None, pass_threshold: float | None) -> JudgedAnswers:
    """What is in a store is fetched, and kept as long as somebody may want its texts."""
    folder = TemporaryDirectory(prefix="reward-kit-")
    found = _from_path(fetch_source(address, Path(folder.name)), name, pass_threshold)
    weakref.finalize(found.texts, folder.cleanup)
    return found


def _from_path(path: Path, name: str | None, pass_threshold: float | None) -> JudgedAnswers:
    if path.is_dir():
        results = path / "results.jsonl"
        if not results.is_file():
            raise DatasetError(
                f"The directory {str(path)!r} holds no results.jsonl. Name a run directory or a Parquet file."
            )
        path, name = results, name or path.name
    if not path.is_file():
        raise DatasetError(f"There is no file {str(path)!r}. Name a Parquet file or a run directory.")
    if not path.stat().st_size:
        raise DatasetError(f"The file {str(path)!r} is empty: whatever wrote it did not finish. Run it again.")
    if path.suffix in (".jsonl", ".ndjson"):
        reader = ResultsReader(path, pass_threshold)
        reader.read()
        reader.refuse_cut()
        return reader.judged_answers(name)
    return _from_parquet(path, name or _shown(path), pass_threshold)


def _shown(path: Path) -> str:
    """A run's results all have the same name: its directory says which run."""
    return path.parent.resolve().name if path.name == "results.jsonl" else path.name


def _from_parquet(path: Path, name: str, pass_threshold: float | None) -> JudgedAnswers:
    try:
        refuse_damaged_parquet(path)
        schema = pq.read_schema(path)
        wanted = _wanted(schema.names, repr(str(path)))
        repeating = [column for field, column in wanted.items() if field in _REPEATING and _is_text(schema, column)]
        with pq.ParquetFile(path, read_dictionary=repeating, page_checksum_verification=True) as file:
            figures = _renamed(file.read(columns=[*dict.fromkeys(wanted.values())]), wanted)
        texts = ParquetTexts(path)
    except DatasetError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise DatasetError(
            f"{str(path)!r} cannot be read as Parquet ({_first_line(error)}). "
            "It is damaged, cut short or something else: make it again, or name another file."
        ) from error
    return _arranged(figures, schema.metadata, name, texts, pass_threshold)


def _is_text(schema: pa.Schema, column: str) -> bool:
    kind = schema.field(column).type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def _as_table(source: Any) -> pa.Table:
    """Any table in memory as an Arrow table."""
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    if type(source).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(source, preserve_index=False)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return pa.table(source)
    raise DatasetError(
        f"Cannot analyse a {type(source).__name__!r}. Give a path, a DataFrame of pandas or polars, or an Arrow table."
    )


def _with_verdicts(figures: pa.Table, pass_threshold: float | None) -> pa.Table:
    """Verified is what the table says, or what reaches the threshold that was given; without either, a score of 1."""
    has_verdicts = "is_verified" in figures.column_names
    if "score" not in figures.column_names or (has_verdicts and pass_threshold is None):
        return figures
    limit: Any = pa.scalar(1.0 if pass_threshold is None else pass_threshold)
    verdicts: Any = pc.greater_equal(figures["score"].cast(pa.float64()), limit)
    judged: Any = figures["is_verified"].is_valid() if has_verdicts else None
    if _VALID in figures.column_names:
        judged = figures[_VALID]
    if judged is not None:
        verdicts = pc.if_else(judged, verdicts, pa.scalar(None, pa.bool_()))
    rest = figures.drop_columns([name for name in ("is_verified", _VALID) if name in figures.column_names])
    return rest.append_column("is_verified", verdicts)


def _wanted(columns: list[str], whose: str) -> dict[str, str]:
    """The columns to read; a table that is no experiment is refused with what it lacks."""
    wanted = find_columns(FIGURES, columns)
    if "query_id" not in wanted:
        texts = find_columns(TEXTS, columns)
        if "query" in texts:
            wanted["query_id"] = texts["query"]
    missing = [field for field in ("query_id",) if field not in wanted]
    if not {"is_verified", "score"} & wanted.keys():
        missing.append("is_verified' or 'score")
    if missing:
        shown = ", ".join(columns[:12]) + (" …" if len(columns) > len(columns[:12]) else "")
        raise DatasetError(
            f"{whose} holds no judged answers: it has no column '{missing[0]}' (it has: {shown or 'none'}). "
            "Name a file that `reward-kit best-of-n` wrote, or rename its columns."
        )
    if RUN.score_is_valid in columns and "is_verified" not in wanted:
        wanted[_VALID] = RUN.score_is_valid
    return wanted


def _renamed(table: pa.Table, wanted: Mapping[str, str]) -> pa.Table:
    return pa.table({field: table[column] for field, column in wanted.items()})


def _arranged(
    figures: pa.Table, metadata: Mapping[bytes, bytes] | None, name: str, texts: Texts, pass_threshold: float | None
) -> JudgedAnswers:
    described = {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in (metadata or {}).items()
        if key not in (b"pandas", b"ARROW:schema", b"huggingface")
    }
    thresholded = pass_threshold is not None or "is_verified" in figures.column_names
    found = _sorted(_with_verdicts(figures, pass_threshold), described, name, texts, thresholded=thresholded)
    return replace(found, judging=_judging_in(described))


def _judging_in(metadata: Mapping[str, str]) -> Judging:
    """What judged a table of `best-of-n`, as its run's manifest has it, too."""
    try:
        run = orjson.loads(metadata.get("run", "{}"))
        digest = run["digests"]["results"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return Judging()
    settings = run.get("judged_by")
    return Judging(
        digest if isinstance(digest, str) else None, settings=settings if isinstance(settings, dict) else None
    )


def _sorted(
    figures: pa.Table, metadata: Mapping[str, str], name: str, texts: Texts, *, thresholded: bool
) -> JudgedAnswers:
    if not figures.num_rows:
        raise DatasetError(f"{name!r} holds no rows: nothing was generated. Run the experiment again.")
    identified = _identified(figures, texts)
    return arrange(identified, name=name, metadata=metadata, texts=texts, thresholded=thresholded)


def _identified(figures: pa.Table, texts: Texts) -> pa.Table:
    """Rows without an id belong to the query they ask, as files of earlier programs have them."""
    ids = figures["query_id"]
    if not ids.null_count:
        return figures
    missing = pc.indices_nonzero(ids.is_null()).to_numpy().astype("int64")
    queries = texts.take(["query"], missing).get("query", [None] * len(missing))
    whole = ids.cast(pa.string()).to_pylist()
    for row, query in zip(missing, queries, strict=True):
        whole[row] = None if query is None else str(query)
    if any(value is None for value in whole):
        raise DatasetError(
            "Some rows have neither a query_id nor the query's text, so it is not known which rows belong together. "
            "Give each row the id of its query."
        )
    return figures.set_column(figures.column_names.index("query_id"), "query_id", pa.array(whole, pa.string()))


# ── a results.jsonl ───────────────────────────────────────────────────────────────────────────────────────────────────


_TYPES: dict[str, pa.DataType] = {
    "candidate_idx": pa.int64(),
    "is_verified": pa.bool_(),
    **dict.fromkeys(("score", "prompt_tokens", "completion_tokens", "cost", "latency_ms"), pa.float64()),
}
_SCHEMA = pa.schema([(name, _TYPES.get(name, pa.string())) for name in (*FIGURES, "content")])
_Row = tuple[tuple[Any, ...], Mapping[str, Any]]
"""A line's figures, and its metrics."""
_VERIFIED, _SCORE = map(_SCHEMA.get_field_index, ("is_verified", "score"))
_BATCH = 50_000
"""Lines that become Arrow columns at once: Python's own values take ten times the room."""
_MANY_BATCHES = 64
"""So many are made one."""
_READ_BYTES = 1 << 18
"""Read at once: with Python's own 8 KB, a line of two kilobytes costs a microsecond more."""


class ReadState(NamedTuple):
    """What a reader had read at one moment."""

    table: pa.Table
    """The figures of the answers, in the order of the file."""
    offsets: NDArray[np.int64]
    """Where the line of each begins."""
    episodes: dict[str, Any] | None
    """The figures of an agent's episodes, where there are any."""


class ResultsReader:
    """Reads a results.jsonl as it grows: each line once, however often it is asked.

    A line that is not whole yet is left for the next time.
    """

    def __init__(self, path: Path, threshold: float | None = None) -> None:
        """Read nothing yet. `threshold` is the run's own unless given."""
        self._path = path
        self._thresholds = thresholds_of(path.parent, threshold)
        self._batches: list[pa.Table] = []
        self._offsets: list[NDArray[np.int64]] = []
        self._episodes = _Episodes()
        self.position = 0
        """Where the next line begins."""
        self.lines = 0
        """Lines that were read, empty ones included."""
        self.rows = 0
        """Answers among them."""
        self.branches = 0
        """Episodes among them that share steps with another: they are no answers of their own."""
        self.judged = 0
        self.total_score = 0.0
        """Of those judged."""

    @property
    def has_episodes(self) -> bool:
        """Whether an agent's episodes were among the lines."""
        return bool(self._episodes)

    def read(self, most: int | None = None) -> int:
        """Read what was appended, at most so many lines; how many lines that were."""
        rows: list[_Row] = []
        offsets: list[int] = []
        before = self.lines
        with self._path.open("rb", buffering=_READ_BYTES) as file:
            file.seek(self.position)
            for line in file:
                if line.strip():
                    if self.position and _is_torn(line):
                        break
                    self._take(line, rows, offsets)
                self.position += len(line)
                self.lines += 1
                if len(rows) == _BATCH:
                    self._keep(rows, offsets)
                    rows, offsets = [], []
                if most is not None and self.lines - before >= most:
                    break
        if rows:
            self._keep(rows, offsets)
        return self.lines - before

    def _take(self, line: bytes, rows: list[_Row], offsets: list[int]) -> None:
        row = row_of_line(line, self._path, self.lines + 1)
        if is_episode(row):
            self._episodes.note(row)
        if is_branch(row):
            self.branches += 1
            return
        figures = _figures_of(row, self._thresholds)
        rows.append((figures, row.get(RUN.metrics) or {}))
        offsets.append(self.position)
        self.rows += 1
        if figures[_VERIFIED] is not None:
            self.judged += 1
            self.total_score += figures[_SCORE]

    def _keep(self, rows: list[_Row], offsets: list[int]) -> None:
        self._batches.append(_batch(rows))
        self._offsets.append(np.array(offsets, dtype=np.int64))
        if len(self._batches) > _MANY_BATCHES:
            self._batches = [self.table()]
            self._offsets = [self.offsets()]

    def table(self) -> pa.Table:
        """The figures of all answers so far, in the order of the file."""
        return pa.concat_tables(self._batches or [_batch([])], promote_options="default").combine_chunks()

    def offsets(self) -> NDArray[np.int64]:
        """Where the line of each answer begins."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._offsets])

    def restore(self, table: pa.Table, offsets: NDArray[np.int64], *, position: int, lines: int) -> None:
        """Go on where another reader of the same lines was, which kept its table; there was no episode among them."""
        self._batches, self._offsets = [table], [offsets]
        self.position, self.lines, self.rows = position, lines, len(offsets)
        verified: Any = table["is_verified"]
        self.judged = len(verified) - verified.null_count
        self.total_score = float(pc.sum(table["score"]).as_py() or 0.0)

    def state(self) -> ReadState:
        """What was read so far. Reading on does not change it."""
        return ReadState(self.table(), self.offsets(), self._episodes.figures())

    def judged_answers(self, name: str | None = None, state: ReadState | None = None) -> JudgedAnswers:
        """What was read so far, or up to a state, put in order."""
        path, thresholds = self._path, self._thresholds
        table, offsets, episodes = state or self.state()
        said = {"pass_threshold": f"{thresholds.whole:g}"} | _run_metadata(_summary(path.parent / "summary.json"))
        texts = JsonLines(path, offsets)
        found = _sorted(table, said, name or _shown(path), texts, thresholded=thresholds.given)
        digests = (read_document(path.parent / "manifest.json") or {}).get("digests") or {}
        judged_by, made_by = digests.get("results") or {}, (digests.get("rollouts") or {}).get("settings") or {}
        judging = Judging(judged_by.get("digest"), judged_by.get("settings"), thresholds)
        given = made_by.get("generation.enabled") is False
        return replace(found, episodes=episodes, judging=judging, answers_given=given)

    def refuse_cut(self) -> None:
        """Stop where the file holds fewer lines than its run left in it."""
        _refuse_cut(self._path, self.rows + self.branches)


class _Episodes:
    """What is needed of an agent's episodes, by sample: a run that still goes on has its lines in any order."""

    def __init__(self) -> None:
        self._by_sample: dict[str, list[Mapping[str, Any]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_sample)

    def note(self, row: Mapping[str, Any]) -> None:
        """Take account of one line."""
        kept = {name: row.get(name) for name in ("branch", "ended", "truncated", "step_outputs")}
        steps = [{"reward": step.get("reward"), "calls": step["calls"]} for step in row["steps"]]
        self._by_sample.setdefault(str(row["id"]), []).append({**kept, "steps": steps})

    def figures(self) -> dict[str, Any] | None:
        """The figures of all of them; None where there is none."""
        if not self._by_sample:
            return None
        found = EpisodeFigures()
        for lines in self._by_sample.values():
            found.add(lines)
        return found.figures()


def _is_torn(line: bytes) -> bool:
    """Whether it is the last line of a run that was cut short, or that is writing it just now."""
    if line.endswith(b"\n"):
        return False
    try:
        JudgedAnswer.of_line(line)
    except exact_json.JSONDecodeError:
        return True
    return False


def _refuse_cut(path: Path, found: int) -> None:
    held = held_by(path)
    if held is not None and found < held:
        raise StorageError(
            f"{str(path)!r} was cut: it holds {found} of the {held} lines it had. "
            "Run its command again, which judges what is missing."
        )


def _figures_of(line: Mapping[str, Any], thresholds: Thresholds) -> tuple[Any, ...]:
    """The columns of the schema."""
    usage = line.get("usage") or {}
    score, verified = verdict_of(line, thresholds)
    failure = line.get("failure") or {}
    return (
        str(line.get("id") or line.get("task_id")),
        line.get("split"),
        line.get("response_index", 0),
        verified,
        score,
        line.get("error") if verified is None else None,
        failure.get("type"),
        failure.get("stage"),
        line.get("finish_reason"),
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
        line.get("cost"),
        line.get("latency_ms"),
        line.get("model"),
        line.get("content"),
    )


def _batch(rows: list[_Row]) -> pa.Table:
    columns = list(zip(*(figures for figures, _ in rows), strict=True)) if rows else [()] * len(_SCHEMA)
    arrays: list[Any] = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    metrics = dict.fromkeys(name for _, measured in rows for name in measured)
    for name in metrics:
        found = (measured.get(name) for _, measured in rows)
        arrays.append(pa.array([None if one is None else one["score"] for one in found], pa.float64()))
    return pa.table(arrays, names=[*_SCHEMA.names, *(f"{METRIC}{name}" for name in metrics)])


def _summary(path: Path) -> Mapping[str, Any]:
    return read_document(path) or {}  # a run that was cut short has none, and is worth looking at


def _run_metadata(summary: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(summary[key]) for key in ("model", "model_name", "dataset_path") if summary.get(key)}
