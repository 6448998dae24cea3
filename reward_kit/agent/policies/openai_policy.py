# SPDX-License-Identifier: Apache-2.0
"""OpenAIPolicy: a model behind any OpenAI-compatible endpoint as a policy, with the log-probabilities of its tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.agent.policy_interface import AgentPolicy, PolicyAction
from reward_kit.config_models import ModelConfig, Sampling
from reward_kit.errors import ProviderError
from reward_kit.generation.client import ModelClient
from reward_kit.generation.factory import make_client
from reward_kit.models import Failure, Message

__all__ = ["OpenAIPolicy"]


class OpenAIPolicy(AgentPolicy):
    """A model as a policy, through the same client as every run: limits, retries and all."""

    def __init__(
        self,
        model_name: str,
        *,
        temperature: float | None = 0.7,
        max_tokens: int | None = 1024,
        api_base: str | None = None,
        logprobs: bool = True,
        client: ModelClient | None = None,
        **settings: Any,
    ) -> None:
        """Ask `model_name`; `settings` are further ones of a run's `generation`, such as `api_key_env`."""
        config = ModelConfig(
            model_name=model_name, temperature=temperature, max_tokens=max_tokens, api_base=api_base, **settings
        )
        self._client = client if client is not None else make_client(config)
        asked = {"logprobs": True} if logprobs else {}
        self._sampling: Sampling = config.sampling().model_copy(update={"extra_body": {**config.extra_body, **asked}})
        self._asked = 0

    async def get_action(
        self, observation: Mapping[str, Any], available_tools_specs: Sequence[Mapping[str, Any]] | None = None
    ) -> PolicyAction:
        """What the model does next. A request that fails for good raises."""
        messages = [Message.model_validate(message) for message in observation["messages"]]
        tools = [dict(spec) for spec in available_tools_specs or ()] or None
        (outcome,) = await self._client.generate(messages, draws=(self._asked,), sampling=self._sampling, tools=tools)
        self._asked += 1
        if isinstance(outcome, Failure):
            raise ProviderError(f"The policy's model gave no answer: {outcome.message}")
        message, tokens = outcome.message, outcome.tokens
        raw = json.dumps(message.model_dump(exclude_none=True), ensure_ascii=False)
        return PolicyAction(_action(message), raw, tokens.logprobs if tokens is not None else None)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _action(message: Message) -> dict[str, Any]:
    if not message.tool_calls:
        return {"type": "text", "content": message.text}
    calls = [{"name": call.function.name, "arguments": call.function.arguments} for call in message.tool_calls]
    action = {"type": "tool_call", **calls[0], "content": message.text}
    return {**action, "further_calls": calls[1:]} if len(calls) > 1 else action
