# SPDX-License-Identifier: Apache-2.0
"""SQL: does the query in the answer give the rows that the right query gives?

    database file, copied ─▶ sandbox ─▶ the right query ─▶ the answer's query ─▶ rows compared here

Both run read-only, and only rows come back. The right query runs first, so no answer can touch what it gives.
"""

from __future__ import annotations

import functools
import json
import math
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from reward_kit.answers.code import code_blocks
from reward_kit.answers.reasoning import without_reasoning
from reward_kit.errors import SandboxError
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._support.parameters import number
from reward_kit.rewards._support.verdicts import check, last_reply, no_reply, no_verdict, quoted, wrong
from reward_kit.sandbox.contract import Sandbox
from reward_kit.typed_interface import BelowFolder, Operator, reward_function

__all__ = ["sql_reward"]

_SECONDS: Final = 30.0
_MOST_ROWS: Final = 100_000
_MOST_BYTES: Final = 32 << 20
_LARGEST_DATABASE: Final = 256 << 20
_LONGEST_QUERY: Final = 100_000
_FAILED, _NO_DATABASE = 3, 5
"""How the runner ends: see `_support/sql_runner.py`."""
_SKIPPED: Final = re.compile(r"'(?:[^']|'')*+'?|\"(?:[^\"]|\"\")*+\"?|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_ORDER: Final = re.compile(r"[()]|\border\s+by\b", re.IGNORECASE)

_LARGEST: Final = 10**300
_NOISE: Final = 1e-12
"""What is left of a sum that should be zero."""

Cell = Any


class _Rows(NamedTuple):
    width: int
    rows: list[list[Cell]]


class _Refused(NamedTuple):
    """The query gives no rows, and why."""

    reason: str


@reward_function(timeout=600)
async def sql_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    database: Annotated[str | Path | None, BelowFolder("database_folder")] = None,
    database_folder: Operator[str | Path | None] = None,
    sandbox: Callable[..., AbstractAsyncContextManager[Sandbox]],
    ordered: bool | None = None,
    tolerance: float = 1e-6,
    seconds: float = _SECONDS,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 if the query in the last message gives the same rows as the ground truth's query, 0.0 if not.

    `database` is the path of a SQLite or DuckDB file: one of the params, or a column with a path below the param
    `database_folder`. It is copied into a sandbox, where each query is a single SELECT over the file, opened read-only,
    without other files, settings or extensions. The query is the last code block of the message, else all of it. Rows
    are compared as a multiset: a row that the right query
    gives twice must come twice. Their order counts where the right query has an outermost ORDER BY, or as `ordered`
    says. Columns are compared in their order, and their names do not count; NULL equals NULL; 1 equals 1.0; numbers may
    differ by the relative `tolerance`. A query that fails, or takes more than `seconds`, gets 0.0.

    A database that is missing, and a right query that fails or gives more than 100,000 rows, give no verdict. For
    DuckDB the sandbox's Python needs the package `duckdb`; where it lacks it, the one installed here is copied, which
    takes 2 s, and works if both Pythons are of one version; if not, there is no verdict.

    Metrics: `query_runs`, `rows_match`; `error`.
    Needs: sandbox.
    Cost: a sandbox with a copy of the database (256 MB at most), about 100 ms beside what the queries take.
    Does not detect: a wrong query that happens to give the right rows over this data: use a database in which wrong
    queries give other rows.

    >>> import sqlite3, tempfile
    >>> from reward_kit.evaluation import evaluate
    >>> params = {"database_folder": tempfile.mkdtemp()}
    >>> with sqlite3.connect(f"{params['database_folder']}/one.sqlite") as made:
    ...     _ = made.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (2);")
    >>> row = {"user_query": "?", "assistant_response": "SELECT x + 0 FROM t", "database": "one.sqlite"}
    >>> evaluate([{**row, "ground_truth": "SELECT x FROM t"}], sql_reward, params=params).mean_score
    1.0
    >>> evaluate([{**row, "ground_truth": "SELECT DISTINCT x FROM t"}], sql_reward, params=params).mean_score
    0.0
    """
    reply = last_reply(messages)
    if reply is None:
        return no_reply()
    number("tolerance", tolerance, above=-1e-300)
    number("seconds", seconds, above=0.0)
    try:
        right_query = _right_query(ground_truth)
        engine, content = _database(database)
    except ValueError as error:
        return no_verdict(str(error))
    query = _query(reply.text)
    if query is None:
        reason = "The answer holds no query."
        return wrong(reason, {"query_runs": check(False, reason), "rows_match": check(False, reason)})
    async with sandbox(files={"database": content, "runner.py": _runner()}) as box:
        if engine == "duckdb":
            await _have_duckdb(box)
        run = functools.partial(_run, box, engine, seconds=seconds)
        right = await run(right_query, most=_MOST_ROWS)
        if isinstance(right, _Refused) or len(right.rows) > _MOST_ROWS:
            why = right.reason if isinstance(right, _Refused) else f"it gives more than {_MOST_ROWS} rows"
            return no_verdict(f"The right query {quoted(right_query)} cannot be used: {why}. Correct the sample.")
        given = await run(query, most=len(right.rows))
    if isinstance(given, _Refused):
        reason = f"The query gives no rows: {given.reason}."
        return wrong(reason, {"query_runs": check(False, reason), "rows_match": check(False, reason)})
    in_order = _is_ordered(right_query) if ordered is None else ordered
    difference = _difference(right, given, ordered=in_order, tolerance=tolerance)
    reason = difference or f"The same {len(right.rows)} rows."
    metrics = {"query_runs": check(True, "it runs"), "rows_match": check(difference is None, reason)}
    return EvaluateResult(score=float(difference is None), reason=reason, metrics=metrics)


# ── what is given ────────────────────────────────────────────────────────────────────────────────────────────────────


def _right_query(ground_truth: Any) -> str:
    if isinstance(ground_truth, list | tuple) and len(ground_truth) == 1:
        ground_truth = ground_truth[0]
    query = _query(ground_truth) if isinstance(ground_truth, str) else None
    if query is None:
        raise ValueError(f"The ground truth is {quoted(ground_truth)}. Give the right query as text.")
    return query


def _database(path: Any) -> tuple[Literal["sqlite", "duckdb"], bytes]:
    if not isinstance(path, str | Path) or not Path(path).is_file():
        raise ValueError(f"The database is {quoted(path)}. Give the path of a SQLite or DuckDB file.")
    if (size := Path(path).stat().st_size) > _LARGEST_DATABASE:
        raise ValueError(
            f"The database {str(path)!r} has {size >> 20} MB; at most {_LARGEST_DATABASE >> 20} are copied."
        )
    content = Path(path).read_bytes()
    if content.startswith(b"SQLite format 3\0"):
        return "sqlite", content
    if content[8:12] == b"DUCK":
        return "duckdb", content
    raise ValueError(f"The file {str(path)!r} is neither a SQLite nor a DuckDB database. Correct 'database'.")


def _query(text: str) -> str | None:
    """The last code block of a text, else all of it; without the semicolon at its end."""
    spoken = without_reasoning(text)
    blocks = [block.code for block in code_blocks(spoken) if block.code.strip()]
    query = (blocks[-1] if blocks else spoken).strip().rstrip(";").strip()
    return query if query and len(query) <= _LONGEST_QUERY else None


def _is_ordered(query: str) -> bool:
    """Whether ORDER BY stands outside of every bracket: there it orders the result."""
    depth = 0
    for found in _ORDER.finditer(_SKIPPED.sub(" ", query)):
        if found[0] == "(":
            depth += 1
        elif found[0] == ")":
            depth -= 1
        elif depth == 0:
            return True
    return False


# ── running ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def _runner() -> bytes:
    return files("reward_kit.rewards._support").joinpath("sql_runner.py").read_bytes()


async def _have_duckdb(box: Sandbox) -> None:
    """Make sure that the sandbox's Python has DuckDB: its own, or a copy of ours."""
    have = "python3 -I -c 'import sys; sys.path.append(\"packages\"); import duckdb'"
    if (await box.run_standalone(have)).ok:
        return
    for name, content in _duckdb_files().items():
        await box.write(f"packages/{name}", content)
    if not (await box.run_standalone(have)).ok:
        raise SandboxError("The sandbox's Python has no duckdb. Use an image that has it: set `sandbox.image`.")


@functools.cache
def _duckdb_files() -> dict[str, bytes]:
    """The files of the package as it is installed here; none where it is not."""
    try:
        installed = distribution("duckdb").files or []
    except PackageNotFoundError:
        return {}
    wanted = [file for file in installed if file.suffix in (".py", ".so") or file.name == "METADATA"]
    return {str(file): Path(str(file.locate())).read_bytes() for file in wanted}


async def _run(box: Sandbox, engine: str, query: str, *, most: int, seconds: float) -> _Rows | _Refused:
    await box.write("query.sql", query.encode("utf-8", "replace"))
    arguments = [engine, "database", "query.sql", "result.json", str(most), str(_MOST_BYTES)]
    done = await box.run_standalone(f"rm -f result.json; python3 -I runner.py {shlex.join(arguments)}", timeout=seconds)
    if done.timed_out:
        return _Refused(f"it takes more than {seconds:g} s")
    if done.oom_killed:
        return _Refused("it takes more memory than the sandbox has")
    error_output = done.stderr.strip()[:500]
    if done.exit_code == _NO_DATABASE:
        raise SandboxError(f"The database cannot be opened: {error_output}. Check the file.")
    if done.exit_code == _FAILED or done.signal is not None:
        return _Refused(error_output or "the engine was killed")
    try:
        read = json.loads(await box.read("result.json"))
    except (OSError, ValueError) as error:
        raise SandboxError(
            f"The sandbox gave no result: {error_output or error}. It needs python3 with sqlite3."
        ) from error
    return _Rows(read["width"], [[_cell(cell) for cell in row] for row in read["rows"]])


def _cell(cell: Any) -> Cell:
    """A cell as it is compared: numbers as numbers, the rest as it came."""
    if isinstance(cell, bool):
        return int(cell)
    if isinstance(cell, dict) and "number" in cell:
        text = cell["number"]
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    if isinstance(cell, dict):
        return json.dumps(cell, sort_keys=True).encode()  # bytes, so that no text equals it
    return cell


# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _difference(right: _Rows, given: _Rows, *, ordered: bool, tolerance: float) -> str | None:
    """How the rows differ, or None."""
    if given.width != right.width:
        return f"Expected {right.width} columns, the query gives {given.width}."
    if len(given.rows) != len(right.rows):
        more = len(given.rows) > len(right.rows)
        return f"Expected {len(right.rows)} rows, the query gives {'more' if more else len(given.rows)}."
    pairs = zip(right.rows, given.rows, strict=True)
    if not ordered:
        pairs = zip(sorted(right.rows, key=_place), sorted(given.rows, key=_place), strict=True)
    for expected, row in pairs:
        if not all(_same(*cells, tolerance) for cells in zip(expected, row, strict=True)):
            return f"Expected the row {quoted(expected)}, the query gives {quoted(row)}."
    return None


def _same(one: Cell, other: Cell, tolerance: float) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        if one == other or (math.isnan(one) and math.isnan(other)):
            return True
        whole = isinstance(one, int) and isinstance(other, int)
        return not whole and math.isclose(one, other, rel_tol=tolerance, abs_tol=_NOISE)
    return type(one) is type(other) and bool(one == other)


def _place(row: Sequence[Cell]) -> tuple[Any, ...]:
    """Where a row is sorted: by what is exact first, so that noise in a number does not part equal rows."""
    exact = tuple((_rank(cell), cell if isinstance(cell, str | bytes) else "") for cell in row)
    numbers = [float(max(-_LARGEST, min(_LARGEST, cell))) for cell in row if isinstance(cell, int | float)]
    return (exact, [float(f"{value:.6g}") for value in numbers], numbers)


def _rank(cell: Cell) -> int:
    return next(rank for rank, kind in enumerate((type(None), int | float, str, bytes)) if isinstance(cell, kind))
