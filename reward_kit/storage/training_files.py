# SPDX-License-Identifier: Apache-2.0
"""Training data on disk: JSON lines, or Parquet with messages as lists of structs, as `datasets` reads them.

Schemas of tools have no columns that fit all of them: in Parquet they are JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_kit.errors import ConfigError, MissingExtraError
from reward_kit.storage.files import Draft
from reward_kit.storage.row_json import json_line
from reward_kit.utils import exact_json

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["write_training_file"]

_CONVERSATIONS = ("messages", "prompt", "completion", "chosen", "rejected")
_NUMBERS = (
    "margin", "pass_rate", "score", "reward", "return_to_go", "episode_advantage", "step_advantage", "advantage",
)  # fmt: skip
_COUNTS = ("num_candidates", "response_index", "num_steps", "step", "turn", "state_group")
_TRUTHS = ("label", "truncated")
_STEP = ("step", "turn", "state", "reward", "return_to_go", "state_group", "episode_advantage", "step_advantage",
         "advantage")  # fmt: skip
"""The fields of each of an episode's `steps`."""
_PARQUET = (".parquet", ".pq")
_ROWS_PER_GROUP = 4096


def write_training_file(rows: Iterable[Mapping[str, Any]], target: Path) -> None:
    """Write the rows to `target`, atomically; the suffix says how."""
    parquet = target.suffix.lower() in _PARQUET
    if parquet:
        _require_parquet(target)
    with Draft(target, advice="Choose another --output.", make_folder=True) as draft:
        lines = target.with_name(f"{target.name}.lines") if parquet else draft.path
        try:
            columns, fields = _write_lines(rows, lines)
            if parquet:
                _write_parquet(lines, draft.path, columns, fields)
        finally:
            if parquet:
                lines.unlink(missing_ok=True)


def _write_lines(rows: Iterable[Mapping[str, Any]], path: Path) -> tuple[dict[str, None], dict[str, None]]:
    """Write JSON lines, and return what columns they have, and what fields their messages have."""
    columns: dict[str, None] = {}
    fields: dict[str, None] = {"role": None, "content": None}
    with path.open("wb") as file:
        for row in rows:
            columns.update(dict.fromkeys(row))
            for name in _CONVERSATIONS:
                for turn in row.get(name) or ():
                    fields.update(dict.fromkeys(turn))
            file.write(json_line(dict(row)))
    return columns, fields


# ── parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _require_parquet(target: Path) -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"Writing {str(target)!r}", "parquet") from error


def _write_parquet(lines: Path, draft: Path, columns: Iterable[str], fields: Iterable[str]) -> None:
    from pyarrow.parquet import ParquetWriter

    schema = _schema(columns, fields)
    with lines.open("rb") as file, ParquetWriter(draft, schema, compression="zstd", write_page_checksum=True) as writer:
        for group in iter(lambda: [exact_json.loads(line) for line in islice(file, _ROWS_PER_GROUP)], []):
            writer.write_batch(_batch([_with_tools_as_text(row) for row in group], schema))


def _with_tools_as_text(row: dict[str, Any]) -> dict[str, Any]:
    tools = row.get("tools")
    if tools is not None and not isinstance(tools, str):
        row = {**row, "tools": exact_json.dumps(tools).decode()}
    return {**row, "steps": [*map(_with_tools_as_text, row["steps"])]} if row.get("steps") else row


def _batch(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    try:
        return pa.RecordBatch.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ConfigError(
            f"These rows do not fit a Parquet table ({error}): a message holds something else than text. "
            "Write JSON lines instead: --output FILE.jsonl."
        ) from error


def _schema(columns: Iterable[str], fields: Iterable[str]) -> pa.Schema:
    import pyarrow as pa

    function = pa.struct([("name", pa.string()), ("arguments", pa.string())])
    call = pa.struct([("id", pa.string()), ("type", pa.string()), ("function", function)])
    turn = pa.struct([(name, pa.list_(call) if name == "tool_calls" else pa.string()) for name in fields])
    tokens = pa.struct(
        [
            ("prompt_ids", pa.list_(pa.int64())),
            ("ids", pa.list_(pa.int64())),
            ("logprobs", pa.list_(pa.float64())),
            ("whole_prompt", pa.bool_()),
        ]
    )
    types: dict[str, pa.DataType] = {
        **dict.fromkeys(_CONVERSATIONS, pa.list_(turn)),
        **dict.fromkeys(_NUMBERS, pa.float64()),
        **dict.fromkeys(_COUNTS, pa.int64()),
        **dict.fromkeys(_TRUTHS, pa.bool_()),
        "tokens": tokens,
    }
    steps = [(name, types.get(name, pa.string())) for name in (*_STEP, "tokens", "tools")]
    types["steps"] = pa.list_(pa.struct(steps))
    return pa.schema([(name, types.get(name, pa.string())) for name in columns])
