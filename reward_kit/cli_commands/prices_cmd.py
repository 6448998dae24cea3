# SPDX-License-Identifier: Apache-2.0
"""`reward-kit prices`: which models have a known price, and what it is."""

from __future__ import annotations

import click

from reward_kit.cli_commands.output import echo, print_json

__all__ = ["prices"]


@click.command()
@click.argument("text", required=False, default="")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def prices(text: str, as_json: bool) -> None:
    """List the prices that are known, in US dollars for a million tokens; with TEXT, only models whose name contains
    it.

    With the whole name of a model, as a config has it, also where its price is from: litellm's table is asked where
    that package is installed. A config overrides them: `generation.price: {input: 0.4, output: 1.6}`. In best-of-n,
    `prices` in the file.

    \b
    reward-kit prices
    reward-kit prices gpt-4o
    reward-kit prices anthropic/claude-haiku-4-5-20251001
    """
    from reward_kit.config_models import ModelConfig
    from reward_kit.errors import ConfigError
    from reward_kit.generation.presets import preset_of
    from reward_kit.generation.prices import known_price_for, price_table

    table = price_table()
    rows = [
        (provider, model, price)
        for provider, models in table.by_provider.items()
        for model, price in models.items()
        if text.lower() in model.lower()
    ]
    named = ModelConfig(model_name=text)
    try:
        known, preset = (known_price_for(named), preset_of(named)) if text else (None, None)
    except ConfigError:
        known = preset = None  # a part of a name
    if known is not None and all(model != text for _, model, _ in rows):
        rows.append(((preset.prices if preset else None) or "-", text, known.price))
    if as_json:
        found = [{"provider": who, "model": model, **price.model_dump(exclude_none=True)} for who, model, price in rows]
        said = {} if known is None else {"source": known.source}
        print_json({"as_of": table.as_of, **said, "prices": found})
        return
    if not rows:
        echo(f"No price of {text!r} is known. Write generation.price={{input: …, output: …}}, for a million tokens.")
        return
    width = max((len(model) for _, model, _ in rows), default=0)
    echo(f"{'model':<{width}}  {'input':>8}  {'cached':>8}  {'output':>8}  provider")
    for provider, model, price in rows:
        cached = "" if price.cached_input is None else f"{price.cached_input:g}"
        echo(f"{model:<{width}}  {price.input:>8g}  {cached:>8}  {price.output:>8g}  {provider}")
    if known is not None:
        echo(f"The price of {text} is from {known.source}.")
    echo(f"US dollars for a million tokens, as of {table.as_of}. Other prices: set generation.price.input and .output.")
