# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of `reward-kit best-of-n`: judged rollouts as lines of `results.jsonl`, and these as rows of Parquet.

sample.id → query_id · response_index → candidate_idx · score ≥ the verifier's threshold → is_verified

A line holds what a row needs and nothing twice. The rows come from the journal in its order, a row group at a time:
memory is bounded, and the file appears whole or not at all. `is_verified` and `score` are null where there is no
verdict; `error` says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from reward_kit.answers.reasoning import split_reasoning
from reward_kit.errors import MissingExtraError, StorageError
from reward_kit.models import Record, Rollout, Sample, set_fields
from reward_kit.storage.files import Draft
from reward_kit.storage.row_json import json_text
from reward_kit.storage.samples import Samples
from reward_kit.storage.tables import last_text, verdict_columns
from reward_kit.storage.vocabularies import BEST_OF_N
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import check_parquet, seal_parquet

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COLUMNS", "SCHEMA_VERSION", "Column", "Verification", "experiment_columns", "experiment_row", "read_metadata",
    "refuse_damaged_parquet", "require_parquet", "write_parquet",
]  # fmt: skip

SCHEMA_VERSION = "1"
"""The version of the columns, in the file's metadata."""

_LINES_AT_ONCE = 512
"""Taken apart while the processor's caches still hold them."""
_BYTES_PER_GROUP = 24 << 20
"""In memory: a row group is closed when it has so many."""
_SAFE = "The answers are safe in the run directory: make room, then run the same command again."


class Column(NamedTuple):
    """A column of the file."""

    name: str
    type: str
    """string, int32, int64, double or bool."""
    meaning: str
    repeats: bool = True
    """Whether values come again and again, so that a dictionary of them saves room."""


COLUMNS = (
    Column("query_id", "string", "the sample's id: its own, else the hash of its content"),
    Column("split", "string", "the split it is from"),
    Column("query", "string", "the last user turn of the prompt"),
    Column("messages", "string", "the whole prompt: a JSON list of messages"),
    Column("tools", "string", "the tools that were offered: a JSON list; null where none were"),
    Column("ground_truth", "string", "what the answer is verified against; JSON where it is not text"),
    Column("candidate_idx", "int32", "which of the query's answers it is, from 0"),
    Column("response", "string", "the answer, without reasoning", repeats=False),
    Column("reasoning", "string", "what the model thought before it answered; null where it told nothing", False),
    Column("tool_calls", "string", "the tool calls of the answer: a JSON list; null where there are none", False),
    Column("is_verified", "bool", "whether the verifier accepts the answer; null where there is no verdict"),
    Column("score", "double", "the verifier's score; null where there is no verdict"),
    Column("verifier", "string", "who verified"),
    Column("verification_reason", "string", "why, in the verifier's words", repeats=False),
    Column("error", "string", "why there is no verdict; null where there is one"),
    Column("error_type", "string", "the kind of that error"),
    Column("error_stage", "string", "`generate`: there is no answer; `score`: it could not be verified"),
    Column("model", "string", "the model that answered"),
    Column("finish_reason", "string", "why the answer ended: `stop`, `length`, `tool_calls` …"),
    Column("prompt_tokens", "int64", "of the request; null on candidates that shared one with an earlier candidate"),
    Column("completion_tokens", "int64", "of the request, all of its candidates together"),
    Column("cost", "double", "money for the request; 0 on candidates that shared one or came from the cache", False),
    Column("latency_ms", "double", "how long the request took", repeats=False),
    Column("cached", "bool", "whether the answer came from the response cache"),
    Column("generated_at", "string", "when the answer came: UTC, ISO 8601", repeats=False),
    Column("columns", "string", "the dataset's other columns: a JSON object; null where there are none"),
)
"""The columns, in their order."""

_FOR_PANDAS = {"is_verified": "boolean", "prompt_tokens": "Int64", "completion_tokens": "Int64"}
"""Pandas reads these into types that know nulls, so that a mean or a comparison of `is_verified` works as it is."""


class Verification(NamedTuple):
    """How the answers of a split are verified."""

    verifier: str
    threshold: float = 1.0


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def experiment_row(record: Record) -> dict[str, Any]:
    """The record as the columns of a line of an experiment's `results.jsonl`."""
    rollout = record.rollout
    return {  # what belongs to the sample stands first, and together: see _rows
        **experiment_columns(rollout.sample),
        **_answer_columns(rollout),
        **verdict_columns(record.verdict),
        "model": rollout.model,
        "usage": None if rollout.usage is None else set_fields(rollout.usage),
        "finish_reason": rollout.finish_reason,
        "latency_ms": rollout.latency_ms,
        "cached": rollout.cached,
        "generated_at": rollout.generated_at,
    }


def experiment_columns(sample: Sample) -> dict[str, Any]:
    """What such a line tells of its sample."""
    return {
        "split": sample.split,
        "query": last_text(sample, "user"),
        "messages": json_text([set_fields(message) for message in sample.messages]),
        "tools": json_text(sample.tools) if sample.tools else None,
        "ground_truth": _text(sample.ground_truth),
        "columns": json_text(sample.columns) if sample.columns else None,
    }


def _answer_columns(rollout: Rollout) -> dict[str, Any]:
    """The answer and the reasoning: told apart by the endpoint, or thought aloud in the text."""
    answer = rollout.turns[-1] if rollout.turns and rollout.turns[-1].role == "assistant" else None
    if answer is None:
        return {"response": None, "reasoning": None, "tool_calls": None}
    aloud, text = split_reasoning(answer.text)
    if text != answer.text:
        text = text.strip()
    reasoning = "\n\n".join(part for part in (answer.reasoning_content, aloud.strip()) if part)
    calls = json_text(answer.tool_calls) if answer.tool_calls else None
    return {"response": text, "reasoning": reasoning or None, "tool_calls": calls}


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)


# ── parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def require_parquet(path: Path) -> None:
    """Say now, and not after the answers are paid for, that Parquet cannot be written here."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"Writing {str(path)!r}", "parquet") from error


def write_parquet(
    lines: Iterable[bytes], target: Path, metadata: Mapping[str, str], verification: Mapping[str, Verification],
    samples: Samples,
) -> int:  # fmt: skip
    """Write the lines of an experiment's results to `target`, atomically, and return how many there were.

    `verification` names the verifier and the threshold of each split. What lines name in `samples` is written whole: a
    table is read far from its run, and compression finds what its rows repeat.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    schema = _schema(metadata)
    repeating: Any = [column.name for column in COLUMNS if column.repeats]
    written = 0
    with Draft(target, advice=_SAFE, make_folder=True) as draft:
        # A row group is encoded and compressed by a second thread while the next one is read by this one.
        with (
            ParquetWriter(
                draft.path, schema, compression="zstd", use_dictionary=repeating, write_page_checksum=True
            ) as writer,
            ThreadPoolExecutor(1) as second,
        ):
            under_way = None
            for batches in _groups(lines, schema, verification, samples):
                group = pa.Table.from_batches(batches, schema)
                if under_way is not None:
                    under_way.result()
                under_way = second.submit(writer.write_table, group, group.num_rows)
                written += group.num_rows
            if under_way is not None:
                under_way.result()
        seal_parquet(draft.path)
    return written


def read_metadata(path: Path) -> dict[str, str] | None:
    """The metadata of a Parquet file; None where the file is not one. One that is damaged is an error."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    try:
        refuse_damaged_parquet(path)
        found = read_schema(path).metadata or {}
    except (ArrowException, OSError):
        return None
    return {name.decode(): value.decode() for name, value in found.items() if name != b"pandas"}


def refuse_damaged_parquet(path: Path, *, pages: bool = False) -> None:
    """Stop at a table that is not what was written; also at one with damaged `pages`, which readers find themselves."""
    if check_parquet(path, pages=pages) is False:
        raise StorageError(
            f"{str(path)!r} is damaged: it is not what was written there. Remove it and run `best-of-n` again, which "
            "makes it from its run directory without asking the model; or restore it."
        )


def _groups(
    lines: Iterable[bytes], schema: pa.Schema, verification: Mapping[str, Verification], samples: Samples
) -> Iterator[list[pa.RecordBatch]]:
    """The lines as batches, as many together as make a row group."""
    group: list[pa.RecordBatch] = []
    size, rows = 0, _rows(lines, verification, samples)
    while some := list(islice(rows, _LINES_AT_ONCE)):
        group.append(_batch(some, schema))
        size += group[-1].nbytes
        if size >= _BYTES_PER_GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _batch(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _rows(
    lines: Iterable[bytes], verification: Mapping[str, Verification], samples: Samples
) -> Iterator[tuple[Any, ...]]:
    """The values of each line, in the order of the columns.

    The candidates of a query follow each other, and their lines say the same of their sample in the same bytes: what
    was read of it once is not read again.
    """
    known = b""
    sample: dict[str, Any] = {}
    how: Verification | None = None
    for line in lines:
        start = line.index(_SAMPLE)
        if known and line.startswith(known, start):
            answer = exact_json.loads(line[:start] + line[start + len(known) :])
        else:
            answer = sample = exact_json.loads(line)
            known = line[start : line.index(_ANSWER, start)]
            how = verification.get(sample["split"])
            if "sample" in sample:
                sample |= experiment_columns(samples.sample(sample["sample"].encode(), sample["position"]))
        yield _row(sample, answer, how)


_SAMPLE, _ANSWER = b',"split":', b',"response":'
"""Where the two parts of a line begin. No text inside can look like this: its quotes are escaped."""


def _row(sample: dict[str, Any], line: dict[str, Any], how: Verification | None) -> tuple[Any, ...]:
    score = line[BEST_OF_N.score]
    failure = line.get("failure") or _NOTHING
    usage = line["usage"] or _NOTHING
    return (
        line["id"], sample["split"], sample["query"], sample["messages"], sample["tools"], sample["ground_truth"],
        line["response_index"], line["response"], line["reasoning"], line["tool_calls"],
        None if score is None or how is None else score >= how.threshold, score,
        None if how is None else how.verifier, line[BEST_OF_N.verification_reason],
        line["error"], failure.get("type"), failure.get("stage"),
        line["model"], line["finish_reason"], usage.get("prompt_tokens"), usage.get("completion_tokens"),
        line["cost"], line["latency_ms"], line["cached"], line["generated_at"], sample["columns"],
    )  # fmt: skip


_NOTHING: dict[str, Any] = {}


def _schema(metadata: Mapping[str, str]) -> pa.Schema:
    import pyarrow as pa

    types: dict[str, pa.DataType] = {
        "string": pa.string(), "int32": pa.int32(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()
    }  # fmt: skip
    fields = [pa.field(column.name, types[column.type]) for column in COLUMNS]
    entries: dict[bytes | str, bytes | str] = {name.encode(): value.encode() for name, value in metadata.items()}
    return pa.schema(fields, metadata=entries | {b"pandas": _for_pandas()})


def _for_pandas() -> bytes:
    described = [
        {"name": name, "field_name": name, "pandas_type": kind.lower(), "numpy_type": kind, "metadata": None}
        for name, kind in _FOR_PANDAS.items()
    ]
    return orjson.dumps({"index_columns": [], "column_indexes": [], "columns": described, "pandas_version": "2.0.0"})
