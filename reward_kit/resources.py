# SPDX-License-Identifier: Apache-2.0
"""Resources a reward may declare: something to set up once, use in each call, and clean up in the end.

@reward_function(resources={"llm": [create_llm_resource("accounts/fireworks/models/…")]})
def polite(messages, resources, **kwargs):
    verdict = resources["llm"][0].ask("Is this polite? Say yes or no.\\n\\n" + messages[-1].text)
    return verdict.message.text.lower().startswith("yes")
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.config_models import GenerationConfig
from reward_kit.errors import RewardError
from reward_kit.models import Completion, Failure, Message
from reward_kit.reward_call import run_blocking

__all__ = ["LLMResourceWrapper", "Model", "ResourceWrapper", "create_llm_resource"]


class ResourceWrapper(ABC):
    """What `@reward_function(resources={kind: [wrapper, …]})` takes. Any object with these methods will do."""

    @abstractmethod
    def setup(self) -> None:
        """Make the resource ready. Called once a process, before the reward's first call."""

    @abstractmethod
    def cleanup(self) -> None:
        """Give the resource back. Called when the process ends."""

    @abstractmethod
    def get_client(self) -> Any:
        """The object that the reward is handed and works with."""


class Model:
    """A model to ask from inside a reward, synchronous or not."""

    def __init__(self, generation: GenerationConfig) -> None:
        """Ask the model that `generation` names, in the way it says."""
        from reward_kit.generation.factory import make_client

        self._client = make_client(generation)
        self._sampling = generation.sampling()

    def ask(self, prompt: str | Sequence[Message | Mapping[str, Any]], *, draw: int = 0) -> Completion:
        """The model's answer to a question, or to a conversation."""
        return run_blocking(self._ask_once(prompt, draw))

    async def ask_async(self, prompt: str | Sequence[Message | Mapping[str, Any]], *, draw: int = 0) -> Completion:
        """The same, for the event loop."""
        given = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        messages = [Message.model_validate(turn) for turn in given]
        (answer,) = await self._client.generate(messages, draws=[draw], sampling=self._sampling)
        if isinstance(answer, Failure):
            raise RewardError(f"{self._client.model!r} gave no answer: {answer.message}", retryable=answer.retryable)
        return answer

    async def _ask_once(self, prompt: str | Sequence[Message | Mapping[str, Any]], draw: int) -> Completion:
        try:
            return await self.ask_async(prompt, draw=draw)
        finally:
            # Connections belong to the event loop of this one call.
            await self._client.close()


class LLMResourceWrapper(ResourceWrapper):
    """A model as a resource: one of ours, or any client object, such as an LLM of the Fireworks SDK."""

    def __init__(self, llm_instance: Any) -> None:
        """Wrap a client; a `GenerationConfig` stands for the model it describes, made at `setup`."""
        self.llm_instance = llm_instance
        self._client: Any = None

    def setup(self) -> None:
        """Make the client ready: ours is made, an on-demand deployment of the Fireworks SDK is applied."""
        if self._client is not None:
            return
        if isinstance(self.llm_instance, GenerationConfig):
            self._client = Model(self.llm_instance)
            return
        if getattr(self.llm_instance, "deployment_type", None) == "on-demand":
            self.llm_instance.apply()
        self._client = self.llm_instance

    def cleanup(self) -> None:
        """Let go of the client."""
        self._client = None

    def get_client(self) -> Any:
        """The client; a RuntimeError before `setup`."""
        if self._client is None:
            raise RuntimeError("The LLM resource is not set up; call setup() first.")
        return self._client


def create_llm_resource(llm_instance: Any, **generation: Any) -> LLMResourceWrapper:
    """A model as a resource for rewards.

    Given a client object, the reward uses that. Given a model's name, it gets a `Model`; the keywords are then those of
    the `generation` section of a config, such as `api_base`, `temperature` or `max_tokens`.
    """
    if isinstance(llm_instance, str):
        settings = {"temperature": 0.0, **generation, "model_name": llm_instance}
        return LLMResourceWrapper(GenerationConfig.model_validate(settings))
    if generation:
        raise TypeError(
            f"{sorted(generation)[0]!r} belongs to a model's name, and a client object was given. Leave it out."
        )
    return LLMResourceWrapper(llm_instance)
