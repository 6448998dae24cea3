# SPDX-License-Identifier: Apache-2.0
"""An agent whose model is asked by Anthropic's Messages: tools, results and signed thinking, turn by turn."""

from __future__ import annotations

from typing import Any

from reward_kit.agent import Episodes
from reward_kit.agent.environment import environment_of
from reward_kit.config_models import Sampling
from reward_kit.generation.http.messages import MessagesClient
from reward_kit.generation.presets import PRESETS
from reward_kit.generation.prices import price_of
from tests.agent.worlds import SAMPLE, Account, settings
from tests.generation.anthropic_endpoint import message, strict, text, tool_use
from tests.generation.loopback import Reaction, loopback

THOUGHT = {"type": "thinking", "thinking": "Put 3 in.", "signature": "sig"}
TURNS = [
    message(THOUGHT, tool_use("deposit", {"amount": 3}, "toolu_01"), tool_use("deposit", {"amount": 4}, "toolu_02"),
            stop="tool_use", input_tokens=10, cache_creation_input_tokens=90),
    message(tool_use("balance_now", {}, "toolu_03"), stop="tool_use", cache_read_input_tokens=90),
    message(text("There are 7."), cache_read_input_tokens=100),
]  # fmt: skip


async def test_an_episode_with_tools_and_thinking_is_played_to_its_end() -> None:
    asked: list[dict[str, Any]] = []

    def react(body: dict[str, Any], number: int) -> Reaction:
        asked.append(body)
        return TURNS[number - 1]

    thinking = {"thinking": {"type": "adaptive"}, "cache_control": {"type": "ephemeral"}}
    price = price_of("claude-haiku-4-5")
    async with loopback(strict(react)) as server:
        client = MessagesClient("m", api_base=server.api_base, rules=PRESETS["anthropic"].rules)
        play = Episodes(
            client, Sampling(max_tokens=2000, extra_body=thinking), price, environment_of(Account), settings()
        )
        try:
            (rollout,) = await play(SAMPLE, [0])
        finally:
            await client.close()
    assert len(asked) == len(server.requests) == 3, "every request was valid"
    assert (rollout.ended, rollout.turns[-1].text, rollout.facts) == (
        "answered", "There are 7.", {"balance": 7, "history": [3, 4]},
    )  # fmt: skip
    called, results = asked[2]["messages"][1:3]
    assert called["content"][0] == THOUGHT
    assert [block["tool_use_id"] for block in results["content"]] == ["toolu_01", "toolu_02"]
    assert rollout.usage is not None and rollout.cost is not None
    assert (rollout.usage.cached_prompt_tokens, rollout.usage.cache_write_tokens) == (190, 90)
    assert rollout.cost > 0
