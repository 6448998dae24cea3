# SPDX-License-Identifier: Apache-2.0
"""Reviews and trials as the page asks for them, through the whole application."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from reward_kit.evaluating import evaluate
from reward_kit.storage.reviews import read_reviews
from reward_kit.viewer.access import Access
from reward_kit.viewer.app import build_app
from reward_kit.viewer.review_routes import ReviewDesk
from reward_kit.viewer.viewer import open_viewer
from tests.analysis.experiments import rows_of, table_of, write

pytest.importorskip("duckdb")

REWARD = """
import os, time
from reward_kit import EvaluateResult, MetricResult, reward_function

@reward_function
def evaluate(messages, ground_truth=None, topic=None, **kwargs):
    said = messages[-1].content
    print("something on standard output")
    if said == "hang":
        time.sleep(600)
    if said == "die":
        os._exit(3)
    if said == "raise":
        raise ValueError("no such answer")
    same = said == str(ground_truth)
    return EvaluateResult(score=float(same), reason=f"{topic}: {said!r}", metrics={
        "same": MetricResult(score=float(same), is_score_valid=True, reason="compared")})
"""


class Reply(NamedTuple):
    status: int
    body: Any


class Page:
    """Asks the application as the page would."""

    def __init__(self, *paths: Path, allow_run: bool = False, reviewer: str = "ada") -> None:
        self.desk = ReviewDesk(reviewer)
        self._opened = open_viewer(paths, allow_run=allow_run, reviewer=reviewer, reviews=self.desk)
        self.viewer = self._opened.__enter__()
        self.access = Access(1234)
        self.app = build_app(self.viewer, self.access, self.desk.routes())

    def close(self) -> None:
        self._opened.__exit__(None, None, None)

    @property
    def run(self) -> str:
        return f"/api/runs/{next(iter(self.viewer.runs))}"

    def ask(self, path: str, body: Any = None) -> Reply:
        return asyncio.run(self._ask(path, None if body is None else json.dumps(body).encode()))

    async def _ask(self, path: str, body: bytes | None) -> Reply:
        split, sent = urlsplit(path), []
        headers = {"host": "127.0.0.1:1234", "origin": "http://127.0.0.1:1234", "content-type": "application/json"}
        scope = {
            "type": "http", "method": "GET" if body is None else "POST", "path": split.path, "scheme": "http",
            "raw_path": split.path.encode(), "query_string": f"{split.query}&token={self.access.token}".encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()], "http_version": "1.1",
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body or b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in sent[1:])
        return Reply(sent[0]["status"], json.loads(content))


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Page]:
    page = Page(write(tmp_path / "one.parquet", table_of(rows_of({"a": "10", "b": "11", "c": "0."}))))
    yield page
    page.close()


def test_drawing_and_saying_until_all_is_seen(table: Page, tmp_path: Path) -> None:
    seen = []
    while (drawn := table.ask(f"{table.run}/reviews/next?choose=random").body)["record"] is not None:
        assert table.ask(f"{table.run}/reviews/next").body == drawn, "asking again gives the same record"
        seen.append((drawn["record"]["id"], drawn["record"]["index"]))
        said = table.ask(f"{table.run}/reviews", {
            **drawn["record"], "says": "right", "note": "fine", "choice": "random", "ticket": drawn["ticket"],
        })  # fmt: skip
        assert said.status == 200
        assert (said.body["reviewer"], said.body["chosen"], said.body["pool"]) == ("ada", "random", drawn["left"])
    assert sorted(seen) == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0)]
    page = table.ask(f"{table.run}/reviews").body
    assert [line[:2] for line in page["figures"][:1]] == [["verdicts right, %", page["figures"][0][1]]]
    assert page["figures"][0][1].startswith("100.0 (")
    assert (len(page["reviews"]), page["wrong"], page["outdated"]) == (5, 0, 0)
    assert len(read_reviews(tmp_path / "one.parquet.reviews.jsonl")) == 5


def test_browsing_counts_on_the_card_and_on_the_sample(table: Page) -> None:
    said = table.ask(f"{table.run}/reviews", {"id": "a", "index": 1, "says": "wrong", "note": "", "choice": "browsing",
                                              "ticket": None})  # fmt: skip
    assert (said.status, said.body["probability"]) == (200, None)
    assert table.ask("/api/runs").body["runs"][0]["reviews"] == 1
    sample = table.ask(f"{table.run}/samples/a").body
    assert [one["review"] and one["review"]["says"] for one in sample["candidates"]] == [None, "wrong"]
    page = table.ask(f"{table.run}/reviews").body
    assert page["wrong"] == 1 and "There are no rates" in page["notes"][0]


def test_a_review_written_elsewhere_is_seen(table: Page, tmp_path: Path) -> None:
    other = Page(tmp_path / "one.parquet", reviewer="bob")
    body = {"id": "a", "index": 0, "says": "wrong", "note": "", "choice": "browsing", "ticket": None}
    assert table.ask(f"{table.run}/reviews", body).status == 200
    assert other.ask(f"{other.run}/reviews", body).status == 200
    assert {review["reviewer"] for review in table.ask(f"{table.run}/reviews").body["reviews"]} == {"ada", "bob"}
    other.close()


@pytest.mark.parametrize(
    "change, status",
    [
        ({"says": "maybe"}, 400), ({"id": None}, 400), ({"index": -1}, 400), ({"index": True}, 400), ({"note": 3}, 400),
        ({"id": "x"}, 404), ({"index": 7}, 404), ({"choice": "random"}, 400), ({"ticket": "forged"}, 400),
        ({"id": "c", "index": 1}, 422),
    ],
)  # fmt: skip
def test_what_is_no_review_is_refused(table: Page, change: dict[str, Any], status: int, tmp_path: Path) -> None:
    body = {"id": "a", "index": 0, "says": "right", "note": "", "choice": "browsing", "ticket": None} | change
    refused = table.ask(f"{table.run}/reviews", body)
    assert refused.status == status
    assert refused.body["error"]["message"].endswith(".")
    assert not (tmp_path / "one.parquet.reviews.jsonl").exists()


def test_a_ticket_is_for_its_record(table: Page) -> None:
    drawn = table.ask(f"{table.run}/reviews/next").body
    other = "b" if drawn["record"]["id"] == "a" else "a"
    body = {"id": other, "index": 0, "says": "right", "note": "", "choice": "random", "ticket": drawn["ticket"]}
    assert table.ask(f"{table.run}/reviews", body).status == 400
    assert table.ask(f"{table.run}/reviews", []).status == 400
    assert table.ask(f"{table.run}/reviews/next?choose=best").status == 400


def test_a_damaged_file_of_reviews_is_told_where_reviews_are_and_spoils_no_other_page(
    table: Page, tmp_path: Path
) -> None:
    (tmp_path / "one.parquet.reviews.jsonl").write_text('{"says":"right"}\n', "utf-8")
    told = table.ask(f"{table.run}/reviews")
    assert (told.status, told.body["error"]["code"]) == (422, "unreadable")
    assert table.ask("/api/runs").status == 200
    assert table.ask(f"{table.run}/samples/a").status == 200


# ── trials ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def judged_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(REWARD, "utf-8")
    monkeypatch.chdir(tmp_path)
    rows = [{"id": "q1", "user_query": "6 x 12?", "ground_truth_for_eval": 72, "topic": "sums"}]
    evaluate(
        rows, "mine.py:evaluate", model="mock", n=2, output_dir="out", generation={"mock": {"responses": ["72", "71"]}},
        reward_settings={"timeout": 2, "workers": 1},
    )  # fmt: skip
    return tmp_path / "out"


@pytest.fixture
def trials(judged_run: Path) -> Iterator[Page]:
    page = Page(judged_run, allow_run=True)
    yield page
    page.close()


def trial(page: Page, answer: str, truth: str | None = "72") -> Reply:
    return page.ask(f"{page.run}/try", {"id": "q1", "index": 0, "answer": answer, "ground_truth": truth})


def test_without_leave_nothing_is_run(judged_run: Path) -> None:
    page = Page(judged_run)
    refused = trial(page, "72")
    assert (refused.status, refused.body["error"]["code"]) == (403, "not_allowed")
    assert "--allow-run" in refused.body["error"]["message"]
    page.close()


def test_the_run_s_own_reward_judges_an_edited_answer(trials: Page, judged_run: Path) -> None:
    before = {path.name: path.read_bytes() for path in judged_run.iterdir()}
    found = trial(trials, "seventy-two").body
    assert (found["score"], found["passed"], found["reason"], found["failure"]) == (
        0.0,
        False,
        "sums: 'seventy-two'",
        None,
    )
    assert found["metrics"] == [{"name": "same", "score": 0.0, "valid": True, "reason": "compared"}]
    assert trial(trials, "seventy-two", '"seventy-two"').body["passed"] is True, (
        "data is shown as JSON, and read as such"
    )
    assert {path.name: path.read_bytes() for path in judged_run.iterdir()} == before


NUMBERS = ("4.50", "1e3", "true", "1180591620717411303425", '"4"', "[1180591620717411303425]")


def test_a_truth_that_nobody_edits_reaches_the_reward_as_the_file_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "said.py").write_text("def judge(response, ground_truth):\n    return {'score': 1.0, 'reason': "
                                      "repr(ground_truth)}", "utf-8")  # fmt: skip
    rows = [f'{{"id": "q{n}", "user_query": "?", "ground_truth": {number}}}' for n, number in enumerate(NUMBERS)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows), "utf-8")
    monkeypatch.chdir(tmp_path)
    run = evaluate("rows.jsonl", "said.py:judge", model="mock", output_dir="out", cache={"enabled": False})
    page = Page(tmp_path / "out", allow_run=True)
    for judged in run.rows():
        shown = page.ask(f"{page.run}/samples/{judged['id']}").body["ground_truth"]
        edited = {"id": judged["id"], "index": 0, "answer": "another", "ground_truth": shown}
        assert page.ask(f"{page.run}/try", edited).body["reason"] == judged["evaluation_reason"]
    for edit, reason in (("4.500", "'4.500'"), ("true", "'true'"), ("4", "'4'"), ("2e3", "'2e3'")):
        edited = {"id": "q0", "index": 0, "answer": "another", "ground_truth": edit}
        assert page.ask(f"{page.run}/try", edited).body["reason"] == reason
    page.close()


def test_a_viewer_that_was_started_elsewhere_finds_the_run_s_reward(
    trials: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.py").write_text("raise ImportError('another file of the same name')", "utf-8")
    monkeypatch.chdir(elsewhere)
    assert trial(trials, "72").body["passed"] is True


def test_a_reward_that_was_mended_judges_as_it_is_now(trials: Page, tmp_path: Path) -> None:
    assert trial(trials, "71").body["passed"] is False
    (tmp_path / "mine.py").write_text(REWARD.replace("said == str(ground_truth)", "True"), "utf-8")
    assert trial(trials, "71").body["passed"] is True


@pytest.mark.parametrize(
    "answer, told", [("raise", "ValueError: no such answer"), ("die", "ended its worker process"),
                     ("hang", "did not return within 2 s")],
)  # fmt: skip
def test_what_goes_wrong_is_told_and_is_no_score(trials: Page, answer: str, told: str) -> None:
    found = trial(trials, answer).body
    assert (found["score"], found["passed"]) == (None, None)
    assert told in found["failure"]
    left = [name for name in os.listdir("/proc") if name.isdecimal()] if Path("/proc").exists() else []
    for process in left:
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        assert not (b"\0trial\0" in command and str(os.getpid()).encode() in _parent(process)), command


def _parent(process: str) -> bytes:
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[1]
    except OSError:
        return b""


def test_what_cannot_be_tried_is_told(trials: Page, judged_run: Path) -> None:
    assert trials.ask(f"{trials.run}/try", {"id": "q1", "index": 9, "answer": "x", "ground_truth": None}).status == 404
    assert trials.ask(f"{trials.run}/try", {"id": "q1", "index": 0, "answer": 3, "ground_truth": None}).status == 400
    (judged_run / "config.yaml").write_text("reward: {function_path: 'gone.py:evaluate'}\n", "utf-8")
    found = trial(trials, "72").body
    assert found["score"] is None and "gone.py" in found["failure"]
    assert "Start the viewer again in the folder" in found["failure"]
    (judged_run / "config.yaml").unlink()
    assert trial(trials, "72").status == 404


def test_a_table_does_not_say_which_reward_judged(tmp_path: Path) -> None:
    page = Page(write(tmp_path / "one.parquet", table_of(rows_of({"q1": "10"}))), allow_run=True)
    told = trial(page, "72")
    assert told.status == 404 and "run directory" in told.body["error"]["message"]
    page.close()
