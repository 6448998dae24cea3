# SPDX-License-Identifier: Apache-2.0
"""`reward-kit trajectory`: an episode as a person reads it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from reward_kit.cli_commands.trajectory_cmd import trajectory
from reward_kit.config_models import load_config
from reward_kit.errors import DatasetError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import Phase
from reward_kit.models import EvaluateResult, Message, StepOutput
from tests.agent.worlds import Model, call, calls, says

WORLDS = Path(__file__).parents[1] / "agent" / "worlds.py"
SCRIPT = [calls(call("deposit", {"amount": 3})), calls(call("nothing")), says("It is\ndone.")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("run")
    config = load_config(
        {
            "generation": {"model_name": "mock", "n": 2, "cache": {"enabled": False}},
            "agent": {"environment": f"{WORLDS}:Account"},
            "reward": {"function_path": f"{WORLDS}:of_the_world"},
            "output": {"output_dir": str(home)},
        }
    )
    rows = [{"id": "one", "prompt": "Save."}, {"id": "two", "prompt": "Save more."}]
    assert EvaluationPipeline(config, samples=rows, client=Model(SCRIPT)).run().status == "finished"
    return home


def shown(*arguments: object) -> Result:
    return CliRunner().invoke(trajectory, [str(argument) for argument in arguments])


def test_all_episodes_are_listed(run: Path) -> None:
    lines = shown(run).output.splitlines()
    assert [line.partition(" · ")[0] for line in lines] == ["one", "one", "two", "two"]
    assert lines[0] == "one · episode 0 · 3 steps · ended: answered · score 3 · 1 tool errors"


def test_an_episode_is_told_step_by_step(run: Path) -> None:
    text = shown(run / "rollouts.jsonl", "two", "--episode", 1).output
    assert text.startswith("two · episode 1")
    assert [line for line in text.splitlines() if line.startswith("──")] == [
        "── step 0 · 3 tokens", "── step 1 · 3 tokens · nothing: unknown_tool", "── step 2 · 3 tokens",
    ]  # fmt: skip
    assert 'calls      deposit({"amount": 3})' in text and "tool       The balance is 3." in text
    assert "assistant  It is ⏎ done." in text and 'facts: {"balance":3,"history":[3]}' in text
    assert text.splitlines()[-1] == "score: 3"


def test_steps_as_json_have_what_was_said_and_what_came_back(run: Path) -> None:
    steps = [orjson.loads(line) for line in shown(run, "one", "--episode", 0, "--json").output.splitlines()]
    assert [step["step"] for step in steps] == [0, 1, 2]
    assert [step["score"] for step in steps] == [3.0] * 3
    assert [[message["role"] for message in step["messages"]] for step in steps] == [["assistant", "tool"]] * 2 + [
        ["assistant"]
    ]


@pytest.mark.parametrize(
    ("arguments", "told"), [(("three",), "no episode of a sample"), (("one", "--episode", 7), "There are: 0, 1")]
)
def test_what_is_not_there_is_told(run: Path, arguments: tuple[object, ...], told: str) -> None:
    result = shown(run, *arguments)
    assert isinstance(result.exception, DatasetError) and told in str(result.exception)


def by_step(messages: list[Message]) -> EvaluateResult:
    """Judge the second step, and the whole."""
    return EvaluateResult(score=0.5, reason="half of it", step_outputs=[StepOutput(step_index=1, base_reward=0.25)])


def raises(messages: list[Message]) -> float:
    """Never judges."""
    raise ValueError("broken")


def played(home: Path, reward: str, phase: Phase = "both") -> Path:
    config = {
        "generation": {"model_name": "mock", "cache": {"enabled": False}},
        "agent": {"environment": f"{WORLDS}:Account"},
        "reward": {"function_path": f"{__name__}:{reward}"},
        "output": {"output_dir": str(home)},
    }
    rows = [{"id": "one", "prompt": "Save."}]
    EvaluationPipeline(load_config(config), samples=rows, client=Model(SCRIPT), phase=phase).run()
    return home


def test_what_the_reward_said_of_the_whole_and_of_steps_is_shown(tmp_path: Path) -> None:
    text = shown(played(tmp_path, "by_step"), "one").output
    assert "── step 1 · judged 0.25" in text
    assert text.splitlines()[-1] == "score: 0.5 · half of it"


def test_an_episode_that_could_not_be_judged_says_why(tmp_path: Path) -> None:
    run = played(tmp_path, "raises")
    assert "not judged" in shown(run).output and "score" not in shown(run).output
    assert shown(run, "one").output.splitlines()[-1].startswith("not judged: RewardError")


def test_before_anything_is_judged_there_is_no_score(tmp_path: Path) -> None:
    assert "judged" not in shown(played(tmp_path, "by_step", "inference"), "one").output
