# SPDX-License-Identifier: Apache-2.0
"""The page's figures are those that `inspect` prints, to the last digit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reward_kit.analysis import analyse, as_json, compare
from tests.analysis.experiments import write_run
from tests.viewer.browser import browsing

pytest.importorskip("duckdb")

GOLDEN = Path(__file__).parents[1] / "golden"
RUNS = {
    "run": GOLDEN / "run",
    "best-of-n": GOLDEN / "best_of_n" / "table.parquet",
    "best-of-n lines": GOLDEN / "best_of_n" / "table.run",
    "shell": GOLDEN / "shell",
    "foreign shell": GOLDEN / "shell_foreign",
    "shell in turns": GOLDEN / "shell_in_turns",
}


def plain(estimate: dict[str, Any] | None) -> Any:
    """An estimate of `inspect` as the page has it."""
    if estimate is None:
        return None
    low, high = (estimate[end] if isinstance(estimate[end], float | int) else None for end in ("low", "high"))
    return {"value": estimate["value"], "low": low, "high": high, "confidence": 0.95, "count": estimate["count"]}


def curve(figures: dict[str, Any]) -> list[Any]:
    return [
        {"k": int(k), "estimate": plain(one), "bounds": figures["bounds"].get(f"pass@{k}")}
        for k, one in figures["pass_at_k"].items()
    ]


@pytest.mark.parametrize("which", RUNS)
def test_every_figure_is_the_one_that_inspect_prints(which: str) -> None:
    told = json.loads(as_json(analyse(RUNS[which])))
    with browsing(RUNS[which]) as browser:
        (card,) = browser.get("/api/runs")["runs"]
        page = browser.run()

    overall = told["overall"]
    assert card == page["card"]
    assert card["problem"] is None
    assert (card["samples"], card["records"], card["judged"], card["failed"], card["cost"]) == (
        overall["queries"], overall["records"], overall["judged"], overall["failed"], overall["cost"],
    )  # fmt: skip
    assert card["mean"] == plain(overall["mean"])
    assert card["rate"] == plain(overall["rate"])
    assert card["pass_at"] == curve(overall)
    assert card["models"] == told["coverage"]["models"]
    assert [(one["name"], one["mean"]) for one in page["metrics"]] == [
        (name, plain(one)) for name, one in overall["metrics"].items()
    ]
    assert [(one["k"], one["estimate"]) for one in page["curve"]] == [
        (one["k"], plain(one["pass_at_k"])) for one in told["curve"]
    ]
    assert page["choosing"] == [
        {"k": one["k"], "best_by_score": plain(one["best_by_score"]), "majority": plain(one["majority"])}
        for one in told["choosing"]
    ]
    assert [(one["name"], one["mean"], one["rate"], one["pass_at"]) for one in page["splits"]] == [
        (one["split"], plain(one["mean"]), plain(one["rate"]), curve(one)) for one in told["splits"]
    ]
    assert {one["kind"]: one["count"] for one in page["failures"]} == told["coverage"]["failures"]
    assert {one["name"]: (one["mean"], one["p50"], one["p90"], one["p99"]) for one in page["spending"]} == {
        name: (one["mean"], one["p50"], one["p90"], one["p99"]) for name, one in told["spending"].items()
    }
    assert [one["id"] for one in page["hardest"]] == [one["query_id"] for one in told["hardest"]]
    assert page["notes"] == told["notes"]
    assert sum(one["count"] for one in page["histogram"]) == overall["judged"]


def test_graded_scores_have_the_same_histogram(tmp_path: Path) -> None:
    run = write_run(tmp_path / "graded", {f"q{n}": [n / 50, (n % 7) / 7, None] for n in range(50)})
    told = json.loads(as_json(analyse(run)))
    with browsing(run) as browser:
        page = browser.run()

    assert page["card"]["rate"] is None
    assert page["histogram"] == told["score_spread"]["bins"]


def test_two_runs_differ_by_what_inspect_says(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", {f"q{n}": [float(n % 3 == 0), float(n % 2)] for n in range(40)})
    second = write_run(tmp_path / "second", {f"q{n}": [float(n % 5 == 0), 1.0] for n in range(10, 50)})
    told = json.loads(as_json(compare(first, second)))["pairings"][0]
    with browsing(first, second) as browser:
        a, b = browser.keys
        (pairing,) = browser.get("/api/compare", runs=f"{a},{b}")["pairings"]
        cells = {
            cell: browser.get("/api/compare/rows", a=a, b=b, cell=cell, limit=2)["total"]
            for cell in ("both", "only_a", "only_b", "neither", "all")
        }

    assert (pairing["common"], pairing["only_a"], pairing["only_b"]) == (30, 10, 10)
    assert [
        (one["figure"], one["a"], one["b"], one["difference"], one["low"], one["high"], one["p_value"])
        for one in pairing["differences"]
    ] == [
        (one["figure"], one["baseline"], one["other"], one["difference"], one["low"], one["high"], one["p"])
        for one in told["differences"]
    ]
    assert [[cells["both"], cells["only_a"]], [cells["only_b"], cells["neither"]]] == pairing["table"]
    assert cells["all"] == 30


def test_samples_that_are_not_the_same_are_in_no_figure_and_in_no_list(tmp_path: Path) -> None:
    scores: dict[str, list[float | None]] = {f"q{n}": [1.0] for n in range(40)}
    first = write_run(tmp_path / "first", scores)
    second = write_run(
        tmp_path / "second", scores, user_query=lambda name, _: "Another?" if name < "q2" else f"What is {name}?"
    )
    third = write_run(tmp_path / "third", scores, user_query="Another?")
    with browsing(first, second, third) as browser:
        a, b, c = browser.keys
        one, two = browser.get("/api/compare", runs=f"{a},{b},{c}")["pairings"]
        rows = [
            browser.get("/api/compare/rows", a=a, b=other, cell=cell, limit=100)["rows"]
            for other in (b, c)
            for cell in ("both", "only_a", "only_b", "neither", "differ", "all")
        ]

    assert (one["common"], one["left_out"], one["only_a"], sum(map(sum, one["table"]))) == (28, 12, 0, 28)
    assert one["notes"][0].startswith("28 of 40 samples are the same in both; 12 have the same id but another question")
    assert [len(each) for each in rows] == [28, 0, 0, 0, 0, 28, *[0] * 6]
    assert not {row["id"] for each in rows for row in each} & {"q0", "q1", "q10", "q19"}
    assert (two["common"], two["left_out"], two["differences"], two["table"]) == (0, 40, [], None)
    assert len(two["notes"]) == 1 and two["notes"][0].endswith("so nothing can be compared.")


def test_runs_of_different_rewards_are_not_called_better(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, {f"q{n}": [float(name == "b")] for n in range(40)}) for name in "ab"]
    for number, run in enumerate(runs):
        results = {"digest": f"{number}", "settings": {"reward.source": f"{number}"}}
        (run / "manifest.json").write_text(json.dumps({"digests": {"results": results}}))
    with browsing(*runs) as browser:
        (pairing,) = browser.get("/api/compare", runs=",".join(browser.keys))["pairings"]
    assert pairing["same_reward"] is False
    assert "were judged by different rewards (they differ in: reward.source)" in pairing["notes"][0]
