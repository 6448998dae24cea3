# SPDX-License-Identifier: Apache-2.0
"""Prices: known, overridden, or not known; and what usage costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import LongPrompts, ModelConfig, Price
from reward_kit.generation import prices
from reward_kit.generation.prices import cost_of, known_price_for, price_for, price_of, price_table
from reward_kit.models import Usage

PRICE = Price(input=2.0, output=8.0, cached_input=0.5)


@pytest.mark.parametrize("model", ["mock", "local", "local:/models/any.gguf"])
def test_what_runs_in_this_process_is_free(model: str) -> None:
    price = price_of(model)
    assert price is not None and (price.input, price.output) == (0, 0)


@pytest.mark.parametrize("model", ["gpt-7-unheard-of", "gpt-6-luna-mini", "gpt-oss-120b", "localhost", ""])
def test_an_unknown_model_has_no_price_rather_than_a_wrong_one(model: str) -> None:
    assert price_of(model) is None


def test_an_override_wins_everywhere() -> None:
    for model in ("mock", "gpt-6-luna", "somebody/finetune"):
        assert price_of(model, PRICE) is PRICE


def test_a_dated_snapshot_costs_what_its_model_costs() -> None:
    assert price_of("gpt-6-luna-2026-09-22") == price_table().by_provider["OpenAI"]["gpt-6-luna"]


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("anthropic/claude-haiku-4-5-20251001", "claude-haiku-4-5"), ("vertex/google/gemini-2.5-pro", "gemini-2.5-pro"),
        ("gemini/models/gemini-2.5-pro", "gemini-2.5-pro"), ("openai/gpt-5-pro-2025-10-06", "gpt-5-pro"),
        ("anthropic/claude-haiku-4-5-latest", "claude-haiku-4-5"),
        ("mistral/mistral-large-latest", "mistral-large-latest"),
        ("anthropic/claude-haiku-4-52025100", None), ("openai/claude-haiku-4-5", None), ("gpt-4o-latest-mini", None),
    ],
)  # fmt: skip
def test_a_model_is_found_by_the_names_that_its_provider_has_for_it(name: str, listed: str | None) -> None:
    prices = {model: price for models in price_table().by_provider.values() for model, price in models.items()}
    assert price_for(ModelConfig(model_name=name)) == (None if listed is None else prices[listed])


LITELLMS = {
    "gpt-99": {
        "litellm_provider": "openai", "input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6,
        "cache_read_input_token_cost": 5e-7,
    },
    "gemini/gemini-99": {
        "litellm_provider": "gemini", "input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6,
        "output_cost_per_reasoning_token": 5e-6, "input_cost_per_token_above_200k_tokens": 2e-6,
        "output_cost_per_token_above_200k_tokens": 1e-5,
    },
    "gpt-image": {"litellm_provider": "openai", "input_cost_per_pixel": 1e-6},
    "gpt-free": {"litellm_provider": "openai", "input_cost_per_token": 0, "output_cost_per_token": 0},
    "gpt-4o": {"litellm_provider": "openai", "input_cost_per_token": 1.0, "output_cost_per_token": 1.0},
}  # fmt: skip


@pytest.fixture
def litellm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of that name that must not be imported, with its table."""
    for folder in ("litellm", "litellm-9.9.dist-info"):
        (tmp_path / folder).mkdir()
    (tmp_path / "litellm/__init__.py").write_text("raise RuntimeError('it was imported')")
    (tmp_path / "litellm-9.9.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: litellm\nVersion: 9.9\n")
    table = tmp_path / "litellm/model_prices_and_context_window_backup.json"
    table.write_text(json.dumps(LITELLMS))
    monkeypatch.syspath_prepend(tmp_path)
    prices._litellms_table.cache_clear()
    yield table
    prices._litellms_table.cache_clear()


def test_litellms_table_is_asked_for_what_ours_has_not(litellm: Path) -> None:
    known = known_price_for(ModelConfig(model_name="gpt-99-2027-01-02"))
    assert known == (Price(input=2, output=8, cached_input=0.5), "the table of litellm 9.9")
    tiers = LongPrompts(above=200_000, input=2, output=2)
    assert price_for(ModelConfig(model_name="gemini/gemini-99")) == Price(input=1, output=5, long_prompts=tiers)
    for unknown in ("gpt-image", "gpt-free", "gpt-98", "anthropic/gpt-99"):
        assert price_for(ModelConfig(model_name=unknown)) is None
    assert price_for(ModelConfig(model_name="gpt-4o")) == price_table().by_provider["OpenAI"]["gpt-4o"]


@pytest.mark.parametrize("text", ["", "[1", "[]"])
def test_a_table_of_litellm_that_cannot_be_read_tells_nothing(litellm: Path, text: str) -> None:
    litellm.write_text(text)
    assert price_for(ModelConfig(model_name="gpt-99")) is None


def test_every_price_is_whole_and_no_model_is_listed_twice() -> None:
    table = price_table()
    makers = {who: models for who, models in table.by_provider.items() if who not in {"Groq", "Together"}}
    listed = [model for models in makers.values() for model in models]  # a host has models that others have, too
    assert len(listed) == len(set(listed)) and {"gpt-4o", "gpt-4o-mini"} <= set(listed)
    for price in (price for models in table.by_provider.values() for price in models.values()):
        assert 0 < price.input <= price.output
        assert price.cached_input is None or price.cached_input <= price.input


def test_cached_prompt_tokens_have_their_own_price() -> None:
    usage = Usage(prompt_tokens=1000, completion_tokens=100, cached_prompt_tokens=400)
    assert cost_of(usage, PRICE) == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 8.0) / 1e6)
    assert cost_of(usage, Price(input=2.0, output=8.0)) == pytest.approx((1000 * 2.0 + 100 * 8.0) / 1e6)


@given(prompt=st.integers(0, 10**6), answer=st.integers(0, 10**6), cached=st.none() | st.integers(0, 2 * 10**6))
def test_cost_is_never_negative_nor_above_the_uncached_price(prompt: int, answer: int, cached: int | None) -> None:
    usage = Usage(prompt_tokens=prompt, completion_tokens=answer, cached_prompt_tokens=cached)
    assert 0 <= cost_of(usage, PRICE) <= (prompt * 2.0 + answer * 8.0) / 1e6 + 1e-12
