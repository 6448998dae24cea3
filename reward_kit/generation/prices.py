"""What tokens cost: public list prices of a few common models, an override for all others, and estimates.

A model that is not in the table has no known price; that is said as `None`, never as zero. The table holds standard
list prices for interactive use, in US dollars: no batch discount, no long-context surcharge, nothing for writing to a
provider's cache. Whoever pays other prices sets `generation.price`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from reward_kit.config_models import Price
from reward_kit.models import Message, Usage

__all__ = ["PRICES", "PRICES_AS_OF", "cost_of", "estimate_tokens", "price_of"]

PRICES_AS_OF = "2026-11"
"""When the table was last compared with the providers' pages."""

PRICES: dict[str, Price] = {
    # https://developers.openai.com/api/docs/pricing
    "gpt-6-luna": Price(input=0.10, cached_input=0.01, output=0.50),
    "gpt-5.6-luna": Price(input=0.20, cached_input=0.02, output=1.20),
    # https://docs.fireworks.ai/serverless/pricing
    "accounts/fireworks/models/gpt-oss-120b": Price(input=0.15, cached_input=0.015, output=0.60),
    "accounts/fireworks/models/gpt-oss-20b": Price(input=0.07, cached_input=0.035, output=0.30),
    "accounts/fireworks/models/deepseek-v3p2": Price(input=0.56, cached_input=0.28, output=1.68),
    "accounts/fireworks/models/glm-5": Price(input=1.00, cached_input=0.20, output=3.20),
    "accounts/fireworks/models/kimi-k2p5": Price(input=0.60, cached_input=0.10, output=3.00),
    "accounts/fireworks/models/kimi-k2p6": Price(input=0.95, cached_input=0.16, output=4.00),
}
"""Money for a million tokens, by the name the endpoint knows the model by."""

_FREE = Price(input=0.0, output=0.0)
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_TURN = 4


def price_of(model: str, override: Price | None = None) -> Price | None:
    """The price of `model`: the override, nothing for `mock` and `local`, the table's; `None` where it is not known.

    >>> price_of("local").input, price_of("gpt-6-luna-2026-09-22").output, price_of("somebody/finetune")
    (0.0, 0.5, None)
    """
    if override is not None:
        return override
    if model in ("mock", "local") or model.startswith("local:"):
        return _FREE
    return PRICES.get(_DATED.sub("", model))


def cost_of(usage: Usage, price: Price) -> float:
    """What a request cost; prompt tokens that the provider had cached at their own price.

    >>> cost_of(Usage(prompt_tokens=1_000_000, cached_prompt_tokens=500_000), Price(input=2, output=8, cached_input=1))
    1.5
    """
    cached = min(usage.cached_prompt_tokens or 0, usage.prompt_tokens)
    cached_price = price.input if price.cached_input is None else price.cached_input
    fresh = usage.prompt_tokens - cached
    return (fresh * price.input + cached * cached_price + usage.completion_tokens * price.output) / 1_000_000


def estimate_tokens(messages: Iterable[Message]) -> int:
    """About how many tokens a prompt has: four characters per token, and a few tokens per turn.

    An estimate for planning, typically within a third for English and too low for code and for other scripts; what a
    request really used is in its `Usage`.
    """
    return sum(_TOKENS_PER_TURN + -(-len(message.text) // _CHARACTERS_PER_TOKEN) for message in messages)
