# SPDX-License-Identifier: Apache-2.0
"""DuckDB as the viewer uses it: bounded memory, queries that can be interrupted, no way to the network or other files.

Names of columns come from lists of our own and are quoted; whatever a request says goes in as a bound parameter.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reward_kit.errors import needs_extra
from reward_kit.viewer.problems import Unreadable, ViewerError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Database", "Interrupted", "NotText", "Query", "quoted"]

_MEMORY = "400MB"


class Interrupted(ViewerError):
    """A query was ended before it was done, because nobody waits for it."""

    code = "interrupted"
    status = 503


class NotText(Unreadable):
    """A column of texts holds bytes that are none: DuckDB does not read such a file."""


def quoted(name: str) -> str:
    """A name of ours as DuckDB reads it."""
    return '"' + name.replace('"', '""') + '"'


class Query:
    """One query that is under way, and can be ended from another thread."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        """Keep the connection; nothing is asked yet."""
        self._connection = connection
        self._ended = threading.Event()

    def run(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> pa.Table:
        """The rows that a query finds."""
        import duckdb

        self.check()
        try:
            found: pa.Table = self._connection.sql(sql, params=parameters).to_arrow_table()
            return found
        except duckdb.InterruptException as error:
            raise Interrupted("The query was ended. Ask again.") from error
        except duckdb.OutOfMemoryException as error:
            raise ViewerError("The query needs more memory than the viewer takes. Filter for less.") from error
        except (duckdb.Error, OSError) as error:
            if "nvalid string encoding" in str(error) or "nvalid unicode" in str(error):
                raise NotText("Some texts are not UTF-8. Write the file again.") from error
            raise Unreadable(
                f"The files cannot be read ({_first_line(error)}). They are damaged, or changed just now: load the "
                "page again, or see what `reward-kit doctor` says of the run."
            ) from error

    def check(self) -> None:
        """Stop here where the query was ended."""
        if self._ended.is_set():
            raise Interrupted("The query was ended. Ask again.")

    def register(self, name: str, table: pa.Table) -> None:
        """Let queries on this connection call a table by a name."""
        self._connection.register(name, table)

    def end(self) -> None:
        """End it, from whichever thread."""
        self._ended.set()
        self._connection.interrupt()


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__


class Database:
    """One database in memory for the whole server; each query has a connection of its own."""

    def __init__(self, files: Sequence[Path], *, threads: int | None = None) -> None:
        """Open it for reading these files only."""
        with needs_extra("The viewer", "view"):
            import duckdb
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        settings: dict[str, Any] = {
            "memory_limit": _MEMORY,
            "threads": max(1, min(4, threads or cores)),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "preserve_insertion_order": True,
            "temp_directory": "",
        }
        self._connection = duckdb.connect(":memory:", config=settings)
        self._connection.execute("SET allowed_paths = ?", [[str(file) for file in files]])
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    @contextlib.contextmanager
    def query(self) -> Iterator[Query]:
        """A query; what it registered is forgotten in the end."""
        with contextlib.closing(self._connection.cursor()) as cursor:
            yield Query(cursor)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
