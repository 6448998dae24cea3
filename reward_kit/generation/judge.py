"""A model that is asked for verdicts: what a reward that names `judge` is handed.

    (reply,) = await judge.ask("Is this polite? Answer yes or no.\\n\\n" + answer)

Replies are cached as any model's answers are: a verdict that was paid for is never paid for again.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

from reward_kit.config_models import ModelConfig, Sampling
from reward_kit.errors import ConfigError
from reward_kit.generation.cache import CachedClient, ResponseCache
from reward_kit.generation.clients import ModelClient
from reward_kit.generation.factory import make_client
from reward_kit.models import Failure, Message

__all__ = ["Judge", "open_judge"]


class Judge:
    """Any model client, asked for verdicts."""

    def __init__(self, client: ModelClient, sampling: Sampling | None = None) -> None:
        """Ask `client`, at temperature 0 unless `sampling` says otherwise. Whoever opened the client closes it."""
        self._client = client
        self._sampling = sampling or Sampling(temperature=0.0)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._client.model

    async def ask(self, prompt: str | Sequence[Message], draws: Sequence[int] = (0,)) -> list[str | Failure]:
        """What the model replies, or the failure in its place, once for each of `draws`."""
        messages = [Message(role="user", content=prompt)] if isinstance(prompt, str) else prompt
        answers = await self._client.generate(messages, draws=draws, sampling=self._sampling)
        return [answer if isinstance(answer, Failure) else answer.message.text for answer in answers]


@contextlib.asynccontextmanager
async def open_judge(config: ModelConfig) -> AsyncIterator[Judge]:
    """The judge that a config names, with its cache; closed in the end."""
    if not config.model_name:
        raise ConfigError(
            "The reward asks for a judge, and judge.model_name is not set. Set it to a model your endpoint knows, with "
            "judge.api_base for an endpoint other than OpenAI or Fireworks."
        )
    client = make_client(config)
    with contextlib.ExitStack() as files:
        layered = client
        if config.cache.enabled:
            layered = CachedClient(client, files.enter_context(ResponseCache(config.cache.cache_dir)))
        try:
            yield Judge(layered, config.sampling())
        finally:
            await client.close()
