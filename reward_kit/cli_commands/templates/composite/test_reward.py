"""What the reward must say of answers that we know. Run with: python -m pytest -q"""

import pytest

from reward_kit import Message, RewardFunction
from reward_kit.pytest_plugin import RewardKitRun


@pytest.mark.parametrize(("words", "score"), [(1, 1.0), (20, 1.0), (40, 0.5)])
def test_long_answers_lose(words: int, score: float) -> None:
    reward = RewardFunction(func_path="reward.py:brief")
    assert reward(messages=[Message(role="assistant", content="word " * words)]).score == score


def test_the_run_judges_every_answer(reward_kit_run: RewardKitRun) -> None:
    result = reward_kit_run("conf/run.yaml")
    scores = [row["evaluation_score"] for row in result.rows()]
    assert scores[:3] == pytest.approx([1.0, 0.0, 0.25 * 20 / 28])
    assert scores == scores[:3] * 3
