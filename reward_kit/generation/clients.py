# SPDX-License-Identifier: Apache-2.0
"""`FireworksModelClient(config, key)`: one answer at a time, for scripts. The names are inherited.

A run does not use this module. Requests, attempts and limits are those of `generation/http`, here as there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel

from reward_kit.config_models import ApiParamsConfig, Sampling, validated
from reward_kit.errors import ConfigError, EndpointError
from reward_kit.generation.http import clients
from reward_kit.models import ChatCompletionMessageToolCall, Failure, Message

__all__ = ["FireworksModelClient", "GenerationResult"]


class GenerationResult(BaseModel):
    """One answer of a model. It has text, or calls of tools, or both."""

    content: str | None = None
    """The text; None where the model only called tools."""
    tool_calls: list[ChatCompletionMessageToolCall] | None = None
    """The calls of tools, in the model's order; None where there are none."""


class FireworksModelClient:
    """A model of Fireworks, asked from a script: `await FireworksModelClient(config, key).generate(messages)`."""

    def __init__(self, client_config: Mapping[str, Any], api_key: str) -> None:
        """Read the settings of `generation`: `model_name`, those of sampling, `api_base` and `api_params`.

        Without a temperature it is 0.0, and without a limit an answer has at most 1024 tokens.
        """
        told = {name: value for name, value in client_config.items() if value is not None}
        if "model_name" not in told:
            raise ConfigError("The client's config has no `model_name`. Name the model that is to be asked.")
        chosen = {name: told[name] for name in Sampling.model_fields if name in told}
        self._sampling = validated(Sampling, _DEFAULTS | chosen, "The client's config")
        self._endpoint = clients.FireworksModelClient(
            str(told["model_name"]),
            api_key=api_key,
            api_base=told.get("api_base"),
            api_params=validated(ApiParamsConfig, told.get("api_params", {}), "The client's `api_params`"),
        )
        self._in_flight = 0
        self.client_config = client_config
        self.model_name = str(told["model_name"])
        self.temperature = self._sampling.temperature
        self.max_tokens = self._sampling.max_tokens

    async def generate(
        self,
        messages: Sequence[Mapping[str, Any] | Message],
        session: object = None,
        tools: list[dict[str, Any]] | None = None,
    ) -> GenerationResult:
        """Ask once, and return the answer. What fails after all attempts is an `EndpointError`.

        `session` has no effect: the client opens connections itself, and closes them after the last answer under way.
        """
        conversation = [Message.model_validate(m if isinstance(m, Message) else dict(m)) for m in messages]
        async with self._connected():
            (answer,) = await self._endpoint.generate(conversation, draws=[0], sampling=self._sampling, tools=tools)
        if isinstance(answer, Failure):
            raise EndpointError(answer.message)
        said = answer.message
        return GenerationResult(content=said.text or None, tool_calls=said.tool_calls)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[None]:
        """Scripts have no call that closes this client, so it must not leave a connection open."""
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1
            if self._in_flight == 0:
                await self._endpoint.close()


_DEFAULTS = {"temperature": 0.0, "max_tokens": 1024}
