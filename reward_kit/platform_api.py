# SPDX-License-Identifier: Apache-2.0
"""The inherited functions for secrets at Fireworks; `reward-kit secrets --store fireworks` does the same."""

from __future__ import annotations

from typing import Any

from reward_kit.deploy.fireworks.api import FireworksAPI, PlatformAPIError
from reward_kit.deploy.fireworks.secrets import delete_secret, find_secret, set_secret

__all__ = [
    "PlatformAPIError",
    "create_or_update_fireworks_secret",
    "delete_fireworks_secret",
    "get_fireworks_secret",
]


def create_or_update_fireworks_secret(
    account_id: str, key_name: str, secret_value: str, api_key: str | None = None, api_base: str | None = None
) -> bool:
    """Keep a secret under a name, in place of what was there. True; what goes wrong is raised."""
    set_secret(FireworksAPI(api_key, account_id, api_base), key_name, secret_value)
    return True


def get_fireworks_secret(
    account_id: str, key_name: str, api_key: str | None = None, api_base: str | None = None
) -> dict[str, Any] | None:
    """What is known of a secret, never its value; None where there is none."""
    return find_secret(FireworksAPI(api_key, account_id, api_base), key_name)


def delete_fireworks_secret(
    account_id: str, key_name: str, api_key: str | None = None, api_base: str | None = None
) -> bool:
    """Take a secret away. True, also where there was none."""
    delete_secret(FireworksAPI(api_key, account_id, api_base), key_name)
    return True
