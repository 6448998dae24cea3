"""What the reward must say of answers that we know. Run with: python -m pytest -q"""

import pytest

from reward_kit.pytest_plugin import RewardKitRun


def test_the_run_judges_every_answer(reward_kit_run: RewardKitRun) -> None:
    result = reward_kit_run("conf/run.yaml")
    scores = [row["evaluation_score"] for row in result.rows()]
    assert scores == pytest.approx([1.0, 0.45, 0.9, 0.0, 0.5, 1.0])  # the square of 2 is 4, too
