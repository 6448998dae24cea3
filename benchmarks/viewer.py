# SPDX-License-Identifier: Apache-2.0
"""Looking at a million records, beside DuckDB asked directly; and at a run while it goes on, beside the run itself.

The viewer is a process of its own, asked over HTTP as the page asks it. What it is held to:

    start     a process that imports DuckDB and works out the same figures of the same file
    a page    the same rows asked of DuckDB: filtered, sorted, the first hundred with their texts
    a search  a scan of the same columns for the same text, which counts the rows
    a run     a real one, with a model that costs nothing; the page follows it and fetches what it shows
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.report import Report, Row
from benchmarks.scene import ROOT
from reward_kit.viewer.sources import find_runs

__all__ = ["main", "write_table"]

ROUNDS = 5
CANDIDATES = 4
GROUP = 5_000
WORDS = 2_000

FIGURES = """
import sys, duckdb
con = duckdb.connect(config={"threads": 2})
con.execute("CREATE VIEW t AS SELECT * FROM read_parquet('" + sys.argv[1] + "')")
for split in ("", " GROUP BY split"):
    con.sql("SELECT count(*), count(is_verified), avg(score), stddev(score), avg(is_verified::INT), sum(cost), "
            "sum(prompt_tokens), sum(completion_tokens) FROM t" + split).fetchall()
    con.sql("SELECT judged, verified, count(*), sum(score), sum(score * score) FROM (SELECT any_value(split) AS split, "
            "count(is_verified) AS judged, sum(is_verified::INT) AS verified, avg(score) AS score FROM t GROUP BY "
            "query_id) GROUP BY ALL").fetchall()
con.sql("SELECT candidate_idx, avg(is_verified::INT) FROM t GROUP BY 1").fetchall()
con.sql("SELECT floor(score * 10), count(*) FROM t GROUP BY 1").fetchall()
con.sql("SELECT error_stage, error_type, count(*) FROM t WHERE is_verified IS NULL GROUP BY ALL").fetchall()
con.sql("SELECT finish_reason, count(*) FROM t GROUP BY 1").fetchall()
con.sql("SELECT DISTINCT model FROM t").fetchall()
for name in ("prompt_tokens", "completion_tokens", "latency_ms", "cost"):
    con.sql(f"SELECT quantile_cont({name}, [0.5, 0.9, 0.99]) FROM t").fetchall()
con.sql("SELECT query_id, any_value(query), avg(is_verified::INT) AS rate FROM t GROUP BY 1 ORDER BY rate LIMIT 5"
        ).fetchall()
"""
SEARCHED = ("query", "response", "ground_truth", "verification_reason", "error")


def main(*, quick: bool = False) -> Report:
    """Measure the table, then the run that goes on."""
    samples, rounds, lines = (500, 1, 2_000) if quick else (250_000, ROUNDS, 200_000)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.parquet"
        write_table(table, samples)
        rows = [*_start(table, rounds), *_table(table, rounds), *_live(Path(folder), lines)]
    return Report(
        "viewer", "what looking costs, beside DuckDB asked directly and beside the run that is followed", rows
    )


# ── a million records ────────────────────────────────────────────────────────────────────────────────────────────────


def _start(table: Path, rounds: int) -> list[Row]:
    bare, ours = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", FIGURES, str(table)], check=True, cwd=ROOT)
        bare.append(time.perf_counter() - start)
        start = time.perf_counter()
        with _viewing(table) as page:
            page.get(f"/api/runs/{_key(table)}/rows?limit=100")
            ours.append(time.perf_counter() - start)
    return [_ratio("start to the first page of the table, of DuckDB's start and figures", ours, bare, 3.0)]


def _table(table: Path, rounds: int) -> list[Row]:
    import duckdb

    pages: list[float] = []
    bare_pages: list[float] = []
    searches: list[float] = []
    scans: list[float] = []
    first_hits: list[float] = []
    size, key = 0, _key(table)
    connection = duckdb.connect(config={"threads": 2, "memory_limit": "400MB"})
    file = f"read_parquet('{table}')"
    with _viewing(table) as page:
        page.get("/api/runs")
        page.get(f"/api/runs/{key}/rows?by=record&limit=100")
        for number in range(rounds):
            least, order = 0.1 + number / 100, ("latency_ms", "score", "cost")[number % 3]
            start = time.perf_counter()
            view = f"by=record&sort=-{order}&where=score:ge:{least}&limit=100"
            size = max(size, len(page.get(f"/api/runs/{key}/rows?{view}")))
            pages.append(time.perf_counter() - start)
            start = time.perf_counter()
            sql = f"SELECT * FROM {file} WHERE score >= ? ORDER BY {order} DESC NULLS LAST LIMIT 100"
            connection.sql(sql, params=[least]).to_arrow_table().to_pylist()
            bare_pages.append(time.perf_counter() - start)
        for number in range(max(1, rounds // 2)):
            text = _words_of(table, number)
            start = time.perf_counter()
            first_hits.append(page.search(f"/api/runs/{key}/search?by=record&q={quote(text)}"))
            searches.append(time.perf_counter() - start)
            start = time.perf_counter()
            condition = " OR ".join(f"contains(lower({name}), lower(?))" for name in SEARCHED)
            connection.sql(f"SELECT count(*) FROM {file} WHERE {condition}", params=[text] * len(SEARCHED)).fetchall()
            scans.append(time.perf_counter() - start)
        peak = page.peak_gigabytes()
    return [
        _ratio("a filtered and sorted page, of the bare query", pages, bare_pages, 2.0),
        _ratio("a search through all texts, of the bare scan", searches, scans, 1.2),
        Row("the first hits, of the whole search", min(first_hits) / min(searches), f"{min(first_hits):.3f} s",
            at_most=0.5),
        Row("a page of 100 rows", size / 1e3, "as JSON, uncompressed", at_most=300, unit="KB"),
        Row("peak memory of the viewer", peak, "with tables, figures and searches", at_most=1.0, unit="GB"),
    ]  # fmt: skip


def _words_of(table: Path, number: int) -> str:
    """Words that a few hundred of a million answers hold one after another."""
    with pq.ParquetFile(table) as file:
        text: str = file.read_row_group(0, columns=["response"])["response"][number].as_py()
    return " ".join(text.split()[3:6])


def _ratio(what: str, ours: list[float], bare: list[float], goal: float) -> Row:
    return Row(what, min(ours) / min(bare), f"{min(ours):.3f} s of {min(bare):.3f} s", at_most=goal)


def write_table(path: Path, samples: int) -> None:
    """An experiment with texts of about a kilobyte, in row groups of 20,000 records."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{number:04d}" for number in range(WORDS)])
    pool = pa.array([" ".join(words[rng.integers(0, WORDS, 25)]) for _ in range(20_000)])
    writer: pq.ParquetWriter | None = None
    for start in range(0, samples, GROUP):
        numbers = np.arange(start, min(start + GROUP, samples))
        table = _group(rng, pool, numbers)
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=_REPEATING)
        writer.write_table(table, table.num_rows)
    if writer is not None:
        writer.close()


_REPEATING: Any = ["query_id", "split", "query", "ground_truth", "verification_reason", "error", "model", "columns"]


def _group(rng: np.random.Generator, pool: pa.Array[Any], numbers: np.ndarray[Any, Any]) -> pa.Table:
    count = len(numbers) * CANDIDATES

    def texts(rows: int, parts: int) -> Any:
        join: Any = pc.binary_join_element_wise
        return join(*[pool.take(rng.integers(0, len(pool), rows)) for _ in range(parts)], " ")

    each = np.repeat(np.arange(len(numbers)), CANDIDATES)
    verified = rng.random(count) < np.repeat(rng.random(len(numbers)), CANDIDATES)
    failed = rng.random(count) < 0.01
    answer: Any = pc.binary_join_element_wise
    boxed = pa.array([f"\\boxed{{{number}}}" for number in np.repeat(numbers, CANDIDATES) + ~verified])
    columns: dict[str, Any] = {
        "query_id": pa.array([f"q{number:07d}" for number in numbers]).take(each),
        "split": np.array(["math", "code"])[numbers % 2][each],
        "query": texts(len(numbers), 2).take(each),
        "ground_truth": pa.array(numbers.astype(str)).take(each),
        "candidate_idx": pa.array(np.tile(np.arange(CANDIDATES), len(numbers)), pa.int32()),
        "response": answer(texts(count, 6), boxed, " "),
        "is_verified": pa.array(verified, mask=failed),
        "score": pa.array(np.round(np.where(verified, 1.0, rng.random(count) / 2), 3), mask=failed),
        "verification_reason": pa.array(np.where(verified, "right", "wrong")),
        "error": pa.array(np.full(count, "ProviderError: 503"), pa.string(), mask=~failed),
        "error_type": pa.array(np.full(count, "ProviderError"), pa.string(), mask=~failed),
        "error_stage": pa.array(np.full(count, "generate"), pa.string(), mask=~failed),
        "model": np.full(count, "a-model"),
        "finish_reason": np.where(rng.random(count) < 0.02, "length", "stop"),
        "prompt_tokens": rng.integers(20, 400, count),
        "completion_tokens": rng.integers(20, 900, count),
        "cost": rng.random(count) / 1_000,
        "latency_ms": rng.gamma(3, 300, count),
        "columns": pa.array([json.dumps({"level": int(number) % 5}) for number in numbers]).take(each),
    }
    return pa.table(columns)


# ── a run that goes on ───────────────────────────────────────────────────────────────────────────────────────────────

RUN = """
import os, resource, sys
from reward_kit.evaluating import evaluate
async def reward(messages, ground_truth=None, **kwargs):
    return float(len(messages[-1].content) % 2)
asked = "ask " * 100
rows = ({"id": f"q{n}", "user_query": f"{asked} {n}", "ground_truth_for_eval": "1"} for n in range(int(sys.argv[1])))
answer = "word " * 100
evaluate(rows, reward, model="mock", output_dir=sys.argv[2], mock={"responses": [answer, answer + "x"]},
         cache={"enabled": False})
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(one.ru_utime + one.ru_stime for one in used))
"""


def _live(folder: Path, lines: int) -> list[Row]:
    """Follow a run from its first result to its last."""
    output = folder / "run"
    results = output / "results.jsonl"
    command = [sys.executable, "-c", RUN, str(lines), str(output)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        while not results.exists() or not results.stat().st_size:
            time.sleep(0.02)
        start, there = time.perf_counter(), results.read_bytes().count(b"\n")
        with _viewing(output) as page:
            page.get("/api/runs")
            before = page.processor_seconds()
            written, told, cost = _watched(run, page, f"/api/runs/{_key(output)}", results)
            took = written[-1][0] - start
            cost -= before
        assert run.stdout is not None
        used = float(run.stdout.read())
    lines -= there
    rate = lines / took
    delay = _delay(written, told)
    return [
        Row("the delay of a page that follows a run", delay, f"at {rate:,.0f} records/s", at_most=2.0, unit="s"),
        Row("following, of the run's own processor time", cost / used, f"{cost:.1f} s of {used:.1f} s", at_most=0.1),
    ]


Moments = list[tuple[float, int]]


def _watched(run: subprocess.Popen[str], page: _Page, address: str, results: Path) -> tuple[Moments, Moments, float]:
    """How many lines there were when, how many the page knew of when, and the viewer's processor time at the end."""
    written: Moments = []
    told: Moments = []
    ended = threading.Event()

    def follow() -> None:
        version = 0
        for event in page.events(f"{address}/changes"):
            told.append((time.perf_counter(), event["records"]))
            if event["version"] > version:  # as the page does
                version = event["version"]
                page.get(f"{address}/rows?by=record&sort=-score&limit=100")
                page.get(address)
            if ended.is_set() and event["records"] >= written[-1][1]:
                return

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    position, count = 0, 0
    while True:
        going = run.poll() is None
        with contextlib.suppress(FileNotFoundError), results.open("rb") as file:
            content = b""
            if os.fstat(file.fileno()).st_size >= position:  # in the end it is written anew, in order
                file.seek(position)
                content = file.read()
            position, count = position + len(content), count + content.count(b"\n")
            written.append((time.perf_counter(), count))
        if not going:
            break
        time.sleep(0.1)
    cost = page.processor_seconds()
    ended.set()
    follower.join(60)
    return written, told, cost


def _delay(written: Moments, told: Moments) -> float:
    """The longest time that a line was there and the page did not know of it, once it had begun to look."""
    begun = told[0][0] if told else 0.0
    delays = [
        next((later - moment for later, known in told if known >= count), 60.0)
        for moment, count in written
        if moment >= begun
    ]
    return max((delay for delay in delays if delay >= 0), default=0.0)


# ── the viewer, as the page asks it ──────────────────────────────────────────────────────────────────────────────────


class _Page:
    def __init__(self, process: subprocess.Popen[str], port: int, cookie: str) -> None:
        self._process = process
        self._port = port
        self._headers = {"cookie": cookie}
        self._local = threading.local()

    def get(self, address: str) -> bytes:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = http.client.HTTPConnection("127.0.0.1", self._port)
        connection.request("GET", address, headers=self._headers)
        reply = connection.getresponse()
        content: bytes = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"{address}: {reply.status} {content[:300]!r}")
        return content

    def events(self, address: str) -> Iterator[Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        with contextlib.closing(connection):
            connection.request("GET", address, headers=self._headers)
            for line in connection.getresponse():
                if line.startswith(b"data: "):
                    yield json.loads(line[len(b"data: ") :])

    def search(self, address: str) -> float:
        """Search to the end; the seconds until the first hit came."""
        start = time.perf_counter()
        first = None
        for event in self.events(address):
            if event["hits"] and first is None:
                first = time.perf_counter() - start
            if event["done"]:
                break
        return time.perf_counter() - start if first is None else first

    def peak_gigabytes(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1e6  # type: ignore[index]

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _viewing(path: Path) -> Iterator[_Page]:
    """A viewer of this path, opened as a browser opens it."""
    command = [sys.executable, "-m", "reward_kit", "view", str(path), "--no-open"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            told = process.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:(\d+)(/\?token=\S+)", told)
            if found is None:
                raise RuntimeError(told + process.stderr.read())
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]))
            with contextlib.closing(connection):
                connection.request("GET", found[2])
                cookie = connection.getresponse().getheader("set-cookie", "")
            yield _Page(process, int(found[1]), cookie.partition(";")[0])
        finally:
            process.terminate()


def _key(path: Path) -> str:
    return find_runs([path])[0].key
