"""Read an experiment from wherever it is: Parquet, a run directory, JSON lines, a DataFrame, an Arrow table.

path ──▶ the columns figures are made of ──▶ ordering.arrange ──▶ Experiment
         (texts stay where they are, and are read row by row when they are shown)
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reward_kit.analysis.columns import FIGURES, TEXTS, find_columns
from reward_kit.analysis.experiment import Experiment
from reward_kit.analysis.ordering import arrange
from reward_kit.analysis.run_results import read_results
from reward_kit.analysis.texts import JsonLines, Loaded, ParquetTexts
from reward_kit.errors import DatasetError
from reward_kit.storage.best_of_n_tables import refuse_damaged_parquet

__all__ = ["Source", "load"]

Source = Any
"""A path, a DataFrame (pandas, polars), an Arrow table, anything with the Arrow stream interface, or an Experiment."""

_REPEATING = ("query_id", "split", "error", "error_type", "error_stage", "finish_reason", "model")
"""Text columns whose values repeat: read as dictionaries, which is faster and needs no second pass to number them."""


def load(source: Source, *, name: str | None = None, pass_threshold: float | None = None) -> Experiment:
    """Read an experiment.

    `pass_threshold` says from which score on an answer of a `reward-kit run` counts as verified, where the run itself
    does not, or should be overruled. Best-of-N files hold their verdicts.
    """
    if isinstance(source, Experiment):
        return source
    if isinstance(source, str | PathLike):
        return _from_path(Path(source), name, pass_threshold)
    table = _with_verdicts(_as_table(source), pass_threshold)
    figures = _renamed(table, _wanted(table.column_names, "The table"))
    return _arranged(figures, table.schema.metadata, name or "table", Loaded(table))


def _from_path(path: Path, name: str | None, pass_threshold: float | None) -> Experiment:
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
        run = read_results(path, pass_threshold)
        told = {key.encode(): value.encode() for key, value in run.metadata.items()}
        return _arranged(run.table, told, name or _shown(path), JsonLines(path, run.offsets))
    return _from_parquet(path, name or _shown(path))


def _shown(path: Path) -> str:
    """A run's results all have the same name: its directory says which run."""
    return path.parent.resolve().name if path.name == "results.jsonl" else path.name


def _from_parquet(path: Path, name: str) -> Experiment:
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
    return _arranged(figures, schema.metadata, name, texts)


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


def _with_verdicts(table: pa.Table, pass_threshold: float | None) -> pa.Table:
    """The results of a `reward-kit run` in a table: verified is what reaches the threshold, 1 unless told."""
    if "evaluation_score" not in table.column_names or find_columns(FIGURES, table.column_names).get("is_verified"):
        return table
    limit: Any = pa.scalar(1.0 if pass_threshold is None else pass_threshold)
    scores = table["evaluation_score"].cast(pa.float64())
    verdicts: Any = pc.greater_equal(scores, limit)
    if "is_score_valid" in table.column_names:
        verdicts = pc.if_else(table["is_score_valid"], verdicts, pa.scalar(None, pa.bool_()))
    return table.append_column("is_verified", verdicts)


def _wanted(columns: list[str], whose: str) -> dict[str, str]:
    """The columns to read; a table that is no experiment is refused with what it lacks."""
    wanted = find_columns(FIGURES, columns)
    if "query_id" not in wanted:
        texts = find_columns(TEXTS, columns)
        if "query" in texts:
            wanted["query_id"] = texts["query"]
    missing = [field for field in ("query_id", "is_verified") if field not in wanted]
    if missing:
        shown = ", ".join(columns[:12]) + (" …" if len(columns) > len(columns[:12]) else "")
        raise DatasetError(
            f"{whose} is not a best-of-N experiment: it has no column {missing[0]!r} (it has: {shown or 'none'}). "
            "Name a file that `reward-kit best-of-n` wrote, or rename its columns."
        )
    return wanted


def _renamed(table: pa.Table, wanted: Mapping[str, str]) -> pa.Table:
    return pa.table({field: table[column] for field, column in wanted.items()})


def _arranged(
    figures: pa.Table, metadata: Mapping[bytes, bytes] | None, name: str, texts: JsonLines | Loaded | ParquetTexts
) -> Experiment:
    if not figures.num_rows:
        raise DatasetError(f"{name!r} holds no rows: nothing was generated. Run the experiment again.")
    told = {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in (metadata or {}).items()
        if key not in (b"pandas", b"ARROW:schema", b"huggingface")
    }
    return arrange(_identified(figures, texts), name=name, metadata=told, texts=texts)


def _identified(figures: pa.Table, texts: JsonLines | Loaded | ParquetTexts) -> pa.Table:
    """Rows without an id belong to the query they ask, as files of earlier programs have them."""
    ids = figures["query_id"]
    if not ids.null_count:
        return figures
    missing = pc.indices_nonzero(ids.is_null()).to_numpy().astype("int64")
    asked = texts.take(["query"], missing).get("query", [None] * len(missing))
    whole = ids.cast(pa.string()).to_pylist()
    for row, query in zip(missing, asked, strict=True):
        whole[row] = None if query is None else str(query)
    if any(value is None for value in whole):
        raise DatasetError(
            "Some rows have neither a query_id nor the query's text, so what belongs together cannot be told. "
            "Give each row the id of its query."
        )
    return figures.set_column(figures.column_names.index("query_id"), "query_id", pa.array(whole, pa.string()))
