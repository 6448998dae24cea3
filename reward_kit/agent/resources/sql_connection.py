# SPDX-License-Identifier: Apache-2.0
"""A SQLite database in memory that a model may do anything to, and nothing else.

Covered: statements reach neither files nor other databases nor extensions (ATTACH, VACUUM, load_extension are refused);
one may take so many seconds, and return so many rows and bytes; the database grows to so many bytes. Refused also is
what a copy of the database would not have: temporary tables, and settings of the connection.
Not covered: memory that one statement takes while it sorts or joins, which is bounded by its time only.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Database", "SqlLimits"]

_STEPS_BETWEEN_LOOKS = 20_000
_LONGEST_VALUE = 16 << 20
_REFUSED = {
    sqlite3.SQLITE_ATTACH: "ATTACH and VACUUM are refused: only this database can be reached.",
    sqlite3.SQLITE_DETACH: "DETACH is refused: there is one database only.",
    sqlite3.SQLITE_CREATE_TEMP_INDEX: "Temporary indexes are refused; make an ordinary one.",
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "Temporary tables are refused; make an ordinary one.",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "Temporary triggers are refused; make an ordinary one.",
    sqlite3.SQLITE_CREATE_TEMP_VIEW: "Temporary views are refused; make an ordinary one.",
}
_READING_PRAGMAS = {
    "database_list", "foreign_key_check", "foreign_key_list", "foreign_keys", "index_info", "index_list", "index_xinfo",
    "integrity_check", "page_count", "page_size", "quick_check", "table_info", "table_list", "table_xinfo",
    "user_version",
}  # fmt: skip
_ASKED_WITH_A_NAME = _READING_PRAGMAS - {"foreign_keys", "page_size", "user_version"}
_WRITES = {
    getattr(sqlite3, f"SQLITE_{name}")
    for name in (
        "ALTER_TABLE", "CREATE_INDEX", "CREATE_TABLE", "CREATE_TRIGGER", "CREATE_VIEW", "CREATE_VTABLE", "DELETE",
        "DROP_INDEX", "DROP_TABLE", "DROP_TRIGGER", "DROP_VIEW", "DROP_VTABLE", "INSERT", "REINDEX", "UPDATE",
    )
}  # fmt: skip


@dataclass(frozen=True)
class SqlLimits:
    """What statements may use."""

    seconds: float = 30.0
    """How long one may take."""
    rows: int = 10_000
    """How many rows one may return."""
    result_bytes: int = 16 << 20
    """How many bytes its rows may take, about."""
    database_bytes: int = 1 << 30
    """How large the database may become."""


class Database:
    """One connection to a database in memory. Not for two threads at a time.

    What is copied is what was committed. While a transaction is open that is a copy made when the transaction began,
    when nothing had changed yet; so a copy never holds half of one.
    """

    def __init__(self, limits: SqlLimits, *, foreign_keys: bool = False) -> None:
        """An empty database."""
        self.limits = limits
        self.foreign_keys = foreign_keys
        self.changed = False
        """Whether a statement may have changed anything since somebody last set this to False."""
        self._connection = _open()
        self._before: bytes | None = None
        self._refusal = ""

    @classmethod
    def from_image(cls, image: bytes, limits: SqlLimits, *, foreign_keys: bool = False) -> Database:
        """The database that another one's `image` is of."""
        database = cls(limits, foreign_keys=foreign_keys)
        if image:  # an empty database has no pages
            database._connection.deserialize(image)
        database.guard()
        return database

    @classmethod
    def from_foreign_image(cls, image: bytes, limits: SqlLimits, *, foreign_keys: bool = False) -> Database:
        """The same for bytes that may come from anywhere; a ValueError where they are no SQLite database."""
        try:
            database = cls.from_image(image, limits, foreign_keys=foreign_keys)
            if database._connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError("it is damaged")
        except sqlite3.Error as error:
            raise ValueError(f"this is not a SQLite database: {error}") from error
        return database

    @classmethod
    def from_file(cls, path: str, limits: SqlLimits, *, foreign_keys: bool = False) -> Database:
        """A copy of the database in a file; a ValueError where it is none."""
        database = cls(limits, foreign_keys=foreign_keys)
        source = sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True)
        try:
            source.backup(database._connection)
        except sqlite3.Error as error:
            database.close()
            raise ValueError(f"{path!r} is not a SQLite database: {error}") from error
        finally:
            source.close()
        database.guard()
        return database

    def run_script(self, script: str) -> None:
        """Run statements of whoever wrote the task, before `guard`: they are trusted."""
        self._connection.set_authorizer(None)
        self._connection.executescript(script)
        if self._connection.in_transaction:
            self._connection.commit()
        self.foreign_keys = bool(self._connection.execute("PRAGMA foreign_keys").fetchone()[0])

    def guard(self) -> None:
        """From now on statements come from a model."""
        connection = self._connection
        page_size = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {max(1, self.limits.database_bytes // page_size)}")
        connection.execute("PRAGMA trusted_schema = OFF")
        if self.foreign_keys:
            connection.execute("PRAGMA foreign_keys = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        connection.set_authorizer(self._authorize)

    @property
    def size(self) -> int:
        """Bytes that the database takes, about."""
        asked = (self._connection.execute(f"PRAGMA {what}").fetchone() for what in ("page_count", "page_size"))
        return int(math.prod(row[0] for row in asked))

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    def execute(self, query: str, parameters: Sequence[Any] | Mapping[str, Any], mode: str | None) -> Any:
        """Run one statement and fetch by `mode`: `one`, `all`, `val`, or None for whatever the statement gives."""
        connection, limits = self._connection, self.limits
        deadline = time.monotonic() + limits.seconds
        late = False

        def look() -> int:
            nonlocal late
            late = time.monotonic() > deadline
            return int(late)

        was_open, self._refusal = connection.in_transaction, ""
        connection.set_progress_handler(look, _STEPS_BETWEEN_LOOKS)
        try:
            return _fetched(connection.execute(query, parameters), mode, limits)
        except sqlite3.OperationalError as error:
            if late:
                raise TimeoutError(f"the statement took more than {limits.seconds:g} s and was stopped") from error
            raise
        except sqlite3.DatabaseError as error:
            if self._refusal:
                raise PermissionError(self._refusal) from error
            raise
        finally:
            connection.set_progress_handler(None, 0)
            self._follow_transaction(was_open)

    def interrupt(self) -> None:
        """Stop the statement that runs in another thread."""
        self._connection.interrupt()

    def copy(self) -> Database:
        """An independent database with what is committed."""
        if self._before is not None:
            return Database.from_image(self._before, self.limits, foreign_keys=self.foreign_keys)
        copied = Database(self.limits, foreign_keys=self.foreign_keys)
        self._connection.backup(copied._connection)
        copied.guard()
        return copied

    def image(self) -> bytes:
        """What is committed, as the bytes of a database file."""
        return _serialized(self._connection) if self._before is None else self._before

    def write_to(self, path: str) -> None:
        """Write what is committed to a new file."""
        if self._before is not None:
            Path(path).write_bytes(self._before)
            return
        target = sqlite3.connect(path)
        try:
            self._connection.backup(target)
        finally:
            target.close()

    def close(self) -> None:
        """Let go of the memory."""
        self._connection.close()
        self._before = None

    def _follow_transaction(self, was_open: bool) -> None:
        is_open = self._connection.in_transaction
        if is_open and not was_open:
            # BEGIN and SAVEPOINT change nothing themselves. After BEGIN IMMEDIATE, `backup` would wait for ever.
            self._before = _serialized(self._connection)
        elif not is_open:
            self._before = None

    def _authorize(self, action: int, one: str | None, two: str | None, *_: object) -> int:
        if action in _WRITES:
            self.changed = True
        elif action in _REFUSED:
            self._refusal = _REFUSED[action]
        elif action == sqlite3.SQLITE_PRAGMA:
            name = (one or "").lower()
            if name not in _READING_PRAGMAS or (two is not None and name not in _ASKED_WITH_A_NAME):
                self._refusal = f"PRAGMA {name} is refused; these can be asked: {', '.join(sorted(_READING_PRAGMAS))}."
        elif action == sqlite3.SQLITE_FUNCTION and two == "load_extension":
            self._refusal = "Extensions are refused."
        return sqlite3.SQLITE_DENY if self._refusal else sqlite3.SQLITE_OK


def _open() -> sqlite3.Connection:
    # No statement is kept: one that is used again is not authorized again, and nobody would notice that it writes.
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=0)
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _serialized(connection: sqlite3.Connection) -> bytes:
    """The bytes of a database file; none for a database that nothing was ever written to."""
    return connection.serialize() if connection.execute("PRAGMA page_count").fetchone()[0] else b""


def _fetched(cursor: sqlite3.Cursor, mode: str | None, limits: SqlLimits) -> Any:
    if cursor.description is None:
        return {"rowcount": cursor.rowcount}
    columns = _distinct([column[0] for column in cursor.description])
    if mode in ("one", "val"):
        row = cursor.fetchone()
        cursor.close()
        if row is None:
            return None
        return row[0] if mode == "val" else dict(zip(columns, row, strict=True))
    rows: list[dict[str, Any]] = []
    size = 0
    for row in cursor:
        size += sum(len(cell) if isinstance(cell, (str, bytes)) else 8 for cell in row)
        if len(rows) >= limits.rows or size > limits.result_bytes:
            cursor.close()
            raise ValueError(
                f"the statement returns more than {limits.rows} rows or {limits.result_bytes} bytes; ask for less, "
                "for example with LIMIT"
            )
        rows.append(dict(zip(columns, row, strict=True)))
    return rows


def _distinct(names: list[str]) -> list[str]:
    """The names of columns, with a number after those that were there before: `id`, `id_2`."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
