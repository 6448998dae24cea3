# SPDX-License-Identifier: Apache-2.0
"""`reward-kit shell` from the outside: both phases, real processes, real sandboxes, real interruptions."""

from __future__ import annotations

import functools
import re
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.storage.candidates import read_queries
from tests.execution.shell_support import (
    command,
    endpoint,
    lines,
    require_namespaces,
    shell,
    start,
    summary,
    task,
    wait_until,
    write_rows,
)

HERE = ("--sandbox", "namespaces")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    require_namespaces()
    return tmp_path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


# ── the whole way ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_both_phases_from_tasks_to_figures(home: Path) -> None:
    tasks = write_rows(home / "tasks.jsonl", [task(number, difficulty_level=number) for number in range(4)])
    with endpoint() as serving:
        done = shell("--model", "m", "--base-url", serving.url, "--dataset", tasks, *HERE, home=home)
    assert done.returncode == 0, done.stderr
    out = home / "evaluation_results"
    made, results = lines(out / "commands.jsonl"), lines(out / "results.jsonl")
    assert [row["generated_command"] for row in made] == [f"touch f{number}" for number in range(4)]
    for row, result in zip(made, results, strict=True):
        columns = ("task_id", "task", "setup_commands", "success_condition", "generated_command", "timestamp")
        assert all(result[name] == row[name] for name in (*columns, "difficulty_level"))
        assert result["overall_success"] is result["test_passed"] is result["command_success"] is True
        assert result["command_exit_code"] == result["test_exit_code"] == 0
        assert result["trajectory"][0]["command"] == row["generated_command"]
        assert result["start_time"] <= result["end_time"]
    figures = summary(out)
    assert (figures["success_rate"], figures["total_samples"], figures["infrastructure_errors"]) == (1.0, 4, 0)
    assert figures["success_rate_interval"][0] < 1.0
    assert figures["inference"]["completion_tokens"] == figures["completion_tokens"] == 12
    assert figures["inference"]["seconds"] > 0 and figures["execution"]["seconds"] > 0 and figures["phase"] == "both"


def test_the_phases_can_live_on_different_machines(home: Path) -> None:
    tasks = write_rows(home / "tasks.jsonl", [task(1), task(2)])
    here, there = home / "here", home / "there"
    there.mkdir()
    with endpoint() as serving:
        arguments = ("--model", "m", "--base-url", serving.url, "--dataset", tasks, "--output-dir", here)
        done = shell(*arguments, "--phase", "inference", "-n", "2", home=home)
    assert done.returncode == 0, done.stderr
    assert summary(here)["phase"] == "inference" and not (here / "results.jsonl").exists()
    carried = there / "commands.jsonl"
    (here / "commands.jsonl").rename(carried)
    done = shell("--phase", "execution", "--commands-file", carried, *HERE, home=there)
    assert done.returncode == 0, done.stderr
    figures = summary(there / "evaluation_results")
    assert (figures["records"], figures["success_rate"], figures["completion_tokens"]) == (4, 1.0, 6)
    assert figures["pass_at_k"].keys() == {"1", "2"}


def test_a_commands_file_that_was_taken_away_is_made_again(tmp_path: Path) -> None:
    arguments = (
        "--model",
        "mock",
        "--dataset",
        write_rows(tmp_path / "tasks.jsonl", [task(1)]),
        "--phase",
        "inference",
    )
    made = tmp_path / "evaluation_results" / "commands.jsonl"
    assert shell(*arguments, home=tmp_path).returncode == 0
    content = made.read_bytes()
    made.unlink()
    again = shell(*arguments, home=tmp_path)
    assert again.returncode == 0 and made.read_bytes() == content
    assert "\n  evaluation_results/commands.jsonl\n" in again.stdout, "as the directory was typed"


def test_only_the_first_tasks_are_taken_when_asked(home: Path) -> None:
    file = write_rows(home / "c.jsonl", [command(number) for number in range(5)])
    arguments = ("--phase", "execution", "--commands-file", file, *HERE)
    assert shell(*arguments, "--max-samples", "2", home=home).returncode == 0
    assert [row["task_id"] for row in lines(home / "evaluation_results" / "results.jsonl")] == ["t0", "t1"]
    assert shell(*arguments, home=home).returncode == 0
    assert summary(home / "evaluation_results")["this_entry"]["judged"] == 3
    assert summary(home / "evaluation_results")["execution"]["sandbox"] == "namespaces"


def test_mock_is_used_when_named_and_only_then(home: Path) -> None:
    tasks = write_rows(home / "tasks.jsonl", [task(1)])
    with endpoint() as serving:
        done = shell("--model", "mock", "--dataset", tasks, *HERE, home=home, OPENAI_BASE_URL=serving.url)
        assert done.returncode == 0 and not serving.asked
    assert lines(home / "evaluation_results" / "results.jsonl")[0]["overall_success"] is True
    done = shell("--model", "gpt-4", "--dataset", tasks, "--output-dir", "other", home=home)
    assert done.returncode == 1 and "OPENAI_API_KEY" in done.stderr and "--api-key" in done.stderr
    assert not (home / "other" / "commands.jsonl").exists()


def test_endpoint_and_key_come_from_the_environment_too(home: Path) -> None:
    tasks = write_rows(home / "tasks.jsonl", [task(1)])
    with endpoint() as serving:
        arguments = ("--model", "m", "--dataset", tasks, "--phase", "inference")
        environment = {"OPENAI_BASE_URL": serving.url, "OPENAI_API_KEY": "secret-key"}
        assert shell(*arguments, home=home, **environment).returncode == 0
        assert serving.keys == ["Bearer secret-key"]
        given = shell(
            *arguments, "--output-dir", "b", "--temperature", "0.1", "--api-key", "other", home=home, **environment
        )
        assert given.returncode == 0 and serving.keys[-1] == "Bearer other"
    written = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"secret-key" not in written


def test_failures_are_told_apart(home: Path) -> None:
    say = {"f1": '{"command": "touch f1"}', "f2": '{"command": "touch other"}', "f3": "I had rather not say."}
    tasks = write_rows(home / "tasks.jsonl", [task(1), task(2), task(3), {**task(4), "setup_commands": ["false"]}])
    with endpoint(lambda prompt: say.get(prompt.partition("'")[2][:2], '{"command": "true"}')) as serving:
        done = shell("--model", "m", "--base-url", serving.url, "--dataset", tasks, *HERE, home=home)
    assert done.returncode == 0, done.stderr
    out = home / "evaluation_results"
    commands, results = lines(out / "commands.jsonl"), lines(out / "results.jsonl")
    assert commands[2]["generated_command"] is None and "No command" in commands[2]["error"]
    assert results[2]["error"] == commands[2]["error"], "both files give the same reason"
    assert [row["overall_success"] for row in results] == [True, False, False, None]
    assert results[3]["command_success"] is results[3]["test_passed"] is None and "setup" in results[3]["error"]
    figures = summary(out)
    assert (figures["judged"], figures["successful_samples"], figures["no_command"]) == (3, 1, 1)
    assert (figures["infrastructure_errors"], figures["failures_by_kind"]) == (1, {"score: SandboxError": 1})
    assert "1 × score: SandboxError, such as: The setup command 'false' failed" in done.stdout
    assert done.stderr.rstrip().endswith(" --retry-failed"), "the same command alone would run nothing again"


def test_exported_rows_hold_the_whole_prompt_and_the_answer_as_it_was_given(home: Path) -> None:
    said = {"f1": 'First.\n{"command": "touch f1"}', "f2": "I had rather not say."}
    tasks = write_rows(home / "tasks.jsonl", [task(number, system_prompt="Be brief.") for number in (1, 2)])
    with endpoint(lambda prompt: said[prompt.partition("'")[2][:2]]) as serving:
        done = shell("--model", "m", "--base-url", serving.url, "--dataset", tasks, *HERE, home=home)
    assert done.returncode == 0, done.stderr
    first, second = read_queries(home / "evaluation_results")
    assert [turn["role"] for turn in first.prompt] == ["system", "user"]
    assert first.prompt[0]["content"] == "Be brief." and first.prompt[1]["content"] == min(
        serving.asked
    )  # in any order
    assert [one.turns[0]["content"] for one in (*first.judged, *second.judged)] == list(said.values())
    assert [one.is_verified for one in (*first.judged, *second.judged)] == [True, False], "no command is a verdict"
    (home / "evaluation_results" / "rollouts.jsonl").unlink()  # as where only the commands were brought here
    first, second = read_queries(home / "evaluation_results")
    assert first.prompt[-1]["content"] == task(1)["task"] and first.judged[0].turns[0]["content"] == "touch f1"


def test_an_answer_is_not_exported_for_a_command_that_was_written_by_hand(home: Path) -> None:
    tasks = write_rows(home / "tasks.jsonl", [task(1)])
    with endpoint() as serving:
        infer = ("--phase", "inference", "--model", "m", "--base-url", serving.url, "--dataset", tasks)
        assert shell(*infer, home=home).returncode == 0
    out = home / "evaluation_results"
    row = {name: value for name, value in lines(out / "commands.jsonl")[0].items() if name != "check"}
    write_rows(out / "commands.jsonl", [{**row, "generated_command": "touch f1 f2"}])
    done = shell("--phase", "execution", *HERE, home=home)
    assert done.returncode == 0, done.stderr
    assert next(read_queries(out)).judged[0].turns[0]["content"] == "touch f1 f2"


def test_setup_join_lets_a_faulty_setup_pass(home: Path) -> None:
    row = command(1, setup_commands=["false", "mkdir work", "cd work"])
    file = write_rows(home / "c.jsonl", [row])
    strict = shell("--phase", "execution", "--commands-file", file, *HERE, "--output-dir", "a", home=home)
    loose = shell(
        "--phase", "execution", "--commands-file", file, *HERE, "--output-dir", "b", "--setup-join", ";", home=home
    )
    assert (strict.returncode, loose.returncode) == (1, 0)
    assert lines(home / "b" / "results.jsonl")[0]["overall_success"] is True


# ── going on ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_inference_killed_in_the_middle_goes_on_where_it_was(home: Path) -> None:
    tasks = write_rows(home / "tasks.jsonl", [task(number) for number in range(12)])
    out = home / "evaluation_results"
    with endpoint(delay=0.25) as serving:
        arguments = (
            "--model",
            "m",
            "--base-url",
            serving.url,
            "--dataset",
            tasks,
            "--concurrency",
            "1",
            "--phase",
            "inference",
        )
        process = start(*arguments, home=home)
        wait_until(
            lambda: (out / "commands.jsonl").exists() and (out / "commands.jsonl").read_bytes().count(b"\n") >= 3
        )
        process.send_signal(signal.SIGKILL)
        process.communicate()
        before = len(serving.asked)
        assert shell(*arguments, home=home).returncode == 0
        assert len(serving.asked) - before < 12
    assert [row["generated_command"] for row in lines(out / "commands.jsonl")] == [f"touch f{n}" for n in range(12)]


def test_execution_killed_in_the_middle_goes_on_where_it_was(home: Path) -> None:
    file = write_rows(home / "c.jsonl", [command(number, f"sleep 0.3; touch f{number}") for number in range(12)])
    out = home / "evaluation_results"
    arguments = ("--phase", "execution", "--commands-file", file, *HERE, "--concurrency", "1")
    process = start(*arguments, home=home)
    wait_until(lambda: (out / "results.jsonl").exists() and (out / "results.jsonl").read_bytes().count(b"\n") >= 3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = {row["task_id"]: row["start_time"] for row in map_of(out)}
    done = shell(*arguments, home=home)
    assert done.returncode == 0, done.stderr
    after = {row["task_id"]: row["start_time"] for row in lines(out / "results.jsonl")}
    assert [*after] == [f"t{number}" for number in range(12)]
    assert len(kept) < 12 and all(after[name] == started for name, started in kept.items())
    assert summary(out)["success_rate"] == 1.0


def map_of(out: Path) -> list[dict[str, Any]]:
    """The whole lines of a results file that a kill may have torn."""
    import orjson

    whole = (out / "results.jsonl").read_bytes().rpartition(b"\n")[0]
    return [orjson.loads(line) for line in whole.splitlines()]


def test_a_second_entry_does_nothing_and_a_changed_command_is_run_again(home: Path) -> None:
    file = write_rows(home / "c.jsonl", [command(1), command(2, "true")])
    arguments = ("--phase", "execution", "--commands-file", file, *HERE)
    out = home / "evaluation_results" / "results.jsonl"
    assert shell(*arguments, home=home).returncode == 0
    first = out.read_bytes()
    assert shell(*arguments, home=home).returncode == 0
    assert out.read_bytes() == first
    write_rows(file, [command(1), command(2)])
    assert shell(*arguments, home=home).returncode == 0
    before, after = first.splitlines(), out.read_bytes().splitlines()
    assert before[0] == after[0] and before[1] != after[1]
    assert [row["overall_success"] for row in lines(out)] == [True, True]


def test_failed_executions_are_retried_without_asking_again(home: Path) -> None:
    rows = [task(1), {**task(2), "setup_commands": ["cp /root/marker .", "mkdir work", "cd work"]}]
    tasks = write_rows(home / "tasks.jsonl", rows)
    with endpoint() as serving:
        arguments = ("--model", "m", "--base-url", serving.url, "--dataset", tasks, *HERE)
        assert shell(*arguments, home=home).returncode == 0
        out = home / "evaluation_results" / "results.jsonl"
        first = {row["task"]: row["failure"] for row in lines(out) if row["status"] != "ok"}
        again = shell(*arguments, "--retry-failed", home=home)
        assert again.returncode == 0 and len(serving.asked) == 2
    assert len(first) == 1 and summary(home / "evaluation_results")["this_entry"]["failed"] == 1


def test_shards_merge_into_one_run(home: Path) -> None:
    file = write_rows(home / "c.jsonl", [command(number, None if number % 3 else "false") for number in range(7)])
    for part in ("1", "2"):
        done = shell(
            "--phase",
            "execution",
            "--commands-file",
            file,
            "--shard",
            f"{part}/2",
            "--output-dir",
            f"p{part}",
            *HERE,
            home=home,
        )
        assert done.returncode == 0, done.stderr
    merged = merge("p1", "p2", "-o", "whole", home=home)
    assert merged == 0
    rows = lines(home / "whole" / "results.jsonl")
    assert [row["task_id"] for row in rows] == [f"t{number}" for number in range(7)]
    figures = summary(home / "whole")
    assert figures["records"] == 7 and figures["successful_samples"] == 4 == sum(row["overall_success"] for row in rows)
    assert merge("p1", "p2", "-o", "whole", home=home) == 0 and lines(home / "whole" / "results.jsonl") == rows
    other = shell(
        "--phase", "execution", "--commands-file", file, "--setup-join", ";", "--output-dir", "p3", *HERE, home=home
    )
    assert other.returncode == 0 and merge("p1", "p3", "-o", "mixed", home=home) == 1
    assert merge("nowhere", "-o", "mixed", home=home) == 2 and merge("p1", "-o", "p1", home=home) == 2


def merge(*arguments: str, home: Path) -> int:
    import os
    import subprocess
    import sys

    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-m", "reward_kit", "merge", *arguments], cwd=home, env=environment, check=False
    )
    return done.returncode


# ── helpful endings ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_commands_file(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").touch()
    done = shell("--phase", "execution", "--commands-file", "c.jsonl", home=tmp_path)
    assert done.returncode == 2 and "holds no command" in done.stderr and "--phase inference" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("n", "words"), [("1", "in the answer."), ("2", "in any of the 2 answers.")])
def test_answers_without_a_command_are_said_with_what_to_do(tmp_path: Path, n: str, words: str) -> None:
    tasks = write_rows(tmp_path / "tasks.jsonl", [task(1)])
    arguments = ("--phase", "inference", "--model", "m", "--dataset", tasks, "-n", n)
    with endpoint(lambda prompt: "I had rather not say.") as serving:
        for _ in range(2):  # the second time, all is done already
            done = shell(*arguments, "--base-url", serving.url, home=tmp_path)
            assert done.returncode == 1 and f"Error: No command was found {words}" in done.stderr, done.stderr
            assert "commands.jsonl" in done.stderr and "--max-tokens" in done.stderr
            assert "nothing to do" not in done.stderr


def test_no_server_where_sos_should_be(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "c.jsonl", [command(1)])
    port = str(free_port())
    done = shell("--phase", "execution", "--commands-file", file, "--sos-port", port, home=tmp_path)
    assert done.returncode == 1 and port in done.stderr and "Traceback" not in done.stderr
    assert "sandbox serve" in done.stderr or "sos serve" in done.stderr


def test_an_image_that_is_not_there(home: Path) -> None:
    file = write_rows(home / "c.jsonl", [command(1)])
    done = shell(
        "--phase", "execution", "--commands-file", file, *HERE, "--sandbox-image", "/nowhere/at/all", home=home
    )
    assert done.returncode == 1 and "/nowhere/at/all" in done.stderr and "Traceback" not in done.stderr


def test_no_model_no_dataset_and_flags_of_the_other_phase(tmp_path: Path) -> None:
    for arguments, said in (
        ((), "--model mock"),
        (("--model", "mock"), "--dataset"),
        (("--model", "mock", "--dataset", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--model", "mock", "--dataset", "x.jsonl", "--shard", "1/2"), "--phase execution"),
        (("--phase", "execution", "--shard", "3/2"), "--shard"),
        (("--phase", "execution"), "evaluation_results/commands.jsonl"),
    ):
        done = shell(*arguments, home=tmp_path)
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, (arguments, done.stderr)


def test_another_model_in_the_same_directory_is_refused_in_the_words_of_the_flags(tmp_path: Path) -> None:
    tasks = write_rows(tmp_path / "tasks.jsonl", [task(1)])
    arguments = ("--model", "mock", "--dataset", tasks, "--phase", "inference")
    assert shell(*arguments, home=tmp_path).returncode == 0
    done = shell(*arguments, "--temperature", "0.9", home=tmp_path)
    assert done.returncode == 1 and "--output-dir" in done.stderr and "output.output_dir" not in done.stderr


# ── both phases at once ──────────────────────────────────────────────────────────────────────────────────────────────

ANYWHERE = ("--sandbox", "none", "--model", "mock", "-n", "2")
TIMES = re.compile(
    rb'"(timestamp|generated_at|started|ended|start_time|end_time|wall_seconds|latency_ms|check)":("[^"]*"|[-0-9.e]+)'
)


def timeless(path: Path) -> bytes:
    return TIMES.sub(rb'"\1":0', path.read_bytes())


def test_both_at_once_write_what_the_phases_write_apart(tmp_path: Path) -> None:
    once, apart = tmp_path / "once", tmp_path / "apart"
    tasks = [task(number, level=number) for number in range(5)]
    for home in (once, apart):  # each with a response cache of its own
        home.mkdir()
        write_rows(home / "tasks.jsonl", tasks)
    given = (*ANYWHERE, "--dataset", "tasks.jsonl", "--output-dir", ".")
    assert shell(*given, home=once).returncode == 0
    assert shell(*given, "--phase", "inference", home=apart).returncode == 0
    done = shell("--sandbox", "none", "--output-dir", ".", "--phase", "execution", home=apart)
    assert done.returncode == 0, done.stderr
    for name in ("rollouts.jsonl", "commands.jsonl", "results.jsonl"):
        assert timeless(tmp_path / "once" / name) == timeless(tmp_path / "apart" / name)
    told, other = summary(once), summary(apart)
    assert list(told) == list(other)
    for phase in ("inference", "execution"):
        assert list(told[phase]) == list(other[phase])
        same = told[phase].keys() - {"seconds", "start_time", "end_time", "concurrency"}
        assert {name: told[phase][name] for name in same} == {name: other[phase][name] for name in same}


def test_killed_anywhere_and_entered_again_is_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for home in (whole, cut):
        home.mkdir()
        write_rows(home / "tasks.jsonl", [task(number) for number in range(12)])
    with endpoint(delay=0.05) as serving:
        given = ("--model", "m", "--base-url", serving.url, "--dataset", "tasks.jsonl", "--sandbox", "none", "-n", "2",
                 "--concurrency", "2", "--output-dir", ".")  # fmt: skip
        assert shell(*given, home=whole).returncode == 0
        asked = len(serving.asked)
        for enough in (1, 7, 15):
            process = start(*given, home=cut)
            wait_until(functools.partial(_has_lines_or_ended, cut / "results.jsonl", enough, process))
            process.kill()
            process.communicate()
        done = shell(*given, home=cut)
    assert done.returncode == 0, done.stderr
    assert len(serving.asked) <= 2 * asked + 3 * 2  # what was in flight at a kill, and nothing else, is asked again
    for name in ("rollouts.jsonl", "commands.jsonl", "results.jsonl"):
        assert timeless(whole / name) == timeless(cut / name)


def _has_lines_or_ended(path: Path, count: int, process: subprocess.Popen[str]) -> bool:
    return process.poll() is not None or (path.exists() and path.read_bytes().count(b"\n") >= count)


def test_a_commands_file_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    tasks = write_rows(tmp_path / "tasks.jsonl", [task(1)])
    (tmp_path / "out" / "commands.jsonl").mkdir(parents=True)
    done = shell(*ANYWHERE, "--dataset", tasks, "--output-dir", "out", home=tmp_path)
    assert done.returncode == 1 and "commands.jsonl" in done.stderr and "Traceback" not in done.stderr


def test_a_plan_says_what_is_owed_and_touches_nothing(tmp_path: Path) -> None:
    tasks = write_rows(tmp_path / "tasks.jsonl", [task(number) for number in range(3)])
    given = (*ANYWHERE, "--dataset", tasks, "--output-dir", "out", "--dry-run", "--json")
    plan = orjson.loads(shell(*given, home=tmp_path).stdout)
    assert (plan["rows"], plan["answers_to_generate"], plan["to_score"]) == (3, 6, 6)
    assert not (tmp_path / "out").exists()
    assert shell(*given[:-2], "--phase", "inference", home=tmp_path).returncode == 0
    plan = orjson.loads(shell(*given, home=tmp_path).stdout)
    assert (plan["answers_to_generate"], plan["to_score"]) == (0, 6)
    apart = ("--sandbox", "none", "--phase", "execution", "--output-dir", "out", "--dry-run", "--json")
    assert orjson.loads(shell(*apart, home=tmp_path).stdout)["to_score"] == 6
    assert not (tmp_path / "out" / "results.jsonl").exists()


def test_other_settings_run_the_old_commands_again_when_asked(tmp_path: Path) -> None:
    tasks = write_rows(tmp_path / "tasks.jsonl", [task(1), task(2)])
    given = (*ANYWHERE, "--dataset", tasks, "--output-dir", "out")
    assert shell(*given, home=tmp_path).returncode == 0
    before = (tmp_path / "out" / "commands.jsonl").read_bytes()
    refused = shell(*given, "--timeout", "50", home=tmp_path)
    assert refused.returncode == 1 and "--rescore" in refused.stderr
    again = ("--sandbox", "none", "--output-dir", "out", "--timeout", "50", "--rescore")
    done = shell(*again, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert summary(tmp_path / "out")["this_entry"]["judged"] == 4
    assert (tmp_path / "out" / "commands.jsonl").read_bytes() == before
    assert len(list((tmp_path / "out").glob("results.*.jsonl"))) == 1
    assert summary(tmp_path / "out")["inference"]["commands"] == 4


def test_a_budget_stops_it_with_a_code_of_its_own(tmp_path: Path) -> None:
    tasks = write_rows(tmp_path / "tasks.jsonl", [task(number) for number in range(40)])
    with endpoint() as serving:
        given = ("--model", "m", "--base-url", serving.url, "--dataset", tasks, "--sandbox", "none",
                 "--concurrency", "1", "--output-dir", "out", "--max-tokens", "5")  # fmt: skip
        unknown = shell(*given, "--max-cost", "1", home=tmp_path)
        assert unknown.returncode == 2 and "--max-cost" in unknown.stderr and "--prices" in unknown.stderr
        (tmp_path / "prices.yaml").write_text("m: {input: 10, output: 100000}\n")
        priced = (*given, "--prices", "prices.yaml")
        stopped = shell(*priced, "--max-cost", "3", home=tmp_path)
        assert stopped.returncode == 3, stopped.stderr
        made = len(lines(tmp_path / "out" / "commands.jsonl"))
        assert 0 < made < 40 and len(lines(tmp_path / "out" / "results.jsonl")) == made
        assert shell(*priced, "--max-cost", "50", home=tmp_path).returncode == 0
    assert len(serving.asked) == 40 and len(lines(tmp_path / "out" / "results.jsonl")) == 40
