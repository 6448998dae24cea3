# SPDX-License-Identifier: Apache-2.0
"""Every price of our table beside the table that litellm ships. Every difference is meant."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import litellm
import pytest

from reward_kit.config_models import ModelConfig
from reward_kit.generation.prices import cost_of, known_price_for, price_table
from reward_kit.models import Usage

PREFIXES = {
    "OpenAI": "", "Anthropic": "", "Google": "gemini/", "DeepSeek": "deepseek/", "Fireworks": "fireworks_ai/",
    "Mistral": "mistral/", "xAI": "xai/", "Groq": "groq/", "Together": "together_ai/", "Bedrock": "",
}  # fmt: skip
"""What litellm puts before a model's name, by the sections of our table."""
FIELDS = {
    "input": "input_cost_per_token", "output": "output_cost_per_token", "cached_input": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}  # fmt: skip
LONG = {*FIELDS.values()}
DIFFERENCES = {
    ("accounts/fireworks/models/deepseek-v3p2", "cached_input"): "on Fireworks' page, and not in litellm's table",
    **{
        (model, "cache_write"): "litellm says 0, and DeepSeek tells no such tokens: they are part of the input"
        for model in ("deepseek-chat", "deepseek-flash", "deepseek-v4-flash", "deepseek-v4-pro")
    },
}
ONLY_OURS = {"accounts/fireworks/models/glm-5": "on Fireworks' page, and not in litellm's table"}


@pytest.fixture(scope="module")
def theirs() -> dict[str, Any]:
    shipped = files("litellm") / "model_prices_and_context_window_backup.json"
    table: dict[str, Any] = json.loads(shipped.read_text(encoding="utf-8"))
    return table


def test_every_section_has_its_prefix() -> None:
    assert price_table().by_provider.keys() == PREFIXES.keys()


def test_our_prices_are_litellms_but_for_what_is_meant(theirs: dict[str, Any]) -> None:
    differ: set[tuple[str, str]] = set()
    missing: set[str] = set()
    compared = 0
    for provider, models in price_table().by_provider.items():
        for model, price in models.items():
            entry = theirs.get(PREFIXES[provider] + model)
            if entry is None:
                missing.add(model)
                continue
            for field, name in FIELDS.items():
                mine, cost = getattr(price, field), entry.get(name)
                # litellm counts by the token, we by the million: both to 1e-9 of a dollar for a million.
                same = mine is None if cost is None else mine is not None and abs(mine - cost * 1e6) <= 1e-9
                compared += 1
                if not same:
                    differ.add((model, field))
    assert (differ, missing) == (set(DIFFERENCES), set(ONLY_OURS))
    assert compared > 300


def test_long_prompts_cost_what_they_do_in_litellms_table(theirs: dict[str, Any]) -> None:
    compared = 0
    for provider, models in price_table().by_provider.items():
        for model, price in models.items():
            entry = theirs.get(PREFIXES[provider] + model, {})
            for name, cost in entry.items():
                if (found := re.fullmatch(r"(\w+)_above_(\d+)k_tokens", name)) is None or found[1] not in LONG:
                    continue
                long = price.long_prompts
                assert long is not None, model
                factor = long.output if found[1].startswith("output") else long.input
                assert long.above == 1000 * int(found[2]), model
                assert factor == pytest.approx(cost / entry[found[1]]), (model, name)
                compared += 1
    assert compared > 60


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("openai/gpt-4-turbo", "openai"), ("gpt-3.5-turbo", "openai"), ("gemini/gemini-3.6-flash", "gemini"),
        ("fireworks/accounts/fireworks/models/llama-v3p1-8b-instruct", "fireworks_ai"),
    ],
)  # fmt: skip
def test_what_our_table_has_not_costs_what_litellm_counts(model: str, provider: str) -> None:
    known = known_price_for(ModelConfig(model_name=model))
    assert known is not None and known.source.startswith("the table of litellm ")
    name = model.removeprefix("fireworks/").removeprefix("openai/").removeprefix("gemini/")
    asked, said = litellm.cost_per_token(f"{provider}/{name}", prompt_tokens=1000, completion_tokens=500)
    used = Usage(prompt_tokens=1000, completion_tokens=500)
    assert cost_of(used, known.price) == pytest.approx(asked + said)
