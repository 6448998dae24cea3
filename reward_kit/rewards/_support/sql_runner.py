# SPDX-License-Identifier: Apache-2.0
"""Runs one query over a database file and writes its rows as JSON. It runs inside a sandbox, with Python alone.

    python3 -I runner.py sqlite|duckdb DATABASE QUERY_FILE RESULT_FILE MOST_ROWS MOST_BYTES

Reading is all a query may do: the file is opened read-only, only one SELECT is run, and the engine itself refuses to
reach other files, settings and extensions. Exit status: 0 a result, 3 the query fails, 5 the database cannot be
opened.
"""

import json
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


def main() -> None:
    """Run the query and write what it gives."""
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
