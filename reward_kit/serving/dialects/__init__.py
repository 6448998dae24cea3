# SPDX-License-Identifier: Apache-2.0
"""The dialects that a server speaks, one module each: see `reward_kit.serving.dialect`.

A dialect is named in `DIALECTS`, or is an import path such as `my_package.my_module:DIALECT`. Only those that a server
speaks are imported.
"""

from __future__ import annotations

from importlib import import_module

from reward_kit.errors import ConfigError
from reward_kit.serving.dialect import Dialect

__all__ = ["DIALECTS", "load_dialect"]

DIALECTS: dict[str, str] = {
    "generic": "reward_kit.serving.dialects.generic:GENERIC",
    "openrlhf": "reward_kit.serving.dialects.openrlhf:OPENRLHF",
    "slime": "reward_kit.serving.dialects.slime:SLIME",
    "nemo-gym": "reward_kit.serving.dialects.nemo_gym:NEMO_GYM",
    "verl": "reward_kit.serving.dialects.verl:VERL",
    "fireworks": "reward_kit.serving.dialects.fireworks:FIREWORKS",
    "azure": "reward_kit.serving.dialects.azure:AZURE",
}
"""Where each dialect is, by its name. `generic` is always spoken."""


def load_dialect(name: str) -> Dialect:
    """The dialect of this name or import path."""
    module, _, attribute = DIALECTS.get(name, name).partition(":")
    try:
        found = getattr(import_module(module), attribute) if attribute else None
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"The dialect {name!r} cannot be loaded: {error}. {_choices()}") from error
    if not isinstance(found, Dialect):
        raise ConfigError(f"There is no dialect {name!r}. {_choices()}")
    return found


def _choices() -> str:
    return f"Use one of {', '.join(DIALECTS)}, or an import path such as 'my_module:DIALECT'."
