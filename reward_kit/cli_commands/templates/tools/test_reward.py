"""What the reward must say of answers that we know. Run with: python -m pytest -q"""

import pytest

from reward_kit import Message, RewardFunction
from reward_kit.pytest_plugin import RewardKitRun

EXPECTED = [{"name": "switch", "arguments": {"device": "lamp", "on": True}}]


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("[switch(device='lamp', on=True)]", 1.0),
        ("[switch(device='lamp', on=False)]", 0.3),
        ("[read_temperature(room='hall')]", 0.0),
        ("Done!", 0.0),
    ],
)
def test_answers_get_what_they_deserve(answer: str, score: float) -> None:
    reward = RewardFunction(func_path="reward.py:evaluate")
    messages = [Message(role="user", content="Light!"), Message(role="assistant", content=answer)]
    assert reward(messages=messages, ground_truth=EXPECTED).score == score


def test_the_run_judges_every_answer(reward_kit_run: RewardKitRun) -> None:
    result = reward_kit_run("conf/run.yaml")
    assert [row["evaluation_score"] for row in result.rows()] == [1.0, 0.3, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
