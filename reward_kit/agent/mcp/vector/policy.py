# SPDX-License-Identifier: Apache-2.0
"""Policies that ask a model what to call next, with a conversation for each environment."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from typing import Any

from reward_kit.agent.mcp.vector.playback import PlaybackPolicyBase, playback_file
from reward_kit.agent.mcp.vector.types import MCPToolCall
from reward_kit.config_models import ModelConfig, Sampling
from reward_kit.errors import GenerationError
from reward_kit.generation.client import ModelClient
from reward_kit.generation.factory import make_client
from reward_kit.models import Failure, Message

__all__ = ["FireworksPolicy", "LLMBasePolicy"]


_FOR_THE_MODEL = ("reasoning_content", "sent_back")
"""What goes back to the model's endpoint with its turns."""


class LLMBasePolicy(PlaybackPolicyBase, ABC):
    """A policy that asks a model. Subclasses say how one request is made."""

    def __init__(self, model_id: str, temperature: float = 0.2, max_tokens: int = 4096, **kwargs: Any) -> None:
        """Ask `model_id`."""
        super().__init__(**kwargs)
        self.model_id = model_id
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.conversation_histories: dict[int, list[dict[str, Any]]] = {}
        self.initialized = False

    @abstractmethod
    async def _make_llm_call(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        """The model's answer, as an endpoint for chat completions gives it: `choices[0].message`."""

    async def close(self) -> None:
        """Close connections of its own; they are opened again when they are needed."""

    def _convert_mcp_tools_to_llm_format(self, mcp_tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Tools as chat completions take them."""
        return [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool.get("description") or "",
                    "parameters": tool.get("input_schema") or {"type": "object", "properties": {}},
                },
            }
            for tool in mcp_tools
        ]

    def initialize_conversations(self, n_envs: int, system_prompts: list[str], initial_user_prompts: list[Any]) -> None:
        """Begin the conversations anew."""
        self.conversation_histories = {
            index: _beginning(system_prompts[index], initial_user_prompts[index]) for index in range(n_envs)
        }
        self.initialized = True

    def add_tool_response(
        self,
        env_index: int,
        tool_call: MCPToolCall,
        tool_response: str,
        reward: float = 0.0,
        terminated: bool = False,
        info: dict[str, Any] | None = None,
    ) -> None:
        """Add what a call returned; what it was worth goes beside it, where no model sees it."""
        conversation = self.conversation_histories.get(env_index)
        if conversation is None:
            return
        calls: list[dict[str, Any]] = next(
            (message["tool_calls"] for message in reversed(conversation) if message.get("tool_calls")), []
        )
        matching = [call["id"] for call in calls if call["function"]["name"] == tool_call.tool_name]
        told: dict[str, Any] = {
            "role": "tool",
            "tool_call_id": matching[0] if matching else None,
            "content": tool_response,
        }
        if reward != 0.0 or terminated or info:
            told["metadata"] = {"reward": reward, "terminated": terminated, "info": info or {}}
        conversation.append(told)

    def log_conversation_state_for_playback(self, env_index: int, step: int) -> None:
        """Write what was said so far to the recording."""
        file, conversation = playback_file(), self.conversation_histories.get(env_index)
        if file is None or not conversation:
            return
        line = json.dumps({"env_index": env_index, "step": step, "messages": conversation})
        with file.open("a", encoding="utf-8") as lines:
            lines.write(line + "\n")

    async def _generate_live_tool_calls(
        self,
        tool_schemas: list[list[dict[str, Any]]],
        observations: list[Any],
        system_prompts: list[str],
        user_prompts: list[Any],
    ) -> list[MCPToolCall]:
        indices = self._indices(len(observations))
        for place, index in enumerate(indices):
            if index not in self.conversation_histories:
                self.conversation_histories[index] = _beginning(system_prompts[place], user_prompts[place])
        self.initialized = True
        asked = (self._next_call(tool_schemas[place], index) for place, index in enumerate(indices))
        return list(await asyncio.gather(*asked))

    async def _next_call(self, tools: list[dict[str, Any]], env_index: int) -> MCPToolCall:
        conversation = self.conversation_histories[env_index]
        shown = [{key: value for key, value in message.items() if key != "metadata"} for message in conversation]
        response = await self._make_llm_call(shown, self._convert_mcp_tools_to_llm_format(tools))
        message = response["choices"][0]["message"]
        calls = (message.get("tool_calls") or [])[:1]
        said = {"role": "assistant", "content": message.get("content"), **({"tool_calls": calls} if calls else {})}
        conversation.append(said | {name: message[name] for name in _FOR_THE_MODEL if message.get(name) is not None})
        if not calls:
            return MCPToolCall("_no_tool_call", {"reason": "no_tool_call_generated"})
        try:
            arguments = json.loads(calls[0]["function"]["arguments"] or "{}")
        except ValueError:
            arguments = {}  # the tool will say which ones it misses, and the model can do better
        return MCPToolCall(calls[0]["function"]["name"], arguments if isinstance(arguments, dict) else {})

    def _note_recorded(self, env_index: int, messages: list[dict[str, Any]]) -> None:
        """Keep the conversation up to the turn that is played; what came back then comes back again."""
        last = max((place for place, message in enumerate(messages) if message.get("role") == "assistant"), default=-1)
        self.conversation_histories[env_index] = list(messages[: last + 1])


def _beginning(system_prompt: str, user_prompt: Any) -> list[dict[str, Any]]:
    content = user_prompt["content"] if isinstance(user_prompt, dict) and "content" in user_prompt else user_prompt
    system = [{"role": "system", "content": system_prompt}] if system_prompt else []
    return [*system, {"role": "user", "content": content}]


class FireworksPolicy(LLMBasePolicy):
    """Asks a model at Fireworks, or at another endpoint for chat completions (`base_url`)."""

    def __init__(
        self,
        model_id: str,
        temperature: float = 0.2,
        deployment_type: str = "serverless",
        max_tokens: int = 4096,
        *,
        base_url: str | None = None,
        client: ModelClient | None = None,
        **kwargs: Any,
    ) -> None:
        """`deployment_type` is kept for callers that name it; the endpoint decides by the model's name."""
        super().__init__(model_id, temperature, max_tokens, **kwargs)
        self.deployment_type = deployment_type
        self._client = client
        self._made: ModelClient | None = None
        self._base_url = base_url

    async def close(self) -> None:
        """Close the client where it was made here."""
        made, self._made = self._made, None
        if made is not None:
            await made.close()

    def _asked(self) -> ModelClient:
        if self._client is not None:
            return self._client
        if self._made is None:
            name = self.model_id if self._base_url else f"fireworks/{self.model_id}"
            self._made = make_client(ModelConfig(model_name=name, api_base=self._base_url))
        return self._made

    async def _make_llm_call(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        sampling = Sampling(temperature=self.temperature, max_tokens=self.max_tokens)
        turns = [Message.model_validate(message) for message in messages]
        (answer,) = await self._asked().generate(turns, draws=[0], sampling=sampling, tools=tools or None)
        if isinstance(answer, Failure):
            raise GenerationError(answer.message, retryable=answer.retryable)
        said = answer.message
        more = said.model_dump(include={*_FOR_THE_MODEL}, exclude_none=True) if said.sent_back is not None else {}
        return {"choices": [{"message": said.as_request() | more}]}
