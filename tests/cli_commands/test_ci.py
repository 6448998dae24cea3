# SPDX-License-Identifier: Apache-2.0
"""In CI: figures that must be reached, and a JUnit report."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli_commands.conftest import Call, write_config
from tests.loopback.runs import config, write_rows

GRADED = """
from reward_kit import EvaluateResult, MetricResult


def grade(response, ground_truth):
    if response == "broken":
        raise RuntimeError("cannot be \\x1b[31m judged \\x00")
    score = float(ground_truth)
    tone = MetricResult(score=0.5, reason="")
    return EvaluateResult(score=score, reason=f"<{score}> & so on", metrics={"tone": tone})
"""


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    """A config whose four answers score 0, 0.5, 1 and 1."""
    (tmp_path / "graded.py").write_text(GRADED)
    rows = [
        {"id": str(number), "user_query": f"{number}?", "assistant_response": "fine", "ground_truth_for_eval": truth}
        for number, truth in enumerate(("0.0", "0.5", "1.0", "1.0"))
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    told = {
        "dataset": {"path_or_name": str(tmp_path / "rows.jsonl")},
        "generation": {"enabled": False},
        "reward": {"function_path": f"{tmp_path / 'graded.py'}:grade"},
        "output": {"output_dir": str(tmp_path / "run")},
    }
    return write_config(tmp_path, told)


@pytest.mark.parametrize(
    ("floors", "code", "said"),
    [
        (["mean_score=0.625"], 0, ""),
        (["mean_score=0.63"], 4, "mean_score must be at least 0.63, and it is 0.625."),
        (["mean_score=0.5:low"], 4, "mean_score must be at least 0.5, and the lower end of its 95 % interval is "),
        (["mean_score=-1:low"], 0, ""),
        (["pass@1=0.5", "metrics.tone=0.5", "judged=1"], 0, ""),
        (["mean_score=0.1", "pass@1=0.6"], 4, "pass@1 must be at least 0.6, and it is 0.5."),
        (["pass@2=0.1"], 4, "pass@2 must be at least 0.1, and this run has none."),
        (["metrics.style=0.1"], 4, "metrics.style must be at least 0.1, and this run has none."),
    ],
)
def test_a_run_below_what_is_asked_for_exits_with_4(
    graded: Path, call: Call, floors: list[str], code: int, said: str
) -> None:
    heard = call("run", graded, "-q", *(word for floor in floors for word in ("--fail-under", floor)))
    assert (heard.code, said in heard.err) == (code, True), heard.err


@pytest.mark.parametrize(
    ("floor", "said"),
    [
        ("mean_score", "is not NAME=VALUE[:low]"),
        ("mean_score=", "is not NAME=VALUE[:low]"),
        ("mean_score=nan", "is not NAME=VALUE[:low]"),
        ("mean_score=0.8:high", "is not NAME=VALUE[:low]"),
        ("mean=0.8", "'mean' is not a figure of a run. Name mean_score"),
        ("pass@0=0.8", "is not a figure"),
        ("judged=1:low", "has no interval"),
    ],
)
def test_a_floor_that_means_nothing_is_refused_before_anything_is_done(
    graded: Path, call: Call, tmp_path: Path, floor: str, said: str
) -> None:
    heard = call("run", graded, "--fail-under", floor)
    assert heard.code == 2 and said in heard.err
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_reached_is_refused_before_anything_is_paid_for(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path, generation__n=2))
    heard = call("run", file, "--fail-under", "pass@4=0.5")
    assert heard.code == 2 and "needs 4 answers per prompt, and generation.n is 2" in heard.err
    heard = call("run", file, "--phase", "inference", "--junit", tmp_path / "report.xml")
    assert heard.code == 2 and "need scores" in heard.err
    assert not (tmp_path / "run").exists()


def test_a_run_that_judged_nothing_has_failed_whatever_was_asked_for(graded: Path, call: Call, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"fine"', '"broken"'))
    heard = call("run", graded, "-q", "--fail-under", "judged=0")
    assert heard.code == 1 and "Nothing could be judged" in heard.err


def test_the_report_has_a_case_per_answer_and_per_figure(graded: Path, call: Call, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"fine"', '"broken"', 1))
    report = tmp_path / "new" / "report.xml"
    heard = call("run", graded, "-q", "--junit", report, "--fail-under", "judged=1", "--fail-under", "mean_score=0.1")
    assert heard.code == 4
    (suite,) = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("6", "1", "2")
    found = {case.get("name"): [(part.tag, part.get("message")) for part in case] for case in suite}
    assert found.keys() == {"0[0]", "1[0]", "2[0]", "3[0]", "--fail-under judged=1", "--fail-under mean_score=0.1"}
    ((kind, message),) = found["0[0]"]
    assert kind == "error" and "RuntimeError" in str(message) and "\x1b" not in str(message)
    assert found["1[0]"] == [("failure", "score 0.5 is below 1: <0.5> & so on")]
    assert found["2[0]"] == found["3[0]"] == found["--fail-under mean_score=0.1"] == []
    assert found["--fail-under judged=1"] == [("failure", "judged must be at least 1, and it is 0.75.")]


@pytest.mark.parametrize(
    ("options", "code", "unjudged"),
    [
        (["--fail-under", "mean_score=0.1"], 4, "error"),
        (["--fail-under", "mean_score=0.1", "--allow-unjudged", "0.2"], 4, "error"),
        (["--fail-under", "mean_score=0.1", "--allow-unjudged", "0.25"], 0, "skipped"),
        (["--fail-under", "mean_score=0.1", "--allow-unjudged", "25%"], 0, "skipped"),
        (["--fail-under", "mean_score=0.99", "--allow-unjudged", "1"], 4, "skipped"),
        (["--fail-under", "mean_score=0.1", "--fail-under", "judged=0.7"], 0, "error"),
        (["--fail-under", "judged=0.1", "--allow-unjudged", "0.1"], 4, "error"),
        ([], 0, "error"),
    ],
)
def test_an_answer_that_was_not_judged_fails_the_gate_unless_that_is_allowed(
    graded: Path, call: Call, tmp_path: Path, options: list[str], code: int, unjudged: str
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"fine"', '"broken"', 1))
    heard = call("run", graded, "-q", "--junit", tmp_path / "report.xml", *options)
    assert heard.code == code
    (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
    found = {case.get("name"): [part.tag for part in case] for case in suite}
    assert found["0[0]"] == [unjudged]
    assert sum(suite.get(kind) != "0" for kind in ("errors", "skipped")) == 1
    refused = [tag for name, tags in found.items() if str(name).startswith("--") for tag in tags]
    assert bool(refused) is (code == 4)
    assert ("1 of 4 answers could not be judged" in heard.err) is (code == 4 and "0.99" not in " ".join(options))


@pytest.mark.parametrize("share", ["2", "-0.1", "x", "101%", "5%%", "nan"])
def test_a_share_that_is_none_is_refused(graded: Path, call: Call, share: str) -> None:
    heard = call("run", graded, "--fail-under", "judged=1", f"--allow-unjudged={share}")
    assert heard.code == 2 and "is not a share from 0 to 1" in heard.err


def test_an_allowance_without_a_gate_is_refused(graded: Path, call: Call) -> None:
    heard = call("run", graded, "--allow-unjudged", "0.1")
    assert heard.code == 2 and "--fail-under" in heard.err


@pytest.mark.parametrize(("broken", "said"), [(0, False), (1, True)])
def test_a_run_of_which_many_failed_says_so_first(
    graded: Path, call: Call, tmp_path: Path, broken: int, said: bool
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"fine"', '"broken"', broken))
    first = call("run", graded).out.splitlines()[0]
    assert (first == "1 of 4 answers failed: the figures are those of the other 3.") is said


@pytest.mark.parametrize("started", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("name", ["results.jsonl", "Rollouts.jsonl", "manifest.json", "config.yaml", ".lock"])
def test_a_report_takes_the_place_of_no_file_of_the_run(
    graded: Path, call: Call, tmp_path: Path, name: str, started: bool
) -> None:
    if started:
        assert call("run", graded, "-q").code == 0
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").glob("*")}
    heard = call("run", graded, "-q", "--junit", tmp_path / "run" / name)
    assert heard.code == 2 and heard.sentence.endswith("Name another file with --junit."), heard.err
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").glob("*")} == before


def test_a_report_takes_the_place_of_an_earlier_report_and_of_nothing_else(
    graded: Path, call: Call, tmp_path: Path
) -> None:
    report = tmp_path / "run" / "report.xml"
    assert call("run", graded, "-q", "--junit", report).code == 0
    report.write_text(report.read_text().replace("fine", "gone"))
    assert call("run", graded, "-q", "--junit", report).code == 0 and "gone" not in report.read_text()
    other = tmp_path / "other.xml"
    other.write_text('<?xml version="1.0"?><testsuites name="pytest tests"/>')
    heard = call("run", graded, "-q", "--junit", other)
    assert heard.code == 2 and "is not a JUnit report that this command wrote" in heard.sentence
    assert "pytest tests" in other.read_text()


def test_a_sweep_is_one_report_with_a_suite_per_run(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path))
    heard = call(
        "run", file, "-q", "-m", "generation.n=1,2", "--junit", tmp_path / "report.xml", "--fail-under", "judged=2"
    )
    assert heard.code == 4 and "generation.n=2: judged must be at least 2" in heard.err
    suites = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert [suite.get("name") for suite in suites] == ["generation.n=1", "generation.n=2"]
