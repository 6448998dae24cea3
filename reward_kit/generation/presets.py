# SPDX-License-Identifier: Apache-2.0
"""Providers by the prefix of a model's name: `anthropic/NAME` is NAME at Anthropic.

    generation.model_name=PREFIX/NAME, no api_base ─▶ PRESETS[PREFIX] ─▶ name, address, key variable, rules
                          NAME alone ─▶ openai        accounts/… ─▶ fireworks

Most of them speak OpenAI's chat completions at the address given here, Anthropic its own Messages and Gemini Google's
API; what they take differently is their `RequestRules`. A prefix means nothing where `api_base` is set: a gateway may
well have a model called `openai/gpt-6-luna`.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from reward_kit.auth import is_private_host, key_variable_of
from reward_kit.config_models import GenerationConfig, ModelConfig, WritingApi
from reward_kit.errors import AuthError, ConfigError

__all__ = [
    "ADDRESS_VARIABLES", "PLAIN", "PRESETS", "Preset", "RequestRules", "address_elsewhere", "api_of", "asked_name",
    "by_prefix",
    "preset_of",
]  # fmt: skip

AnyModel = TypeVar("AnyModel", bound=ModelConfig)

_NOTHING: Mapping[str, str] = MappingProxyType({})


class RequestRules(NamedTuple):
    """How an endpoint's requests differ from OpenAI's chat completions."""

    names: Mapping[str, str] = _NOTHING
    """Parameters that have another name there."""
    refuses: Mapping[str, str] = _NOTHING
    """Parameters that have no effect there, or fail the request, and why: they are not sent, and recorded."""
    takes_n: bool = True
    """Whether one request may ask for several answers, as far as is known. False: each has a request of its own."""
    token_ids: Mapping[str, object] | None = None
    """What asks for the ids of an answer's tokens; None where they are not told."""


_TELLS_IDS: Mapping[str, object] = MappingProxyType({"return_token_ids": True})
PLAIN = RequestRules(token_ids=_TELLS_IDS)
"""No differences that are known before an endpoint of the user's own is asked, which may well be vLLM or SGLang."""


class Preset(NamedTuple):
    """One provider."""

    address: str | Callable[[], str] | None
    """Its endpoint, or what finds it in the environment. None: the model's own name tells it."""
    key: str | None
    """The environment variable that holds its key."""
    rules: RequestRules = RequestRules()
    model: Callable[[str], str] = str
    """What it calls the model whose name stands behind the prefix."""
    api: WritingApi = "chat"
    """What its models are asked by."""
    chat: str | None = None
    """Where chat completions are asked for, if that is elsewhere and the user wants them."""
    only_responses: re.Pattern[str] | None = None
    """Its models that OpenAI's Responses have, and chat completions have not."""
    prices: str | None = None
    """The section of the table of prices that has its models; None where there is none."""


# ── addresses that the environment decides ───────────────────────────────────────────────────────────────────────────


def _azure() -> str:
    endpoint = _needed("azure", "AZURE_OPENAI_ENDPOINT", "the resource's address, https://NAME.openai.azure.com")
    base = endpoint.rstrip("/").removesuffix("/openai/v1").removesuffix("/openai") + "/openai/v1"
    version = _variable("OPENAI_API_VERSION")
    # A dated version belongs to the older routes, and this one refuses it.
    return base if version is None or re.match(r"\d{4}-", version) else f"{base}?api-version={quote(version)}"


def _bedrock() -> str:
    region = _variable("AWS_REGION") or _needed("bedrock", "AWS_DEFAULT_REGION", "a region such as us-west-2")
    return f"https://bedrock-runtime.{_place('AWS_REGION', region)}.amazonaws.com/openai/v1"


def _vertex() -> str:
    project = _place("GOOGLE_CLOUD_PROJECT", _needed("vertex", "GOOGLE_CLOUD_PROJECT", "the project that pays"))
    location = _place("GOOGLE_CLOUD_LOCATION", _variable("GOOGLE_CLOUD_LOCATION") or "global")
    host = "aiplatform.googleapis.com" if location == "global" else f"{location}-aiplatform.googleapis.com"
    return f"https://{host}/v1/projects/{project}/locations/{location}/endpoints/openapi"


def _needed(prefix: str, variable: str, what: str) -> str:
    value = _variable(variable)
    if value is None:
        raise ConfigError(f"A model called '{prefix}/…' needs the environment variable {variable}: set it to {what}.")
    return value


def _place(variable: str, value: str) -> str:
    """A value that becomes a part of an address, and so of the name of the host that gets the key."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", value):
        raise ConfigError(
            f"The environment variable {variable} holds {value!r}, which cannot be part of an address. "
            "Set it to a plain name: letters, digits and hyphens."
        )
    return value


def _fireworks_name(name: str) -> str:
    return name if name.startswith("accounts/") else f"accounts/fireworks/models/{name}"


def _vertex_name(name: str) -> str:
    return name if "/" in name else f"google/{name}"


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────

_NOT_AT_ANTHROPIC = "Anthropic's Messages do not have it"
_NOT_AT_MISTRAL = "Mistral's API does not have it"
_GROQ_REFUSES = "Groq refuses requests that have it"
_ONE_ANSWER_EACH = RequestRules(takes_n=False)

_OPENAI_RESPONSES = re.compile(
    r"(?:o\d+-pro|gpt-[\d.]+-pro|(?:.*-)?codex|.*-deep-research|computer-use|gpt-daybreak)(?:-|$)"
)

_ALSO_CALLED: Mapping[str, str] = MappingProxyType({
    "claude": "anthropic", "google": "gemini", "gpt": "openai", "grok": "xai", "x-ai": "xai",
})  # fmt: skip
"""What people call a provider who has another prefix here."""

PRESETS: Mapping[str, Preset] = MappingProxyType({
    "openai": Preset(
        "https://api.openai.com/v1", "OPENAI_API_KEY", RequestRules(names={"max_tokens": "max_completion_tokens"}),
        prices="OpenAI", only_responses=_OPENAI_RESPONSES,
    ),
    "anthropic": Preset(
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        RequestRules(
            refuses=dict.fromkeys(
                ("seed", "min_p", "logprobs", "top_logprobs", "logit_bias", "presence_penalty", "frequency_penalty"),
                _NOT_AT_ANTHROPIC,
            ),
            names={"stop": "stop_sequences", "reasoning_effort": "output_config"},
            takes_n=False,
        ),
        api="messages",
        prices="Anthropic",
    ),
    "gemini": Preset(
        "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", api="gemini", prices="Google",
        chat="https://generativelanguage.googleapis.com/v1beta/openai",
    ),
    "azure": Preset(_azure, "AZURE_OPENAI_API_KEY", prices="OpenAI", only_responses=_OPENAI_RESPONSES),
    "bedrock": Preset(_bedrock, "AWS_BEARER_TOKEN_BEDROCK", _ONE_ANSWER_EACH, prices="Bedrock"),
    "vertex": Preset(_vertex, "VERTEX_ACCESS_TOKEN", model=_vertex_name, prices="Google"),
    "together": Preset(
        "https://api.together.ai/v1", "TOGETHER_API_KEY", RequestRules(token_ids={"logprobs": 1}), prices="Together"
    ),
    "groq": Preset(
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        RequestRules(refuses=dict.fromkeys(("logprobs", "top_logprobs", "logit_bias"), _GROQ_REFUSES), takes_n=False),
        prices="Groq",
    ),
    "mistral": Preset(
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        RequestRules(
            names={"seed": "random_seed"},
            refuses=dict.fromkeys(("logprobs", "top_logprobs", "logit_bias"), _NOT_AT_MISTRAL),
            takes_n=False,
        ),
        prices="Mistral",
    ),
    "deepseek": Preset("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", _ONE_ANSWER_EACH, prices="DeepSeek"),
    "xai": Preset("https://api.x.ai/v1", "XAI_API_KEY", prices="xAI", only_responses=re.compile(r".*-multi-agent\b")),
    "openrouter": Preset("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "fireworks": Preset(None, "FIREWORKS_API_KEY", model=_fireworks_name, prices="Fireworks"),
    "ollama": Preset("http://localhost:11434/v1", None, _ONE_ANSWER_EACH),
    "vllm": Preset("http://localhost:8000/v1", None, PLAIN),
})  # fmt: skip
"""The providers that a prefix names."""


_OPENAI_BASE = "OPENAI_BASE_URL"
"""OpenAI's own client looks for its address here, and so do many others."""


def _address_variable(prefix: str) -> str:
    return f"REWARD_KIT_{prefix.upper()}_API_BASE"


ADDRESS_VARIABLES = frozenset(
    {"AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "AWS_REGION", "AWS_DEFAULT_REGION", "GOOGLE_CLOUD_PROJECT"}
    | {"GOOGLE_CLOUD_LOCATION", "FIREWORKS_API_BASE", _OPENAI_BASE}
    | {_address_variable(prefix) for prefix in PRESETS}
)
"""Environment variables that decide where a preset's requests go. None of them holds a secret."""


# ── what a config means ──────────────────────────────────────────────────────────────────────────────────────────────


def by_prefix(config: AnyModel) -> AnyModel:
    """The same config with the preset's name, address and key variable filled in; as it is where no preset is meant.

    What the user has set stays: a key of their own, and the way in which n answers are asked for.
    """
    prefix, name = _split(config)
    if prefix is None:
        _check_spelling(config)
        return config
    preset = PRESETS[prefix]
    by_chat = preset.chat is not None and api_of(config) == "chat"
    address = _address(prefix, preset._replace(address=preset.chat) if by_chat else preset)
    changes: dict[str, object] = {"model_name": preset.model(name), "api_base": address}
    if config.api_key is None and config.api_key_env is None and _key_must_be_named(prefix, preset):
        changes["api_key_env"] = preset.key
    if config.n_mode == "auto" and not preset.rules.takes_n:
        changes["n_mode"] = "fanout"
    return config.model_copy(update=changes)


def asked_name(config: ModelConfig) -> str:
    """What the provider calls the model: the name that is sent, and that has a price."""
    prefix, name = _split(config)
    return name if prefix is None else PRESETS[prefix].model(name)


def api_of(config: ModelConfig) -> WritingApi:
    """By which API a model that writes is asked: what the user says, else what its provider has for it."""
    chosen: WritingApi | None = getattr(config, "api", None)
    if chosen in {"responses", "messages", "gemini"} or (chosen is not None and isinstance(config, GenerationConfig)):
        return chosen or "chat"
    preset = preset_of(config)
    if preset is None:
        return "chat"
    only = preset.only_responses
    return "responses" if only is not None and only.match(asked_name(config)) else preset.api


def preset_of(config: ModelConfig) -> Preset | None:
    """The provider that the prefix of the model's name means; None where it means none."""
    prefix, _ = _split(config)
    return None if prefix is None else PRESETS[prefix]


def _split(config: ModelConfig) -> tuple[str | None, str]:
    """The preset that the model's name means, and the name there; None and the whole name where it means none.

    A name alone is a model of OpenAI, and `accounts/…` one of Fireworks. Where `OPENAI_BASE_URL` names an endpoint, any
    name that means no other provider is a model there.
    """
    whole = config.model_name or ""
    prefix, slash, name = whole.partition("/")
    if config.api_base is not None or whole == "" or _is_of_this_process(whole):
        return None, whole
    if name and prefix in PRESETS:
        return prefix, name
    if prefix == "accounts":
        return "fireworks", whole
    if not slash:
        return (None if _is_misspelt(whole) else "openai"), whole
    elsewhere = _variable(_OPENAI_BASE) is not None and name and prefix != "litellm"
    return ("openai" if elsewhere else None), whole


def _is_of_this_process(name: str) -> bool:
    return name in {"mock", "local"} or name.startswith("local:")


def _is_misspelt(name: str) -> bool:
    before, colon, _ = name.partition(":")
    return bool(colon) and before in PRESETS


def _check_spelling(config: ModelConfig) -> None:
    """Refuse a name that means some provider, and none of ours: its prompts would go to OpenAI."""
    whole = config.model_name or ""
    prefix, slash, name = whole.partition("/")
    if config.api_base is not None:
        return
    if slash and not name and prefix in PRESETS:
        raise ConfigError(f"`generation.model_name` is {whole!r}, without a model. Write {whole}NAME.")
    if not slash and _is_misspelt(whole):
        raise ConfigError(f"`generation.model_name` is {whole!r}. Did you mean {whole.replace(':', '/', 1)!r}?")
    if not slash:
        return
    near = _ALSO_CALLED.get(prefix.lower()) or next(
        iter(difflib.get_close_matches(prefix.lower(), PRESETS, n=1, cutoff=0.8)), None
    )
    meant = "" if near is None else f" Did you mean {near + '/' + name!r}?"
    raise ConfigError(
        f"There is no provider {prefix!r} for the model {whole!r}.{meant} Providers are {', '.join(PRESETS)}; others "
        f"are asked as litellm/PROVIDER/NAME. A model that is really called {whole!r} needs the address of its "
        "endpoint as `generation.api_base`."
    )


def address_elsewhere(prefix: str) -> str | None:
    """Where the environment sends a preset's requests; None where it does not say, and they go to the provider."""
    return _elsewhere(prefix)[1]


def _elsewhere(prefix: str) -> tuple[str, str | None]:
    """The variable that names another address for a preset, and the address."""
    ours = _address_variable(prefix)
    variable = _OPENAI_BASE if prefix == "openai" and _variable(ours) is None else ours
    return variable, _variable(variable)


def _address(prefix: str, preset: Preset) -> str | None:
    variable, elsewhere = _elsewhere(prefix)
    if elsewhere is not None:
        _check_elsewhere(variable, elsewhere, preset)
        return elsewhere
    address = preset.address() if callable(preset.address) else preset.address
    if prefix == "azure" and address is not None:
        _check_elsewhere("AZURE_OPENAI_ENDPOINT", address, preset)
    return address


def _check_elsewhere(variable: str, address: str, preset: Preset) -> None:
    """An address from the environment gets the provider's key, unless that would be somebody else's, or in the open."""
    try:
        url = urlsplit(address)
    except ValueError:
        return  # what is no address is said where requests are made
    host = url.hostname or ""
    if preset.key is None or is_private_host(host):
        return
    if key_variable_of(host) not in {None, preset.key}:
        raise AuthError(
            f"{variable} names {host!r}, another provider's host, and the key in {preset.key} does not go there. "
            f"Correct {variable}, or unset it."
        )
    if url.scheme != "https":
        raise AuthError(f"{variable} would send the key in {preset.key} unencrypted. Use https:// in it.")


def _key_must_be_named(prefix: str, preset: Preset) -> bool:
    """Whether the host alone does not tell the key: it is one of many, or the user has named another."""
    if preset.key is None:
        return False
    if address_elsewhere(prefix) is not None:
        return _variable(preset.key) is not None
    return prefix in {"azure", "bedrock", "vertex"}


def _variable(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None
