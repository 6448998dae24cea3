"""What the reward must say of commands that we know. Run with: python -m pytest -q"""

from reward_kit.pytest_plugin import RewardKitRun


def test_the_run_judges_every_command(reward_kit_run: RewardKitRun) -> None:
    result = reward_kit_run("conf/run.yaml")
    assert [row["evaluation_score"] for row in result.rows()] == [1.0, 0.0, 0.8, 1.0, 0.0, 0.0]
