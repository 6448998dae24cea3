# SPDX-License-Identifier: Apache-2.0
"""Making something that may be there already: replaced when it is unfinished, or when the user said so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reward_kit.deploy.fireworks.api import FireworksAPI, PlatformAPIError
from reward_kit.errors import DeployError

__all__ = ["create_or_replace"]

_EXISTS = 409


def create_or_replace(
    api: FireworksAPI, path: str, name: str, body: Mapping[str, Any], *, finished: str, replace: bool, exists: str
) -> None:
    """Create `name` under `path`.

    One of that name whose state is `finished` is replaced with `replace` only; otherwise a `DeployError` says `exists`.
    One that never came so far is what an interrupted command left, so it is replaced in any case.
    """
    try:
        api.create(path, body, made=name)
    except PlatformAPIError as error:
        if error.status_code != _EXISTS:
            raise
        there = api.find(name)
        if there is not None and there.get("state") == finished and not replace:
            raise DeployError(exists) from None
        api.delete(name)
        api.create(path, body, made=name)
