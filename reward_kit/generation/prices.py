# SPDX-License-Identifier: Apache-2.0
"""What tokens cost: the list prices of common models (`prices.toml`), and an override for all others.

A model that is not in the table has no known price; that is said as `None`, never as zero. Whoever pays other prices
sets `generation.price`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from reward_kit.config_models import ModelConfig, Price
from reward_kit.generation.presets import asked_name, preset_of
from reward_kit.models import Usage

__all__ = ["PriceTable", "cost_of", "price_for", "price_of", "price_table", "spending"]

_FILE = Path(__file__).with_name("prices.toml")


class PriceTable(NamedTuple):
    """The prices that are known."""

    as_of: str
    """When they were last compared with the providers' pages: year and month."""
    by_provider: dict[str, dict[str, Price]]
    """Provider, then model: money for a million tokens."""


@cache
def price_table() -> PriceTable:
    """The table of the file beside this one, read once."""
    import tomllib

    table = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    as_of = str(table.pop("as_of"))
    return PriceTable(
        as_of,
        {who: {model: Price(**price) for model, price in models.items()} for who, models in table.items()},
    )


_HOSTS = frozenset({"Groq", "Together"})
"""Providers of other people's models: a model's name alone does not tell that it is asked there."""
_FREE = Price(input=0.0, output=0.0)
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def price_for(config: ModelConfig) -> Price | None:
    """The price of the model that a config names, at the provider that its prefix means; `None` where it is not known.

    >>> price_for(ModelConfig(model_name="groq/openai/gpt-oss-20b")).output
    0.3
    """
    preset = preset_of(config)
    name = asked_name(config)
    if preset is None or config.price is not None:
        return price_of(name, config.price)
    models = price_table().by_provider.get(preset.prices or "", {})
    return models.get(_DATED.sub("", name.removeprefix("google/") if preset.prices == "Google" else name))


def price_of(model: str, override: Price | None = None) -> Price | None:
    """The price of `model`: the override, nothing for `mock` and `local`, the table's; `None` where it is not known.

    >>> price_of("local").input, price_of("gpt-6-luna-2026-09-22").output, price_of("somebody/finetune")
    (0.0, 0.5, None)
    """
    if override is not None:
        return override
    if model in ("mock", "local") or model.startswith("local:"):
        return _FREE
    return _by_model().get(_DATED.sub("", model))


@cache
def _by_model() -> dict[str, Price]:
    sections = price_table().by_provider.items()
    return {model: price for who, models in sections if who not in _HOSTS for model, price in models.items()}


def cost_of(usage: Usage, price: Price) -> float:
    """What a request cost: what the provider says, else its tokens at their prices.

    Prompt tokens that the provider had cached, or put into its cache, have their own.

    >>> cost_of(Usage(prompt_tokens=1_000_000, cached_prompt_tokens=500_000), Price(input=2, output=8, cached_input=1))
    1.5
    >>> tiers = {"above": 200_000, "input": 2, "output": 1.5}
    >>> cost_of(Usage(prompt_tokens=300_000), Price(input=2, output=8, long_prompts=tiers))
    1.2
    """
    if usage.cost is not None:
        return usage.cost
    long = price.long_prompts
    if long is not None and usage.prompt_tokens > long.above:
        return _plain_cost(usage, price, long.input, long.output)
    return _plain_cost(usage, price)


def spending(usages: Sequence[Usage], price: Price | None) -> float | None:
    """What several requests cost together; None where that is not known."""
    if price is not None:
        return sum(cost_of(usage, price) for usage in usages)
    told = [usage.cost for usage in usages if usage.cost is not None]
    return sum(told) if told and len(told) == len(usages) else None


def _plain_cost(usage: Usage, price: Price, prompt_factor: float = 1.0, answer_factor: float = 1.0) -> float:
    cached = min(usage.cached_prompt_tokens or 0, usage.prompt_tokens)
    written = min(usage.cache_write_tokens or 0, usage.prompt_tokens - cached)
    cached_price = price.input if price.cached_input is None else price.cached_input
    write_price = price.input if price.cache_write is None else price.cache_write
    prompt = (usage.prompt_tokens - cached - written) * price.input + cached * cached_price + written * write_price
    return (prompt * prompt_factor + usage.completion_tokens * price.output * answer_factor) / 1_000_000
