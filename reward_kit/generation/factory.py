# SPDX-License-Identifier: Apache-2.0
"""Which client answers for a model's name. Each is imported only when it is the one."""

from __future__ import annotations

from urllib.parse import urlsplit

from reward_kit.config_models import JudgeConfig, ModelConfig
from reward_kit.errors import ConfigError
from reward_kit.generation.client import ModelClient
from reward_kit.generation.presets import PLAIN, api_of, by_prefix, preset_of

__all__ = ["THROUGH_LITELLM", "check_model", "is_fireworks", "key_of", "make_client", "make_judge_client"]

THROUGH_LITELLM = "litellm/"
"""The prefix of models that are asked through the package litellm."""
OPENAI_API_BASE = "https://api.openai.com/v1"
"""Where a model is asked for when nothing else says where."""


def make_client(config: ModelConfig, *, needs_key: bool = True) -> ModelClient:
    """The client for `config.model_name`; without `needs_key`, one that is only looked at, never asked.

    `mock` and `local[:FILE.gguf]` run in this process, unless an `api_base` says that an endpoint has a model so named.
    Without an `api_base`, the prefix of a preset (`anthropic/…`) says where a model is, `accounts/…` is Fireworks, and
    `litellm/…` is asked through litellm.
    Any model at a Fireworks host is asked for there; the rest at `api_base`, or at OpenAI.
    """
    name = _name_of(config)
    _check_tokens(config)
    if config.api_base is None:
        if name == "mock":
            return _mock(config)
        if name == "local" or name.startswith("local:"):
            return _local(name)
        if name.startswith(THROUGH_LITELLM):
            return _through_litellm(config, needs_key=needs_key)
    return _remote(config, needs_key=needs_key)


def check_model(config: ModelConfig) -> None:
    """Refuse a model that has no name, a provider that nobody knows, and a key that is missing; make nothing."""
    _name_of(config)
    _check_tokens(config)
    key_of(config)


def _name_of(config: ModelConfig) -> str:
    if not config.model_name:
        raise ConfigError(
            "`generation.model_name` is not set. Set it to a model and its provider (`anthropic/NAME`), to one your "
            "endpoint knows (with `generation.api_base`), to 'local' for a small model inside this process, or to "
            "'mock' for answers without a model; or set `generation.enabled=false` to score answers in the data."
        )
    return config.model_name


def _check_tokens(config: ModelConfig) -> None:
    """Refuse to ask for the ids of tokens where they are never told."""
    if config.tokens is None:
        return
    name, preset = config.model_name or "", preset_of(config)
    own = preset is None and config.api_base is not None and not is_fireworks(name, config.api_base)
    tells = own or (preset is not None and preset.rules.token_ids is not None)
    if not tells or api_of(config) != "chat":
        raise ConfigError(
            f"`generation.tokens` asks for the ids of tokens, and {name!r} is asked where they are not told. Leave it "
            "out, or ask a server of your own (vLLM, SGLang) by `generation.api_base`."
        )


def make_judge_client(config: JudgeConfig) -> ModelClient:
    """The client of a model that judges: any model that writes, or one that is asked for numbers."""
    api = config.api
    if api == "chat" or api == "responses" or api == "messages" or api == "gemini":  # noqa: PLR1714 - mypy sees what is left
        return make_client(config)
    if config.model_name == "mock" and config.api_base is None:
        return make_client(config)
    from reward_kit.generation.http.numbers import NumbersClient

    meant = by_prefix(config)
    base, key = _base_of(meant), key_of(meant)
    return NumbersClient(str(meant.model_name), api=api, api_base=base, api_key=key, api_params=config.api_params)


def key_of(config: ModelConfig) -> str | None:
    """The key that the model's client sends; None where it sends none. One that is missing is an `AuthError`."""
    name = config.model_name
    if not name or (config.api_base is None and (name in {"mock", "local"} or name.startswith("local:"))):
        return None
    from reward_kit.auth import resolve_api_key

    if config.api_base is None and name.startswith(THROUGH_LITELLM):
        return _key_for_litellm(config)
    config = by_prefix(config)
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


def _through_litellm(config: ModelConfig, *, needs_key: bool) -> ModelClient:
    from reward_kit.generation.http.through_litellm import LiteLLMClient

    name = (config.model_name or "").removeprefix(THROUGH_LITELLM)
    if "/" not in name:
        raise ConfigError(
            f"`generation.model_name` is {config.model_name!r}. Write litellm/PROVIDER/NAME, such as "
            "litellm/cohere_chat/command-a."
        )
    key = key_of(config) if needs_key else None
    return LiteLLMClient(name, api_key=key, api_params=config.api_params, n_mode=config.n_mode)


def _key_for_litellm(config: ModelConfig) -> str | None:
    """The key that the user names; None where litellm is to find it in the environment."""
    if config.api_key is None and config.api_key_env is None:
        return None
    from reward_kit.auth import resolve_api_key

    return resolve_api_key("", explicit=config.api_key, env_name=config.api_key_env)


def _remote(config: ModelConfig, *, needs_key: bool) -> ModelClient:
    from reward_kit.generation.http.clients import FireworksModelClient, OpenAICompatibleClient

    preset, api, config = preset_of(config), api_of(config), by_prefix(config)
    rules = PLAIN if preset is None else preset.rules
    name, base, key = config.model_name or "", _base_of(config), key_of(config) if needs_key else None
    params, n_mode = config.api_params, config.n_mode
    if api == "messages":
        from reward_kit.generation.http.messages import MessagesClient

        return MessagesClient(name, api_base=base, api_key=key, api_params=params, rules=rules)
    if api == "responses":
        from reward_kit.generation.http.responses import ResponsesClient

        return ResponsesClient(name, api_base=base, api_key=key, api_params=params)
    if api == "gemini":
        from reward_kit.generation.http.gemini import GeminiClient

        return GeminiClient(name, api_base=base, api_key=key, api_params=params, n_mode=n_mode)
    if needs_key and is_fireworks(name, config.api_base):
        return FireworksModelClient(name, api_base=base, api_key=key, api_params=params, n_mode=n_mode)
    return OpenAICompatibleClient(name, api_base=base, api_key=key, api_params=params, n_mode=n_mode, rules=rules)


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
