# SPDX-License-Identifier: Apache-2.0
"""A client of Fireworks as scripts of the older package make it: from a config and a key.

What asks the model is `generation/http`. A failure is raised, where the older client gave an empty answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from reward_kit.config_models import ApiParamsConfig, Sampling, validated
from reward_kit.errors import EndpointError
from reward_kit.generation.http import clients
from reward_kit.models import ChatCompletionMessageToolCall, Failure, Message

__all__ = ["FireworksModelClient", "GenerationResult"]


class GenerationResult(BaseModel):
    """What a model answered: text, tool calls, or both."""

    content: str | None = None
    """The text."""
    tool_calls: list[ChatCompletionMessageToolCall] | None = None
    """The calls."""


class FireworksModelClient:
    """`FireworksModelClient(config, key).generate(messages)`; the config has the keys of `generation`."""

    def __init__(self, client_config: Mapping[str, Any], api_key: str) -> None:
        """Of the config, the model, the sampling, `api_base` and `api_params` count."""
        self.client_config = client_config
        self.model_name = str(client_config.get("model_name") or "unknown_model")
        self.temperature = client_config.get("temperature", 0.0)
        self.max_tokens = client_config.get("max_tokens", 1024)
        given = {name: client_config[name] for name in Sampling.model_fields if client_config.get(name) is not None}
        given |= {"temperature": self.temperature, "max_tokens": self.max_tokens}
        self._sampling = validated(Sampling, given, "The client's config")
        self._waiting = 0
        params = dict(client_config.get("api_params") or {})
        self._client = clients.FireworksModelClient(
            self.model_name,
            api_key=api_key,
            api_base=client_config.get("api_base"),
            api_params=validated(ApiParamsConfig, params, "The client's `api_params`"),
        )

    async def generate(
        self,
        messages: Sequence[Mapping[str, Any] | Message],
        session: object = None,
        tools: list[dict[str, Any]] | None = None,
    ) -> GenerationResult:
        """One answer. The client has connections of its own, which end when nobody waits; a `session` is not used."""
        told = [turn if isinstance(turn, Message) else Message.model_validate(dict(turn)) for turn in messages]
        self._waiting += 1
        try:
            (answer,) = await self._client.generate(told, draws=[0], sampling=self._sampling, tools=tools)
        finally:
            self._waiting -= 1
            if not self._waiting:  # the older client had nothing to close, so its users close nothing
                await self._client.close()
        if isinstance(answer, Failure):
            raise EndpointError(answer.message)
        return GenerationResult(content=answer.message.text or None, tool_calls=answer.message.tool_calls)
