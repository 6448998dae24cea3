"""What the reward must say of answers that we know. Run with: python -m pytest -q"""

from reward_kit.pytest_plugin import RewardKitRun


def test_the_run_judges_every_answer(reward_kit_run: RewardKitRun) -> None:
    result = reward_kit_run("conf/run.yaml")
    assert [row["evaluation_score"] for row in result.rows()] == [0.9, 0.2, 0.9, 0.2, 0.9, 0.2]


def test_a_letter_that_is_too_long_is_not_sent_to_the_judge(reward_kit_run: RewardKitRun) -> None:
    rows = [{"user_query": "Write to a customer.", "assistant_response": "sorry " * 61}]
    broken = {"model_name": "mock", "mock": {"fail_every": 1}}
    result = reward_kit_run(rows, "reward.py:evaluate", judge=broken)
    assert [row["evaluation_score"] for row in result.rows()] == [0.0]
