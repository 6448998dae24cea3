# SPDX-License-Identifier: Apache-2.0
"""The frozen lakes as a run: what is played, what each step is worth, and the credit that comes of it."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from examples.agent_frozen_lake.lake import Lake, way
from reward_kit.models import Message, Sample
from reward_kit.utils.module_loader import load_function
from tests.examples.commands import reward_kit

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "agent_frozen_lake"
GAMMA = 0.9


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lakes") / "run"
    place = ["--config-path", str(EXAMPLE / "conf"), "--config-name", "run"]
    reward_kit("run", *place, f"output.output_dir={folder}", "--quiet")
    return folder


def test_the_dataset_is_what_prepare_writes() -> None:
    assert rows(EXAMPLE / "dataset.jsonl") == list(load_function(f"{EXAMPLE / 'prepare.py'}:rows")())


@pytest.mark.parametrize("row", rows(EXAMPLE / "dataset.jsonl"), ids=lambda row: str(row["id"]))
def test_the_shortest_way_leads_over_the_lake_and_is_as_long_as_the_dataset_says(row: dict[str, Any]) -> None:
    world = Lake(Sample(id=row["id"], messages=[], columns={"lake": row["lake"]}))
    moves = way(row["lake"].split(), (0, 0))
    assert moves is not None and len(moves) == row["shortest"]
    answers = [world.answer(Message(role="assistant", content=move)) for move in moves]
    assert [answer.done for answer in answers] == [False] * (len(moves) - 1) + [True]
    assert world.facts() == {"reached": True}


def test_there_is_no_way_through_holes() -> None:
    assert way(["SO", "OG"], (0, 0)) is None
    player = load_function(f"{EXAMPLE / 'mock_model.py'}:answer")
    assert player([Message(role="user", content="PO\nOG")], 0) in {"left", "right", "up", "down"}


def test_the_first_walks_are_the_shortest_and_others_fall(run: Path) -> None:
    judged = rows(run / "results.jsonl")
    assert len(judged) == 12 * 8
    shortest = {row["id"]: row["shortest"] for row in rows(EXAMPLE / "dataset.jsonl")}
    for row in judged:
        if row["response_index"] == 0:
            assert (row["evaluation_score"], len(row["steps"])) == (1.0, shortest[row["id"]])
        elif row["evaluation_score"] == 1.0:
            assert len(row["steps"]) >= shortest[row["id"]]
    assert {row["evaluation_score"] for row in judged} == {0.0, 1.0}


def test_each_step_costs_and_standing_still_costs_more(run: Path) -> None:
    played = {(row["id"], row["response_index"]): row["turns"] for row in rows(run / "rollouts.jsonl")}
    stood = 0
    for row in rows(run / "results.jsonl"):
        turns = played[row["id"], row["response_index"]]
        boards = [turn["content"] for turn in turns if turn["role"] == "user"]
        rewards = [output["base_reward"] for output in row["step_outputs"]]
        assert [output["step_index"] for output in row["step_outputs"]] == list(range(len(row["steps"])))
        for (before, after), reward in list(zip(pairwise(boards), rewards, strict=False))[:-1]:
            assert reward == (-0.1 if before == after else -0.05)
            stood += before == after
        assert rewards[-1] == pytest.approx(row["evaluation_score"] - 0.05)
    assert stood > 0


def test_the_export_has_the_credit_of_gigpo(run: Path, tmp_path: Path) -> None:
    told = ["export", str(run), "--to", "steps", "--credit", "gigpo", "--gamma", str(GAMMA)]
    reward_kit(*told, "-o", str(tmp_path / "steps.jsonl"))
    walks: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    squares: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    scores: dict[str, dict[int, float]] = defaultdict(dict)
    for row in rows(tmp_path / "steps.jsonl"):
        walks[row["query_id"], row["response_index"]].append(row)
        squares[row["query_id"], row["prompt"][-1]["content"]].append(row)
        scores[row["query_id"]][row["response_index"]] = row["score"]
    assert len(walks) == 12 * 8
    for (lake, walk), steps in walks.items():
        value = 0.0
        for row in reversed(steps):
            value = row["reward"] + GAMMA * value
            assert row["return_to_go"] == pytest.approx(value)
            mean = sum(scores[lake].values()) / 8
            assert row["episode_advantage"] == pytest.approx(scores[lake][walk] - mean)
    compared = 0
    for those in squares.values():  # whoever stood on a square of a lake is compared with all others who did
        mean = sum(row["return_to_go"] for row in those) / len(those)
        for row in those:
            assert row["step_advantage"] == pytest.approx(row["return_to_go"] - mean)
            assert row["advantage"] == pytest.approx(row["episode_advantage"] + row["step_advantage"])
        compared += len(those) > 1
    assert compared > 50
