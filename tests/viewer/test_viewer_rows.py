# SPDX-License-Identifier: Apache-2.0
"""The table: orders, filters and searches of lines and of tables, against the same worked out by hand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reward_kit.viewer import rows as table_rows
from reward_kit.viewer.queries import Query
from reward_kit.viewer.rows import Table
from tests.analysis.experiments import rows_of, simulated, table_of, write
from tests.viewer.browser import Browser, browsing

pytest.importorskip("duckdb")

ODD = 'it\'s "100 %" _odd_; DROP TABLE looked_at; -- <script>alert(1)</script> ÄÖÜ ǅ \u202e'


def records() -> list[dict[str, Any]]:
    rows = rows_of(simulated(3, queries=40, size=3, missing=0.1))
    for row in rows:
        number, index = int(row["query_id"][1:]), row["candidate_idx"]
        row["split"] = "odd" if number % 2 else "even"
        row["query"] = ODD if number == 7 else f"What is {row['query_id']}?"
        row["response"] = f"Answer {index} to {row['query_id']}: {'Übung ' * (number % 5)}{row['score']}"
        row["latency_ms"] = float((number * 37 + index * 11) % 101)
        row["columns"] = json.dumps({"level": number % 4, "topic": f"t{number % 3}"})
    return rows


def as_run(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The same records as a run's lines."""
    path.mkdir()
    lines = [
        {
            "id": row["query_id"], "response_index": row["candidate_idx"], "evaluation_score": row["score"],
            "is_score_valid": row["score"] is not None, "user_query": row["query"],
            "messages": [{"role": "user", "content": row["query"]},
                         {"role": "assistant", "content": row["response"]}],
            "assistant_response": row["response"], "ground_truth_for_eval": row["ground_truth"],
            "evaluation_reason": None, "evaluation_metrics": {}, "error": row["error"], "cost": None, "status": "ok",
            "split": row["split"], "latency_ms": row["latency_ms"], "columns": json.loads(row["columns"]),
        }
        for row in rows
    ]  # fmt: skip
    (path / "results.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


@pytest.fixture(scope="module", params=["lines", "table"])
def browser(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("rows")
    rows = records()
    path = as_run(folder / "run", rows)
    if request.param == "table":
        path = write(folder / "table.parquet", table_of(rows), row_group_size=17)
    with browsing(path) as found:
        yield found


def shown(browser: Browser, **view: Any) -> list[tuple[str, Any]]:
    page = browser.run("/rows", limit=1_000, **view)
    assert page["total"] == len(page["rows"])
    return [(row["id"], row["index"]) for row in page["rows"]]


def expected(keep: Callable[[dict[str, Any]], bool]) -> list[tuple[str, Any]]:
    return [(row["query_id"], row["candidate_idx"]) for row in records() if keep(row)]


FILTERS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "score:ge:1": lambda row: row["score"] is not None and row["score"] >= 1,
    "score:lt:0.5": lambda row: row["score"] is not None and row["score"] < 0.5,
    "passed:eq:true": lambda row: row["is_verified"] is True,
    "passed:empty:": lambda row: row["is_verified"] is None,
    "failure:filled:": lambda row: row["is_verified"] is None,
    "split:eq:odd": lambda row: row["split"] == "odd",
    "split:ne:odd": lambda row: row["split"] != "odd",
    "index:eq:2": lambda row: row["candidate_idx"] == 2,
    "latency_ms:gt:50": lambda row: row["latency_ms"] > 50,
    "latency_ms:le:50": lambda row: row["latency_ms"] <= 50,
    "id:has:Q001": lambda row: "q001" in row["query_id"],
    "response:has:übung": lambda row: "übung" in row["response"].lower(),
    "response:has:answer 1 to q0003": lambda row: row["query_id"] == "q0003" and row["candidate_idx"] == 1,
    f"query:eq:{ODD}": lambda row: row["query"] == ODD,
    "query:has:DROP TABLE": lambda row: row["query"] == ODD,
    "query:has:ÄÖÜ": lambda row: row["query"] == ODD,
    "query:ne:What is q0001?": lambda row: row["query"] != "What is q0001?",
    "data.level:eq:3": lambda row: json.loads(row["columns"])["level"] == 3,
    "data.topic:eq:t1": lambda row: json.loads(row["columns"])["topic"] == "t1",
    "data.topic:eq:' OR 1=1 --": lambda row: False,
    "length:gt:30": lambda row: len(row["response"]) > 30,
}  # fmt: skip


@pytest.mark.parametrize("condition", FILTERS)
def test_a_filter_leaves_the_rows_that_it_says(browser: Browser, condition: str) -> None:
    assert shown(browser, by="record", where=condition) == expected(FILTERS[condition])


def test_filters_hold_together(browser: Browser) -> None:
    both = shown(browser, by="record", where=["split:eq:odd", "response:has:übung", "score:ge:1"], sort="-latency_ms")

    wanted = [
        row for row in records() if row["split"] == "odd" and "Übung" in row["response"] and (row["score"] or 0) >= 1
    ]
    wanted.sort(key=lambda row: -row["latency_ms"])
    assert both == [(row["query_id"], row["candidate_idx"]) for row in wanted]


@pytest.mark.parametrize("column", ["score", "latency_ms", "id", "length", "data.level", "split", "passed"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_order_is_by_the_column_and_then_by_the_file(browser: Browser, column: str, sign: str) -> None:
    page = browser.run("/rows", by="record", sort=sign + column, limit=1_000)
    place = page["columns"].index(column)
    values = [row["cells"][place] for row in page["rows"]]
    known = [value for value in values if value is not None]

    assert values[len(known) :] == [None] * (len(values) - len(known))
    assert known == sorted(known, reverse=bool(sign))
    assert len(values) == len(records())


def test_a_sample_is_found_by_what_any_of_its_candidates_says(browser: Browser) -> None:
    found = shown(browser, by="sample", q="answer 2 to q0011")

    assert found == [("q0011", None)]
    assert shown(browser, by="sample", q="Q0011") == [("q0011", None)]


def test_only_contested_samples_are_left(browser: Browser) -> None:
    wanted: dict[str, set[Any]] = {}
    for row in records():
        if row["is_verified"] is not None:
            wanted.setdefault(row["query_id"], set()).add(row["is_verified"])
    contested = [name for name, verdicts in wanted.items() if len(verdicts) == 2]

    assert [name for name, _ in shown(browser, contested=1)] == contested
    assert {name for name, _ in shown(browser, by="record", contested=1)} == set(contested)


def test_pages_are_slices_of_one_order(browser: Browser) -> None:
    whole = shown(browser, by="record", sort="-latency_ms")
    parts = [browser.run("/rows", by="record", sort="-latency_ms", offset=at, limit=7) for at in range(0, 120, 7)]

    assert [(row["id"], row["index"]) for part in parts for row in part["rows"]] == whole
    assert browser.run("/rows", by="record", offset=10_000)["rows"] == []


def test_the_beginning_of_an_order_is_that_of_the_whole(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "_HEAD", 10)
    view = {"by": "record", "sort": "-score", "where": ["latency_ms:gt:20", "query:has:what"]}
    first = browser.run("/rows", limit=10, **view)
    whole = browser.run("/rows", limit=1_000, **view)

    assert first["rows"] == whole["rows"][:10]
    assert first["total"] == whole["total"] == len(whole["rows"])


@pytest.mark.parametrize("rest", ["rows?sort=score", "rows?sort=score&offset=2000", "samples/q0001?sort=score"])
def test_work_on_rows_that_nobody_waits_for_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: str
) -> None:
    begun = threading.Event()
    worked_out = Table._worked_out

    def for_long(table: Table, query: Query, first: int | None = None) -> Any:
        begun.set()
        query.run("SELECT sum(a.range * b.range % 7) FROM range(100_000) a, range(10_000) b")
        return worked_out(table, query, first)

    monkeypatch.setattr(Table, "_worked_out", for_long)
    with browsing(as_run(tmp_path / "run", records())) as browser:
        left = browser.leave(f"/api/runs/{browser.keys[0]}/{rest}", begun)
        assert (left.status, left.error) == (503, "interrupted")
        monkeypatch.undo()
        assert browser.ask(f"/api/runs/{browser.keys[0]}/{rest}").status == 200, "nothing half is kept"


def test_columns_that_are_named_are_the_only_ones(browser: Browser) -> None:
    page = browser.run("/rows", by="record", columns="id,score", limit=2)

    assert page["columns"] == ["id", "score"]
    assert [len(row["cells"]) for row in page["rows"]] == [2, 2]


@pytest.mark.parametrize(
    "view",
    [
        "sort=nothing", "sort=response", 'sort=score"; DROP TABLE x; --', "where=score", "where=nothing:eq:1",
        "where=score:eq:x", "where=score:eq:nan", "where=passed:eq:maybe", "by=nothing", "limit=-1", "offset=1e9",
        "columns=nothing", "where=score:like:1", "&".join(["where=score:eq:1"] * 40), "q=" + "x" * 20_000,
    ],
)  # fmt: skip
def test_a_view_that_means_nothing_is_refused_with_what_to_do(browser: Browser, view: str) -> None:
    refused = browser.ask(f"/api/runs/{browser.keys[0]}/rows?{view.replace(' ', '%20')}")

    assert refused.status == 400
    assert refused.error == "wrong_request"
    assert refused.json["error"]["message"].endswith((".", "?"))


def test_every_column_that_is_told_of_can_be_filtered_and_narrow_ones_sorted(browser: Browser) -> None:
    for by, columns in browser.run()["columns"].items():
        for column in columns:
            assert browser.run("/rows", by=by, where=f"{column['name']}:filled:", limit=1)
            if not column["wide"]:
                assert browser.run("/rows", by=by, sort=column["name"], limit=1)


# ── search ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_search_tells_hits_as_it_goes_on_and_the_table_then_knows_them(browser: Browser) -> None:
    events = browser.events(
        f"/api/runs/{browser.keys[0]}/search?by=record&q=%C3%BCbung&where=split:eq:odd", lambda found: found[-1]["done"]
    )

    hits = [(row["id"], row["index"]) for event in events for row in event["hits"]]
    wanted = expected(lambda row: "übung" in row["response"].lower() and row["split"] == "odd")
    assert hits == wanted[:100]
    assert events[-1]["found"] == len(wanted)
    assert [event["read"] for event in events] == sorted(event["read"] for event in events)
    assert shown(browser, by="record", q="übung", where="split:eq:odd") == wanted


def test_a_search_for_nothing_says_so(browser: Browser) -> None:
    events = browser.events(f"/api/runs/{browser.keys[0]}/search?q=", bool)

    assert events[0]["error"]["code"] == "wrong_request"


# ── texts that are none ──────────────────────────────────────────────────────────────────────────────────────────────


def test_whatever_a_model_wrote_comes_out_as_json(tmp_path: Path) -> None:
    texts = [
        "NUL \x00 in it",
        "x" * 10_000_000,
        "\x1b[31mred \u202e \ufffe",
        "line\nbreaks\r\n\u2028",
        "\ud7ff\U0001f600",
    ]
    rows = rows_of({f"q{n}": "1" for n in range(len(texts))}, response=lambda name, i, v: texts[int(name[1:])])
    rows = [{**row, "latency_ms": 1.0, "columns": "{}"} for row in rows]
    table = write(tmp_path / "table.parquet", table_of(rows))
    with browsing(as_run(tmp_path / "run", rows), table) as browser:
        for key in browser.keys:
            page = browser.ask(f"/api/runs/{key}/rows?by=record")
            assert len(page.content) < 300_000
            for number, text in enumerate(texts):
                told = browser.get(f"/api/runs/{key}/samples/q{number}")
                assert told["candidates"][0]["response"]["text"] == text
            (found,) = browser.get(f"/api/runs/{key}/rows", by="record", q="nul \x00 IN")["rows"]
            assert found["id"] == "q0"


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    rows = rows_of({"q0": "1", "q1": "0"})
    table = table_of(rows)
    broken: Any = pa.array([b"caf\xe9 \xff\xfe", b"good"], pa.binary()).cast(pa.string(), safe=False)
    table = table.set_column(table.column_names.index("response"), "response", broken.view(pa.string()))
    with browsing(write(tmp_path / "table.parquet", table)) as browser:
        assert browser.run("/rows", by="record")["total"] == 2
        assert browser.run()["card"]["records"] == 2
        assert browser.run("/rows", by="record", q="GOOD", sort="length")["total"] == 1
        assert browser.sample("q0")["candidates"][0]["response"]["text"].startswith("caf")


def test_a_line_with_half_a_character_is_told_of(tmp_path: Path) -> None:
    run = as_run(tmp_path / "run", records()[:2])
    with (run / "results.jsonl").open("ab") as file:
        file.write(b'{"id":"q9","response_index":0,"user_query":"\\ud800 half","evaluation_score":1.0}\n')
    with browsing(run) as browser:
        (card,) = browser.get("/api/runs")["runs"]

    assert "is not JSON" in card["problem"]


def test_a_page_of_a_hundred_rows_is_small(tmp_path: Path) -> None:
    rows = rows_of({f"q{n}": "10" for n in range(200)}, response="word " * 2_000, query="ask " * 2_000)
    data = json.dumps({f"column {n}": "value " * 100 for n in range(8)})
    path = write(tmp_path / "table.parquet", table_of([{**row, "columns": data} for row in rows]))
    with browsing(path) as browser:
        for by in ("sample", "record"):
            assert len(browser.ask(f"/api/runs/{browser.keys[0]}/rows?by={by}&limit=100").content) < 300_000


@pytest.mark.parametrize("as_structs", [False, True])
def test_a_column_of_any_name_is_sorted_and_filtered_by(tmp_path: Path, as_structs: bool) -> None:
    names = ['a"b', "c/d~e", "f.g:eq:h", "it's", "ünï $[0]", "select"]
    rows = rows_of({f"q{n}": "1" for n in range(4)})
    for number, row in enumerate(rows):
        data = {name: number for name in names}
        row["columns"] = data if as_structs else json.dumps(data)
    with browsing(write(tmp_path / "table.parquet", table_of(rows))) as browser:
        for name in names:
            order = browser.run("/rows", by="record", sort=f"-data.{name}")["rows"]
            assert [row["id"] for row in order] == ["q3", "q2", "q1", "q0"]
        for name in (name for name in names if ":eq:" not in name):
            assert browser.run("/rows", by="record", where=f"data.{name}:ge:2")["total"] == 2


def test_a_table_of_another_program_is_shown(tmp_path: Path) -> None:
    messages = [[{"role": "user", "content": f"Ask {n}"}] for n in range(4)]
    table = pa.table({"task_id": ["a", "a", "b", "b"], "messages": messages, "score": [0.1, 0.9, 0.5, 0.5]})
    pq.write_table(table, tmp_path / "other.parquet")
    with browsing(tmp_path / "other.parquet") as browser:
        page = browser.run("/rows", by="record", sort="-score")
        assert [row["id"] for row in page["rows"]] == ["a", "b", "b", "a"]
        assert browser.sample("a")["prompt"][0]["text"] == "Ask 0"
