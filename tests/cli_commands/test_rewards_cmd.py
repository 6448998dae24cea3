# SPDX-License-Identifier: Apache-2.0
"""`reward-kit rewards`: the list, a reward's own words, and a trial on an answer."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from reward_kit.cli import main
from reward_kit.reward_names import library_rewards
from tests.execution.shell_support import require_namespaces

MINE = '''
from reward_kit import EvaluateResult, reward_function

@reward_function
def polite(messages, word="please", **kwargs):
    """One if it says please."""
    return word in messages[-1].text

@reward_function(mode="batch")
def shortest(rollouts_messages, **kwargs):
    lengths = [len(messages[-1].text) for messages in rollouts_messages]
    return [EvaluateResult(score=float(length == min(lengths))) for length in lengths]

@reward_function
async def unsure(messages, **kwargs):
    return EvaluateResult(score=0.0, error="nobody knows")

def broken(messages):
    raise KeyError("lost")
'''


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Run:
    """What one command printed, and how it ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        with pytest.raises(SystemExit) as leave:
            main(["rewards", *arguments])
        self.code = leave.value.code or 0
        self.out, self.err = capsys.readouterr()

    def json(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def test_the_list_shows_every_reward_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Run(capsys, "list")
    assert shown.code == 0
    assert [line.split()[0] for line in shown.out.splitlines()] == list(library_rewards())
    assert max(map(len, shown.out.splitlines())) < 150


def test_the_list_as_json_holds_everything(capsys: pytest.CaptureFixture[str]) -> None:
    entries = json.loads(Run(capsys, "list", "--json").out)
    assert {entry["name"] for entry in entries} == set(library_rewards())
    assert all(entry["cost"] and entry["does_not_detect"] for entry in entries)


def test_show_tells_what_a_reward_says_of_itself(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Run(capsys, "show", "tag_count")
    assert shown.code == 0
    for part in ("tag_count_reward(messages, *, required_tags,", "Cost: ", "Does not detect: ", ">>> "):
        assert part in shown.out
    assert "One if it says please." in Run(capsys, "show", "mine.py:polite").out
    assert json.loads(Run(capsys, "show", "math", "--json").out)["path"] == "reward_kit.rewards.math:math_reward"


def test_try_shows_score_reason_time_and_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Run(capsys, "try", "math", "--answer", r"So it is \boxed{72}.", "--ground-truth", "72")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].split() == ["score", "1"]
    assert lines[1].startswith("reason") and lines[2].split()[2] in {"ms", "s"}
    assert any("answer_comparison" in line for line in lines)


def test_a_zero_is_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Run(capsys, "try", "math", "--answer", "71", "--ground-truth", "72", "--json")
    assert shown.code == 0
    assert shown.json()[0]["score"] == 0.0


def test_parameters_are_read_as_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    params = ("-p", "required_tags=[a, b]", "-p", "score_per_tag=0.5")
    tags = Run(capsys, "try", "tag_count", "--answer", "<a>1</a>", *params, "--json")
    assert tags.json()[0]["score"] == 0.5
    assert Run(capsys, "try", "mine.py:polite", "--answer", "1", "-p", "word='1'", "--json").json()[0]["score"] == 1.0


def test_the_answer_may_come_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("one two three\n"))
    shown = Run(capsys, "try", "length", "--answer", "-", "-p", "target_length=3", "--json")
    assert shown.json()[0]["score"] == 1.0


def test_a_conversation_may_come_from_a_file(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    turns = [{"role": "user", "content": "Say it."}, {"role": "assistant", "content": "please"}]
    (here / "list.json").write_text(json.dumps(turns))
    (here / "row.json").write_text(json.dumps({"messages": turns}))
    for file in ("list.json", "row.json"):
        assert Run(capsys, "try", "mine.py:polite", "--messages", file, "--json").json()[0]["score"] == 1.0
    again = Run(capsys, "try", "mine.py:polite", "--messages", "list.json", "--answer", "no", "--json")
    assert again.json()[0]["score"] == 0.0, "an answer follows the conversation"


def test_the_ground_truth_may_come_from_a_file(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "right.txt").write_text("72\n")
    (here / "right.json").write_text("72")
    for file in ("@right.txt", "@right.json"):
        assert Run(capsys, "try", "math", "--answer", "72", "--ground-truth", file, "--json").json()[0]["score"] == 1.0


def test_several_answers_are_judged_one_by_one_or_together(capsys: pytest.CaptureFixture[str]) -> None:
    answers = ("--answer", "please", "--answer", "go")
    for reward, scores in (("mine.py:polite", [1.0, 0.0]), ("mine.py:shortest", [0.0, 1.0])):
        assert [result["score"] for result in Run(capsys, "try", reward, *answers, "--json").json()] == scores


def test_no_verdict_is_said_and_exits_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Run(capsys, "try", "mine.py:unsure", "--answer", "x")
    assert shown.code == 1 and "no verdict" in shown.out and "nobody knows" in shown.out
    assert Run(capsys, "try", "mine.py:unsure", "--answer", "x", "--json").json()[0]["score"] is None


def test_a_reward_that_asks_for_a_sandbox_is_given_one(capsys: pytest.CaptureFixture[str]) -> None:
    require_namespaces()
    shown = Run(capsys, "try", "shell", "--answer", "touch a", "-p", "success_condition=test -f a", "--json")
    assert shown.json()[0]["score"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["show", "mth"], 2, "did you mean 'math'"),
        (["try", "mth", "--answer", "x"], 2, "did you mean 'math'"),
        (["try", "mine.py:rude", "--answer", "x"], 2, "has no attribute 'rude'"),
        (["try", "math"], 2, "nothing to judge"),
        (["try", "math", "--answer", "x", "-p", "tolerance"], 2, "-p KEY=VALUE"),
        (["try", "math", "--answer", "x", "-p", "tolerance=[1"], 2, "not YAML"),
        (["try", "math", "--answer", "x", "--ground-truth", "@none.txt"], 2, "cannot be read"),
        (["try", "math", "--messages", "mine.py"], 2, "is not JSON"),
        (["try", "mine.py:broken", "--answer", "x"], 1, "'broken' raised KeyError"),
        (["try", "length", "--answer", "x", "-p", "scaling=log"], 1, "Parameter 'scaling' is 'log'"),
        (["try", "tag_count", "--answer", "x"], 1, "needs 'required_tags'"),
    ],
)
def test_what_goes_wrong_is_one_sentence(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = Run(capsys, *arguments)
    assert shown.code == code
    assert said in shown.err and len(shown.err.splitlines()) == 1
