# SPDX-License-Identifier: Apache-2.0
"""Every reward of the library, here and behind a real server: the same verdicts, failures included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import JudgeConfig, RewardConfig, SandboxConfig
from reward_kit.models import Message, Rollout, Sample, Verdict
from reward_kit.reward_names import library_rewards
from reward_kit.scoring.rewards import Reward
from reward_kit.scoring.scorers import open_scorer
from reward_kit.scoring.worker_call import verdicts
from tests.remote.live_server import live_server

ELSEWHERE = {
    "e2b_code_execution_reward": "asks E2B's own service",
    "embedding_similarity_reward": "asks an endpoint for embeddings, in runs and behind a server alike",
    "reward_model_reward": "asks an endpoint for numbers, in runs and behind a server alike",
}
"""What cannot be judged on this machine alone."""

PARAMS: dict[str, dict[str, Any]] = {
    "composite_reward": {"parts": {"right": "exact_match_reward", "short": "length_reward"}},
    "judge_reward": {"rubric": "Is it right?"},
    "regex_reward": {"pattern": r"\d+"},
}
CODE = "```python\ndef add(a, b):\n    return a + b\nprint(add(*map(int, input().split())))\n```"
TESTS = [{"input": "1 2", "expected_output": "3"}, {"input": "2 2", "expected_output": "5"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def rollouts(prompt: str, truth: Any, answers: Sequence[Any], **columns: Any) -> list[Rollout]:
    sample = Sample(id=prompt, messages=[Message(role="user", content=prompt)], ground_truth=truth, columns=columns)
    turns = [
        Message(role="assistant", content=each) if isinstance(each, str) else Message.model_validate(each)
        for each in answers
    ]
    return [
        Rollout(sample=sample, response_index=number, turns=[turn], model="m", finish_reason="stop")
        for number, turn in enumerate(turns)
    ]


GROUPS = [
    rollouts(
        "What is 2 + 2?",
        "4",
        ["\\boxed{4}", "<think>hm</think><answer>5</answer>", "<think>\n2\n</think>\n<answer>\n4\n</answer>"],
    ),
    rollouts(
        "Which one? A) 1 B) 2", "B", ["The answer is (B).", "C", "Zürich ist schön – 東京 🙂\u2028"], choices=["1", "2"]
    ),
    rollouts("Add two numbers.", "3", [CODE], test_cases=TESTS, tests=TESTS, language="python", timeout=10),
    rollouts("Give JSON.", {"a": 1}, ['{"a": 1}', '{"a": "x"}', ""], json_schema=SCHEMA, expected_schema=SCHEMA),
    rollouts(
        "Weather?",
        {"tool_calls": [CALL]},
        [{"role": "assistant", "content": None, "tool_calls": [CALL]}, "I cannot."],
        tools=[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
    ),
    rollouts(
        "Say yes. Answer in English.", ["yes", "Yes"], ["yes yes yes", "1, 2, 3"], language="en", items=["1", "2"]
    ),
]


NAMES = [name for name in library_rewards() if name not in ELSEWHERE]
SERVERS = [NAMES[start : start + 12] for start in range(0, len(NAMES), 12)]
JUDGE = JudgeConfig.model_validate(
    {
        "model_name": "mock",
        "mock": {"responses": ["VERDICT: 4", "VERDICT: 2", "VERDICT: A", "Hm."]},
        "cache": {"enabled": False},
    }
)


def section(name: str) -> dict[str, Any]:
    return {"function_path": name, "params": PARAMS.get(name, {}), "workers": 1, "timeout": 120}


async def judged(reward: Reward, groups: Sequence[Sequence[Rollout]], directory: Path) -> list[Verdict]:
    """The verdicts on all rollouts; those of a plain reward without leaving this process."""
    parts = groups if reward.judges_groups else [[rollout] for group in groups for rollout in group]
    if not (reward.call.is_async or reward.isolated_with or reward.judges_groups):
        return [verdict for (one,) in parts for verdict in verdicts(reward.call, [one])]
    async with open_scorer(reward, directory, SandboxConfig(), JUDGE) as scorer:
        return [verdict for part in parts for verdict in await scorer.score(part)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("names", SERVERS, ids=lambda names: f"{names[0]} …")
async def test_the_library_says_the_same_here_and_there(names: list[str], tmp_path: Path) -> None:
    settings: dict[str, Any] = {"judge": JUDGE.model_dump(exclude_unset=True)}
    distinct = 0
    with live_server({name: section(name) for name in names}, **settings) as address:
        for name in names:
            here = Reward(RewardConfig.model_validate(section(name)))
            there = Reward(RewardConfig(function_path=f"{address}/rewards/{name}/evaluate"))
            local = await judged(here, GROUPS, tmp_path)
            remote = await judged(there, GROUPS, tmp_path)
            assert [plain(each) for each in remote] == [plain(each) for each in local], name
            distinct += len({str(plain(each)) for each in local}) > 1
            identity = {key: value for key, value in there.identity.items() if key.startswith("reward.")}
            assert identity == here.identity, name
    assert distinct > len(names) / 2, "too many rewards say the same of everything, which proves little"


def plain(verdict: Verdict) -> dict[str, Any]:
    """All that is written of a verdict; where a reward raised is told only here, not to callers elsewhere."""
    return {key: value for key, value in verdict.model_dump().items() if key != "traceback"}
