# SPDX-License-Identifier: Apache-2.0
"""What the response cache costs an answer, beside one file per entry and SQLite. Run: python benchmarks/cache.py

Every store keeps the same completions as JSON under the same keys. Times are the best of several rounds, in one
process, on the filesystem of the temporary directory; `--dir` names another.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from reward_kit.config_models import Sampling
from reward_kit.generation.cache.responses import ResponseCache, draw_key, request_key
from reward_kit.models import Completion, Message, Usage

ENTRIES = 5_000
ROUNDS = 5
ANSWER = Completion(
    message=Message(role="assistant", content="The answer is 42 because six times seven is forty-two. " * 8),
    finish_reason="stop",
    usage=Usage(prompt_tokens=120, completion_tokens=100),
    latency_ms=812.5,
)


class FilePerEntry:
    """The simplest cache: `<key>.json`, written beside and renamed."""

    def __init__(self, directory: Path) -> None:
        """Keep the entries in `directory`."""
        self.directory = directory
        directory.mkdir()

    def get(self, key: str) -> Completion | None:
        """Read one file."""
        try:
            return Completion.model_validate_json((self.directory / f"{key}.json").read_bytes())
        except FileNotFoundError:
            return None

    def put(self, key: str, completion: Completion) -> None:
        """Write one file so that it is there whole or not at all."""
        path = self.directory / f"{key}.json"
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(completion.model_dump_json().encode())
        temporary.rename(path)

    def close(self) -> None:
        """Nothing is open."""


class Sqlite:
    """One table in WAL mode, a transaction an entry, as several processes would have to use it."""

    def __init__(self, path: Path) -> None:
        """Open the database."""
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=OFF")
        self.connection.execute("CREATE TABLE cache (key TEXT PRIMARY KEY, completion BLOB) WITHOUT ROWID")

    def get(self, key: str) -> Completion | None:
        """Select one row."""
        row = self.connection.execute("SELECT completion FROM cache WHERE key = ?", (key,)).fetchone()
        return None if row is None else Completion.model_validate_json(row[0])

    def put(self, key: str, completion: Completion) -> None:
        """Insert one row."""
        body = completion.model_dump_json().encode()
        self.connection.execute("INSERT OR REPLACE INTO cache VALUES (?, ?)", (key, body))

    def close(self) -> None:
        """Close the database."""
        self.connection.close()


Store = ResponseCache | FilePerEntry | Sqlite


def keys() -> list[str]:
    """A key an entry, made as a run makes them."""
    request = request_key({"model": "benchmark"}, [Message(role="user", content="What is 6 × 7?")], None, Sampling())
    return [draw_key(request, draw) for draw in range(2 * ENTRIES)]


def microseconds(work: Callable[[str], object], over: list[str]) -> float:
    """The mean cost of `work` over these keys."""
    start = time.perf_counter()
    for key in over:
        work(key)
    return (time.perf_counter() - start) / len(over) * 1e6


def measure(open_store: Callable[[Path], Store], directory: Path) -> list[float]:
    """Best microseconds of: a miss, a put, a hit."""
    present, absent = keys()[:ENTRIES], keys()[ENTRIES:]
    rounds = []
    for number in range(ROUNDS):
        with closing(open_store(directory / str(number))) as store:
            put = microseconds(lambda key, store=store: store.put(key, ANSWER), present)  # type: ignore[misc]
            miss = microseconds(store.get, absent)
            rounds.append((miss, put, microseconds(store.get, present)))
    return [min(column) for column in zip(*rounds, strict=True)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, help="where to write (default: the temporary directory)")
    stores: dict[str, Callable[[Path], Store]] = {
        "ResponseCache": ResponseCache,
        "one file per entry": FilePerEntry,
        "sqlite3 (WAL)": Sqlite,
    }
    results = {}
    for name, open_store in stores.items():
        with tempfile.TemporaryDirectory(dir=parser.parse_args().dir) as directory:
            results[name] = measure(open_store, Path(directory))
    ours = results["ResponseCache"]
    print(f"{'µs an entry (× ResponseCache)':<32}{'miss':>16}{'put':>16}{'hit':>16}")
    for name, times in results.items():
        cells = (f"{value:.1f} (×{value / own:.1f})" for value, own in zip(times, ours, strict=True))
        print(f"{name:<32}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
