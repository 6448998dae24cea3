# SPDX-License-Identifier: Apache-2.0
"""Scripts for a reward: their options, what they print, and how they say that something went wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import ConfigError
from reward_kit.integrations import grpo
from reward_kit.integrations.grpo import TrainedModel
from reward_kit.reward_scripts import (
    answering_options,
    errors_in_a_sentence,
    grpo_script,
    preview_script,
    regenerate_script,
)
from tests.deploy.fireworks.fake import KEY, fake_fireworks

MODEL = """
def answer(messages, draw):
    return "It is " + messages[-1].text.split()[2] + "."
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with stored answers to three sums, one of two right, and a model that knows them all."""
    (tmp_path / "model.py").write_text(MODEL)
    rows = [
        {"id": f"q{number}", "ground_truth": str(number),
         "messages": [{"role": "user", "content": f"What is {number} + 0?"}, {"role": "assistant", "content": said}]}
        for number in (3, 5, 8) for said in (f"It is {number}.", "It is 99.")
    ]  # fmt: skip
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_importing_the_scripts_loads_nothing_that_only_their_work_needs() -> None:
    heavy = ("pydantic", "reward_kit.evaluating", "reward_kit.integrations", "aiohttp")
    code = f"import sys, reward_kit.reward_scripts; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_a_preview_shows_the_first_answers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preview_script("math", folder / "answers.jsonl", samples=3, argv=[])
    printed = capsys.readouterr().out
    assert "3 of 3 samples judged, mean score 0.667" in printed and "Created" not in printed


def test_a_preview_creates_the_evaluator(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "my_reward.py").write_text(
        "def good(response, wanted, **kwargs):\n    return float(wanted in response)\n"
    )
    monkeypatch.setenv("FIREWORKS_API_KEY", KEY)
    with fake_fireworks() as fake:
        monkeypatch.setenv("FIREWORKS_API_BASE", fake.url)
        preview_script(
            f"{folder / 'my_reward.py'}:good", "answers.jsonl", params={"wanted": "It"}, argv=["--create", "sums-v1"]
        )
        (name,) = [name for name in fake.things if "sums-v1" in name]
    printed = capsys.readouterr().out
    assert "5 of 5 samples judged, mean score 1.000" in printed and f"Created: accounts/acme/{name}" in printed


def test_regenerating_compares_in_pairs_and_asks_for_nothing_twice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")

    def again(*argv: str) -> str:
        mock = f"{folder / 'model.py'}:answer"
        regenerate_script("math", "answers.jsonl", mock=mock, output="out", argv=argv, max_tokens=50)
        return capsys.readouterr().out

    printed = again("--n", "2")
    assert "old answers: mean score 0.500 (95 % interval" in printed and "6 judged" in printed
    assert "new answers: mean score 1.000" in printed and "on 3 common queries" in printed
    rollouts = folder / "out" / "new" / "rollouts.jsonl"
    before = rollouts.read_bytes()
    assert before.count(b"\n") == 6
    assert again("--n", "2") == printed and rollouts.read_bytes() == before
    with pytest.raises(SystemExit):
        again("--n", "2", "--model", "local")
    assert "Choose another place with `--output …`" in capsys.readouterr().err


def test_a_dry_run_of_training_needs_no_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grpo_script("math", "dataset.jsonl", "answers.jsonl", output="out", argv=["--dry-run"])
    assert "3 of 3 prompts teach something, mean reward 0.500" in capsys.readouterr().out
    assert not (folder / "out").exists()


def test_training_is_given_the_options(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trainer itself is run by tests/training, where TRL is."""
    calls: list[tuple[Any, ...]] = []

    def trained(*given: Any, **settings: Any) -> TrainedModel:
        calls.append((given, settings))
        return TrainedModel(Path(settings["output_dir"]), [0.25, None, 0.5], 1)

    monkeypatch.setattr(grpo, "train_grpo", trained)
    (folder / "dataset.jsonl").write_text('{"user_query": "What is 3 + 0?", "ground_truth": "3"}\n')
    options = ["--model", "tiny", "--steps", "7", "--generations", "4"]
    grpo_script(
        "math", "dataset.jsonl", "answers.jsonl", output="out", tokens=32, system_prompt="Be brief.",
        params={"tolerance": 0.1}, argv=options,
    )  # fmt: skip
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 3 + 0?"}]
    settings = {"output_dir": Path("out"), "max_steps": 7, "num_generations": 4, "max_completion_length": 32}
    rows = [{"prompt": turns, "ground_truth": "3"}]
    assert calls == [(("tiny", rows, "math"), {**settings, "params": {"tolerance": 0.1}})]
    assert capsys.readouterr().out.splitlines() == [
        "mean reward: 0.250 in the first step, 0.500 in the last of 3",
        "1 completions could not be judged",
        "the model is in out",
    ]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (lambda: grpo_script("math", "d.jsonl", "a.jsonl", output="out", argv=[]), "Give --model, or --dry-run"),
        (lambda: preview_script("math", "nowhere.jsonl", argv=[]), "There is no file 'nowhere.jsonl'"),
        (lambda: preview_script("no_such_reward", "answers.jsonl", argv=[]), "no_such_reward"),
    ],
    ids=["no model", "no file", "no reward"],
)
def test_what_goes_wrong_is_said_in_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], script: Callable[[], None], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        script()
    printed = capsys.readouterr().err
    assert ended.value.code and said in printed and "Traceback" not in printed


def test_a_script_of_ones_own_says_errors_of_the_package_in_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["some/where/mine.py"])

    @errors_in_a_sentence()
    def main(error: Exception) -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        main(ConfigError("There is no model. Name one."))
    assert (ended.value.code, capsys.readouterr().err) == (1, "mine.py: error: There is no model. Name one.\n")
    with pytest.raises(ValueError, match="a fault of the script"):
        main(ValueError("a fault of the script"))


def test_options_of_a_script_in_which_a_model_answers(capsys: pytest.CaptureFixture[str]) -> None:
    parser = answering_options("Count the stars.", n=4)
    options = parser.parse_args(["--model", "openai/gpt-6-luna"])
    assert (options.model, options.n, options.output) == ("openai/gpt-6-luna", 4, None)
    assert answering_options(None, output="out").parse_args([]).output == Path("out")
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    printed = capsys.readouterr().out
    assert "Count the stars." in printed and "answers per prompt (4)" in printed
