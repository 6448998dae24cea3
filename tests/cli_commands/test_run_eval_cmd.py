# SPDX-License-Identifier: Apache-2.0
"""`reward-kit run`: what it prints, how it exits, and that a wrong input is one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from tests.cli_commands.conftest import Call, start, write_config
from tests.generation.loopback import Reaction, complains, says_message
from tests.loopback.endpoint import honest, serving
from tests.loopback.runs import REWARDS, config, lines, questions, results, write_rows

SECRET = "sk-do-not-tell-anyone-0123456789"


# ── done ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_says_what_came_out_and_where_it_is(tmp_path: Path, call: Call) -> None:
    said = call("run", write_config(tmp_path, config(tmp_path, generation__n=2, reward__pass_threshold=0.1)))
    assert said.code == 0
    for part in ("judged", "8 of 8", "mean score", "pass@1", "pass@2", str(tmp_path / "run" / "results.jsonl")):
        assert part in said.out, "`run > log` is to hold it"
        assert part not in said.err or part in str(tmp_path)
    assert len(results(tmp_path)) == 8


def test_files_are_named_as_the_directory_was_typed(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path))
    said = call("run", file, "output.output_dir=outputs/mine")
    assert "\n  outputs/mine/results.jsonl\n" in said.out and str(tmp_path) not in said.out
    swept = call("run", file, "output.output_dir=outputs/swept", "-m", "generation.n=1,2")
    assert "To compare them: reward-kit inspect outputs/swept\n" in swept.out


@pytest.mark.parametrize(
    ("scores", "threshold", "passes"),
    [("[0.2, 0.9]", 1.0, False), ("[0.2, 0.9]", 0.5, True), ("[0.0, 1.0]", 1.0, True), ("[1.0, 1.0]", 1.0, True)],
)
def test_a_run_and_inspect_agree_on_whether_answers_can_pass(
    tmp_path: Path, call: Call, scores: str, threshold: float, passes: bool
) -> None:
    (tmp_path / "graded.py").write_text(f"def grade(response_index):\n    return {scores}[response_index]\n")
    reward = {"function_path": f"{tmp_path / 'graded.py'}:grade", "pass_threshold": threshold}
    file = write_config(tmp_path, config(tmp_path, generation__n=2) | {"reward": reward})
    ran, inspected = call("run", file).out, call("inspect", tmp_path / "run").out
    swept = call("run", file, "-m", "generation.temperature=0.1,0.2").out
    assert ("pass@1" in ran, "2: " in swept, "Verification rate" in inspected) == (passes, passes, passes), ran
    assert ("set `reward.pass_threshold`" in ran, "--threshold S" in inspected) == (not passes, not passes), inspected


def test_answers_that_were_cut_off_are_flagged(tmp_path: Path, call: Call) -> None:
    cut = says_message({"role": "assistant", "content": "It is"}, finish_reason="length")
    with serving(lambda body, number: cut) as endpoint:
        file = write_config(tmp_path, config(tmp_path, endpoint.api_base))
        said = call("run", file)
    assert "cut off" in said.out and "4 (100 %)" in said.out
    assert orjson.loads((tmp_path / "run" / "summary.json").read_bytes())["truncated"] == 4


def test_a_sweep_ends_in_one_table(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path))
    said = call("run", file, "-m", "generation.n=1,2")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    (head,) = [number for number, line in enumerate(lines) if line.startswith("run ")]
    assert [line.split()[0] for line in lines[head + 1 : head + 3]] == ["n=1", "n=2"]
    assert "4 of 4" in lines[head + 1] and "8 of 8" in lines[head + 2]
    compared = call("inspect", tmp_path / "run")
    assert "generation.n=2" in compared.out


def test_figures_of_more_than_was_asked_for_say_so(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path, generation__n=2))
    assert "no longer call for" not in call("run", file).out
    for _ in range(2):  # also where nothing is read again
        assert "4 answers are in these figures that the dataset" in call("run", file, "generation.n=1").out


def test_json_goes_to_standard_output_and_nothing_else_does(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path))
    said = call("run", file, "--json", "--quiet")
    assert (said.code, said.err) == (0, "")
    summary = orjson.loads(said.out)
    assert (summary["status"], summary["judged"]) == ("finished", 4)
    again = call("run", file, "--json")
    assert orjson.loads(again.out)["judged"] == 4
    assert "judged" in again.err


def test_what_a_reward_prints_is_no_part_of_the_json(tmp_path: Path, call: Call) -> None:
    said = call("run", write_config(tmp_path, config(tmp_path, reward="talkative")), "--json", "-q")
    assert orjson.loads(said.out)["judged"] == 4
    assert {said.err.count(f"talk by {way}") for way in ("print", "descriptor", "program")} == {4}
    tried = call("rewards", "try", f"{REWARDS}:talkative", "--answer", "4", "--json")
    assert orjson.loads(tried.out)["score"] > 0


def test_quiet_says_nothing_but_errors(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path))
    assert call("run", "-q", file) == (0, "", "")
    assert call("run", "-q", file, "dataset.path_or_name=missing.jsonl").sentence


def test_config_path_and_name_and_overrides(tmp_path: Path, call: Call) -> None:
    write_config(tmp_path, config(tmp_path), "math.yaml")
    said = call("run", "--config-path", tmp_path, "--config-name", "math", "generation.n=3", "generation.top_p=0.9")
    assert said.code == 0
    assert len(results(tmp_path)) == 12
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (written["generation"]["n"], written["generation"]["top_p"]) == (3, 0.9)


def test_the_config_of_a_run_is_itself_a_valid_input(tmp_path: Path, call: Call) -> None:
    call("run", write_config(tmp_path, config(tmp_path, generation__n=2)))
    before = results(tmp_path)
    said = call("run", tmp_path / "run" / "config.yaml", "--json", "-q")
    assert said.code == 0
    assert orjson.loads(said.out)["judged"] == 8
    assert results(tmp_path) == before
    copied = call("run", tmp_path / "run" / "config.yaml", f"output.output_dir={tmp_path}/copy", "-q")
    assert copied.code == 0
    assert len(results(tmp_path, "copy")) == 8


def test_phases_and_rescoring_from_the_command_line(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path))
    assert call("run", file, "--phase", "inference", "-q").code == 0
    assert not (tmp_path / "run" / "results.jsonl").exists()
    (tmp_path / "dataset.jsonl").unlink()
    assert call("run", file, "--phase", "execution", "-q").code == 0
    assert len(results(tmp_path)) == 4
    assert "--rescore" in call("run", file, "--phase", "execution", "+reward.params.strictness=2").sentence
    assert call("run", file, "--rescore", "+reward.params.strictness=2", "-q").code == 0
    assert len(list((tmp_path / "run").glob("results*.jsonl"))) == 2


def test_a_sweep_runs_each_combination_in_a_directory_of_its_own(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path))
    sweep = ("generation.temperature=0.1,0.9", "generation.n=1,2")
    said = call("run", file, "--multirun", "--json", *sweep)
    assert said.code == 0
    summaries = orjson.loads(said.out)
    assert [summary["judged"] for summary in summaries] == [4, 8, 4, 8]
    made = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert made == sorted(f"generation.temperature={t},generation.n={n}" for t in (0.1, 0.9) for n in (1, 2))
    assert all((tmp_path / "run" / name / "results.jsonl").exists() for name in made)
    again = call("run", file, "--multirun", "--json", *sweep)
    assert orjson.loads(again.out) == summaries, "each job is resumed, not run again"
    assert "--multirun" in call("run", file, *sweep).sentence


def test_a_sweep_that_fails_later_shows_what_came_before(tmp_path: Path, call: Call) -> None:
    def react(body: dict[str, Any], number: int) -> Reaction:
        return honest(body, number) if body["model"] == "good" else complains(404, "no such model")

    with serving(react) as endpoint:
        file = write_config(tmp_path, config(tmp_path, endpoint.api_base))
        said = call("run", file, "-m", "generation.model_name=good,gone", "--json")
    assert said.code == 1
    assert orjson.loads(said.out)["judged"] == 4
    assert "gone" in said.sentence


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_needs_no_standard_streams(tmp_path: Path, closed: str) -> None:
    file = write_config(tmp_path, config(tmp_path))
    command = f"{sys.executable} -m reward_kit run {file} --json {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert (done.returncode, len(results(tmp_path))) == (0, 4), done.stderr


def test_brackets_in_names_are_not_markup(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path, output__output_dir=str(tmp_path / "run[/red][bold]x")))
    said = call("run", file)
    assert said.code == 0
    assert "run[/red][bold]x" in said.err


# ── a plan ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_asks_nobody_and_writes_nothing(tmp_path: Path, call: Call) -> None:
    told = config(tmp_path, rows=questions(6), generation__n=4, generation__model_name="gpt-6-luna",
                  generation__cache={"enabled": True})  # fmt: skip
    file = write_config(tmp_path, told)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    said = call("run", file, "--dry-run")
    assert said.code == 0
    assert "24" in said.out
    plan = orjson.loads(call("run", file, "--dry-run", "--json").out)
    assert (plan["rows"], plan["rollouts"], plan["requests"], plan["cached"], plan["to_score"]) == (6, 24, 6, 0, 24)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert "OPENAI_API_KEY" in call("run", file).sentence


# ── exit codes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_judged_is_a_failure(tmp_path: Path, call: Call) -> None:
    with serving(lambda body, number: complains(400, "no")) as endpoint:
        file = write_config(tmp_path, config(tmp_path, endpoint.api_base))
        said = call("run", file)
        assert said.code == 1
        assert "4 × generate: BadRequestError" in said.out
        assert call("run", file, "--phase", "inference", f"output.output_dir={tmp_path}/only").code == 1


@pytest.mark.parametrize("phase", ["both", "inference"])
def test_a_failure_says_why_also_to_those_who_asked_for_quiet(tmp_path: Path, call: Call, phase: str) -> None:
    with serving(lambda body, number: complains(400, "the hamster is out")) as endpoint:
        file = write_config(tmp_path, config(tmp_path, endpoint.api_base))
        said = call("run", file, "--phase", phase)
        assert said.out.count("the hamster is out") == 1, "beside the count"
        assert said.err.count("the hamster is out") == 1, "in the sentence at the end"
        assert "Nothing could be judged" in said.sentence
        quiet = call("run", file, "--phase", phase, "-q", f"output.output_dir={tmp_path}/other")
        assert "the hamster is out" in quiet.sentence
    told = orjson.loads((tmp_path / "run" / "summary.json").read_bytes())["failure_examples"]
    assert "the hamster is out" in told["generate: BadRequestError"]


def test_nothing_to_judge_is_told_apart_from_failures(tmp_path: Path, call: Call) -> None:
    said = call("run", write_config(tmp_path, config(tmp_path)), "evaluation_params.limit_samples=0", "-q")
    assert said.code == 1
    assert "there was nothing to do" in said.sentence


def test_some_judged_is_no_failure(tmp_path: Path, call: Call) -> None:
    with serving(lambda body, number: complains(400, "no") if number == 1 else honest(body, number)) as endpoint:
        assert call("run", write_config(tmp_path, config(tmp_path, endpoint.api_base))).code == 0


def test_the_budget_has_an_exit_code_and_says_how_to_go_on(tmp_path: Path, call: Call) -> None:
    with serving(honest) as endpoint:
        told = config(tmp_path, endpoint.api_base, generation__price={"input": 1.0, "output": 1000.0},
                      generation__max_tokens=2, generation__api_params={"max_concurrent_requests": 1})  # fmt: skip
        file = write_config(tmp_path, told)
        said = call("run", file, "max_cost=0.005")
        assert said.code == 3
        assert "max_cost" in said.out
        assert f"reward-kit run {file} max_cost=0.005" in said.err
        assert call("run", file, "max_cost=1").code == 0
    assert len(results(tmp_path)) == 4


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusal_of_the_endpoint_is_one_sentence(tmp_path: Path, call: Call, status: int) -> None:
    with serving(lambda body, number: complains(status, f"not you, {SECRET}")) as endpoint:
        said = call("run", write_config(tmp_path, config(tmp_path, endpoint.api_base, generation__api_key=SECRET)))
    assert said.code == 1
    assert "Check" in said.sentence
    assert SECRET not in said.err


# ── wrong inputs ─────────────────────────────────────────────────────────────────────────────────────────────────────

WRONG_CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "missing dataset": ({"dataset__path_or_name": "missing.jsonl"}, "missing.jsonl"),
    "missing column": ({"rows": [{"id": "a", "words": "q"}]}, "user_query"),
    "empty dataset": ({"rows": []}, "empty"),
    "duplicate ids": ({"rows": [questions(1)[0]] * 2}, "s0"),
    "unknown key": ({"generation__temprature": 0.1}, "did you mean 'generation.temperature'"),
    "unknown part": ({"generaton__n": 1}, "did you mean 'generation"),
    "wrong type": ({"generation__n": "many"}, "generation.n"),
    "out of range": ({"generation__temperature": -1}, "generation.temperature"),
    "no such reward file": ({"reward__function_path": "gone.py:f"}, "gone.py"),
    "no such reward": ({"reward": "quik"}, "did you mean 'quick'"),
    "no such module": ({"reward__function_path": "no.such.module.f"}, "no.such"),
    "not a function": ({"reward__function_path": "math:pi"}, "Name a callable"),
    "no such param": ({"reward__function_path": "math:floor", "reward__params": {"y": 1}}, "'floor'"),
    "no model": ({"generation__model_name": None}, "generation.model_name"),
    "no dataset": ({"dataset": None}, "dataset.path_or_name"),
    "bad api_base": ({"generation__model_name": "m", "generation__api_base": "localhost"}, "api_base"),
    "no such template": ({"dataset__prompt_template": "{{ nope }}"}, "nope"),
    "bad template": ({"dataset__prompt_template": "{{ nope"}, "prompt_template"),
    "bad preprocess": ({"dataset__preprocess": ["gone.py:f"]}, "gone.py"),
    "missing rollouts": ({"rollouts_file": "missing.jsonl"}, "missing.jsonl"),
    "price": (
        {"max_cost": 1.0, "generation__model_name": "m", "generation__api_base": "http://localhost:1/v1"},
        "generation.price",
    ),
}


@pytest.mark.parametrize("wrong", WRONG_CONFIGS)
def test_a_wrong_config_or_dataset_is_one_sentence_and_exit_code_2(tmp_path: Path, call: Call, wrong: str) -> None:
    changes, expected = WRONG_CONFIGS[wrong]
    said = call("run", write_config(tmp_path, config(tmp_path, **changes)))
    assert (said.code, said.out) == (2, "")
    assert expected in said.sentence


@pytest.mark.parametrize(
    ("content", "advice"), [(b"dataset: {caf\xe9: 1}\n", "Save it as UTF-8."), (b"dataset: {\n", "Correct it.")]
)
def test_a_config_that_cannot_be_read_is_one_sentence(tmp_path: Path, call: Call, content: bytes, advice: str) -> None:
    (tmp_path / "run.yaml").write_bytes(content)
    said = call("run", tmp_path / "run.yaml")
    assert said.code == 2
    assert said.sentence.endswith(advice)


def test_a_malformed_line_is_named_by_its_number(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path))
    with (tmp_path / "dataset.jsonl").open("a") as dataset:
        dataset.write('{"id": "x", "user_query":\n')
    said = call("run", file)
    assert said.code == 2
    assert "dataset.jsonl" in said.sentence
    assert "5" in said.sentence
    assert len(results(tmp_path)) == 4


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run"], "No config is named"),
        (["run", "gone.yaml"], "gone.yaml"),
        (["run", "--config-path", "gone", "--config-name", "x"], "x.yaml"),
        (["run", "broken.yaml"], "broken.yaml"),
        (["run", "list.yaml"], "list.yaml"),
        (["run", "good.yaml", "generation.n"], "generation.n"),
        (["run", "good.yaml", "generation.n=[1"], "[1"),
        (["run", "good.yaml", "generation.n=${nope}"], "nope"),
        (["run", "good.yaml", "dataset=gone"], "gone"),
        (["run", "good.yaml", "output=x"], "output"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(
    tmp_path: Path, call: Call, arguments: list[str], expected: str
) -> None:
    (tmp_path / "broken.yaml").write_text("a: [1\nb")
    (tmp_path / "list.yaml").write_text("- 1\n")
    write_config(tmp_path, config(tmp_path), "good.yaml")
    said = call(*arguments)
    assert (said.code, said.out) == (2, "")
    assert expected in said.sentence
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("arguments", [["run", "--no-such-option"], ["no-such-command"], ["run", "--phase", "never"]])
def test_click_complains_in_the_same_way(call: Call, arguments: list[str]) -> None:
    said = call(*arguments)
    assert said.code == 2
    assert said.sentence


@pytest.mark.parametrize("setting", ["output.output_dir", "generation.cache.cache_dir"])
def test_a_directory_that_cannot_be_written_is_one_sentence(tmp_path: Path, call: Call, setting: str) -> None:
    (tmp_path / "file").write_text("mine")
    file = write_config(tmp_path, config(tmp_path, generation__cache={"enabled": True}))
    for place in ("file", "file/below", "/proc/nowhere"):
        said = call("run", file, f"{setting}={place}")
        assert said.code == 1
        assert setting in said.sentence
    assert (tmp_path / "file").read_text() == "mine"


def test_no_credentials_name_the_variable_to_set(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path, generation__model_name="accounts/fireworks/models/x"))
    said = call("run", file)
    assert said.code == 1
    assert "FIREWORKS_API_KEY" in said.sentence
    named = call("run", file, "generation.api_key_env=NOT_SET")
    assert "NOT_SET" in named.sentence


def test_other_settings_in_the_directory_are_one_sentence(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path))
    call("run", file, "-q")
    said = call("run", file, "generation.temperature=0.123")
    assert said.code == 1
    assert "generation.temperature: 0.7 then, 0.123 now" in said.sentence


def test_verbose_shows_the_traceback(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path, reward__function_path="gone.py:f"))
    process = start(tmp_path, "run", file, "--verbose")
    _, err = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert "Traceback" in err
    assert "gone.py" in err


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_secret_is_in_no_file_and_in_no_output(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    with serving(honest) as endpoint:
        for number, setting in enumerate((f"generation.api_key={SECRET}", "generation.api_key_env=MY_KEY")):
            told = config(tmp_path, endpoint.api_base, output__output_dir=str(tmp_path / f"run{number}"))
            said = call("run", write_config(tmp_path / "", told), setting)
            assert said.code == 0
            assert SECRET not in said.err + said.out
            for path in (tmp_path / f"run{number}").iterdir():
                assert SECRET not in path.read_text(), path.name
        assert all(SECRET in head for head in endpoint.heads)
    assert "api_key:" not in (tmp_path / "run0" / "config.yaml").read_text(), "a blotted key would be a wrong one"
    complained = call("run", write_config(tmp_path, config(tmp_path)), f"generation.api_key=[{SECRET}]")
    assert complained.code == 2
    assert SECRET not in complained.err


# ── a folder that runs as it is ──────────────────────────────────────────────────────────────────────────────────────


def test_the_starter_folder_runs_as_it_is(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("init", "my_reward").code == 0
    monkeypatch.chdir(tmp_path / "my_reward")
    assert call("run", "run.yaml", "-q").code == 0
    rows = lines(tmp_path / "my_reward" / "outputs" / "first_run" / "results.jsonl")
    assert len(rows) == 20
    assert all(row["error"] is None for row in rows)
    monkeypatch.chdir(tmp_path)
    assert "exists already" in call("init", "my_reward").sentence
    assert call("init", "my_reward", "--force").code == 0
    assert call("run", "my_reward/run.yaml", "output.output_dir=elsewhere", "-q").code == 0, (
        "paths are found beside the config"
    )
    assert shutil.which("git") is None or not (tmp_path / "outputs").exists()
    assert os.listdir(tmp_path / "elsewhere")


def test_a_dataset_group_of_the_package_can_be_chosen(tmp_path: Path, call: Call) -> None:
    write_rows(tmp_path / "rows.jsonl", questions(2))
    told = {key: value for key, value in config(tmp_path).items() if key != "dataset"}
    file = write_config(tmp_path, {"defaults": [{"dataset": "local_jsonl"}, "_self_"], **told})
    said = call("run", file, f"dataset.path_or_name={tmp_path}/rows.jsonl", "-q")
    assert said.code == 0, said.err
    assert len(results(tmp_path)) == 2


def test_a_run_may_begin_anew_and_says_how(tmp_path: Path, call: Call) -> None:
    file = write_config(tmp_path, config(tmp_path))
    assert call("run", file, "-q").code == 0
    refused = call("run", file, "-q", "generation.temperature=0.1")
    assert refused.code != 0 and "`output.output_dir=…` or start from the beginning with `--overwrite`" in refused.err
    assert call("run", file, "-q", "generation.temperature=0.1", "--overwrite").code == 0
    assert len(lines(tmp_path / "run.1" / "results.jsonl")) == len(results(tmp_path)) == 4


# ── several models ───────────────────────────────────────────────────────────────────────────────────────────────────


def several(tmp_path: Path, api_base: str, *models: Any) -> Path:
    told = config(tmp_path, api_base, generation__models=list(models))
    del told["generation"]["model_name"]
    return write_config(tmp_path, told)


def test_each_model_has_a_directory_and_the_end_is_one_comparison(tmp_path: Path, call: Call) -> None:
    def react(body: dict[str, Any], number: int) -> Reaction:
        if body["model"] == "other/wrong":
            return says_message({"role": "assistant", "content": "No idea."})
        return honest(body, number)

    with serving(react) as endpoint:
        warmer = {"model_name": "right", "temperature": 0.9}
        file = several(tmp_path, endpoint.api_base, "right", "other/wrong", warmer)
        said = call("run", file)
        asked = len(endpoint.requests)
        again = call("run", file)
    assert said.code == 0, said.err
    assert (asked, len(endpoint.requests)) == (12, 12), "what was paid for is not paid again"
    assert {(body["model"], body["temperature"]) for body in endpoint.requests} == {
        ("right", 0.7), ("other/wrong", 0.7), ("right", 0.9),
    }  # fmt: skip
    made = sorted(path.name for path in (tmp_path / "run").iterdir())
    names = ["generation.model_name=other_wrong", "generation.model_name=right", "generation.model_name=right,3"]
    assert made == names
    for out in (said.out, again.out):
        assert "difference" in out.lower()
        assert all(name.removeprefix("generation.model_name=") in out for name in names)


def test_with_json_the_models_are_a_list_of_summaries(tmp_path: Path, call: Call) -> None:
    with serving(honest) as endpoint:
        said = call("run", several(tmp_path, endpoint.api_base, "one", "two"), "--json")
    assert [summary["judged"] for summary in orjson.loads(said.out)] == [4, 4]


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["generation.models=[]"], "is empty"),
        (["generation.models=[1]"], r"generation.models[0]` names no model"),
        (["generation.models=[{temperature: 1}]"], r"generation.models[0]` names no model"),
        (["generation.models=[a]", "generation.model_name=b"], "Both"),
        (["generation.models=a"], "generation.models"),
    ],
)
def test_models_that_make_no_sense_are_one_sentence(
    tmp_path: Path, call: Call, overrides: list[str], sentence: str
) -> None:
    said = call("run", several(tmp_path, "http://127.0.0.1:9/v1"), *overrides)
    assert said.code != 0 and sentence in said.sentence
