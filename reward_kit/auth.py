# SPDX-License-Identifier: Apache-2.0
"""Credentials: what was given, then the environment, then `~/.fireworks/auth.ini`. Never printed, never logged.

A key is sent only to the host it belongs to. A host we do not know gets none, unless the user names the key for it.
"""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from reward_kit.errors import AuthError
from reward_kit.redaction import NOT_A_VARIABLE, is_variable_name, mask, remember, without_secrets

__all__ = [
    "get_fireworks_account_id", "get_fireworks_api_base", "get_fireworks_api_key", "is_private_host", "key_variable_of",
    "resolve_api_key", "resolve_endpoint_key", "without_secrets",
]  # fmt: skip

FIREWORKS_API_BASE = "https://api.fireworks.ai"
"""Where Fireworks answers, unless `FIREWORKS_API_BASE` says otherwise."""

KEY_VARIABLES = {
    "anthropic.com": "ANTHROPIC_API_KEY",
    "api.x.ai": "XAI_API_KEY",
    "cerebras.ai": "CEREBRAS_API_KEY",
    "deepinfra.com": "DEEPINFRA_API_KEY",
    "deepseek.com": "DEEPSEEK_API_KEY",
    "fireworks.ai": "FIREWORKS_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
    "groq.com": "GROQ_API_KEY",
    "mistral.ai": "MISTRAL_API_KEY",
    "openai.com": "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
    "router.huggingface.co": "HF_TOKEN",
    "together.ai": "TOGETHER_API_KEY",
    "together.xyz": "TOGETHER_API_KEY",
}
"""A provider's domain (its subdomains included): the environment variable that holds its key."""


def get_fireworks_api_key() -> str | None:
    """The Fireworks key from `FIREWORKS_API_KEY`, else from `~/.fireworks/auth.ini`."""
    key = _from_environment("FIREWORKS_API_KEY") or _auth_file().get("api_key")
    remember(key)
    return key


def get_fireworks_account_id() -> str | None:
    """The Fireworks account from `FIREWORKS_ACCOUNT_ID`, else from `~/.fireworks/auth.ini`."""
    return _from_environment("FIREWORKS_ACCOUNT_ID") or _auth_file().get("account_id")


def get_fireworks_api_base() -> str:
    """The root of the Fireworks API: `FIREWORKS_API_BASE`, else the public one."""
    return (_from_environment("FIREWORKS_API_BASE") or FIREWORKS_API_BASE).rstrip("/")


def resolve_api_key(api_base: str, *, explicit: SecretStr | None = None, env_name: str | None = None) -> str | None:
    """The key to send to `api_base`: the one given, the one the named variable holds, else its provider's own.

    `None` means that none is needed (this machine, a private network) or none is known for that host. A key that is
    needed and missing is an `AuthError` that says which variable to set.
    """
    key = _find_key(api_base, explicit=explicit, env_name=env_name)
    remember(key)
    return key


def _find_key(api_base: str, *, explicit: SecretStr | None, env_name: str | None) -> str | None:
    if explicit is not None and (given := explicit.get_secret_value().strip()):
        return given
    if env_name is not None:
        return _named(env_name)
    url = urlsplit(api_base)
    variable = key_variable_of(url.hostname or "")
    if variable is None:
        return None
    if url.scheme != "https":
        raise AuthError(
            f"The key in {variable} would be sent unencrypted to {mask(api_base)!r}. Use https:// in api_base."
        )
    key = get_fireworks_api_key() if variable == "FIREWORKS_API_KEY" else _from_environment(variable)
    if key is None:
        raise AuthError(f"{url.hostname} needs an API key and none was found. {_how_to_set(variable)}")
    return key


def resolve_endpoint_key(endpoint: str, env_name: str | None = None) -> str | None:
    """The key to send to a reward's address: what the named variable holds, else what belongs to that host.

    To Fireworks (also where `FIREWORKS_API_BASE` says it is) goes Fireworks' key, to any other host the `api_key` in
    the section of `~/.fireworks/auth.ini` that has its name: `[rewards.example.com]`, or `[127.0.0.1:8000]`. None: no
    key is known for it. A key that would be sent unencrypted through the open is an `AuthError`.
    """
    url = urlsplit(endpoint)
    host = (url.hostname or "").lower()
    key = _named(env_name) if env_name is not None else _key_of_host(host, url.netloc.lower())
    remember(key)
    if key is not None and url.scheme != "https" and not is_private_host(host):
        raise AuthError(f"The key for {host!r} would be sent unencrypted. Use https:// in its address.")
    return key


def _key_of_host(host: str, netloc: str) -> str | None:
    if host == "fireworks.ai" or host.endswith(".fireworks.ai") or host == _fireworks_host():
        key = get_fireworks_api_key()
        if key is None:
            raise AuthError(f"Fireworks needs an API key. {_how_to_set('FIREWORKS_API_KEY')}")
        return key
    return _auth_file(netloc).get("api_key") or _auth_file(host).get("api_key")


def _fireworks_host() -> str | None:
    return urlsplit(get_fireworks_api_base()).hostname


def is_private_host(host: str) -> bool:
    """Whether `host` is this machine or a private network's, where endpoints usually want no key."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".internal"))
    return address.is_private or address.is_loopback or address.is_link_local


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _named(env_name: str) -> str:
    if not is_variable_name(env_name):
        remember(env_name)
        raise AuthError(NOT_A_VARIABLE)
    key = _from_environment(env_name)
    if key is None:
        raise AuthError(
            f"The environment variable {env_name!r} (api_key_env) is not set. Put the endpoint's key into it."
        )
    return key


def key_variable_of(host: str) -> str | None:
    """The environment variable that holds the key of the provider at `host`; None where no provider is known there."""
    if is_private_host(host):
        return None
    matches = (variable for domain, variable in KEY_VARIABLES.items() if host == domain or host.endswith(f".{domain}"))
    return next(matches, None)


def _how_to_set(variable: str) -> str:
    if variable == "FIREWORKS_API_KEY":
        return "Set FIREWORKS_API_KEY, or put `api_key = …` into ~/.fireworks/auth.ini."
    return f"Set {variable}, or name another variable as `generation.api_key_env`."


def _from_environment(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None


def _auth_file(section: str = "fireworks") -> dict[str, str]:
    path = Path.home() / ".fireworks" / "auth.ini"
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise AuthError(
            f"{str(path)!r} cannot be read ({error.strerror}). Make it readable, or set FIREWORKS_API_KEY."
        ) from None
    return _read_ini(text, section)


def _read_ini(text: str, section: str) -> dict[str, str]:
    """The keys that stand under the section's header.

    Those of Fireworks may also stand before any header, or in a file that has one section only, under any name. A
    section that is called like a host (`[rewards.example.com]`, `[127.0.0.1:8000]`) holds that host's key and no other.
    """
    sections = _ini_sections(text)
    if section != _FIREWORKS:
        return sections.get(section, {})
    only = next(iter(sections)) if len(sections) == 1 else _FIREWORKS
    if not _may_be_host(only):
        return {**sections.get("", {}), **sections.get(only, {})}
    return {}


_FIREWORKS = "fireworks"


def _ini_sections(text: str) -> dict[str, dict[str, str]]:
    """The keys by section, in the order of the file; those before any header are of the section without a name."""
    sections: dict[str, dict[str, str]] = {}
    current = ""
    for line in map(str.strip, text.lstrip("\ufeff").splitlines()):
        if line.startswith("["):
            current = line.removeprefix("[").rpartition("]")[0].strip().lower()
        elif not line.startswith(("#", ";")) and "=" in line:
            name, _, value = line.partition("=")
            if cleaned := _ini_value(value.strip()):
                sections.setdefault(current, {})[name.strip().lower()] = cleaned
    return sections


def _may_be_host(section: str) -> bool:
    return "." in section or ":" in section or section == "localhost"


def _ini_value(value: str) -> str:
    """The value without its quotes, or without the comment that follows it."""
    if value[:1] in {'"', "'"}:
        return value[1:].partition(value[0])[0].strip()
    for mark in (" #", " ;", "\t#", "\t;"):
        value = value.partition(mark)[0]
    return value.strip()
