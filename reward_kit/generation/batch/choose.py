# SPDX-License-Identifier: Apache-2.0
"""Which provider's batches a config means, and the price of an answer there."""

from __future__ import annotations

from typing import NamedTuple

from reward_kit.auth import get_fireworks_account_id
from reward_kit.config_models import GenerationConfig, Price
from reward_kit.errors import ConfigError
from reward_kit.generation.batch.fireworks import FireworksBatches, fireworks_root
from reward_kit.generation.batch.openai import OpenAIBatches
from reward_kit.generation.batch.provider import BatchLimits, BatchProvider, LineShape
from reward_kit.generation.batch.rest import Rest
from reward_kit.generation.factory import THROUGH_LITELLM, is_fireworks, make_client
from reward_kit.generation.http.clients import OpenAICompatibleClient
from reward_kit.generation.http.endpoint import EndpointClient
from reward_kit.generation.http.responses import RESPONSES_ROUTE, ResponsesClient
from reward_kit.generation.presets import by_prefix
from reward_kit.generation.prices import price_for
from reward_kit.http.transport import CHAT_ROUTE

__all__ = ["BatchModel", "batch_model", "batch_price", "open_provider"]


class BatchModel(NamedTuple):
    """A model that is asked by batches, before anything is opened."""

    client: EndpointClient
    """Makes the bodies that would be sent online; never asked."""
    shape: LineShape
    limits: BatchLimits


def batch_model(config: GenerationConfig) -> BatchModel:
    """The model that `config` names, asked by batches. A `ConfigError` where it cannot be."""
    client = make_client(config, needs_key=False)
    through_litellm = config.api_base is None and (config.model_name or "").startswith(THROUGH_LITELLM)
    if through_litellm or not isinstance(client, OpenAICompatibleClient | ResponsesClient):
        raise ConfigError(
            f"`generation.transport=batch` needs an endpoint that has OpenAI's or Fireworks' batches, and "
            f"{config.model_name!r} is not asked at one. Leave `generation.transport` out, or name another model."
        )
    provider = FireworksBatches if _is_fireworks(config) else OpenAIBatches
    limits, batch = provider.limits, config.batch
    size = limits.size if batch.max_file_mb is None else min(limits.size, int(batch.max_file_mb * 1_000_000))
    requests = limits.requests if batch.max_requests is None else min(limits.requests, batch.max_requests)
    return BatchModel(client, provider.shape(_route(client)), BatchLimits(requests, size))


def open_provider(config: GenerationConfig) -> BatchProvider:
    """The provider's API, with the key. Nothing is sent yet."""
    from reward_kit.auth import resolve_api_key

    client = batch_model(config).client
    config = by_prefix(config)
    model = client.model
    key = resolve_api_key(client.api_base, explicit=config.api_key, env_name=config.api_key_env)
    base = fireworks_root(client.api_base) if _is_fireworks(config) else client.api_base
    rest = Rest(base, api_key=key, model=model, params=config.api_params)
    if not _is_fireworks(config):
        return OpenAIBatches(rest, window=config.batch.completion_window, route=_route(client))
    account = config.batch.account or get_fireworks_account_id()
    if account is None:
        raise ConfigError(
            "Fireworks' batch inference needs the name of your account. Set the variable FIREWORKS_ACCOUNT_ID, or "
            "batch.account beside the model's name in the config."
        )
    return FireworksBatches(rest, account=account, model=model)


def _route(client: EndpointClient) -> str:
    return RESPONSES_ROUTE if isinstance(client, ResponsesClient) else CHAT_ROUTE


def batch_price(config: GenerationConfig) -> Price | None:
    """What tokens cost in a batch: the online price less the discount; None where that is not known."""
    online = price_for(config)
    if online is None:
        return None
    share = 1 - config.batch.discount
    prices = online.model_dump(exclude_none=True, exclude={"long_prompts"})
    return Price(**{name: price * share for name, price in prices.items()}, long_prompts=online.long_prompts)


def _is_fireworks(config: GenerationConfig) -> bool:
    if config.batch.provider != "auto":
        return config.batch.provider == "fireworks"
    config = by_prefix(config)
    return is_fireworks(config.model_name or "", config.api_base)
