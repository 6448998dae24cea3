# SPDX-License-Identifier: Apache-2.0
"""The support desk runs as it is, without a model, and its verdicts follow from the rollouts alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reward_kit.utils.module_loader import load_function, load_object
from tests.examples.commands import reward_kit

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent_support"


def run(home: Path, *options: str) -> None:
    config: list[str | Path] = ["--config-path", EXAMPLE / "conf", "--config-name", "support"]
    reward_kit("run", *config, f"output.output_dir={home / 'outputs' / 'agent_support'}", *options)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def scores(home: Path) -> dict[tuple[str, int], float]:
    found = lines(home / "outputs" / "agent_support" / "results.jsonl")
    return {(row["id"], row["response_index"]): row["evaluation_score"] for row in found}


def test_the_dataset_is_what_its_script_writes() -> None:
    assert lines(EXAMPLE / "dataset.jsonl") == load_function(f"{EXAMPLE / 'prepare.py'}:rows")()


def test_careful_conversations_are_right_and_careless_ones_wrong(tmp_path: Path) -> None:
    run(tmp_path)
    judged = scores(tmp_path)
    assert len(judged) == 8
    assert all(score == float(draw == 0) for (_, draw), score in judged.items())
    rollouts = lines(tmp_path / "outputs" / "agent_support" / "rollouts.jsonl")
    assert {rollout["facts"]["termination_reason"] for rollout in rollouts} == {"user_stop"}
    customers = {rollout["id"]: rollout["facts"]["user_side"] for rollout in rollouts if not rollout["response_index"]}
    assert [side["calls"][0]["function"]["name"] for side in customers["unplugged"]] == ["look", "plug_in"]
    run(tmp_path, "--rescore")
    assert scores(tmp_path) == judged


def test_the_customer_sees_what_the_provider_did() -> None:
    domain = load_object(f"{EXAMPLE / 'support.py'}:desk")()
    domain.tools.set_line("555-0101", "down")
    assert domain.make_tool_call("restart", "user") == "red"
    domain.make_tool_call("reset_line", "assistant", phone="555-0101")
    assert (domain.make_tool_call("look", "user"), domain.make_tool_call("restart", "user")) == ("red", "green")
