# SPDX-License-Identifier: Apache-2.0
"""A model that is asked for verdicts: what a reward that names `judge` is handed.

    (reply,) = await judge.ask("Is this polite? Answer yes or no.\\n\\n" + answer)

Replies are cached as any model's answers are: a verdict that was paid for is never paid for again.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reward_kit.config_models import JudgeConfig, Price, Sampling
from reward_kit.errors import ConfigError, RewardKitError, Setting, with_settings_named
from reward_kit.generation.budget import Budget, within
from reward_kit.generation.cache.responses import cached
from reward_kit.generation.client import LimitedEndpoint, ModelClient
from reward_kit.generation.factory import make_judge_client
from reward_kit.generation.prices import price_for, price_of, spending
from reward_kit.generation.usage import summed, used_by
from reward_kit.models import Completion, Failure, Message

__all__ = ["Judge", "JudgeUse", "open_judge"]


@dataclass
class JudgeUse:
    """What a judge was asked for, and what that cost."""

    replies: int = 0
    cached: int = 0
    """Replies that were paid for before."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    """None where the price is not known."""
    cost_is_at_most: bool = False
    """Whether some of its replies did not tell what they used: they count with the most that it may have been."""
    dropped_parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters that its endpoint does not take as they were asked for, and why."""

    def count(self, answer: Completion | Failure, price: Price | None) -> None:
        """Take account of an answer."""
        if isinstance(answer, Completion):
            self.replies += 1
            self.cached += answer.cached
        used = used_by(answer)
        whole = summed(used)
        if whole is None:
            return
        self.prompt_tokens += whole.prompt_tokens
        self.completion_tokens += whole.completion_tokens
        self.cost_is_at_most = self.cost_is_at_most or bool(whole.at_most)
        cost = spending(used, price)
        self.cost = None if cost is None or self.cost is None else self.cost + cost


class Judge:
    """Any model client, asked for verdicts."""

    def __init__(self, client: ModelClient, sampling: Sampling | None = None, price: Price | None = None) -> None:
        """Ask `client`, at temperature 0 unless `sampling` says otherwise. Whoever opened the client closes it."""
        self._client = client
        self._sampling = sampling or Sampling(temperature=0.0)
        self._price = price_of(client.model, price)
        self.use = JudgeUse()
        """What was asked so far."""

    @property
    def model(self) -> str:
        """The name of the model that is asked."""
        return self._client.model

    async def ask(self, prompt: str | Sequence[Message], draws: Sequence[int] = (0,)) -> list[str | Failure]:
        """A list with what the model replies, or the failure in its place, once for each of `draws`.

        One question is one draw, and so a list of one: `(reply,) = await judge.ask(prompt)`.
        """
        messages = [Message(role="user", content=prompt)] if isinstance(prompt, str) else prompt
        with _about_the_judge():
            answers = await self._client.generate(messages, draws=draws, sampling=self._sampling)
        for answer in answers:
            self.use.count(answer, self._price)
        return [_of_the_judge(answer) if isinstance(answer, Failure) else answer.message.text for answer in answers]


@contextlib.asynccontextmanager
async def open_judge(config: JudgeConfig, budget: Budget | None = None) -> AsyncIterator[Judge]:
    """The judge that a config names, with its cache, within the run's budget; closed in the end.

    Where a question could cost more than is left, `ask` raises `BudgetExhaustedError`, which stops the run cleanly.
    """
    if not config.model_name:
        raise ConfigError(
            "The reward asks for a judge, and `judge.model_name` is not set. Set it to a model your endpoint knows, "
            "with `judge.api_base` for an endpoint other than OpenAI or Fireworks."
        )
    with _about_the_judge():
        client = make_judge_client(config)
    price = price_for(config)
    with cached(within(budget, client, price, "judge"), config.cache) as layered:
        try:
            judge = Judge(layered, config.sampling(), price)
            if isinstance(client, LimitedEndpoint):
                judge.use.dropped_parameters = client.dropped_parameters  # filled as they are refused
            yield judge
        finally:
            await client.close()


# ── a client speaks of `generation`; here it is the section `judge` that is meant ────────────────────────────────────


@contextlib.contextmanager
def _about_the_judge() -> Iterator[None]:
    try:
        yield
    except RewardKitError as error:
        error.args = (with_settings_named(str(error), _in_judge), *error.args[1:])
        raise


def _of_the_judge(failure: Failure) -> Failure:
    return failure.model_copy(update={"message": with_settings_named(failure.message, _in_judge)})


def _in_judge(setting: Setting) -> str:
    section, dot, rest = setting.place.partition(".")
    return str(setting._replace(place=f"judge{dot}{rest}") if section == "generation" else setting)
