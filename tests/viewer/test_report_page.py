# SPDX-License-Identifier: Apache-2.0
"""`reward-kit report`: one file that needs nothing else, with the figures of `inspect`; safe whatever models wrote."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reward_kit.analysis import analyse, load
from reward_kit.analysis.present.conclusions import report_conclusion
from reward_kit.analysis.present.report_tables import report_tables
from reward_kit.errors import StorageError
from reward_kit.viewer.report.page import write_report
from reward_kit.viewer.report.plain_text import cut, limit_within, visible
from reward_kit.viewer.reviewing.deciding import Chosen, make_decision
from reward_kit.viewer.reviewing.records import JudgedRecords
from tests.analysis.experiments import rows_of, simulated, table_of, write, write_run

HOSTILE = (
    "<script>window.ran=1</script><img src=x onerror='window.ran=1'></div></details></style></script>"
    "<svg onload=alert(1)><a href='javascript:alert(1)'>x</a>"
    "<meta http-equiv=refresh content='0;url=http://evil.example'>{{ 7 * 7 }}{% raw %}"
    "\x00\x1b[31m\u202e\ud800<!--]]>&lt;b&gt;"
)


class Elements(HTMLParser):
    """What a browser would find in the file."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def made(tmp_path: Path, *paths: Path, **options: object) -> str:
    target = tmp_path / "report.html"
    write_report(list(paths), [None] * len(paths), target, **options)  # type: ignore[arg-type]
    return target.read_text("utf-8")


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    rows = rows_of(simulated(1, queries=60), model="small", cost=0.001, latency_ms=20.0)
    rows += rows_of(simulated(2, queries=30, missing=0.1), split="code", model="small", finish_reason="length")
    return write(tmp_path / "one.parquet", table_of(rows, notes="the one to beat"))


def test_the_figures_are_those_of_inspect_to_the_last_digit(experiment: Path, tmp_path: Path) -> None:
    text = Elements(made(tmp_path, experiment)).text
    report = analyse(load(experiment), examples=10)
    for sentence in report_conclusion(report):
        assert sentence in text
    tables = [table for table in report_tables(report) if not table.title.endswith("queries")]
    assert len(tables) > 6
    for table in tables:
        for row in table.rows:
            assert " ".join(" ".join(row).split()) in re.sub(r"(?<=\S)(?=\()", " ", text) or all(
                " ".join(cell.split()) in text for cell in row
            ), row


def test_nothing_is_loaded_and_only_what_the_policy_names_may_run(experiment: Path, tmp_path: Path) -> None:
    page = made(tmp_path, experiment)
    found = Elements(page).found
    for tag, attributes in found:
        assert not {"src", "href", "style", "action", "srcset"} & attributes.keys(), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
    policy = next(held["content"] for tag, held in found if held.get("http-equiv") == "Content-Security-Policy") or ""
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_what_models_wrote_is_shown_as_text(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run", {"a": [1.0, 0.0], HOSTILE.replace("\ud800", ""): [0.0, 0.0]},
        assistant_response=HOSTILE.replace("\ud800", ""), evaluation_reason=HOSTILE.replace("\ud800", ""),
        ground_truth_for_eval=HOSTILE.replace("\ud800", ""), user_query=HOSTILE.replace("\ud800", ""),
        evaluation_metrics={"<b>": {"score": 1.0, "reason": HOSTILE.replace("\ud800", "")}},
        model="<i>model</i>",
    )  # fmt: skip
    page = made(tmp_path, run, title=HOSTILE)
    parsed = Elements(page)
    tags = [tag for tag, _ in parsed.found]
    assert (tags.count("script"), tags.count("style"), tags.count("img"), tags.count("a")) == (1, 1, 0, 0)
    assert "<script>window.ran=1</script>" in parsed.text and "{{ 7 * 7 }}" in parsed.text and "49" not in page[:2_000]
    assert not set(page) & {"\x00", "\x1b", "\u202e"}
    assert "␀␛[31m[U+202E]" in page
    assert "<i>" not in page.replace('<i class="m', "")


def test_two_thousand_short_records_stay_small(tmp_path: Path) -> None:
    rows = rows_of(simulated(1, queries=500), verification_reason="The answer is not the same.")
    for row in rows:
        row |= {"query": f"{row['query']} {'words ' * 30}", "response": f"{'some words ' * 30}{row['response']}"}
    page = made(tmp_path, write(tmp_path / "one.parquet", table_of(rows)))
    assert len(page.encode()) < 3_000_000
    assert "All 2,000 records of 500 samples." in page
    assert "more characters are left out" not in page


def test_long_texts_are_cut_with_a_remark(tmp_path: Path) -> None:
    rows = rows_of(simulated(1, queries=500), response="<&>" * 1_000)
    page = made(tmp_path, write(tmp_path / "one.parquet", table_of(rows)))
    assert len(page.encode()) < 3_000_000, "though every character of these texts takes four more when it is escaped"
    assert "more characters are left out" in page


def test_larger_runs_are_sampled_and_say_so(tmp_path: Path) -> None:
    path = write(tmp_path / "one.parquet", table_of(rows_of(simulated(1, queries=300))))
    page, again = made(tmp_path, path, most=400), made(tmp_path, path, most=400)
    assert "400 of 1,200 records: 100 of 300 samples, drawn at random (seed 0). The figures are of all." in page
    records = page[page.index('<div class="records">') :]
    assert records.count('<article class="candidate') == 400
    assert again[again.index('<div class="records">') :] == records


def test_several_runs_are_compared(experiment: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "two.parquet", table_of(rows_of(simulated(3, queries=60, rate=0.9))))
    text = Elements(made(tmp_path, experiment, other)).text
    assert "two.parquet is better than one.parquet" in text
    assert "two.parquet against one.parquet" in text and "Runs side by side" in text


def test_reviews_are_in_it_where_there_are_any(tmp_path: Path) -> None:
    path = write(tmp_path / "one.parquet", table_of(rows_of({"a": "10", "b": "11"})))
    assert "What people said" not in made(tmp_path, path)
    make_decision(JudgedRecords(path), ("a", 0), "wrong", "", "ada", Chosen("random", 0.25, 4))
    page = made(tmp_path, path)
    assert "What people said of the verdicts" in page and "precision, %" in page
    (tmp_path / "one.parquet.reviews.jsonl").write_text("{}\n", "utf-8")
    assert "The reviews cannot be read" in made(tmp_path, path)


def test_graded_scores_and_failures_have_their_place(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"a": [0.25, 0.5], "b": [None, 0.75]}, assistant_response="x", error="E: <no>")
    text = Elements(made(tmp_path, run)).text
    assert "The mean score is 0.500" in text and "no verdict" in text and "E: <no>" in text


def test_nothing_is_left_where_the_file_cannot_be_written(experiment: Path, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Name another file"):
        write_report([experiment], [None], tmp_path / "no such folder" / "r.html")


def test_texts_are_made_visible() -> None:
    assert visible("a\r\nb\tc\x00\x7f\u2066") == "a\nb\tc␀␡[U+2066]"
    assert cut("x" * 1_090, 1_000) == ("x" * 1_090, 0)
    assert cut("x" * 5_000, 1_000) == ("x" * 1_000, 4_000)
    assert limit_within(["x" * 10, ""], 1_000) == 20_000
    assert limit_within(["x" * 100_000] * 100, 120_000) == 1_000
    assert limit_within(["<" * 100_000] * 100, 120_000) == 250
