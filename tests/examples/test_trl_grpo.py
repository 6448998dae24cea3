# SPDX-License-Identifier: Apache-2.0
"""The GRPO example: its problems, its reward and its picture. The training itself wants a GPU; see its README."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from reward_kit.integrations.trl import create_trl_adapter
from reward_kit.utils.module_loader import load_function

EXAMPLE = Path(__file__).parents[2] / "examples" / "trl_grpo"


def test_the_problems_can_be_judged_and_none_that_is_measured_with_is_trained_on() -> None:
    problems = load_function(f"{EXAMPLE / 'train.py'}:problems")
    training, held_out = (load_function(f"{EXAMPLE / 'sums.py'}:{name}") for name in ("training", "held_out"))
    assert not set(training(5000)) & set(held_out()) and len(held_out()) == 256
    rows = problems(training(50))
    adapter = create_trl_adapter("reward_kit.rewards.math:math_reward", {"answer": "ground_truth"}, workers=0)
    given = {"prompts": [row["prompt"] for row in rows], "answer": [row["answer"] for row in rows]}
    assert adapter(completions=[f"The sum is {row['answer']}." for row in rows], **given) == [1.0] * 50
    assert adapter(completions=[f"The sum is 1{row['answer']}." for row in rows], **given) == [0.0] * 50


def test_the_files_to_train_on_and_to_measure_with_share_no_sum() -> None:
    names = ("training.jsonl", "dataset.jsonl")
    rows = {name: [json.loads(line) for line in (EXAMPLE / name).read_text().splitlines()] for name in names}
    trained, measured = ({row["messages"][0]["content"] for row in rows[name]} for name in names)
    assert len(measured) == 64 and not trained & measured


def test_the_picture_is_one_and_is_the_one_in_the_readme() -> None:
    draw = load_function(f"{EXAMPLE / 'curve.py'}:draw")
    picture = ElementTree.fromstring(draw([0.0, 0.25, 1.0], "three steps"))
    points = [point for point in picture.iter() if point.tag.endswith("circle")]
    assert len(points) == 3
    heights = [float(point.attrib["cy"]) for point in points]
    assert heights == sorted(heights, reverse=True), "a higher value stands higher"
    stored = ElementTree.parse(EXAMPLE / "curve.svg").getroot()
    assert len([point for point in stored.iter() if point.tag.endswith("circle")]) == 150


def test_the_curve_of_nothing_and_of_one_step_can_be_drawn() -> None:
    draw = load_function(f"{EXAMPLE / 'curve.py'}:draw")
    assert draw([], "none").startswith("<svg")
    assert draw([0.5], "one").startswith("<svg")
