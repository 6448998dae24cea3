# SPDX-License-Identifier: Apache-2.0
"""`reward-kit regenerate`: stored prompts answered again by a model behind an endpoint, and compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reward_kit.testing import MockServer
from tests.cli_commands.conftest import Call

pytest.importorskip("pyarrow")

NUMBERS = range(1, 21)


def conversation(number: int, said: str) -> dict[str, Any]:
    turns = [{"role": "user", "content": f"What is {number} + 0?"}, {"role": "assistant", "content": said}]
    return {"id": f"q{number}", "messages": turns, "ground_truth": str(number)}


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Twenty prompts with two answers each, all wrong."""
    rows = [conversation(number, said) for number in NUMBERS for said in ("It is 98.", "It is 97.")]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.fixture
def server() -> Iterator[MockServer]:
    """An endpoint that knows the sums, and gives a grade where it is asked for a verdict."""
    rules = [
        {"pattern": "VERDICT", "response": "Fine.\nVERDICT: 5"},
        {"pattern": r"What is (\d+) \+ 0", "response": r"It is \1."},
    ]
    with MockServer({"rules": rules}) as running:
        yield running


def at(server: MockServer, *more: str) -> tuple[str, ...]:
    return ("--reward", "math", "--model", "gpt", "--base-url", server.url, "-o", "out", *more)


def answers_from(server: MockServer) -> int:
    return sum(len(request.answers) for request in server.requests)


def test_new_answers_are_compared_with_the_old_ones(
    call: Call, stored: Path, server: MockServer, tmp_path: Path
) -> None:
    said = call("regenerate", stored, *at(server))
    assert said.code == 0, said.err
    old, new, conclusion = said.out.splitlines()
    assert old.startswith("old answers: mean score 0.000 (95 % interval 0.000 to") and old.endswith("40 judged")
    assert new.startswith("new answers: mean score 1.000 (95 % interval") and new.endswith("20 judged")
    assert "new is better than old" in conclusion and "on 20 common queries" in conclusion
    assert {request.prompt for request in server.requests} == {f"What is {number} + 0?" for number in NUMBERS}
    assert f"reward-kit inspect {tmp_path / 'out' / 'old'} {tmp_path / 'out' / 'new'}" in said.err
    assert call("inspect", "out/old", "out/new").code == 0


def test_the_same_command_again_pays_nothing_and_more_answers_pay_for_the_new_ones(
    call: Call, stored: Path, server: MockServer
) -> None:
    first = call("regenerate", stored, *at(server))
    assert answers_from(server) == 20
    again = call("regenerate", stored, *at(server))
    assert (again.code, again.out, answers_from(server)) == (0, first.out, 20)
    assert "Already complete; nothing to do." in again.err and "Already complete" not in first.err
    more = call("regenerate", stored, *at(server, "-n", "3", "--temperature", "0.7"))
    assert more.code == 0 and answers_from(server) == 60, "the answers that were there are kept"


def test_the_answers_of_a_run_can_be_stored_answers(call: Call, stored: Path, server: MockServer) -> None:
    call("regenerate", stored, *at(server))
    said = call("regenerate", "out/new", "-r", "math", "--model", "other", "--base-url", server.url, "-o", "third")
    assert said.code == 0 and said.out.startswith("old answers: mean score 1.000"), said.err


def test_json_holds_both_sides_and_the_comparison(call: Call, stored: Path, server: MockServer) -> None:
    said = call("regenerate", stored, *at(server, "--json"))
    found = json.loads(said.out)
    assert (found["old"]["mean_score"]["value"], found["new"]["mean_score"]["value"]) == (0.0, 1.0)
    assert found["old"]["status"] == found["new"]["status"] == "finished"
    assert found["comparison"]["pairings"][0]["common"] == 20
    assert found["new"]["n"] == 1 and "n" not in found["old"], "two answers were stored for each prompt"
    assert "new is better than old" in found["conclusion"]


def test_a_judge_judges_both_sides(call: Call, stored: Path, server: MockServer) -> None:
    stored.write_text("".join(json.dumps(conversation(number, "It is 98.")) + "\n" for number in (1, 2, 3)))
    options = ["--model", "gpt", "--base-url", server.url, "--judge-model", "wise", "--judge-base-url", server.url]
    said = call("regenerate", stored, "-r", "judge", "-p", "scale=[0, 5]", *options, "-o", "out", "-q")
    assert said.code == 0 and said.err == "", said.err
    assert "old answers: mean score 1.000" in said.out and "new answers: mean score 1.000" in said.out
    asked = [request.model for request in server.requests]
    assert (asked.count("gpt"), asked.count("wise")) == (3, 6)


def test_nothing_judged_on_one_side_is_no_success(call: Call, stored: Path) -> None:
    fault = {"faults": [{"status": 400, "rate": 1.0}]}
    with MockServer(fault) as failing:
        said = call("regenerate", stored, *at(failing))
    assert said.code == 1 and "new answers: none of 20 could be judged" in said.out
    assert "Error: Nothing could be judged" in said.err


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--model", "mock", "-o", "out"), 2, "--reward"),
        (("--reward", "math", "-o", "out"), 2, "--model"),
        (("--reward", "math", "--model", "mock"), 2, "--output-dir"),
        (("--reward", "no_such", "--model", "mock", "-o", "out"), 2, "no_such"),
        (("--reward", "math", "--model", "mock", "-o", "out", "-p", "tolerance"), 2, "-p KEY=VALUE"),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    call: Call, stored: Path, options: tuple[str, ...], code: int, sentence: str
) -> None:
    said = call("regenerate", stored, *options)
    assert said.code == code and sentence in said.sentence


def test_a_file_without_answers_is_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"id": "a", "user_query": "1 + 1?", "ground_truth": "2"}\n')
    said = call("regenerate", "prompts.jsonl", "--reward", "math", "--model", "mock", "-o", "out")
    assert said.code == 2 and "answer" in said.sentence


def test_another_model_in_the_same_directory_is_told_the_flag(call: Call, stored: Path, server: MockServer) -> None:
    call("regenerate", stored, *at(server))
    said = call("regenerate", stored, "-r", "math", "--model", "other", "--base-url", server.url, "-o", "out")
    assert said.code == 1 and "`--output-dir" in said.sentence


def test_other_answers_or_fewer_in_the_same_directory_are_refused(
    call: Call, stored: Path, server: MockServer, tmp_path: Path
) -> None:
    call("regenerate", stored, *at(server, "-n", "2"))
    (tmp_path / "few.jsonl").write_text("".join(stored.read_text().splitlines(keepends=True)[:2]))
    for again in (("few.jsonl", *at(server, "-n", "2")), (stored, *at(server))):
        said = call("regenerate", *again)
        assert (said.code, said.out) == (1, "")
        assert "not asked for now" in said.sentence
        assert "`--output-dir`" in said.sentence and "`-n`" in said.sentence


def test_what_failed_is_tried_again_with_the_flag_that_is_named(
    call: Call, stored: Path, server: MockServer, tmp_path: Path
) -> None:
    reward = "import pathlib\ndef there(response, **_):\n    return float(pathlib.Path('scale').read_text())\n"
    (tmp_path / "mine.py").write_text(reward)
    options = ("-r", "mine.py:there", "--model", "gpt", "--base-url", server.url, "-o", "out")
    said = call("regenerate", stored, *options)
    assert said.code == 7 and "`--keep-going`" in said.sentence
    said = call("regenerate", stored, *options, "--keep-going")
    assert said.code == 1 and "None of the 40 stored answers" in said.sentence and "`--retry-failed`" in said.sentence
    assert answers_from(server) == 0
    (tmp_path / "scale").write_text("1")
    said = call("regenerate", stored, *options, "--retry-failed")
    assert said.code == 0 and "old answers: mean score 1.000" in said.out, said.err


def test_another_reward_is_told_the_flag_that_judges_again(call: Call, stored: Path, server: MockServer) -> None:
    call("regenerate", stored, *at(server))
    options = ("-r", "length", "-p", "max_length=3", "--model", "gpt", "--base-url", server.url, "-o", "out")
    said = call("regenerate", stored, *options)
    assert said.code == 1 and "`--rescore`" in said.sentence
    assert call("regenerate", stored, *options, "--rescore").code == 0
    assert answers_from(server) == 20


def test_bad_rows_are_skipped_with_the_flag_that_is_named(call: Call, stored: Path, server: MockServer) -> None:
    stored.write_text(stored.read_text() + '{"id": "x", "messages": 5}\n')
    said = call("regenerate", stored, *at(server))
    assert said.code == 2 and "`--on-bad-row skip`" in said.sentence and "reward-kit run" not in said.sentence
    said = call("regenerate", stored, *at(server, "--on-bad-row", "skip"))
    assert said.code == 0 and "40 judged" in said.out


def test_a_folder_without_data_is_named_as_the_command_does(call: Call, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    said = call("regenerate", "empty", "-r", "math", "--model", "mock", "-o", "out")
    assert said.code == 2 and "`STORED`" in said.sentence and "reward-kit run" not in said.sentence


def test_the_reward_of_a_stored_run_judges_and_is_named(call: Call, stored: Path, server: MockServer) -> None:
    call("regenerate", stored, *at(server))
    options = ("--model", "other", "--base-url", server.url, "-o", "third")
    said = call("regenerate", "out/new", *options)
    assert said.code == 0 and said.out.startswith("old answers: mean score 1.000"), said.err
    assert "judged by math, the reward of the stored run" in said.err
    said = call("regenerate", "out/new", "--model", "other", "--base-url", server.url, "-o", "out/new")
    assert said.code == 2 and "`--output-dir`" in said.sentence
