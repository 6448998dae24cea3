"""What the reward must say of episodes that we know. Run with: python -m pytest -q"""

import pytest

from reward_kit import Message, RewardFunction
from reward_kit.pytest_plugin import RewardKitRun

TIDY = {"red": [], "blue": ["cup"]}


@pytest.mark.parametrize(
    ("boxes", "moves", "score"), [(TIDY, 1, 1.0), (TIDY, 2, 0.5), ({"red": ["cup"], "blue": []}, 0, 0.0)]
)
def test_episodes_get_what_they_deserve(boxes: dict[str, list[str]], moves: int, score: float) -> None:
    reward = RewardFunction(func_path="reward.py:evaluate")
    facts = {"boxes": boxes, "moves": moves}
    said = [Message(role="user", content="Tidy up."), Message(role="assistant", content="Done.")]
    assert reward(messages=said, facts=facts, ground_truth=TIDY, fewest=1).score == score


def test_the_run_judges_every_episode(reward_kit_run: RewardKitRun) -> None:
    result = reward_kit_run("conf/run.yaml")
    assert [row["evaluation_score"] for row in result.rows()] == [1.0, 0.5, 1.0, 0.0]
