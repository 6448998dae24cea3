# SPDX-License-Identifier: Apache-2.0
"""SQLResource: a SQLite database as a world.

The database is in memory. A fork is a copy made by SQLite itself of what was committed, so an open transaction is never
copied by half. Who is forked again and again, as the first state of many episodes is, keeps an image of itself, from
which a copy is cheaper still.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from reward_kit.agent.environment import Durability
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resources.sql_connection import Database, SqlLimits
from reward_kit.agent.resources.tool_spec import checkpoint_path, tool_spec, unknown_action
from reward_kit.utils.per_process import PerProcess

__all__ = ["SQLResource"]

_T = TypeVar("_T")
_THREADS = 32
_COPIED_AT_ONCE = 32 << 20
"""Up to so many bytes a copy takes a few milliseconds, and a thread for it would cost more than it helps."""
_MODES = (None, "one", "all", "val")
_CHECKPOINT = {"db_type": "sqlite"}


_threads = PerProcess(
    lambda: ThreadPoolExecutor(_THREADS, thread_name_prefix="reward-kit-sql"), lambda pool: pool.shutdown(wait=False)
)
"""Threads for statements, which may take long: not asyncio's own, which others wait for."""


class SQLResource(ForkableResource):
    """A SQLite database.

    Config: `db_type` (`sqlite`), `db_name` (accepted, but without effect: the database is in memory), `schema_file`,
    `schema_sql`, `seed_data_file`, `seed_sql`; ours: `db_file`, a database to begin with a copy of, `timeout` (seconds
    a statement may take), `max_rows`, `max_mb`. Action: `execute_sql` with `query`, `parameters`, and `fetch_mode`
    (`one`, `all`, `val`).
    """

    durability: ClassVar[Durability] = "replay"

    def __init__(self) -> None:
        """No database yet; `setup` makes one."""
        self._limits = SqlLimits()
        self._foreign_keys = False
        self._database: Database | None = None
        self._image: bytes | None = None
        self._forked_unchanged = False
        self._files: Path | None = None
        self._lock = asyncio.Lock()

    async def setup(self, config: dict[str, Any]) -> None:
        """Make the database, by the schema first and then the data."""
        if config.get("db_type", "sqlite") != "sqlite":
            raise ValueError(f"SQLResource knows the db_type 'sqlite' only, not {config['db_type']!r}")
        defaults = SqlLimits()
        self._limits = SqlLimits(
            seconds=float(config.get("timeout", defaults.seconds)),
            rows=int(config.get("max_rows", defaults.rows)),
            database_bytes=int(config.get("max_mb", defaults.database_bytes >> 20)) << 20,
        )
        self._replace(await self._in_thread(lambda: _made(config, self._limits)))

    async def fork(self) -> SQLResource:
        """A resource with a copy of what is committed here."""
        async with self._lock:
            forked = type(self)()
            forked._limits, forked._foreign_keys = self._limits, self._foreign_keys
            if self._known_image() is None and self._forked_unchanged and not self._opened().in_transaction:
                self._image = await self._sized(self._opened().image)
                self._opened().changed = False
            if (image := self._known_image()) is not None:
                forked._image = image
            else:
                forked._database = await self._sized(self._opened().copy)
                self._forked_unchanged, self._opened().changed = True, False
            return forked

    async def checkpoint(self) -> dict[str, Any]:
        """Write what is committed to a file of this resource, which is removed by `close`."""
        async with self._lock:
            if self._files is None:
                self._files = Path(tempfile.mkdtemp(prefix="reward-kit-sql-"))
            path = str(self._files / f"{uuid.uuid4().hex}.sqlite")
            await self._in_thread(lambda: self._opened().write_to(path))
            return {**_CHECKPOINT, "checkpoint_path": path}

    async def restore(self, state_data: dict[str, Any] | bytes) -> None:
        """Go back to a checkpoint, or take over a database that `snapshot` wrote."""
        if isinstance(state_data, bytes):
            read = partial(Database.from_foreign_image, state_data)
        else:
            read = partial(Database.from_file, checkpoint_path(state_data, _CHECKPOINT))
        async with self._lock:
            made = partial(read, self._limits, foreign_keys=self._foreign_keys)
            self._replace(await self._in_thread(made))

    async def snapshot(self) -> bytes:
        """What is committed, as the bytes of a database file."""
        async with self._lock:
            image = self._known_image()
            return await self._in_thread(self._opened().image) if image is None else image

    async def step(self, action_name: str, action_params: dict[str, Any]) -> Any:
        """Do `execute_sql`: rows as dicts, a value, or how many rows were changed."""
        if action_name != "execute_sql":
            raise unknown_action(self, action_name, ["execute_sql"])
        query, mode = action_params.get("query"), action_params.get("fetch_mode")
        if not isinstance(query, str) or not query.strip():
            raise ValueError("'execute_sql' needs 'query': one SQL statement")
        if mode not in _MODES:
            raise ValueError(f"'fetch_mode' is 'one', 'all' or 'val', not {mode!r}")
        parameters = action_params.get("parameters") or []
        if not isinstance(parameters, (list, tuple, dict)):
            raise ValueError("'parameters' is a list, or an object for named parameters")
        async with self._lock:
            run = lambda: self._opened().execute(query, parameters, mode)  # noqa: E731
            return await self._in_thread(run, stop=self._stop)

    async def get_observation(self) -> dict[str, Any]:
        """Whether there is a database. There is no file of it: `db_path` says so."""
        ready = self._database is not None or self._image is not None
        return {"db_type": "sqlite", "db_path": ":memory:" if ready else None, "status": _STATUS[ready]}

    async def describe(self) -> dict[str, Any]:
        """The statements that made the tables, views and indexes."""
        rows = await self.step("execute_sql", {"query": _SCHEMA, "fetch_mode": "all"})
        return {"db_type": "sqlite", "schema": [row["sql"] for row in rows]}

    async def get_tools_spec(self) -> list[dict[str, Any]]:
        """The tool `execute_sql`."""
        properties = {
            "query": {"type": "string", "description": "One SQL statement for SQLite."},
            "parameters": {"type": "array", "items": {}, "description": "Values for the ? in the statement."},
            "fetch_mode": {
                "type": "string",
                "enum": ["one", "all", "val"],
                "description": "'one': the first row. 'val': its first value. 'all', or left out: all rows.",
            },
        }
        text = "Run one SQL statement on the database: rows of a query, or how many rows a change concerned."
        return [tool_spec("execute_sql", text, properties, ["query"])]

    async def close(self) -> None:
        """Drop the database and its checkpoints."""
        async with self._lock:
            database, self._database, self._image = self._database, None, None
            files, self._files = self._files, None
        if database is not None:
            database.close()
        if files is not None:
            await asyncio.to_thread(shutil.rmtree, files, ignore_errors=True)

    def _opened(self) -> Database:
        """The database, made from the image where there is only that."""
        if self._database is None:
            if self._image is None:
                raise RuntimeError("this SQLResource has no database; call setup() first")
            self._database = Database.from_image(self._image, self._limits, foreign_keys=self._foreign_keys)
        return self._database

    def _stop(self) -> None:
        """Stop the statement that runs in a thread, if there is a database yet."""
        if self._database is not None:
            self._database.interrupt()

    def _known_image(self) -> bytes | None:
        """The image, as long as it says what the database is."""
        if self._database is not None and self._database.changed:
            self._image, self._forked_unchanged = None, False
        return self._image

    def _replace(self, database: Database) -> None:
        previous, self._database = self._database, database
        self._foreign_keys, self._image, self._forked_unchanged = database.foreign_keys, None, False
        if previous is not None:
            previous.close()

    async def _sized(self, work: Callable[[], _T]) -> _T:
        """What `work` returns: here where the database is small, else in a thread."""
        return work() if self._opened().size <= _COPIED_AT_ONCE else await self._in_thread(work)

    async def _in_thread(self, work: Callable[[], _T], *, stop: Callable[[], None] | None = None) -> _T:
        """What `work` returns. Who is cancelled stops it, and waits until it has stopped."""
        running = asyncio.get_running_loop().run_in_executor(_threads.get(), work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                if stop is not None:
                    stop()
                await asyncio.wait([running], timeout=0.05)
            if not running.cancelled():
                running.exception()  # seen
            raise


_STATUS = {True: "ready", False: "uninitialized"}
_SCHEMA = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"


def _made(config: dict[str, Any], limits: SqlLimits) -> Database:
    source = config.get("db_file")
    if source is not None and not Path(source).is_file():
        raise FileNotFoundError(f"there is no database {source!r}, which 'db_file' names")
    database = Database.from_file(str(source), limits) if source else Database(limits)
    try:
        for from_file, as_text in (("schema_file", "schema_sql"), ("seed_data_file", "seed_sql")):
            if config.get(from_file):
                database.run_script(Path(config[from_file]).read_text(encoding="utf-8"))
            if config.get(as_text):
                database.run_script(config[as_text])
        database.guard()
    except BaseException:
        database.close()
        raise
    return database
