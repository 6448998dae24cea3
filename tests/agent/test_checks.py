# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an agent's settings is told before a run begins: nothing is asked, and nothing is on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reward_kit.agent import Environment, Hidden, World, tool
from reward_kit.agent.checks import check_agent
from reward_kit.config_models import load_config
from reward_kit.errors import ConfigError
from reward_kit.evaluation import evaluate
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.models import Sample
from tests.agent.worlds import Account, Model, call, calls, double, of_the_facts, says, settings

HERE = "tests.agent.test_checks"
WORLDS = "tests.agent.worlds"


class Forgetful(World):
    """Says that it can be had again from a snapshot, and can give none."""

    durability = "snapshot"

    def __init__(self, sample: Sample) -> None:
        pass


class HalfForgetful(Forgetful):
    """Gives snapshots that nobody can restore."""

    def snapshot(self) -> bytes:
        return b""


class Plain:
    """No world at all."""

    def __init__(self, sample: Sample) -> None:
        pass


class Changing(World):
    """Its tools are known only when it is open."""

    def __init__(self, sample: Sample) -> None:
        pass

    @property
    def tools(self) -> Any:
        return []


class Rooms(Environment):
    """An environment with a parameter of its own."""

    def __init__(self, doors: int) -> None:
        self.doors = doors


def opened(sample: Sample, size: int = 1) -> World:
    """Open a world."""
    return Account(sample, size)


def noted(text: str, state: Hidden[dict[str, Any]]) -> str:
    """Note a text."""
    return text


def lost(text: str, nobody: Hidden[str]) -> str:
    """Want what nobody gives."""
    return text


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no snapshot": ({"environment": f"{HERE}:Forgetful"}, "no method `snapshot`"),
    "no restore": ({"environment": f"{HERE}:HalfForgetful"}, "no method `restore`"),
    "snapshots asked for": (
        {"environment": f"{WORLDS}:Account", "durability": "snapshot"}, "choose another `agent.durability`"
    ),
    "no world": ({"environment": f"{HERE}:Plain"}, "Derive it from `reward_kit.agent.World`"),
    "a param too many": ({"environment": f"{WORLDS}:Account", "params": {"begin": 1}}, "unexpected keyword argument"),
    "a tool's hidden parameter": ({"tools": [f"{HERE}:lost"]}, "hidden parameter 'nobody'"),
    "a param of a function": ({"environment": f"{HERE}:opened", "params": {"seize": 1}}, "Correct `agent.params`"),
    "a param missing": ({"environment": f"{HERE}:Rooms"}, "missing a required argument: 'doors'"),
    "nothing there": ({"environment": f"{WORLDS}:Acount"}, "Did you mean|cannot be loaded"),
    "a stop tool misspelt": (
        {"environment": f"{WORLDS}:Account", "stop_tools": ["deposits"]}, "Did you mean 'deposit'"
    ),
    "a stop tool of functions": ({"tools": [f"{WORLDS}:double"], "stop_tools": ["submit"]}, "There are: double"),
    "a stop tool of a sandbox": ({"sandbox_tools": ["bash"], "stop_tools": ["bosh"]}, "Did you mean 'bash'"),
}  # fmt: skip

RIGHT: list[dict[str, Any]] = [
    {"environment": f"{WORLDS}:Account", "params": {"start": 3}, "stop_tools": ["deposit"]},
    {"environment": f"{WORLDS}:Snapshots"},
    {"environment": f"{HERE}:Forgetful", "durability": "replay"},
    {"environment": f"{HERE}:opened", "params": {"size": 2}, "stop_tools": ["whatever"]},
    {"environment": f"{HERE}:Changing", "stop_tools": ["whatever"]},
    {"environment": f"{HERE}:Rooms", "params": {"doors": 2}},
    {"environment": f"{WORLDS}:Account", "tools": [f"{WORLDS}:double"], "stop_tools": ["double", "deposit"]},
    {"tools": [f"{HERE}:noted"], "sandbox_tools": ["bash"], "stop_tools": ["noted", "bash"]},
]


def config_of(agent: dict[str, Any], home: Path) -> Any:
    return load_config(
        {
            "generation": {"model_name": "mock", "cache": {"enabled": False}},
            "agent": agent,
            "reward": {"function_path": f"{WORLDS}:of_the_facts"},
            "output": {"output_dir": str(home)},
        }
    )


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_by_the_plan_and_by_the_run_before_anything_happens(name: str, tmp_path: Path) -> None:
    agent, told = WRONG[name]
    home, model = tmp_path / "run", Model([says("Done.")])
    pipeline = EvaluationPipeline(config_of(agent, home), samples=[{"prompt": "Go."}], client=model)
    for begin in (pipeline.plan, pipeline.run):
        with pytest.raises(ConfigError, match=told):
            begin()
    assert not model.asked
    assert not home.exists()


@pytest.mark.parametrize("agent", RIGHT, ids=str)
def test_what_may_be_right_is_let_through(agent: dict[str, Any]) -> None:
    check_agent(settings(**agent))


# ── objects in the place of import paths ─────────────────────────────────────────────────────────────────────────────


def saying(name: str, arguments: dict[str, Any]) -> None:
    """Approve of everything."""


def test_a_class_and_functions_may_be_given_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the cache is there, too: nothing of an earlier run of this test
    model = Model([calls(call("deposit", {"amount": 3})), calls(call("double", {"number": 2})), says("Done.")])
    agent = {"environment": Account, "tools": [double], "approve": saying}
    result = evaluate([{"prompt": "Save."}], of_the_facts, model=model, agent=agent, output_dir=tmp_path)
    assert result.mean_score == 3.0
    again = evaluate([{"prompt": "Save."}], of_the_facts, model=model, agent=agent, output_dir=tmp_path)
    assert again.mean_score == 3.0 and len(model.asked) == 3, "the second goes on with the first"
    assert f"{WORLDS}:Account" in (tmp_path / "config.yaml").read_text()


def test_what_cannot_be_found_by_a_name_is_refused_with_what_to_do() -> None:
    class Local(World):
        """Known here only."""

        @tool
        def touch(self) -> str:
            """Touch it."""
            return "it moves"

    for agent in ({"environment": Local}, {"tools": [lambda: "nothing"]}):
        with pytest.raises(ConfigError, match="at the top level of a module"):
            evaluate([{"prompt": "Go."}], of_the_facts, model=Model([]), agent=agent)
