# SPDX-License-Identifier: Apache-2.0
"""sql_reward, in real sandboxes: rows compared as sets with their counts, and queries that only read."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import SandboxConfig
from reward_kit.errors import SandboxError
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.sql import _is_ordered, sql_reward
from reward_kit.sandbox.from_settings import Sandboxes
from reward_kit.sandbox.namespaces.backend import NamespacesBackend
from tests.execution.shell_support import require_namespaces

TABLES = """
CREATE TABLE people (id INTEGER, name TEXT, city TEXT, pay REAL);
INSERT INTO people VALUES
(1, 'Ann', 'Oslo', 10.5), (2, 'Bob', 'Rome', 20.0), (3, 'Cid', 'Oslo', NULL), (4, 'Bob', 'Oslo', 0.1);
"""


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandboxes]:
    require_namespaces()
    backend = NamespacesBackend()
    yield Sandboxes(backend, SandboxConfig(timeout=30))
    await backend.close()


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "people.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(TABLES)
    connection.close()
    return str(path)


async def judge(sandbox: Any, database: Any, answer: str, truth: Any, **options: Any) -> EvaluateResult:
    result: Any = await sql_reward(
        messages=[Message(role="assistant", content=answer)],
        ground_truth=truth,
        database=database,
        sandbox=sandbox,
        **options,
    )
    assert isinstance(result, EvaluateResult)
    return result


SAME = [
    ("SELECT name FROM people", "SELECT name AS who FROM people ORDER BY id DESC"),
    ("SELECT name FROM people ORDER BY id", "SELECT name FROM people ORDER BY id ASC;"),
    ("SELECT count(*) FROM people", "Here it is:\n```sql\nSELECT count(id) FROM people;\n```\nDone."),
    ("SELECT pay FROM people", "SELECT pay * 3 / 3 FROM people"),
    ("SELECT 1", "SELECT 1.0"),
    ("SELECT sum(pay) FROM people", "WITH p AS (SELECT pay FROM people) SELECT total(pay) FROM p"),
    ("SELECT name FROM people WHERE pay IS NULL", "SELECT name FROM people WHERE id = 3"),
    ("SELECT name FROM people WHERE id > 9", "SELECT p.name FROM people AS p WHERE 9 < p.id"),
    (
        "SELECT name FROM people WHERE name LIKE 'Zo%' AND pay > 3",
        "SELECT name FROM people WHERE pay > 3 AND name LIKE 'Zo%'",
    ),
    (
        "SELECT city, count(*) FROM people GROUP BY city HAVING count(*) > 7",
        "SELECT city, count(*) AS n FROM people GROUP BY 1 HAVING n >= 8",
    ),
    (
        "SELECT a.name FROM people a JOIN people b ON a.id = b.id AND a.pay < b.pay - 5 OR b.city = 'Bonn'",
        "SELECT a.name FROM people a, people b WHERE a.id = b.id AND a.pay + 5 < b.pay OR b.city = 'Bonn'",
    ),
    ("SELECT name FROM people ORDER BY name", "SELECT name FROM people ORDER BY name, id DESC"),
    ("SELECT id FROM people ORDER BY name", "SELECT id FROM people ORDER BY name, id DESC"),
    ("SELECT id FROM people ORDER BY city DESC, 1 > 2", "SELECT id FROM people ORDER BY city DESC, pay"),
    ("SELECT id FROM people ORDER BY city LIMIT 2", "SELECT id FROM people ORDER BY city, id DESC LIMIT 2"),
    ("SELECT id FROM people ORDER BY city LIMIT 2 OFFSET 2", "SELECT id FROM people ORDER BY city, id DESC LIMIT 2, 2"),
    (
        "SELECT id FROM people ORDER BY city LIMIT 1, 2",
        "SELECT id FROM people WHERE city = 'Oslo' ORDER BY id DESC LIMIT 2",
    ),
    (
        "SELECT city, max(id) AS m FROM people GROUP BY city ORDER BY m > 0",
        "SELECT city, max(id) FROM people GROUP BY 1 ORDER BY 1 DESC",
    ),
    (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n",
        "VALUES (3), (2), (1)",
    ),
]
NEVER = "SELECT name FROM people WHERE id NOT IN (SELECT pay FROM people)"
"""It gives no rows wherever some pay is NULL."""
SAME += [
    (NEVER, "SELECT name FROM people p WHERE (SELECT count(*) FROM people q WHERE q.pay = p.id OR q.pay IS NULL) = 0"),
    (NEVER, f"SELECT * FROM ({NEVER})"),
]
DIFFERENT = [
    (NEVER, "SELECT name FROM people WHERE 1 = 0"),
    (NEVER, f"SELECT * FROM ({NEVER}) LIMIT 0"),
    *(
        (f"SELECT {columns} FROM people ORDER BY name", f"SELECT {others} FROM people ORDER BY name")
        for columns, others in (("id", "id, name"), ("id, name", "id"), ("id, name", "id, name, pay"))
    ),
    ("SELECT name FROM people", "SELECT DISTINCT name FROM people"),
    ("SELECT name FROM people ORDER BY id", "SELECT name FROM people ORDER BY id DESC"),
    ("SELECT id, name FROM people", "SELECT name, id FROM people"),
    ("SELECT name FROM people", "SELECT name, id FROM people"),
    ("SELECT name FROM people WHERE id < 3", "SELECT name FROM people"),
    ("SELECT pay FROM people", "SELECT coalesce(pay, 0) FROM people"),
    ("SELECT '1'", "SELECT 1"),
    ("SELECT x'31'", "SELECT '1'"),
    ("SELECT 1000000", "SELECT 1000001"),
    ("SELECT 1", "SELEC 1"),
    ("SELECT 1", ""),
    ("SELECT 1", "<think>SELECT 1</think>"),
    ("SELECT 1", "SELECT 1; SELECT 1"),
    ("SELECT name FROM people WHERE id > 9", "DELETE FROM people"),
    ("SELECT name FROM people WHERE id > 9", "SELECT name FROM people WHERE 1 = 0"),
    ("SELECT name FROM people WHERE id > 9", "SELECT 'x' WHERE 0"),
    ("SELECT name FROM people WHERE id > 9", "SELECT name FROM people WHERE id > 10"),
    ("SELECT name FROM people WHERE id > 9", "SELECT name FROM people WHERE id > 8"),
    ("SELECT name FROM people WHERE city = 'Bonn'", "SELECT city FROM people WHERE city = 'Bonn'"),
    ("SELECT name FROM people WHERE city = 'Bonn' OR city = 'Ulm'", "SELECT name FROM people WHERE city = 'Bonn'"),
    ("SELECT id FROM people ORDER BY name", "SELECT id FROM people ORDER BY name DESC"),
    ("SELECT id FROM people ORDER BY name", "SELECT id FROM people ORDER BY city, name"),
    ("SELECT id FROM people ORDER BY city LIMIT 2", "SELECT id FROM people ORDER BY city DESC LIMIT 2"),
    ("SELECT id FROM people ORDER BY city LIMIT 2", "VALUES (1), (1)"),
    ("SELECT id FROM people ORDER BY city LIMIT 2", "VALUES (3), (2)"),
]
ATTACKS = [
    "ATTACH DATABASE '/etc/passwd' AS x",
    "PRAGMA writable_schema = 1",
    "SELECT load_extension('x')",
    "SELECT * FROM pragma_database_list",
    "VACUUM INTO 'copy'",
    "CREATE TEMP TABLE t AS SELECT 1",
    "SELECT hex(zeroblob(1000000000))",
    "INSERT INTO people VALUES (9, 'x', 'y', 1) RETURNING 1",
    "UPDATE people SET id = id RETURNING 1",
    "SELECT readfile('/etc/passwd')",
]


@pytest.mark.parametrize(("truth", "answer"), SAME)
async def test_the_same_rows_are_right(sandbox: Sandboxes, database: str, truth: str, answer: str) -> None:
    result = await judge(sandbox, database, answer, truth)
    assert result.score == 1.0, result.reason


@pytest.mark.parametrize(("truth", "answer"), DIFFERENT)
async def test_other_rows_are_wrong(sandbox: Sandboxes, database: str, truth: str, answer: str) -> None:
    result = await judge(sandbox, database, answer, truth)
    assert result.score == 0.0 and result.is_score_valid


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_query_only_reads_the_database(sandbox: Sandboxes, database: str, attack: str) -> None:
    before = Path(database).read_bytes()
    result = await judge(sandbox, database, attack, "SELECT 1")
    assert result.score == 0.0 and result.metrics["query_runs"].score == 0.0
    assert Path(database).read_bytes() == before


async def test_a_query_without_end_or_with_too_many_rows_is_wrong(sandbox: Sandboxes, database: str) -> None:
    forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"
    late = await judge(sandbox, database, forever.format("max(i)"), "SELECT 1", seconds=1.0)
    assert late.score == 0.0 and "takes more than 1 s" in str(late.reason)
    many = await judge(sandbox, database, forever.format("i"), "SELECT 1")
    assert many.score == 0.0 and "Expected 1 rows, the query gives more" in str(many.reason)


async def test_the_order_counts_only_where_it_is_asked_for(sandbox: Sandboxes, database: str) -> None:
    up, down = "SELECT id FROM people ORDER BY id", "SELECT id FROM people ORDER BY id DESC"
    assert (await judge(sandbox, database, down, up, ordered=False)).score == 1.0
    assert (await judge(sandbox, database, down, "SELECT id FROM people", ordered=True)).score == 0.0


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("select a from t order\n by a limit 3", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("SELECT rank() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'order by' FROM t -- order by\n/* order by */", False),
        ('SELECT "order by" FROM t', False),
        ("(SELECT a FROM t) ORDER BY 1", True),
    ],
)
def test_an_outermost_order_by_is_seen(query: str, ordered: bool) -> None:
    assert _is_ordered(query) is ordered


@pytest.mark.parametrize(
    "truth",
    [None, "", 7, [], "SELEC 1", "DROP TABLE people", "SELECT nothing FROM people", "SELECT 1 WHERE 0"],
)
async def test_a_right_query_that_cannot_be_used_is_no_verdict(sandbox: Sandboxes, database: str, truth: Any) -> None:
    answer = truth if truth == "SELECT 1 WHERE 0" else "SELECT 1"
    assert not (await judge(sandbox, database, answer, truth)).is_score_valid


async def test_a_database_that_is_none_is_no_verdict(sandbox: Sandboxes, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no database")
    for database in (None, "", str(tmp_path), str(tmp_path / "missing"), str(text), 7):
        assert not (await judge(sandbox, database, "SELECT 1", "SELECT 1")).is_score_valid
    broken = tmp_path / "broken"
    broken.write_bytes(b"SQLite format 3\0" + b"x" * 500)
    with pytest.raises(SandboxError, match="cannot be opened"):
        await judge(sandbox, str(broken), "SELECT 1", "SELECT 1")


async def test_duckdb_is_read_as_sqlite_is(sandbox: Sandboxes, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    path = str(tmp_path / "people.duckdb")
    connection = duckdb.connect(path)
    connection.execute(TABLES)
    connection.close()
    for answer, score in {
        "SELECT name FROM people": 1.0,
        "SELECT name FROM people WHERE 1 = 0": 0.0,
        "SELECT name FROM people; SELECT 1": 0.0,
        "SELECT * FROM read_text('/etc/passwd')": 0.0,
        "COPY people TO 'x.csv'": 0.0,
        "SET enable_external_access = true": 0.0,
        "INSERT INTO people VALUES (9, 'x', 'y', 1)": 0.0,
    }.items():
        try:
            result = await judge(sandbox, path, answer, "SELECT name FROM people")
        except SandboxError as error:
            pytest.skip(f"DuckDB cannot be had in the sandbox: {error}")
        assert result.score == score and result.is_score_valid, answer

    nobody = "SELECT name FROM people WHERE city = 'Bonn' AND id > 100"
    for answer, score in {nobody: 1.0, "SELECT 'x' WHERE false": 0.0}.items():
        result = await judge(sandbox, path, answer, nobody)
        assert (result.score, result.is_score_valid) == (score, True), result.reason
