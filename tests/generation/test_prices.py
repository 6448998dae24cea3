# SPDX-License-Identifier: Apache-2.0
"""Prices: known, overridden, or not known; and what usage costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import Price
from reward_kit.generation.prices import cost_of, price_of, price_table
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
