# SPDX-License-Identifier: Apache-2.0
"""Each benchmark, run whole and by name, on rows of our own in the shape of its dataset.

`cases/NAME.yaml` has the rows, what a mock model answers to each, and the score of each answer. The Hub is stood in for
at one place, where its library is called: name, configuration and split must be the published ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reward_kit.cli import main
from reward_kit.cli_commands.benchmark_configs import Notes, benchmark_names, load_benchmark
from reward_kit.cli_commands.hydra_config import PACKAGED
from reward_kit.config_models import DatasetConfig
from reward_kit.datasets.huggingface import HuggingFaceSource
from tests.execution.shell_support import require_namespaces

CASES = Path(__file__).with_name("cases")
NAMES = sorted(file.stem for file in (PACKAGED / "benchmark").glob("*.yaml"))
MODEL = "generation.model_name=mock"


def cases_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def asked_hub(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """What the Hub has, by name, configuration and split; asking for anything else fails."""
    shelf: dict[tuple[Any, ...], list[dict[str, Any]]] = {}

    def load(source: Any) -> Iterator[Mapping[str, Any]]:
        config: DatasetConfig = source._config
        return iter(shelf[source._name, config.config_name, config.split])

    monkeypatch.setattr(HuggingFaceSource, "_load", load)
    return shelf


def script_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A script for the mock model: the question that stands last in a prompt decides, examples stand before it."""
    finds = "|".join(re.escape(case["find"]) for case in rows)
    rules = [
        {
            "pattern": f"(?s){re.escape(case['find'])}(?!.*(?:{finds}))",
            "response": [_literal(said) for said, *_ in case["answers"]],
        }
        for case in rows
    ]
    return {"rules": rules}


def _literal(said: Any) -> Any:
    """An answer as it is: in a script, a backslash before a digit or g< stands for what was captured."""
    return said if isinstance(said, dict) else {"content": said}


def write_package(home: Path, package: Mapping[str, Any]) -> None:
    """A stand-in for a package that brings its data with it."""
    for name, lines in package["data"].items():
        file = home / package["name"] / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    (home / package["name"] / "__init__.py").write_text("")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as leave:
        main(["run", "--quiet", *arguments])
    code = leave.value.code
    return code if isinstance(code, int) else 0


def results(directory: Path) -> list[dict[str, Any]]:
    lines = (directory / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_every_benchmark_has_cases() -> None:
    assert sorted(file.stem for file in CASES.glob("*.yaml")) == NAMES


def test_the_page_lists_every_benchmark() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == NAMES


def prepared(
    name: str, home: Path, asked_hub: dict[tuple[Any, ...], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of a benchmark's cases, put where it finds them, and the overrides that it needs."""
    cases = cases_of(name)
    if cases.get("needs") == "a sandbox":
        require_namespaces()
    if not cases["rows"]:
        pytest.skip("it has a test of its own")
    rows = cases["rows"]
    overrides = list(cases.get("overrides", []))
    if "hub" in cases:
        dataset, config, split = cases["hub"]
        asked_hub[dataset, config, split] = [case["row"] for case in rows]
        for other, held in cases.get("splits", {}).items():
            asked_hub[dataset, config, other] = held
    elif "package" in cases:
        write_package(home, cases["package"])
        monkeypatch.syspath_prepend(str(home))
    else:
        lines = [json.dumps(case["row"]) for case in rows]
        (home / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
        overrides.append("dataset.path_or_name=rows.jsonl")
    if "judge" in cases:
        (home / "judge.json").write_text(json.dumps(cases["judge"]), encoding="utf-8")
    return rows, overrides


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_judges_right_wrong_and_malformed_answers(
    name: str,
    home: Path,
    asked_hub: dict[tuple[Any, ...], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, overrides = prepared(name, home, asked_hub, monkeypatch)
    (home / "script.json").write_text(json.dumps(script_of(rows)), encoding="utf-8")
    draws = len(rows[0]["answers"])
    code = run(f"+benchmark={name}", MODEL, "generation.mock.script=script.json", f"generation.n={draws}", *overrides)
    assert code == 0
    found = results(home / "outputs" / name / "mock")
    figures = json.loads((home / "outputs" / name / "mock" / "summary.json").read_text())["metrics"]
    named = [figure for figure in load_benchmark(name).notes.metrics if figure.startswith("metrics.")]
    assert {figure.removeprefix("metrics.") for figure in named} <= figures.keys()
    for position, case in enumerate(rows):
        own = sorted((line for line in found if line["position"] == position), key=lambda line: line["response_index"])
        judged = [
            (line["evaluation_score"], {m: line["evaluation_metrics"][m]["score"] for m in metrics})
            for line, (_, _, *given) in zip(own, case["answers"], strict=True)
            for metrics in [given[0] if given else {}]
        ]
        expected: list[Any] = [
            (pytest.approx(score), pytest.approx(given[0] if given else {})) for _, score, *given in case["answers"]
        ]
        assert judged == expected, case["find"]
        assert own[0]["user_query"].startswith(case.get("begins", ""))
        assert own[0]["user_query"].endswith(case.get("ends", ""))
        if "truth" in case:
            assert own[0]["ground_truth_for_eval"] == case["truth"]


_NEXT = (
    "\n\nPlease provide a self-contained Python script that solves the following problem in a markdown code block:\n"
    "```\ndef doubled(n: int) -> int:\n```\n\n```python\ndef doubled(n: int) -> int:\n    return 2 * n\n```"
)
RUNS_ON = {
    "drop": "\n\n---\nPassage: The Elks scored 3.\nQuestion: How many?\n\n{other}",
    "gpqa_diamond": "\n\nAnswer the following multiple choice question.\n\nA) x\nB) y\nC) z\nD) w\n\n{other}",
    "gsm8k": "\n\nQuestion: A shop has 9 pens and sells 4. How many are left?\nAnswer: {other}",
    "humaneval": _NEXT,
    "humaneval_plus": _NEXT,
    "math_500": "\n\nSolve the following math problem step by step.\n\nWhat is 1 + 1?\n\n{other}",
    "mbpp": "\n[DONE]\n\nYou are an expert Python programmer, and here is your task: Add.\n[BEGIN]\n{other}\n[DONE]",
    "mbpp_plus": _NEXT,
    "mmlu": "\n\nWhich is number 9?\nA. 9\nB. x\nC. y\nD. z\nAnswer: {other}",
    "mmlu_pro": "\n\nQuestion: What is 1 + 1?\nOptions: A. 2\nB. 3\nAnswer: Let's think step by step. {other}",
    "truthfulqa_mc1": "\n\nAnswer the following multiple choice question.\n\nWhich?\n\nA) x\nB) y\n\n{other}",
    "truthfulqa_mc2": "\n\nWhich of the following answers to the question are true?\n\nA) x\nB) y\n\n{other}",
}
"""What a model writes that goes on after its answer: the next question of its prompt, and an answer to that."""

MARKED = {name: "Answer:" for name in ("drop", "gpqa_diamond", "math_500", "truthfulqa_mc1", "truthfulqa_mc2")}
"""How answers are marked that are ended by their mark alone."""

WHOLE = {
    "aime_24": "lighteval takes the last box, without stop texts",
    "aime_25": "lighteval takes the last box, without stop texts",
    "bfcl": "calls are judged, and no text",
    "bfcl_multi_turn": "calls are judged, and no text",
    "ifeval": "the whole text is judged",
    "livecodebench": "its authors take the last code block",
    "simpleqa": "a judge reads the whole text",
}
"""Benchmarks whose authors judge what a model goes on with, too."""


def test_each_benchmark_says_what_becomes_of_an_answer_that_goes_on() -> None:
    assert sorted({*RUNS_ON, *WHOLE}) == NAMES and not RUNS_ON.keys() & WHOLE.keys()


@pytest.mark.parametrize("name", RUNS_ON)
def test_a_model_that_goes_on_after_its_answer_is_judged_by_its_answer(
    name: str,
    home: Path,
    asked_hub: dict[tuple[Any, ...], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, overrides = prepared(name, home, asked_hub, monkeypatch)
    goes_on, mark, expected = RUNS_ON[name], MARKED.get(name, ""), dict[Any, Any]()
    for position, case in enumerate(rows):
        by_score = {score: said for said, score, *_ in reversed(case["answers"]) if mark in said}
        if 1.0 not in by_score or len(by_score) == 1:
            case["answers"] = [["?"], ["?"]]
            continue
        right, wrong = by_score[1.0], by_score[lowest := min(by_score)]
        case["answers"] = [[said + goes_on.format(other=other)] for said, other in ((right, wrong), (wrong, right))]
        expected |= {(position, 0): 1.0, (position, 1): pytest.approx(lowest)}
    (home / "script.json").write_text(json.dumps(script_of(rows)), encoding="utf-8")
    assert run(f"+benchmark={name}", MODEL, "generation.mock.script=script.json", "generation.n=2", *overrides) == 0
    found = {
        (line["position"], line["response_index"]): line["evaluation_score"] for line in results(mock_run(home, name))
    }
    assert expected and {key: found[key] for key in expected} == expected


def mock_run(home: Path, name: str) -> Path:
    return home / "outputs" / name / "mock"


@pytest.mark.parametrize("name", NAMES)
def test_the_notes_of_a_benchmark_are_whole(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["benchmarks", "show", name, "--json"])
    shown = json.loads(capsys.readouterr().out)
    notes = Notes.model_validate(shown["benchmark"])
    assert notes.name == name
    assert "mean_score" in notes.metrics
    with pytest.raises(SystemExit):
        main(["benchmarks", "show", name])
    text = " ".join(capsys.readouterr().out.split())
    assert notes.title in text and " ".join(notes.differs.split()) in text
    assert f"reward-kit run +benchmark={name} " in text


def test_the_list_has_a_line_for_each(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    with pytest.raises(SystemExit):
        main(["benchmarks", "list"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == NAMES == benchmark_names()


OWN = """# @package _global_
benchmark:
  name: sums
  title: Sums
  about: Sums of two numbers.
  source: our own
  prompt: us
  metrics: {mean_score: share of right sums}
  published: none
  differs: nothing
dataset: {path_or_name: sums.jsonl}
generation: {mock: {rules: [{pattern: "2 and 3", response: "5"}]}}
reward: {function_path: math}
"""


def own_benchmark(home: Path, text: str = OWN) -> None:
    (home / "conf" / "benchmark").mkdir(parents=True)
    (home / "conf" / "benchmark" / "sums.yaml").write_text(text)
    rows = [{"user_query": f"2 and {n}", "ground_truth": str(2 + n)} for n in (3, 4)]
    (home / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_benchmark_of_ones_own_is_a_yaml_file(home: Path) -> None:
    own_benchmark(home)
    assert run("+benchmark=sums", MODEL) == 0
    directory = home / "outputs" / "sums" / "mock"
    assert [line["evaluation_score"] for line in results(directory)] == [1.0, 0.0]
    assert "benchmark" not in yaml.safe_load((directory / "config.yaml").read_text())
    assert run("benchmark=sums", MODEL, "dataset.max_samples=1", "output.output_dir=elsewhere") == 0
    assert len(results(home / "elsewhere")) == 1


def test_a_sweep_runs_several_benchmarks_and_several_models_have_their_own_directories(home: Path) -> None:
    own_benchmark(home)
    text = OWN.replace("  name: sums", "  name: more")
    (home / "conf" / "benchmark" / "more.yaml").write_text(text)
    assert run("-m", "+benchmark=sums,more", MODEL) == 0
    directories = {file.parent.relative_to(home / "outputs") for file in (home / "outputs").rglob("results.jsonl")}
    assert directories == {Path("sums/mock/+benchmark=sums"), Path("more/mock/+benchmark=more")}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (OWN.replace("  title: Sums\n", ""), "'title' is missing"),
        (OWN.replace("  title:", "  tilte:"), "did you mean 'title'"),
    ],
)
def test_notes_that_are_wrong_are_refused_before_the_run(
    home: Path, text: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own_benchmark(home, text)
    assert run("+benchmark=sums", MODEL) == 2
    assert complaint in capsys.readouterr().err


def test_a_name_that_nobody_knows_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        main(["benchmarks", "show", "gsm8l"])
    assert leave.value.code == 2
    assert "There is no benchmark 'gsm8l' (did you mean 'gsm8k'?). There are: " in capsys.readouterr().err
    for named in ("+benchmark=gsm8l", "benchmark=gsm8l", "+benchmark=gsm8k,gsm8l"):
        assert run("-m", named, MODEL) == 2
        assert "There is no benchmark 'gsm8l' (did you mean 'gsm8k'?). There are: aime_24" in capsys.readouterr().err


def test_without_a_model_it_is_said_that_none_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        main(["run", "+benchmark=gsm8k"])
    assert leave.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("no model is named (generation.model_name) · n=1 · ")
    assert "Error: `generation.model_name` is not set. Set it to a model" in said
