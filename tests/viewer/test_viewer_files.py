# SPDX-License-Identifier: Apache-2.0
"""Files that grow, change, break or go while somebody looks: a clear answer, and the server lives on."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from reward_kit.storage.run_directory import RunDirectory
from reward_kit.viewer import index_cache, opened
from reward_kit.viewer.queries import Interrupted
from reward_kit.viewer.store import SEARCHED, TextMatch
from tests.analysis.experiments import rows_of, simulated, table, table_of, write, write_run
from tests.viewer.browser import Browser, browsing

pytest.importorskip("duckdb")


def line(name: str, index: int = 0, score: float | None = 1.0) -> bytes:
    told = {
        "id": name, "response_index": index, "evaluation_score": score, "is_score_valid": score is not None,
        "user_query": f"What is {name}?", "evaluation_metrics": {}, "cost": None, "status": "ok", "split": None,
        "assistant_response": f"It is {name}.",
    }  # fmt: skip
    return orjson.dumps(told) + b"\n"


def append(run: Path, content: bytes) -> None:
    with (run / "results.jsonl").open("ab") as file:
        file.write(content)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", {f"q{n}": [1.0, 0.0] for n in range(5)})


@pytest.fixture
def browser(run: Path) -> Iterator[Browser]:
    with browsing(run) as found:
        yield found


# ── growing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_appended_is_shown_and_half_a_line_waits(browser: Browser, run: Path) -> None:
    before = browser.run("/rows")
    append(run, line("new") + line("torn")[:40])
    grown = browser.run("/rows")
    append(run, line("torn")[40:])
    whole = browser.run("/rows")

    assert [page["total"] for page in (before, grown, whole)] == [5, 6, 7]
    assert before["version"] < grown["version"] < whole["version"]
    assert browser.run("/rows")["version"] == whole["version"]
    assert browser.sample("torn")["candidates"][0]["response"]["text"] == "It is torn."


def test_appended_lines_are_read_once(browser: Browser, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser.run("/rows")
    read: list[bytes] = []
    from reward_kit.analysis import loading
    from reward_kit.storage.judged import row_of_line

    def noted(content: bytes, *rest: Any) -> Any:
        read.append(content)
        return row_of_line(content, *rest)

    monkeypatch.setattr(loading, "row_of_line", noted)
    append(run, line("one"))
    browser.run()
    append(run, line("two"))
    browser.run("/rows")

    assert read == [line("one"), line("two")]


def test_columns_of_the_dataset_are_looked_for_once_while_a_run_grows_and_anew_in_another_file(
    browser: Browser, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def data_columns() -> list[str]:
        shown: list[str] = browser.run("/rows", by="record")["columns"]
        return [name for name in shown if name.startswith("data.")]

    def lines(column: str, first: int, end: int) -> bytes:
        told = [{**orjson.loads(line(f"n{n:04}")), "columns": {column: n}} for n in range(first, end)]
        return b"".join(orjson.dumps(one) + b"\n" for one in told)

    def replaced(content: bytes) -> None:
        (run / "draft").write_bytes(content)
        (run / "draft").replace(run / "results.jsonl")

    looked: list[int] = []
    kinds_of_columns = opened.Snapshot._kinds_of_columns

    def noted(snapshot: opened.Snapshot, few: Any) -> dict[str, str]:
        looked.append(len(few))
        return kinds_of_columns(snapshot, few)

    monkeypatch.setattr(opened.Snapshot, "_kinds_of_columns", noted)
    replaced(lines("level", 0, 250))
    assert data_columns() == ["data.level"] and looked == [200]
    append(run, lines("level", 250, 300))
    assert data_columns() == ["data.level"] and browser.run("/rows", by="record")["total"] == 300
    assert looked == [200]
    replaced(lines("topic", 0, 300))
    assert data_columns() == ["data.topic"] and looked == [200, 200]


def test_a_file_that_takes_the_place_of_another_is_read_anew(browser: Browser, run: Path) -> None:
    browser.run("/rows", q="q1")
    lines = (run / "results.jsonl").read_bytes().splitlines(keepends=True)
    (run / "draft").write_bytes(b"".join(reversed(lines)))
    (run / "draft").replace(run / "results.jsonl")

    assert [row["id"] for row in browser.run("/rows")["rows"]] == ["q4", "q3", "q2", "q1", "q0"]
    assert browser.run("/rows", q="q1")["total"] == 1


def test_the_feed_tells_of_what_was_appended(browser: Browser, run: Path) -> None:
    browser.run()
    events = browser.events(
        f"/api/runs/{browser.keys[0]}/changes",
        lambda found: found[-1]["records"] == 11,
        do=lambda: append(run, line("new", score=None)),
    )

    first, last = events[0], events[-1]
    assert (first["records"], first["judged"], first["failed"], first["mean"]) == (10, 10, 0, 0.5)
    assert (last["records"], last["judged"], last["failed"], last["mean"]) == (11, 10, 1, 0.5)
    assert last["version"] > first["version"]
    assert not last["live"]
    assert browser.run("/rows")["version"] == last["version"]


def test_a_run_without_results_yet_is_empty_and_not_wrong(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with RunDirectory(run) as directory:
        directory.begin_phase("both", {"n": 4, "limit": 3})
        (run / "rollouts.jsonl").touch()
        with browsing(run) as browser:
            (card,) = browser.get("/api/runs")["runs"]
            page = browser.run()
            rows = browser.run("/rows")
            (change,) = browser.events(f"/api/runs/{browser.keys[0]}/changes", bool)
            append(run, line("first"))
            assert browser.run("/rows")["total"] == 1

    assert card["live"]
    assert not card["finished"]
    assert card["problem"] is None
    assert page["notes"] == ["There are no results yet."]
    assert rows["total"] == 0
    assert change["expected"] == 12


def test_nothing_is_written_into_a_run_directory(browser: Browser, run: Path) -> None:
    browser.get("/api/runs")
    browser.run("/rows", q="what", sort="-score")

    assert [path.name for path in run.iterdir()] == ["results.jsonl"]


def test_first_looks_at_once_are_all_answered(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def late(self: threading.Thread) -> None:
        if self.name.startswith("votes on"):
            time.sleep(0.1)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", late)
    with browsing(run) as browser, ThreadPoolExecutor(6) as several:
        key = browser.keys[0]
        addresses = ["/api/runs", f"/api/runs/{key}"] * 3
        assert [reply.status for reply in several.map(browser.ask, addresses)] == [200] * 6


# ── the index of large files ─────────────────────────────────────────────────────────────────────────────────────────


def indexed(run: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on every file is large; how many lines each look reads."""
    from reward_kit.analysis.loading import ResultsReader

    monkeypatch.setattr(opened, "_LARGE", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(run.parent / "cache"))
    counts: list[int] = []
    read = ResultsReader.read

    def counted(self: Any, most: int | None = None) -> int:
        counts.append(read(self, most))
        return counts[-1]

    monkeypatch.setattr(ResultsReader, "read", counted)
    return counts


def test_a_large_file_is_read_once_and_then_only_what_is_new(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = indexed(run, monkeypatch)
    with browsing(run) as browser:
        first = browser.run()
    append(run, line("new"))
    with browsing(run) as browser:
        second = browser.run()
        rows = browser.run("/rows", by="record", q="what")

    assert sum(counts) == 10 + 1
    assert list((run.parent / "cache").rglob("*.parquet"))
    assert (first["card"]["records"], second["card"]["records"], rows["total"]) == (10, 11, 11)
    monkeypatch.setattr(opened, "_LARGE", 1 << 40)
    with browsing(run) as browser:
        assert browser.run() == second


@pytest.mark.parametrize("change", ["rewritten", "cut", "threshold", "index damaged"])
def test_an_index_that_does_not_fit_is_not_used(run: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    counts = indexed(run, monkeypatch)
    with browsing(run) as browser:
        browser.run("/rows")
    results = run / "results.jsonl"
    content = results.read_bytes()
    if change == "rewritten":
        results.write_bytes(content.replace(b"q4", b"q9"))
    elif change == "cut":
        results.write_bytes(b"".join(content.splitlines(keepends=True)[:6]))
    elif change == "threshold":
        (run / "config.yaml").write_text("reward: {function_path: math, pass_threshold: 0.5}")
    else:
        (index,) = index_cache.cache_folder().glob("*.parquet")
        index.write_bytes(index.read_bytes()[:-20])
    counts.clear()
    with browsing(run) as browser:
        total = browser.run("/rows")["total"]

    assert sum(counts) == (6 if change == "cut" else 10)
    assert total == (3 if change == "cut" else 5)


# ── breaking ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_directory_that_was_deleted_is_gone(browser: Browser, run: Path) -> None:
    browser.run("/rows")
    key = browser.keys[0]
    shutil.rmtree(run)

    for rest in ("", "/rows", "/samples/q1", "/records/q1/0"):
        answered = browser.ask(f"/api/runs/{key}{rest}")
        assert (answered.status, answered.error) == (410, "gone")
    (card,) = browser.get("/api/runs")["runs"]
    assert "no longer there" in card["problem"]
    (event,) = browser.events(f"/api/runs/{key}/changes", bool)
    assert event["gone"]


def test_a_directory_that_comes_back_is_shown_again(browser: Browser, run: Path) -> None:
    kept = (run / "results.jsonl").read_bytes()
    shutil.rmtree(run)
    assert browser.ask(f"/api/runs/{browser.keys[0]}").status == 410
    run.mkdir()
    append(run, kept)

    assert browser.run("/rows")["total"] == 5


@pytest.mark.parametrize(
    "content", [b"", b"no Parquet at all", b"PAR1" + bytes(100) + b"PAR1", None], ids=["empty", "text", "hollow", "cut"]
)
def test_a_table_that_is_none_is_a_problem_of_its_own(tmp_path: Path, content: bytes | None) -> None:
    good = write(tmp_path / "good.parquet", table(simulated(1, queries=9)))
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(good.read_bytes()[:-200] if content is None else content)
    with browsing(bad, good) as browser:
        cards = browser.get("/api/runs")["runs"]
        answered = [browser.ask(f"/api/runs/{browser.keys[0]}{rest}") for rest in ("", "/samples/q")]

    assert [bool(card["problem"]) for card in cards] == [bool(content) or content is None, False]
    assert cards[1]["records"] == 36
    if content != b"":
        assert [(one.status, one.error) for one in answered] == [(422, "unreadable")] * 2


def test_a_damaged_page_of_a_table_is_told_of(tmp_path: Path) -> None:
    rows = rows_of(simulated(1, queries=400), response=lambda name, index, verdict: f"{name} {index} " * 50)
    path = write(tmp_path / "table.parquet", table_of(rows), compression="zstd", write_page_checksum=True)
    with browsing(path) as browser:
        assert browser.run("/rows", by="record", q="q0001 2")["total"]
        column = pq.read_metadata(path).row_group(0).column(table_of(rows).column_names.index("response"))
        content = bytearray(path.read_bytes())
        middle = column.data_page_offset + column.total_compressed_size // 2
        content[middle : middle + 64] = bytes(64)
        path.write_bytes(content)
        broken = browser.ask(f"/api/runs/{browser.keys[0]}/samples/q0001")

    assert broken.status == 422
    assert broken.json["error"]["message"].endswith((".", "run."))


def test_a_table_that_changes_while_it_is_read_is_never_mixed(tmp_path: Path) -> None:
    path = write(tmp_path / "table.parquet", table({"a": "1", "b": "0"}))
    with browsing(path) as browser:
        key = browser.keys[0]
        before = browser.viewer.run(key).now()
        draft = write(tmp_path / "draft", table({"x": "11", "y": "00", "z": "10"}))
        draft.replace(path)
        with pytest.raises(Exception, match="changed while it was read"):
            before.read([0, 1])
        after = browser.run("/rows")

    assert [row["id"] for row in after["rows"]] == ["x", "y", "z"]


def test_a_line_that_is_damaged_is_a_problem_and_the_others_are_shown(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden"
    broken = tmp_path / "broken"
    shutil.copytree(golden / "run", broken)
    content = (broken / "results.jsonl").read_bytes()
    (broken / "results.jsonl").write_bytes(content.replace(b"What is 2 + 3?", b"What is 2 + 4?", 1))
    with browsing(broken, golden / "shell") as browser:
        cards = browser.get("/api/runs")["runs"]

    assert "is damaged" in cards[0]["problem"]
    assert cards[1]["problem"] is None


def test_a_fault_of_ours_is_no_secret_of_others(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(self: object) -> None:
        raise ZeroDivisionError("a path: /home/somebody")

    monkeypatch.setattr(opened.OpenedRun, "now", fails)
    answered = browser.ask(f"/api/runs/{browser.keys[0]}/rows")

    assert answered.status == 500
    assert b"somebody" not in answered.content
    assert "ZeroDivisionError" in caplog.text


# ── ending ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_search_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "table.parquet", table(simulated(1, queries=300)), row_group_size=10)
    with browsing(path) as browser:
        snapshot = browser.viewer.run(browser.keys[0]).now()
        with browser.viewer.database.query() as query:
            parts = snapshot.scan(TextMatch(SEARCHED, "has", "what"), query)
            first = next(parts)
            threading.Thread(target=query.end).start()
            with pytest.raises(Interrupted):
                for part in parts:
                    last = part
                pytest.fail(f"it went on to {last.read}")

    assert first.read == 10


def test_a_page_that_goes_ends_its_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "table.parquet", table(simulated(1, queries=300)), row_group_size=10)
    with browsing(path) as browser:
        browser.events(f"/api/runs/{browser.keys[0]}/search?q=what", bool)
        assert browser.run("/rows", q="what")["total"] == 300
        assert json.dumps(browser.run()["card"])
