# SPDX-License-Identifier: Apache-2.0
"""What tokens cost.

    generation.price ─▶ the list prices of common models (`prices.toml`) ─▶ litellm's table, where it is installed

A model that is in none of them has no known price; that is said as `None`, never as zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from reward_kit.config_models import LongPrompts, ModelConfig, Price
from reward_kit.generation.presets import asked_name, preset_of
from reward_kit.models import Usage

__all__ = ["Known", "PriceTable", "cost_of", "known_price_for", "price_for", "price_of", "price_table", "spending"]

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
_DATED = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8})$")
_IN_LITELLM: Mapping[str, str] = MappingProxyType({
    "OpenAI": "openai", "Anthropic": "anthropic", "Google": "gemini", "DeepSeek": "deepseek",
    "Fireworks": "fireworks_ai", "Mistral": "mistral", "xAI": "xai", "Groq": "groq", "Together": "together_ai",
    "Bedrock": "bedrock",
})  # fmt: skip
"""What litellm calls a provider, by the sections of our table."""


class Known(NamedTuple):
    """A price, and who says so."""

    price: Price
    source: str


def price_for(config: ModelConfig) -> Price | None:
    """The price of the model that a config names, at the provider that its prefix means; `None` where it is not known.

    >>> price_for(ModelConfig(model_name="groq/openai/gpt-oss-20b")).output
    0.3
    """
    known = known_price_for(config)
    return None if known is None else known.price


def known_price_for(config: ModelConfig) -> Known | None:
    """The same with its source: the config, our table, or litellm's where that package is installed."""
    if config.price is not None:
        return Known(config.price, "the config")
    preset = preset_of(config)
    if preset is None:
        return _known(asked_name(config))
    return _listed(preset.prices, asked_name(config))


def price_of(model: str, override: Price | None = None) -> Price | None:
    """The price of `model`: the override, nothing for `mock` and `local`, the table's; `None` where it is not known.

    >>> price_of("local").input, price_of("gpt-6-luna-2026-09-22").output, price_of("somebody/finetune")
    (0.0, 0.5, None)
    """
    if override is not None:
        return override
    known = _known(model)
    return None if known is None else known.price


def _known(model: str) -> Known | None:
    """The price of a model of which only the name is known: the makers of models are asked in turn."""
    if model in ("mock", "local") or model.startswith("local:"):
        return Known(_FREE, "this process")
    sections = [who for who in price_table().by_provider if who not in _HOSTS]
    return next((known for who in sections if (known := _in_our_table(who, model)) is not None), None)


def _listed(section: str | None, model: str) -> Known | None:
    if section is None:
        return None
    return _in_our_table(section, model) or _in_litellms_table(section, model)


def _in_our_table(section: str, model: str) -> Known | None:
    table = price_table()
    models = table.by_provider.get(section, {})
    price = next((models[name] for name in _names(model) if name in models), None)
    return None if price is None else Known(price, f"the table of reward-kit, {table.as_of}")


def _in_litellms_table(section: str, model: str) -> Known | None:
    found = _litellms_table()
    provider = _IN_LITELLM.get(section)
    if found is None or provider is None:
        return None
    version, table = found
    entries = [table.get(each) for name in _names(model) for each in (f"{provider}/{name}", name)]
    theirs = [entry for entry in entries if entry and str(entry.get("litellm_provider")).startswith(provider)]
    price = next(filter(None, map(_price_in, theirs)), None)
    return None if price is None else Known(price, f"the table of litellm {version}")


def _names(model: str) -> Iterator[str]:
    """A model's name, and those under which it may be listed: Google's without its folder, and without a date."""
    bare = model.removeprefix("models/").removeprefix("google/")
    yield from dict.fromkeys([model, bare, _DATED.sub("", bare), bare.removesuffix("-latest")])


@cache
def _litellms_table() -> tuple[str, dict[str, Any]] | None:
    """The prices that the package litellm ships, and its version; the package itself is not imported."""
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    spec = find_spec("litellm")
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        try:
            table = orjson.loads((Path(folder) / _LITELLMS_FILE).read_bytes())
            return (version("litellm"), table) if isinstance(table, dict) else None
        except (OSError, ValueError, PackageNotFoundError):
            continue
    return None


_LITELLMS_FILE = "model_prices_and_context_window_backup.json"
_LONG = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


def _price_in(entry: Mapping[str, Any]) -> Price | None:
    """A price of litellm's table, which counts by the token; the dearest rate of an answer where it has several."""
    asked, said = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if not asked or said is None:
        return None
    said = max(said, entry.get("output_cost_per_reasoning_token") or 0.0)
    cached, written = entry.get("cache_read_input_token_cost"), entry.get("cache_creation_input_token_cost")
    tier = next(filter(None, map(_LONG.fullmatch, entry)), None)
    long = None
    if tier is not None:
        answers = entry.get(tier[0].replace("input", "output"), said)
        long = LongPrompts(
            above=1000 * int(tier[1]), input=entry[tier[0]] / asked, output=answers / said if said else 1.0
        )
    each = {"input": asked, "output": said, "cached_input": cached, "cache_write": written}
    return Price(**{name: round(cost * 1e6, 9) for name, cost in each.items() if cost is not None}, long_prompts=long)


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
