# SPDX-License-Identifier: Apache-2.0
"""`reward-kit review` and `reward-kit rewards check` as people call them, and the loop they form."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli_commands.conftest import Call, write_config

MODEL = """
def answer(messages, draw):
    a, b = messages[-1].content.split()[-1].rstrip("?").split("+")
    total = int(a) + int(b)
    return [f"It is {total}", f"It is {total}.0", f"It is {total + 1}"][draw]
"""
STRICT = """
from reward_kit import EvaluateResult, reward_function

@reward_function
def evaluate(messages, ground_truth=None, **kwargs):
    said = messages[-1].content.split()[-1]
    return EvaluateResult(score=float(said == ground_truth), reason=f"{said} and {ground_truth}")
"""


@pytest.fixture
def run(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REWARD_KIT_REVIEWER", "ada")
    (tmp_path / "model.py").write_text(MODEL, "utf-8")
    (tmp_path / "strict.py").write_text(STRICT, "utf-8")
    (tmp_path / "fair.py").write_text(
        STRICT.replace("said == ground_truth", "float(said) == float(ground_truth)"), "utf-8"
    )
    rows = [{"id": f"q{n}", "user_query": f"What is {n}+{n}?", "ground_truth_for_eval": str(2 * n)} for n in range(4)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    write_config(tmp_path, {
        "dataset": {"source_type": "jsonl", "path_or_name": "data.jsonl"},
        "generation": {"model_name": "mock", "n": 3, "cache": {"enabled": False},
                       "mock": {"function_path": "model.py:answer"}},
        "reward": {"function_path": "strict.py:evaluate", "workers": 1},
        "output": {"output_dir": "out"},
    })  # fmt: skip
    assert call("run", "run.yaml", "--quiet").code == 0
    return tmp_path / "out"


def files(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir() if not path.name.startswith("reviews.jsonl")}


def test_the_loop_from_looking_to_a_mended_reward(call: Call, run: Path) -> None:
    before = files(run)
    assert "nobody has reviewed anything yet" in call("review", run).out
    for _ in range(12):
        drawn = json.loads(call("review", run, "--draw", "random", "--json").out)
        fair = float(drawn["messages"][-1]["content"].split()[-1]) == float(drawn["ground_truth"])
        record = f"{drawn['id']}#{drawn['response_index']}"
        said = call("review", run, "--record", record, "--ticket", drawn["ticket"], "--says",
                    "right" if fair is drawn["passed"] else "wrong")  # fmt: skip
        assert (said.code, said.err.split(",")[-1].strip()) == (0, "says ada.")
    assert "Every judged record" in call("review", run, "--draw", "random").out
    told = call("review", run)
    assert "12 records of 12 looked at by 1 reviewer" in told.out
    assert "verdicts right, %  66.7 (" in told.out and "recall, %          50.0 (" in told.out
    assert told.out.count("fails, should pass (ada)") == 4
    found = json.loads(call("review", run, "--json").out)
    assert found["precision"]["value"] == 1.0 and len(found["wrong"]) == 4

    assert call("review", run, "--export", "cases.jsonl").code == 0
    failed = call("rewards", "check", "strict.py:evaluate", "cases.jsonl")
    assert failed.code == 1
    assert failed.out.count("failed       pass") == 4
    assert "8 of 12 cases are as expected, 4 failed." in failed.out
    (run.parent / "none.py").write_text(STRICT.replace("float(said == ground_truth)", "0.0"), "utf-8")
    regressed = call("rewards", "check", "none.py:evaluate", "cases.jsonl")
    assert "4 regressed, 4 failed." in regressed.out
    good = call("rewards", "check", "fair.py:evaluate", "cases.jsonl", "--json")
    assert good.code == 0
    assert {json.loads(line)["state"] for line in good.out.splitlines()} == {"as expected"}

    assert files(run) == before, "reviewing touches nothing of the run"
    for reader in (["inspect", run], ["doctor", run], ["export", run, "--to", "sft", "-o", "sft.jsonl"],
                   ["merge", run, "-o", "merged"], ["run", "run.yaml", "--quiet"]):  # fmt: skip
        assert call(*reader).code == 0, reader
    assert call("run", "run.yaml", "--rescore", "reward.function_path=fair.py:evaluate", "--quiet").code == 0
    mended = call("review", run).out
    assert "verdicts right, %  100.0 (" in mended
    assert "4 of them were wrong and are right now." in mended


def test_a_record_is_shown_and_judged_by_its_name(call: Call, run: Path) -> None:
    shown = call("review", run, "--record", "q1#1")
    assert "[assistant]\nIt is 2.0" in shown.out and "[verdict] fails, score 0.0: 2.0 and 2" in shown.out
    assert call("review", run, "--record", "q1#1", "--says", "wrong", "--note", "2.0 is 2").code == 0
    told = call("review", run).out
    assert "q1#1  fails, should pass (ada): 2.0 is 2" in told
    assert "There are no rates" in told and "1 by browsing" in told


def test_only_a_record_that_was_shown_can_be_spoken_of(call: Call, run: Path) -> None:
    assert "--draw alone, look" in call("review", run, "--draw", "random", "--says", "right").sentence
    assert not (run / "reviews.jsonl").exists()
    given = ("--reviewer", "bob b", "--threshold", "0.5")
    shown = call("review", run, "--draw", "disagreement", *given).out.splitlines()
    command = shlex.split(shown[-1])
    assert shown[0].split()[0] == command[command.index("--record") + 1]
    for _ in range(2):  # saying it again is no second draw
        assert call(*command[1:]).code == 0
    found = json.loads(call("review", run, "--json").out)
    assert (found["records"], found["in_rates"], found["chosen"]["disagreement"]) == (1, 1, 1)
    assert found["reviewers"] == ["bob b"]
    (kept, again) = map(json.loads, (run / "reviews.jsonl").read_text("utf-8").splitlines())
    assert kept["probability"] == again["probability"] > 0 and kept["pool"] == 12


def test_a_ticket_holds_for_its_record_its_reviewer_and_its_results(call: Call, run: Path) -> None:
    drawn = json.loads(call("review", run, "--draw", "random", "--json").out)
    record, ticket = f"{drawn['id']}#{drawn['response_index']}", drawn["ticket"]
    other = "q1#1" if record != "q1#1" else "q1#0"
    for named, who, shown in ((other, "ada", ticket), (record, "bob", ticket), (record, "ada", "random:0.5"),
                              (record, "ada", ticket.replace(":12:", ":11:"))):  # fmt: skip
        said = call("review", run, "--record", named, "--reviewer", who, "--ticket", shown, "--says", "right")
        assert (said.code, "Give --draw again" in said.sentence) == (2, True)
    assert call("run", "run.yaml", "--rescore", "reward.function_path=fair.py:evaluate", "--quiet").code == 0
    assert call("review", run, "--record", record, "--ticket", ticket, "--says", "right").code == 2
    assert not (run / "reviews.jsonl").exists()


@pytest.mark.parametrize(
    "given",
    [
        ["--draw", "random", "--export", "c.jsonl"], ["--record", "q1#0", "--export", "c.jsonl"], ["--note", "why"],
        ["--record", "q1#0", "--note", "why"], ["--draw", "random", "--note", "why"], ["--ticket", "random:1:1:a"],
        ["--record", "q1#0", "--ticket", "random:1:1:a"], ["--only", "wrong"], ["--reviewer", "ada"],
        ["--export", "c.jsonl", "--says", "right"],
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(call: Call, tmp_path: Path, given: list[str]) -> None:
    before = list(tmp_path.iterdir())
    refused = call("review", tmp_path, *given)
    assert (refused.code, "Usage: reward-kit review" in refused.err) == (2, True)
    assert list(tmp_path.iterdir()) == before


def test_an_export_replaces_nothing_but_an_earlier_export(call: Call, run: Path, tmp_path: Path) -> None:
    assert call("review", run, "--record", "q1#1", "--says", "wrong").code == 0
    (tmp_path / "by_hand.jsonl").write_text('{"answer": "It is 2", "expect": "pass"}\n', "utf-8")
    (tmp_path / "link.jsonl").symlink_to(run / "results.jsonl")
    others = [tmp_path / name for name in ("data.jsonl", "by_hand.jsonl", "strict.py", "run.yaml", "link.jsonl")]
    kept = {path: path.read_bytes() for path in [*others, *run.iterdir()]}
    for path in kept:
        refused = call("review", run, "--export", path)
        assert (refused.code, ". Name a" in refused.sentence) == (2, True), path
    for new in (run / "episodes.jsonl", run / "cases.jsonl", tmp_path / "a.parquet.reviews.jsonl"):
        assert call("review", run, "--export", new).code == 2
        assert not new.exists()
    assert {path: path.read_bytes() for path in kept} == kept

    assert call("review", run, "--export", "cases.jsonl").code == 0
    assert call("review", run, "--record", "q2#1", "--says", "wrong").code == 0
    assert call("review", run, "--export", "cases.jsonl").code == 0
    assert len((tmp_path / "cases.jsonl").read_bytes().splitlines()) == 2
    with (tmp_path / "cases.jsonl").open("ab") as cases:
        cases.write((tmp_path / "by_hand.jsonl").read_bytes())
    assert "not a file of cases that this command wrote" in call("review", run, "--export", "cases.jsonl").sentence


def test_a_report_replaces_nothing_but_an_earlier_report(call: Call, run: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<!doctype html><title>Mine</title>", "utf-8")
    kept = {path: path.read_bytes() for path in [tmp_path / "strict.py", tmp_path / "page.html", *run.iterdir()]}
    for path in kept:
        refused = call("report", run, "-o", path)
        assert (refused.code, "Name another file with --output." in refused.sentence) == (2, True), path
    assert call("report", run, "-o", run / "reviews.jsonl").code == 2
    assert not (run / "reviews.jsonl").exists()
    assert {path: path.read_bytes() for path in kept} == kept

    for title in ("first", "second"):
        assert call("report", run, "-o", run / "report.html", "--title", title).code == 0
    assert "<title>second</title>" in (run / "report.html").read_text("utf-8")


def test_output_that_nobody_reads_on_is_no_error(call: Call, run: Path, tmp_path: Path) -> None:
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    assert reader.stdin is not None
    reader.wait()
    done = subprocess.run(
        [sys.executable, "-m", "reward_kit", "review", run], stdout=reader.stdin, stderr=subprocess.PIPE, text=True,
        check=False, timeout=120, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    reader.stdin.close()
    assert done.stderr == ""


def test_what_cannot_be_reviewed_is_said(call: Call, run: Path) -> None:
    assert "There is no answer 9 of 'q1'" in call("review", run, "--record", "q1#9").sentence
    assert "is not among the results" in call("review", run, "--record", "x#0", "--says", "right").sentence
    assert call("review", run, "--record", "q1", "--says", "right").code == 2
    assert "--says needs a record" in call("review", run, "--says", "right").err
    assert "not both" in call("review", run, "--draw", "random", "--record", "q1#0").err
    (run / "reviews.jsonl").write_text("{}\n", "utf-8")
    assert "Line 1 of" in call("review", run).sentence


def test_an_error_is_no_regression_and_fails_all_the_same(call: Call, run: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(STRICT.replace("said = ", "said = 1 / 0 or "), "utf-8")
    case = {"answer": "It is 2", "ground_truth": "2", "expect": "pass", "note": "simple"}
    (tmp_path / "cases.jsonl").write_text(json.dumps(case), "utf-8")
    told = call("rewards", "check", "broken.py:evaluate", "cases.jsonl")
    assert told.code == 1
    assert "0 of 1 cases are as expected, 1 could not be judged." in told.out
    assert "ZeroDivisionError" in told.out and "[simple]" in told.out
