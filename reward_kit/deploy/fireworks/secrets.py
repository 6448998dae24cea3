# SPDX-License-Identifier: Apache-2.0
"""Secrets kept at Fireworks. A value is written and never read back: Fireworks does not give it out."""

from __future__ import annotations

import re
from typing import Any

from reward_kit.deploy.fireworks.api import FireworksAPI
from reward_kit.errors import ConfigError, DeployError
from reward_kit.redaction import remember

__all__ = ["FireworksStore", "delete_secret", "find_secret", "list_secrets", "secret_id", "set_secret"]


def secret_id(name: str) -> str:
    """The id of a secret: `OPENAI_API_KEY` is kept as `openai-api-key`."""
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not found:
        raise ConfigError(f"A secret cannot be called {name!r}. Use letters, digits and underscores.")
    return found


def _path(api: FireworksAPI, name: str) -> str:
    return f"accounts/{api.account}/secrets/{secret_id(name)}"


def set_secret(api: FireworksAPI, name: str, value: str) -> None:
    """Keep a value, in place of what was there."""
    remember(value)
    path = _path(api, name)
    body = {"keyName": secret_id(name).upper().replace("-", "_"), "value": value}
    if find_secret(api, name) is not None:
        api.patch(path, body)
    else:
        api.create(f"accounts/{api.account}/secrets", {"name": path, **body}, made=path)


def find_secret(api: FireworksAPI, name: str) -> dict[str, Any] | None:
    """What is known of a secret, without its value; None where there is none."""
    return api.find(_path(api, name))


def list_secrets(api: FireworksAPI) -> list[str]:
    """The names of all secrets."""
    found = api.listed(f"accounts/{api.account}/secrets", "secrets")
    return sorted(str(secret.get("keyName") or secret.get("name", "").rpartition("/")[2]) for secret in found)


def delete_secret(api: FireworksAPI, name: str) -> bool:
    """Take a secret away; False where there was none."""
    return api.delete(_path(api, name))


class FireworksStore:
    """Fireworks as a store of `reward-kit secrets`."""

    def __init__(self, api: FireworksAPI | None = None) -> None:
        self._api = api or FireworksAPI()

    def put(self, name: str, value: str) -> None:
        """Keep the value under the name, in the place of one that is there."""
        set_secret(self._api, name, value)

    def names(self) -> list[str]:
        """The names of all secrets of the account."""
        return list_secrets(self._api)

    def remove(self, name: str) -> None:
        """Take it away; a `DeployError` where there is none."""
        if not delete_secret(self._api, name):
            raise DeployError(f"Fireworks has no secret {name!r}. See: reward-kit secrets list --store fireworks")
