# SPDX-License-Identifier: Apache-2.0
"""`reward-kit inspect` as people call it."""

from __future__ import annotations

import html
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.experiments import rows_of, simulated, table_of, write
from tests.cli_commands.conftest import Call


@pytest.fixture
def experiments(tmp_path: Path) -> tuple[Path, Path]:
    before = rows_of(simulated(1, queries=60), model="small", completion_tokens=100, cost=0.001, latency_ms=20.0)
    before += rows_of(
        simulated(2, queries=30, missing=0.1), split="code", model="small", cost=0.001, finish_reason="length"
    )
    after = rows_of(simulated(3, queries=60, rate=0.8), model="large")
    return (
        write(tmp_path / "baseline.parquet", table_of(before, notes="the one to beat", model="small")),
        write(tmp_path / "new.parquet", table_of(after, model="large")),
    )


def test_the_conclusion_comes_first_and_is_short(call: Call, experiments: tuple[Path, Path]) -> None:
    said = call("inspect", experiments[0])
    assert said.code == 0, said.err
    name, found, *rest = said.out.splitlines()
    assert name == "baseline.parquet"
    assert re.fullmatch(
        r"[\d.]+ % \(95 % interval [\d.]+ to [\d.]+ %\) of the answers are right: 90 queries, 4 answers each. "
        r"Of all 360 it would be 53.3 to 55.6 %, were those without a verdict all wrong or all right.",
        found,
    )
    assert any("answers were cut off at the limit of tokens" in line for line in rest)
    assert "--full shows all tables" in rest[-1]
    assert "Hardest queries" not in said.out
    assert "Hardest queries" in call("inspect", experiments[0], "--full").out


def test_comparing_two_says_which_is_better_and_how_sure_that_is(call: Call, experiments: tuple[Path, Path]) -> None:
    better = call("inspect", *experiments).out.partition(", %")[0]
    assert better.startswith("new.parquet is better than baseline.parquet: verified ")
    assert "points (95 % interval +" in better and "p < 0.0001" in better.replace("\n", " ")
    worse = call("inspect", *reversed(experiments)).out
    assert worse.startswith("baseline.parquet is worse than new.parquet")
    alike = call("inspect", experiments[0], experiments[0]).out
    assert "No difference was seen between" in alike


def test_a_directory_of_runs_ends_in_one_table(call: Call, tmp_path: Path) -> None:
    for number in range(5):
        line = {"id": "a", "response_index": 0, "evaluation_score": number / 8, "is_score_valid": True}
        (tmp_path / f"t={number}").mkdir()
        (tmp_path / f"t={number}" / "results.jsonl").write_text(json.dumps(line | {"user_query": "Q"}) + "\n")
    said = call("inspect", tmp_path)
    assert said.code == 0, said.err
    assert said.out.startswith("No clear difference from t=0: t=4 (+0.500), t=3")
    assert said.out.count("Each against t=0") == 1
    assert all(f"\nt={number} " in said.out for number in range(5))


def test_one_experiment_is_told_in_full(call: Call, experiments: tuple[Path, Path]) -> None:
    said = call("inspect", experiments[0], "--full")
    assert said.code == 0, said.err
    for told in (
        "the one to beat", "360 of 90 queries", "Verification rate", "does the first win?", "majority", "any (oracle)",
        "pass@k, %", "Optimal N", "RewardTimeoutError", "length", "answer tokens", "Hardest queries",
        "Most contested queries", "●", "What is q00",
    ):  # fmt: skip
        assert told in said.out, told
    assert "\x1b" not in said.out
    assert said.err == ""


def test_several_are_compared_with_the_first(call: Call, experiments: tuple[Path, Path]) -> None:
    said = call("inspect", *experiments)
    assert said.code == 0, said.err
    assert "new.parquet against baseline.parquet\n" in said.out
    assert "60 common queries; 30 only in the first, 0 only in the second" in said.out
    row = next(line for line in said.out.splitlines() if line.startswith("all  verified, %"))
    assert "(+" in row or "(−" in row
    three = call("inspect", *experiments, experiments[0])
    assert "not corrected for comparing several" in three.out


def test_no_overlap_is_said_plainly(call: Call, experiments: tuple[Path, Path], tmp_path: Path) -> None:
    other = write(tmp_path / "other.parquet", table_of(rows_of({"x": "1"}, split="chat")))
    said = call("inspect", experiments[0], other)
    assert said.code == 0
    assert "No overlap: they have no judged query in common" in said.out
    assert "difference" not in said.out


@pytest.mark.parametrize("form", ["json", "markdown", "csv"])
def test_the_formats_are_clean_on_standard_output(call: Call, experiments: tuple[Path, Path], form: str) -> None:
    for paths in (experiments[:1], experiments):
        said = call("inspect", *paths, "--format", form)
        assert (said.code, said.err) == (0, "")
        if form == "json":
            assert json.loads(said.out)
        elif form == "markdown":
            assert said.out.startswith("# ")
        else:
            assert said.out.startswith("experiment,split" if len(paths) == 1 else "baseline,other")


def test_a_query_is_shown_with_its_candidates(call: Call, experiments: tuple[Path, Path]) -> None:
    said = call("inspect", experiments[0], "--query", "q0007")
    assert said.code == 0
    assert said.out.count("What is q0007?") == 2  # in both splits
    assert "#0 " in said.out
    assert r"\boxed{" in said.out
    assert "has no query 'nothing'" in call("inspect", experiments[0], "--query", "nothing").sentence
    both = call("inspect", *experiments, "--query", "q0007").out
    assert "baseline.parquet · math" in both
    assert "new.parquet · math" in both


def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_is_printed(
    call: Call, experiments: tuple[Path, Path]
) -> None:
    said = call("inspect", experiments[0], "--plot", "curve.pdf")
    assert (said.code, said.out) == (2, "")
    assert "ends in .png, .svg, .html" in said.sentence


@pytest.mark.parametrize("name", ["curve.png", "curve.svg", "curve.html"])
def test_a_picture_is_drawn(call: Call, experiments: tuple[Path, Path], name: str, tmp_path: Path) -> None:
    for paths in (experiments[:1], experiments):
        said = call("inspect", *paths, "--plot", tmp_path / name)
        assert said.code == 0
        assert f"Drawn: {tmp_path / name}" in said.err
        assert (tmp_path / name).stat().st_size > 1_000
        (tmp_path / name).unlink()


def test_a_page_about_several_begins_with_which_is_better(
    call: Call, experiments: tuple[Path, Path], tmp_path: Path
) -> None:
    said = call("inspect", *experiments, "--plot", tmp_path / "both.html")
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    first = page.split('<p class="found">')[1].split("</p>")[0]
    assert first.startswith("new.parquet is better than baseline.parquet: verified ")
    assert " ".join(said.out.split()).startswith(html.unescape(first)), "as the terminal says it"
    assert page.index("<svg") < page.index("<h1>baseline.parquet</h1>") < page.index("<h1>new.parquet</h1>")


def test_what_an_answer_is_worth_moves_the_optimum(call: Call, experiments: tuple[Path, Path]) -> None:
    cheap, dear = (
        json.loads(call("inspect", experiments[0], "--format", "json", "--value", value).out)["optimal"]["n"]
        for value in ("0.002", "1000")
    )
    assert cheap < dear


def test_votes_are_as_many_as_asked_for(call: Call, experiments: tuple[Path, Path]) -> None:
    def majority(*arguments: str) -> object:
        return json.loads(call("inspect", experiments[0], "--format", "json", *arguments).out)["overall"]["majority"]

    assert majority("--votes", "0") is None
    assert majority("--votes", "all") == majority()
    assert majority("--votes", "40") != majority()
    said = call("inspect", experiments[0], "--votes", "many")
    assert said.code == 2
    assert "neither a number nor 'all'" in said.err


def test_a_run_directory_is_inspected_too(call: Call, tmp_path: Path) -> None:
    lines = [
        {
            "id": name,
            "response_index": index,
            "evaluation_score": score,
            "is_score_valid": True,
            "user_query": f"Q {name}",
        }
        for name, scores in {"a": (1.0, 0.2), "b": (0.3, 0.4)}.items()
        for index, score in enumerate(scores)
    ]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = json.loads(call("inspect", tmp_path, "--format", "json").out)
    assert told["overall"]["mean"]["value"] == pytest.approx(1.9 / 4)
    assert told["overall"]["rate"] is None, "nobody said from which score on an answer is right"
    said = call("inspect", tmp_path).out
    assert "The mean score is 0.475" in said and "verified" not in said
    assert "nobody said which of them pass: --threshold S counts" in said
    assert "nobody said" not in call("inspect", tmp_path, "--threshold", "0.3").out
    told = json.loads(call("inspect", tmp_path, "--format", "json", "--threshold", "0.3").out)
    assert told["overall"]["rate"]["value"] == 0.75


@pytest.mark.parametrize("content", [b"", b"PAR1 and nothing else", bytes(5_000)])
def test_a_file_that_is_no_experiment_costs_one_sentence(call: Call, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.parquet"
    path.write_bytes(content)
    said = call("inspect", path)
    assert said.code == 2
    assert said.out == ""
    assert repr(str(path)) in said.sentence


def test_without_the_extra_it_says_what_to_install(experiments: tuple[Path, Path]) -> None:
    code = "import sys; sys.modules['pyarrow'] = None; from reward_kit.cli import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, "inspect", experiments[0]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Error: Analysing experiments needs an optional package. Install it with: pip install 'reward-kit[analysis]'"
    ]


@pytest.mark.parametrize("columns", [80, 120])
def test_it_fits_its_columns(
    call: Call, experiments: tuple[Path, Path], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in ([experiments[0]], experiments, [experiments[0], "--query", "q0007"]):
        assert max(map(len, call("inspect", *arguments).out.splitlines())) <= columns


@pytest.mark.parametrize("arguments", [[], ["--no-color"]], ids=["as it is", "no color"])
def test_a_terminal_has_colour_unless_told_not_to(experiments: tuple[Path, Path], arguments: list[str]) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm-256color", "PYTHONUTF8": "1"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "reward_kit", "inspect", str(experiments[0]), "--votes", "0", *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=environment) as process:
        os.close(theirs)
        parts = []
        while part := _read(ours):
            parts.append(part)
        assert process.wait() == 0
    os.close(ours)
    assert ("\x1b[" in b"".join(parts).decode()) is not bool(arguments)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # the other side is closed
        return b""


def test_a_terminal_without_unicode_gets_plain_characters(experiments: tuple[Path, Path]) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "120"}
    command = [sys.executable, "-m", "reward_kit", "inspect", str(experiments[0]), "--full"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Hardest queries" in done.stdout.decode("ascii")


WHOLE = {"id": "a", "response_index": 0, "evaluation_score": 1.0, "is_score_valid": True}


@pytest.mark.parametrize(
    "line",
    [
        {"id": "a"}, {"id": "a", "text": "hello", "label": 1}, {**WHOLE, "evaluation_scope": 2},
        {**WHOLE, "evaluation_score": "1.0"}, {**WHOLE, "evaluation_score": True}, {**WHOLE, "response_index": -1},
        {**WHOLE, "response_index": 0.5}, {**WHOLE, "is_score_valid": 1}, {"task_id": "t", "overall_success": True},
        {name: value for name, value in WHOLE.items() if name != "evaluation_score"},
        {"id": "t", "response_index": 0, "overall_success": "yes"},
    ],
)  # fmt: skip
def test_lines_that_no_run_wrote_are_refused_by_their_number(call: Call, tmp_path: Path, line: dict[str, Any]) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(WHOLE) + "\n" + json.dumps(line) + "\n")
    said = call("inspect", path)
    assert said.code != 0
    assert "Line 2 of" in said.sentence
    assert call("export", path, "--to", "sft", "-o", "out.jsonl").code != 0
