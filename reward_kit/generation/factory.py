# SPDX-License-Identifier: Apache-2.0
"""Which client answers for a model's name. Each is imported only when it is the one."""

from __future__ import annotations

from urllib.parse import urlsplit

from reward_kit.config_models import JudgeConfig, ModelConfig
from reward_kit.errors import ConfigError
from reward_kit.generation.client import ModelClient

__all__ = ["is_fireworks", "key_of", "make_client", "make_judge_client"]

OPENAI_API_BASE = "https://api.openai.com/v1"
"""Where a model is asked for when nothing else says where."""


def make_client(config: ModelConfig, *, needs_key: bool = True) -> ModelClient:
    """The client for `config.model_name`; without `needs_key`, one that is only looked at, never asked.

    `mock` and `local[:FILE.gguf]` run in this process, unless an `api_base` says that an endpoint has a model so named.
    `accounts/…` without an `api_base`, and any model at a Fireworks host, go to Fireworks; the rest to `api_base`, or
    to OpenAI.
    """
    name = config.model_name
    if not name:
        raise ConfigError(
            "`generation.model_name` is not set. Set it to a model your endpoint knows (with `generation.api_base` for "
            "an endpoint other than OpenAI or Fireworks), to 'local' for a small model inside this process, or to "
            "'mock' for answers without a model; or set `generation.enabled=false` to score answers in the data."
        )
    if config.api_base is None:
        if name == "mock":
            return _mock(config)
        if name == "local" or name.startswith("local:"):
            return _local(name)
    return _remote(name, config, needs_key=needs_key)


def make_judge_client(config: JudgeConfig) -> ModelClient:
    """The client of a model that judges: any model that writes, or one that is asked for numbers."""
    if config.api == "chat" or (config.model_name == "mock" and config.api_base is None):
        return make_client(config)
    from reward_kit.generation.http.numbers import NumbersClient

    base, key = config.api_base or OPENAI_API_BASE, key_of(config)
    return NumbersClient(
        str(config.model_name), api=config.api, api_base=base, api_key=key, api_params=config.api_params
    )


def key_of(config: ModelConfig) -> str | None:
    """The key that the model's client sends; None where it sends none. One that is missing is an `AuthError`."""
    name = config.model_name
    if not name or (config.api_base is None and (name in {"mock", "local"} or name.startswith("local:"))):
        return None
    from reward_kit.auth import resolve_api_key

    return resolve_api_key(_base_of(config), explicit=config.api_key, env_name=config.api_key_env)


def _mock(config: ModelConfig) -> ModelClient:
    from reward_kit.generation.mock import MockModelClient

    return MockModelClient(config.mock)


def _local(name: str) -> ModelClient:
    from reward_kit.generation.local import LocalModelClient

    _, colon, path = name.partition(":")
    if colon and not path:
        raise ConfigError(
            "`generation.model_name` is 'local:' without a file. Write local:/path/to/model.gguf, or 'local'."
        )
    return LocalModelClient(path or None)


def _remote(name: str, config: ModelConfig, *, needs_key: bool) -> ModelClient:
    from reward_kit.generation.http.clients import FireworksModelClient, OpenAICompatibleClient

    base, key = _base_of(config), key_of(config) if needs_key else None
    client = FireworksModelClient if is_fireworks(name, config.api_base) and needs_key else OpenAICompatibleClient
    return client(name, api_base=base, api_key=key, api_params=config.api_params, n_mode=config.n_mode)


def _base_of(config: ModelConfig) -> str:
    if config.api_base is not None:
        return config.api_base
    from reward_kit.auth import get_fireworks_api_base

    name = config.model_name or ""
    return f"{get_fireworks_api_base()}/inference/v1" if is_fireworks(name, None) else OPENAI_API_BASE


def is_fireworks(name: str, api_base: str | None) -> bool:
    """Whether a model is asked for at Fireworks."""
    if api_base is None:
        return name.startswith("accounts/")
    host = urlsplit(api_base).hostname or ""
    return host == "fireworks.ai" or host.endswith(".fireworks.ai")
