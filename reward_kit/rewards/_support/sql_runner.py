# SPDX-License-Identifier: Apache-2.0
"""Runs one query over a database file and writes its rows as JSON. It runs inside a sandbox, with Python alone.

    python3 -I runner.py sqlite|duckdb DATABASE QUERY_FILE RESULT_FILE MOST_ROWS MOST_BYTES
    python3 -I runner.py fill sqlite|duckdb DATABASE FILLED QUERY_FILE SEED      a copy with made-up rows in its tables

Reading is all a query may do: the file is opened read-only, only one SELECT is run, and the engine itself refuses to
reach other files, settings and extensions. Exit status: 0 a result, 3 the query fails, 5 the database cannot be
opened.
"""

import json
import random
import re
import shutil
import sys
from typing import Any

FAILED, NO_DATABASE = 3, 5
LONGEST_CELL = 10_000_000


def plain(value: Any) -> Any:
    """A cell as JSON holds it; what JSON has no type for says which type it is."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"number": str(value)}
    if isinstance(value, float) or type(value).__name__ == "Decimal":
        return {"number": repr(float(value))}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, (list, tuple)):
        return {"list": [plain(item) for item in value]}
    return {type(value).__name__: str(value)}


def sqlite_rows(database: str, query: str) -> Any:
    """The rows of the query, as they come."""
    import sqlite3

    connection = sqlite3.connect("file:" + database + "?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.DatabaseError as error:
        sys.stderr.write(str(error))
        sys.exit(NO_DATABASE)
    if hasattr(connection, "setlimit"):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_CELL)
    allowed = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33}  # 33: SQLITE_RECURSIVE
    connection.set_authorizer(
        lambda action, one, two, *rest: (
            sqlite3.SQLITE_OK if action in allowed and two != "load_extension" else sqlite3.SQLITE_DENY
        )
    )
    return connection.execute(query)


def duckdb_rows(database: str, query: str) -> Any:
    """The rows that `query` gives on a DuckDB database; otherwise as the function for SQLite above."""
    sys.path.append("packages")
    import duckdb

    try:
        connection = duckdb.connect(
            database,
            read_only=True,
            config={"enable_external_access": "false", "threads": "1", "allow_community_extensions": "false"},
        )
    except duckdb.Error as error:
        sys.stderr.write(str(error))
        sys.exit(NO_DATABASE)
    connection.execute("SET lock_configuration = true")
    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("only a single SELECT is run")
    return connection.execute(statements[0])


# ── made-up rows ─────────────────────────────────────────────────────────────────────────────────────────────────────

FILLED_ROWS, FEW_ROWS, KEPT_VALUES = 300, 30, 20
KNOWN_SHARE, NULL_SHARE, NEAR_SHARE = 0.3, 0.1, 0.5
CONSTANT = re.compile(r"'((?:[^']|'')*)'|(?<![\w.])(\d+(?:\.\d+)?)(?![\w.])")


def fill(engine: str, database: str, filled: str, query_file: str, seed: str) -> None:
    """Copy the database and put rows into its tables of which the query is likely to give some, and to leave some out.

    Their values are those that the query names, their neighbours, and what is there already, so that tables join. By
    every other seed, they are few, in place of what is there, and without NULL: for what gives rows only where there
    is no such other one (`NOT IN`, `EXCEPT`).
    """
    shutil.copyfile(database, filled)
    with open(query_file, encoding="utf-8") as file:
        texts, numbers = constants(file.read())
    chance = random.Random(int(seed))
    connection = connect(engine, filled)
    is_sparse = int(seed) % 2 == 1
    for table, columns in tables(engine, connection).items():
        kept = [values_of(connection, table, name) for name, _ in columns]
        if is_sparse:
            kept = [[each for each in known if each is not None] for known in kept]
            emptied(connection, table)
        marks = ", ".join("?" * len(columns))
        names = ", ".join(quoted(name) for name, _ in columns)
        for _ in range(FEW_ROWS if is_sparse else FILLED_ROWS):
            row = [
                None if not is_sparse and chance.random() < NULL_SHARE else value(chance, kind, texts, numbers, known)
                for (_, kind), known in zip(columns, kept, strict=True)
            ]
            try:
                connection.execute(f"INSERT INTO {quoted(table)} ({names}) VALUES ({marks})", row)
            except Exception:  # noqa: BLE001 - a row that the table does not take, by its keys or its checks
                continue
    connection.commit()
    connection.close()


def connect(engine: str, database: str) -> Any:
    """A connection that may write."""
    if engine == "sqlite":
        import sqlite3

        connection = sqlite3.connect(database)
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        return connection
    sys.path.append("packages")
    import duckdb

    return duckdb.connect(database, config={"enable_external_access": "false", "threads": "1"})


def tables(engine: str, connection: Any) -> "dict[str, list[tuple[str, str]]]":
    """The columns of each table, and their types."""
    listed = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    if engine == "duckdb":
        listed = "SELECT table_name FROM duckdb_tables() WHERE NOT internal"
    found = {}
    for (table,) in connection.execute(listed).fetchall():
        rows = connection.execute("PRAGMA table_info('" + table.replace("'", "''") + "')").fetchall()
        found[table] = [(row[1], str(row[2]).upper()) for row in rows]
    return found


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def constants(query: str) -> "tuple[list[str], list[float]]":
    """The texts and numbers that a query names; of a pattern, what fits it."""
    texts, numbers = [], []
    for text, number in CONSTANT.findall(query):
        if number:
            numbers.append(float(number) if "." in number else int(number))
        else:
            plain_text = text.replace("''", "'")
            texts += [plain_text, plain_text.replace("%", "").replace("_", "x")]
    return texts, numbers


def values_of(connection: Any, table: str, column: str) -> "list[Any]":
    """Some values that a column has."""
    asked = f"SELECT DISTINCT {quoted(column)} FROM {quoted(table)} LIMIT {KEPT_VALUES}"
    return [row[0] for row in connection.execute(asked).fetchall()]


def emptied(connection: Any, table: str) -> None:
    """Take the rows out of a table, where nothing else holds on to them."""
    try:
        connection.execute(f"DELETE FROM {quoted(table)}")
    except Exception:  # noqa: BLE001 - another table, or a trigger, wants them
        return


def value(chance: random.Random, kind: str, texts: "list[str]", numbers: "list[float]", known: "list[Any]") -> Any:
    """A value for a column of this type."""
    if known and chance.random() < KNOWN_SHARE:
        return chance.choice(known)
    if any(word in kind for word in ("INT", "REAL", "FLOA", "DOUB", "NUM", "DEC")):
        near = [number + step for number in numbers for step in (-1, 0, 0, 1)]
        return chance.choice(
            near if near and chance.random() < NEAR_SHARE else [*range(12), chance.randint(12, 100_000)]
        )
    if "BOOL" in kind:
        return chance.choice([False, True])
    if not kind:
        return chance.choice([*texts, *numbers, *range(12), "x"])
    return chance.choice([*texts, *texts, *map(str, numbers), "x", "y", str(chance.randint(0, 99))])


def main() -> None:
    """Run the query and write what it gives."""
    if sys.argv[1] == "fill":
        fill(*sys.argv[2:])
        return
    engine, database, query_file, result_file, most_rows, most_bytes = sys.argv[1:]
    with open(query_file, encoding="utf-8") as file:
        query = file.read()
    rows: list[str] = []
    size = 0
    try:
        cursor = (sqlite_rows if engine == "sqlite" else duckdb_rows)(database, query)
        width = len(cursor.description or ())
        if not width:
            raise ValueError("it is no query")
        while len(rows) <= int(most_rows) and size <= int(most_bytes):
            row = cursor.fetchone()
            if row is None:
                break
            rows.append(json.dumps([plain(cell) for cell in row]))
            size += len(rows[-1])
    except Exception as error:  # noqa: BLE001 - the boundary: whatever the engine says of the query is its failure
        sys.stderr.write(type(error).__name__ + ": " + str(error)[:500])
        sys.exit(FAILED)
    with open(result_file, "w", encoding="ascii") as file:
        file.write('{"width": %d, "rows": [%s]}' % (width, ",".join(rows)))  # noqa: UP031 - old Pythons too


if __name__ == "__main__":
    main()
