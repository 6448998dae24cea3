"""What the reward must say of answers that we know. Run with: python -m pytest -q"""

import pytest

from reward_kit import Message, RewardFunction
from reward_kit.pytest_plugin import RewardKitRun


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("2 + 5 = 7, so \\boxed{7}.", 1.0),
        ("\\boxed{7.0}", 0.5),
        ("2 + 5 = 8, so \\boxed{8}.", 0.0),
        ("", 0.0),
    ],
)
def test_answers_get_what_they_deserve(answer: str, score: float) -> None:
    reward = RewardFunction(func_path="reward.py:evaluate")
    messages = [Message(role="user", content="2 + 5?"), Message(role="assistant", content=answer)]
    assert reward(messages=messages, ground_truth="7").score == score


def test_the_run_judges_every_answer(reward_kit_run: RewardKitRun) -> None:
    result = reward_kit_run("conf/run.yaml")
    assert [row["evaluation_score"] for row in result.rows()] == [1.0, 0.0, 1.0, 0.0, 0.5, 1.0, 1.0, 0.0]
