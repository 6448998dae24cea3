# SPDX-License-Identifier: Apache-2.0
"""One run in which tools, worlds and the model do their worst at once, and the honest episodes do not notice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reward_kit.agent import in_worker
from reward_kit.config_models import load_config
from reward_kit.errors import EnvironmentFailure
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.models import Message, Sample
from tests.agent.unruly_worlds import Unruly
from tests.agent.worlds import Model, call, calls, says
from tests.loopback.runs import lines

HERE = Path(__file__)
HONEST = [f"honest {number}" for number in range(6)]

KIND = {
    "large": "output_cut", "live": "output", "waits": "timeout", "refuses": "refused", "garbage": None,
    "surrogate": None, "nowhere": "unknown_tool",
}  # fmt: skip
"""What the model is told of each tool, whose episode goes on."""
LOST = {"exits": "exited with code 3", "crashes": "killed by signal 11", "blocks": "did not react",
        "cannot open": "no room", "no facts": "in `facts` its process did not react"}  # fmt: skip
"""What fails an episode, and how that is said."""
MODEL = {
    "broken JSON": ("bad_calls", ["bad_json"] * 5),
    "never stops": ("max_turns", [None] * 6),
    "fifty at once": ("answered", [None] * 52),
    "says nothing": ("answered", []),
    "says nothing at all": ("answered", []),
}
"""How an episode ends whose model does this, and how its calls went."""


class Worst(Unruly):
    """A world that cannot be opened, or will say nothing in the end, where its sample says so."""

    def __init__(self, sample: Sample) -> None:
        super().__init__(sample)
        self._task = sample.id
        if self._task == "cannot open":
            raise OSError("no room")

    def facts(self) -> dict[str, Any]:
        if self._task == "no facts":
            import time

            time.sleep(3600)
        return {"task": self._task}


environment = in_worker(f"{HERE}:Worst", most=64, patience=10.0)


def counted(messages: list[Message], facts: dict[str, Any]) -> float:
    """How high the world has counted: as far as nobody else has counted in it."""
    shown = [message.text for message in messages if message.role == "tool"]
    return float(shown[-1]) if shown and shown[-1].isdigit() else -1.0


def acts(messages: Sequence[Message], _: int) -> Message:  # noqa: PLR0911 - one for each vice
    """A model that does what its prompt names."""
    task, turn = messages[0].text, sum(message.role == "assistant" for message in messages)
    match task, turn:
        case "never stops", _:
            return calls(call("count"))
        case "broken JSON", _:
            return calls(call("count", "{"))
        case "says nothing", _:
            return says("")
        case "says nothing at all", _:
            return Message(role="assistant", content=None, tool_calls=[])
        case "fifty at once", 0:
            return calls(*(call("count", {}, f"c{number}") for number in range(50)))
        case _, 0 if task in KIND or task in LOST:
            return calls(call(task if task in {*KIND, "exits", "crashes", "blocks"} else "count"))
        case _, (0 | 1 | 2):
            return calls(call("count"))
        case _:
            return says("Done.")


def played(home: Path, tasks: Sequence[str]) -> dict[str, dict[str, Any]]:
    config = load_config(
        {
            "generation": {"model_name": "mock", "cache": {"enabled": False}},
            "agent": {"environment": f"{HERE}:environment", "max_turns": 6, "world_timeout": 60, "world_retries": 0},
            "reward": {"function_path": f"{HERE}:counted"},
            "output": {"output_dir": str(home)},
        }
    )
    rows = [{"id": task, "prompt": task} for task in tasks]
    result = EvaluationPipeline(config, samples=rows, client=Model(acts)).run()
    assert result.status == "finished"
    judged = {row["id"]: row for row in lines(home / "results.jsonl")}
    return {row["id"]: row | {"judged": judged[row["id"]]} for row in lines(home / "rollouts.jsonl")}


@pytest.mark.timeout(300)
def test_each_ends_as_designed_and_the_honest_do_not_notice(tmp_path: Path) -> None:
    quiet = played(tmp_path / "quiet", HONEST)
    hostile = [*KIND, *LOST, *MODEL]
    mixed = [task for pair in zip(hostile, HONEST * 3, strict=False) for task in pair]
    found = played(tmp_path / "loud", list(dict.fromkeys([*mixed, *hostile, *HONEST])))
    for task in HONEST:
        assert found[task]["turns"] == quiet[task]["turns"]
        assert found[task]["judged"]["evaluation_score"] == 3.0
    for task, kind in KIND.items():
        uses = [use.get("error") for step in found[task]["steps"] for use in step["calls"]]
        assert (uses, found[task]["ended"]) == ([kind, None, None], "answered"), task
        assert sum(len(turn.get("content") or "") for turn in found[task]["turns"]) < 40_000, "bounded"
        assert found[task]["judged"]["evaluation_score"] == 2.0, "the world lives on"
    for task, why in LOST.items():
        failure = found[task]["failure"]
        assert failure["type"] == EnvironmentFailure.__name__ and why in failure["message"], (task, failure)
        assert found[task]["judged"]["evaluation_score"] is None, "a failure is no score"
    for task, (ended, errors) in MODEL.items():
        uses = [use.get("error") for step in found[task]["steps"] for use in step["calls"]]
        assert (found[task]["ended"], uses, found[task].get("failure")) == (ended, errors, None), task
    assert found["fifty at once"]["judged"]["evaluation_score"] == 52.0
