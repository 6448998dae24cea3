# SPDX-License-Identifier: Apache-2.0
"""The resource that is a SQLite database: transactions, hostile statements, and statements that do not end."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from reward_kit.agent.resources import SQLResource

SCHEMA = "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); INSERT INTO t VALUES (1, 'one'), (2, 'two');"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT {} FROM n"


async def made(**config: Any) -> SQLResource:
    resource = SQLResource()
    await resource.setup({"db_type": "sqlite", "schema_sql": SCHEMA, **config})
    return resource


async def run(resource: Any, query: str, **params: Any) -> Any:
    return await resource.step("execute_sql", {"query": query, **params})


async def count(resource: Any) -> Any:
    return await run(resource, "SELECT count(*) FROM t", fetch_mode="val")


async def dump(resource: Any) -> list[str]:
    """All that is in a database, as statements."""
    connection = sqlite3.connect(":memory:")
    connection.deserialize(await resource.snapshot())
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


async def test_rows_are_fetched_as_asked() -> None:
    async with await made() as sql:
        assert await run(sql, "SELECT * FROM t", fetch_mode="one") == {"a": 1, "b": "one"}
        assert await run(sql, "SELECT * FROM t WHERE a = ?", parameters=[2]) == [{"a": 2, "b": "two"}]
        assert await run(sql, "SELECT b FROM t WHERE a = :x", parameters={"x": 2}, fetch_mode="val") == "two"
        assert await run(sql, "SELECT * FROM t WHERE a = 9", fetch_mode="one") is None
        assert await run(sql, "SELECT * FROM t WHERE a = 9", fetch_mode="all") == []
        assert await run(sql, "UPDATE t SET b = 'x'") == {"rowcount": 2}
        assert await run(sql, "SELECT a, a FROM t LIMIT 1") == [{"a": 1, "a_2": 1}]
        with pytest.raises(sqlite3.Error, match="no such table"):
            await run(sql, "SELECT * FROM missing")
        with pytest.raises(ValueError, match="fetch_mode"):
            await run(sql, "SELECT 1", fetch_mode="many")


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
async def test_a_copy_holds_what_was_committed_and_never_half_a_transaction(begin: str) -> None:
    async with await made() as sql:
        await run(sql, begin)
        await run(sql, "INSERT INTO t VALUES (3, 'three')")
        await run(sql, "CREATE TABLE made_inside (x)")
        fork, checkpoint, image = await sql.fork(), await sql.checkpoint(), await sql.snapshot()
        assert await count(sql) == 3
        assert await count(fork) == 2
        assert await run(fork, "SELECT name FROM sqlite_master") == [{"name": "t"}]
        await run(fork, "INSERT INTO t VALUES (4, 'four')")  # the fork is in no transaction
        await run(sql, "COMMIT")
        assert await count(await sql.fork()) == 3
        await sql.restore(checkpoint)
        assert await count(sql) == 2
        other = SQLResource()
        await other.restore(image)
        assert await count(other) == 2


async def test_a_transaction_that_is_taken_back_leaves_no_trace_in_forks() -> None:
    async with await made() as sql:
        forks = [await sql.fork(), await sql.fork()]  # from here on it keeps an image of itself
        await run(sql, "SAVEPOINT s")
        await run(sql, "DELETE FROM t")
        forks.append(await sql.fork())
        await run(sql, "ROLLBACK TO s")
        await run(sql, "RELEASE s")
        forks.append(await sql.fork())
        await run(sql, "INSERT INTO t VALUES (3, 'three')")
        assert [await count(fork) for fork in forks] == [2, 2, 2, 2]
        assert await count(await sql.fork()) == 3
        assert await count(await sql.fork()) == 3


async def test_forks_of_forks_from_an_image_follow_changes() -> None:
    async with await made() as sql:
        for expected in range(2, 8):
            for fork in [await sql.fork(), await sql.fork(), await sql.fork()]:
                assert await count(fork) == expected
                await run(fork, "DELETE FROM t")
                assert await count(await fork.fork()) == 0
            await run(sql, "INSERT INTO t (b) VALUES ('more')")


@pytest.mark.parametrize(
    "change",
    ["CREATE TABLE u (x)", "ALTER TABLE t ADD COLUMN c", "DROP TABLE t", "CREATE INDEX i ON t (b)", "DELETE FROM t",
     "CREATE VIEW v AS SELECT 1", "UPDATE t SET b = 'x'", "REPLACE INTO t VALUES (1, 'x')"],
)  # fmt: skip
async def test_every_kind_of_change_is_in_the_next_fork(change: str) -> None:
    async with await made() as sql:
        for _ in range(3):
            await (await sql.fork()).close()
        await run(sql, change)
        for _ in range(3):
            assert await dump(await sql.fork()) == await dump(sql)


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH 'outside.db' AS o",
        "ATTACH ':memory:' AS o",
        "VACUUM INTO 'outside.db'",
        "SELECT load_extension('outside')",
        "PRAGMA journal_mode = WAL",
        "PRAGMA temp_store_directory = '/'",
        "PRAGMA writable_schema = ON",
        "PRAGMA foreign_keys = ON",
        "PRAGMA max_page_count = 1000000000",
        "CREATE TEMP TABLE x (a)",
        "CREATE TEMP VIEW x AS SELECT 1",
    ],
)
async def test_statements_reach_nothing_but_the_database(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with await made() as sql, await sql.fork() as fork:
        for one in (sql, fork):
            with pytest.raises((PermissionError, sqlite3.Error)) as caught:
                await run(one, query)
            assert isinstance(caught.value, PermissionError) or "load_extension" in query
            assert await count(one) == 2
    assert list(tmp_path.iterdir()) == []


async def test_reading_pragmas_work() -> None:
    async with await made() as sql:
        assert [row["name"] for row in await run(sql, "PRAGMA table_info(t)")] == ["a", "b"]
        assert await run(sql, "PRAGMA foreign_keys", fetch_mode="val") == 0


async def test_foreign_keys_that_the_task_switches_on_hold_in_forks() -> None:
    script = "PRAGMA foreign_keys = ON; CREATE TABLE c (t INTEGER REFERENCES t (a));"
    async with await made(seed_sql=script) as sql:
        forks = [await sql.fork() for _ in range(3)]
        for one in (sql, *forks):
            with pytest.raises(sqlite3.IntegrityError):
                await run(one, "INSERT INTO c VALUES (99)")


async def test_a_statement_that_does_not_end_is_stopped_and_others_go_on() -> None:
    async with await made(timeout=0.2) as sql:
        other = await made()
        endless = asyncio.create_task(run(sql, ENDLESS.format("count(*)")))
        assert await count(other) == 2
        with pytest.raises(TimeoutError, match=r"0\.2 s"):
            await endless
        assert await count(sql) == 2


async def test_who_is_cancelled_stops_his_statement() -> None:
    async with await made(timeout=600) as sql:
        endless = asyncio.create_task(run(sql, ENDLESS.format("count(*)")))
        await asyncio.sleep(0)
        while not sql._lock.locked():
            await asyncio.sleep(0.01)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        assert await count(sql) == 2


async def test_results_and_the_database_are_bounded() -> None:
    async with await made(max_rows=100, max_mb=1) as sql:
        with pytest.raises(ValueError, match="LIMIT"):
            await run(sql, ENDLESS.format("x"))
        with pytest.raises(ValueError, match="LIMIT"):
            await run(sql, ENDLESS.format("zeroblob(10000000)"))
        with pytest.raises(sqlite3.Error):
            await run(sql, "SELECT zeroblob(100000000)")
        fork = await sql.fork()
        for one in (sql, fork):
            with pytest.raises(sqlite3.OperationalError, match="full"):
                await run(one, "INSERT INTO t SELECT NULL, zeroblob(3000000)")
            assert await count(one) == 2


async def test_a_database_file_is_copied_and_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "own?name.db"
    connection = sqlite3.connect(file)
    connection.executescript(SCHEMA)
    connection.close()
    before = file.read_bytes()
    sql = SQLResource()
    await sql.setup({"db_file": str(file), "seed_sql": "INSERT INTO t VALUES (3, 'three')"})
    await run(sql, "DELETE FROM t WHERE a = 1")
    assert await count(sql) == 2
    assert file.read_bytes() == before
    with pytest.raises(FileNotFoundError):
        await SQLResource().setup({"db_file": str(tmp_path / "missing.db")})
    with pytest.raises(ValueError, match="not a SQLite database"):
        (tmp_path / "text.db").write_text("text" * 1000)
        await SQLResource().setup({"db_file": str(tmp_path / "text.db")})


async def test_a_script_that_leaves_a_transaction_open_is_committed() -> None:
    async with await made(seed_sql="BEGIN IMMEDIATE; INSERT INTO t VALUES (3, 'three');") as sql:
        assert await count(await sql.fork()) == 3


async def test_an_empty_database_can_be_copied() -> None:
    empty = SQLResource()
    await empty.setup({})
    for _ in range(3):
        fork = await empty.fork()
        await run(fork, "CREATE TABLE t (a)")
        assert await count(fork) == 0
    await run(empty, "BEGIN IMMEDIATE")
    assert await run(await empty.fork(), "SELECT * FROM sqlite_master") == []
    other = SQLResource()
    await other.restore(await empty.checkpoint())
    assert await run(other, "SELECT * FROM sqlite_master") == []
    await empty.close()


async def test_scripts_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text(SCHEMA)
    (tmp_path / "seed.sql").write_text("INSERT INTO t VALUES (3, 'é')")
    sql = SQLResource()
    await sql.setup({"schema_file": str(tmp_path / "schema.sql"), "seed_data_file": str(tmp_path / "seed.sql")})
    assert await count(sql) == 3
    with pytest.raises(FileNotFoundError):
        await SQLResource().setup({"schema_file": str(tmp_path / "missing.sql")})
    with pytest.raises(ValueError, match="'postgres'"):
        await SQLResource().setup({"db_type": "postgres"})
