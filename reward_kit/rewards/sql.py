# SPDX-License-Identifier: Apache-2.0
"""SQL: does the query in the answer give the rows that the right query gives?

    database file, copied ─▶ sandbox ─▶ the right query ─▶ the answer's query ─▶ rows compared here

Both run read-only, and only rows come back. The right query runs first, so no answer can touch what it gives. Where it
gives no rows, both are run over made-up rows as well: else any query without rows would be right.
"""

from __future__ import annotations

import functools
import json
import math
import re
import shlex
from collections import Counter
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
from reward_kit.rewards._support.verdicts import check, no_verdict, no_verdict_if_unreadable, quoted, reply_of, wrong
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

_CLAUSE: Final = re.compile(r"[()]|\border\s+by\b|\blimit\b", re.IGNORECASE)
_LIMIT: Final = re.compile(r"limit\s+(?P<first>\d+)(?:\s*,\s*(?P<count>\d+)|\s+offset\s+(?P<offset>\d+))?", re.I)
_FILLINGS, _FILLINGS_USED = 8, 3
"""How often rows are made up before nothing can be judged, and how many of those that can be used are."""
_FILL_SECONDS: Final = 60.0
_LARGEST: Final = 10**300
_NOISE: Final = 1e-12
"""What is left of a sum that should be zero."""

Cell = Any


class _Rows(NamedTuple):
    width: int
    rows: list[list[Cell]]


class _UnusableError(Exception):
    """The right query judges nothing, and why."""


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
    are compared as a multiset: a row that the right query gives twice must come twice. Their order counts where the
    right query has an outermost ORDER BY, or as `ordered` says; rows that this ORDER BY does not tell apart may come in
    any order. Where the right query gives no rows, both are run over made-up rows as well; if it still gives none,
    there is no verdict. Columns are compared in their order, and their names do not count; NULL equals NULL; 1 equals
    1.0; numbers may differ by the relative `tolerance`. A query that fails, or takes more than `seconds`, gets 0.0.

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
    reply = reply_of(messages)
    number("tolerance", tolerance, above=-1e-300)
    number("seconds", seconds, above=0.0)
    with no_verdict_if_unreadable():
        right_query = _right_query(ground_truth)
        engine, content = _database(database)
    query = _query(reply.text)
    if query is None:
        reason = "The answer holds no query."
        return wrong(reason, {"query_runs": check(False, reason), "rows_match": check(False, reason)})
    asked = _Asked(engine, content, seconds, tolerance, _is_ordered(right_query) if ordered is None else ordered)
    try:
        async with sandbox(files={"database": content, "runner.py": _runner()}) as box:
            right, given = await _both(box, asked, right_query, query)
        difference = await _difference_of(sandbox, asked, right_query, right, given)
        if difference is None and not right.rows:
            async with sandbox(files={"database": content, "runner.py": _runner()}) as box:
                right, given = await _over_made_up_rows(box, asked, right_query, query)
            difference = _unlike(right, given, asked)
    except _UnusableError as error:
        return no_verdict(f"The right query {quoted(right_query)} cannot be used: {error}. Correct the sample.")
    if isinstance(given, _Refused):
        reason = f"The query gives no rows: {given.reason}."
        return wrong(reason, {"query_runs": check(False, reason), "rows_match": check(False, reason)})
    reason = difference or f"The same {len(right.rows)} rows."
    metrics = {"query_runs": check(True, "it runs"), "rows_match": check(difference is None, reason)}
    return EvaluateResult(score=float(difference is None), reason=reason, metrics=metrics)


class _Asked(NamedTuple):
    """What is asked of both queries."""

    engine: str
    content: bytes
    """The database."""
    seconds: float
    tolerance: float
    ordered: bool


async def _both(
    box: Sandbox, asked: _Asked, right_query: str, query: str, database: str = "database"
) -> tuple[_Rows, _Rows | _Refused]:
    """What the right query gives, and then what the answer's gives. `_UnusableError`: nothing can be judged by it."""
    if asked.engine == "duckdb":
        await _have_duckdb(box)
    right = await _run(box, asked, right_query, database, most=_MOST_ROWS)
    if isinstance(right, _Refused):
        raise _UnusableError(right.reason)
    if len(right.rows) > _MOST_ROWS:
        raise _UnusableError(f"it gives more than {_MOST_ROWS} rows")
    return right, await _run(box, asked, query, database, most=len(right.rows))


async def _over_made_up_rows(
    box: Sandbox, asked: _Asked, right_query: str, query: str
) -> tuple[_Rows, _Rows | _Refused]:
    """The same over made-up rows of which the right query gives some."""
    if asked.engine == "duckdb":
        await _have_duckdb(box)
    found: list[tuple[_Rows, _Rows | _Refused]] = []
    for seed in range(_FILLINGS):
        await box.write("right.sql", right_query.encode("utf-8", "replace"))
        command = f"rm -f filled; python3 -I runner.py fill {asked.engine} database filled right.sql {seed}"
        done = await box.run_standalone(command, timeout=_FILL_SECONDS)
        if not done.ok:
            raise SandboxError(f"No rows could be made up: {done.stderr.strip()[-300:]}. Try again.")
        right = await _run(box, asked, right_query, "filled", most=_MOST_ROWS)
        if isinstance(right, _Rows) and 0 < len(right.rows) <= _MOST_ROWS:
            found.append((right, await _run(box, asked, query, "filled", most=len(right.rows))))
        if len(found) == _FILLINGS_USED or (found and _unlike(*found[-1], asked)):
            break
    if not found:
        raise _UnusableError("it gives no rows, neither over the database nor over rows that were made up for it")
    return found[-1]


def _unlike(right: _Rows, given: _Rows | _Refused, asked: _Asked) -> str | None:
    """How rows over made-up rows differ. Their order is not looked at: nothing is known of its ties."""
    if isinstance(given, _Refused):
        return given.reason
    return _difference(right, given, ordered=False, tolerance=asked.tolerance)


async def _difference_of(
    sandbox: Callable[..., AbstractAsyncContextManager[Sandbox]],
    asked: _Asked,
    right_query: str,
    right: _Rows,
    given: _Rows | _Refused,
) -> str | None:
    """How the rows differ, or None. Rows that the right query's ORDER BY does not tell apart may come in any order."""
    if isinstance(given, _Refused):
        return given.reason
    difference = _difference(right, given, ordered=asked.ordered, tolerance=asked.tolerance)
    if difference is None or not asked.ordered or (right.width, len(right.rows)) != (given.width, len(given.rows)):
        return difference
    tied = _with_ties_broken(right_query)
    if tied is None:
        return difference
    async with sandbox(files={"database": asked.content, "runner.py": _runner()}) as box:
        if asked.engine == "duckdb":
            await _have_duckdb(box)
        queries = [tied.query(right.width, way) for way in ("ASC", "DESC")]
        up, down = [await _run(box, asked, query, "database", most=_MOST_ROWS) for query in queries]
    if isinstance(up, _Refused) or isinstance(down, _Refused) or max(len(up.rows), len(down.rows)) > _MOST_ROWS:
        return difference
    fits = _fits_ties(up.rows, down.rows, given.rows, tied.skipped, asked.tolerance)
    return None if fits else difference


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


async def _run(box: Sandbox, asked: _Asked, query: str, database: str, *, most: int) -> _Rows | _Refused:
    seconds = asked.seconds
    await box.write("query.sql", query.encode("utf-8", "replace"))
    arguments = [asked.engine, database, "query.sql", "result.json", str(most), str(_MOST_BYTES)]
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


# ── rows that an order does not tell apart ───────────────────────────────────────────────────────────────────────────


class _Tied(NamedTuple):
    """A query with an order, of which ties can be broken."""

    ordered: str
    """Up to the end of its ORDER BY."""
    skipped: int
    """Rows before those that it gives."""

    def query(self, width: int, way: str) -> str:
        """The query without a limit, with ties broken by its columns, up or down."""
        return ", ".join([self.ordered, *(f"{column} {way}" for column in range(1, width + 1))])


def _with_ties_broken(query: str) -> _Tied | None:
    """The query up to its outermost ORDER BY; None where what follows that is more than a limit in figures."""
    blank = _SKIPPED.sub(lambda found: " " * len(found[0]), query)
    end, depth, ordered = len(query), 0, False
    for found in _CLAUSE.finditer(blank):
        if found[0] in "()":
            depth += 1 if found[0] == "(" else -1
        elif depth == 0 and not found[0].lower().startswith("limit"):
            ordered = True
        elif depth == 0 and ordered:
            end = found.start()
            break
    limit = _LIMIT.fullmatch(blank[end:].strip()) if end < len(query) else None
    if not ordered or (end < len(query) and limit is None):
        return None
    # `LIMIT 2, 3` skips two; `LIMIT 3 OFFSET 2` does as well.
    skipped = int((limit["first"] if limit["count"] else limit["offset"]) or 0) if limit else 0
    return _Tied(query[:end].rstrip(), skipped)


def _fits_ties(
    up: list[list[Cell]], down: list[list[Cell]], given: list[list[Cell]], skipped: int, tolerance: float
) -> bool:
    """Whether rows are those of an order, apart from ties: in a tie, rows of it, each as often as it is there at most.

    Where ties begin and end is where the rows until there are the same, whichever way ties are broken.
    """
    keys = [[_place(row) for row in rows] for rows in (up, down)]
    begin = 0
    open_rows: Counter[Any] = Counter()
    for end, pair in enumerate(zip(*keys, strict=True), 1):
        for key, step in zip(pair, (1, -1), strict=True):
            open_rows[key] += step
            if not open_rows[key]:
                del open_rows[key]
        if open_rows:
            continue
        first, last = max(begin - skipped, 0), min(end - skipped, len(given))
        if first < last and not _taken_from(up[begin:end], given[first:last], tolerance):
            return False
        begin = end
    return len(given) <= max(begin - skipped, 0)


def _taken_from(tie: list[list[Cell]], rows: list[list[Cell]], tolerance: float) -> bool:
    """Whether each of these rows is one of the tie, which has it that often."""
    left = sorted(tie, key=_place)
    for row in sorted(rows, key=_place):
        same = (
            n for n, each in enumerate(left) if all(_same(*pair, tolerance) for pair in zip(each, row, strict=True))
        )
        place = next(same, None)
        if place is None:
            return False
        del left[place]
    return True


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
    return (exact, tuple(float(f"{value:.6g}") for value in numbers), tuple(numbers))


def _rank(cell: Cell) -> int:
    return next(rank for rank, kind in enumerate((type(None), int | float, str, bytes)) if isinstance(cell, kind))
