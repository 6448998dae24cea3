# SPDX-License-Identifier: Apache-2.0
"""What an actor is told before anything else: the run's settings, and who it is.

Settings may hold credentials, and an actor needs the keys of the run's models. Ray writes the environment of a job to
its logs, and keeps what actors are called with in its object store. So neither has a secret whole: the settings travel
encrypted, and the key to them, drawn anew for each run, in the environment of its actors.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import SecretStr

from reward_kit._version import __version__
from reward_kit.config_models import ModelConfig, PipelineConfig, load_config
from reward_kit.errors import ConfigError
from reward_kit.generation.cache.sharing import scope, stay_within_scope
from reward_kit.generation.factory import key_of
from reward_kit.generation.presets import ADDRESS_VARIABLES
from reward_kit.redaction import remember

__all__ = ["Order", "OrderBook"]

_KEY_VARIABLE = "REWARD_KIT_ACTOR_KEY"

Kind = Literal["generate", "score"]


@dataclass(frozen=True)
class Order:
    """What an actor is told first."""

    kind: Kind
    name: str
    """Of the actor, such as `score-1`."""
    settings: bytes
    """The run's config and the environment to set, encrypted."""
    reward: bytes | None
    """A reward that was given as an object, by cloudpickle."""
    cores: int
    """That the actor may use."""
    versions: tuple[str, str]
    """Of reward-kit and Python at the driver."""
    is_limited: bool
    """Whether the run's money is limited."""

    def opened(self) -> PipelineConfig:
        """The run's settings, in the actor. Its environment is set as they say."""
        self._check_versions()
        key = os.environ.get(_KEY_VARIABLE)
        if key is None:
            raise ConfigError(f"Actor {self.name!r} was started without {_KEY_VARIABLE}. Start it as the engine does.")
        told = json.loads(_crypted(self.settings, key))
        for name, value in told["environment"].items():
            os.environ[name] = value
        for value in told["secrets"]:
            remember(value)
        stay_within_scope(told["cache_scope"])
        return load_config(told["config"])

    def _check_versions(self) -> None:
        here = _versions()
        if here != self.versions:
            theirs = "reward-kit {} on Python {}".format(*self.versions)
            ours = "reward-kit {} on Python {}".format(*here)
            raise ConfigError(
                f"The node of actor {self.name!r} has {ours}, and this process {theirs}. Install the same on both."
            )


class OrderBook:
    """Writes the orders of one run, all with one key."""

    def __init__(self, config: PipelineConfig, reward: Callable[..., Any] | None, *, scoring_needs_judge: bool) -> None:
        """Find the keys of the run's models now: a missing one is said here, and not by an actor far away."""
        self._key = secrets.token_hex(32)
        keys, plain = [], _plain(config.model_dump(mode="python"))
        sections: list[tuple[ModelConfig, dict[str, Any]]] = []
        if config.generation.enabled and config.generation.model_name:
            sections.append((config.generation, plain["generation"]))
        if scoring_needs_judge and config.judge.model_name:
            sections.append((config.judge, plain["judge"]))
        if config.agent is not None and config.agent.user is not None and config.agent.user.model_name:
            sections.append((config.agent.user, plain["agent"]["user"]))
        for section, written in sections:
            if (key := key_of(section)) is not None:
                written["api_key"], written["api_key_env"] = key, None
                keys.append(key)
        plain["engine"] = {"name": "local"}  # an actor starts no cluster
        environment = {
            name: os.environ[name] for name in {*config.engine.env, *ADDRESS_VARIABLES} if name in os.environ
        }
        told = {"config": plain, "environment": environment, "secrets": keys, "cache_scope": scope()}
        self._settings = _crypted(json.dumps(told).encode(), self._key)
        self._reward = None if reward is None else _by_value(reward)
        self._is_limited = config.max_cost is not None

    @property
    def environment(self) -> dict[str, str]:
        """What the actors need in their environment."""
        return {_KEY_VARIABLE: self._key}

    def order(self, kind: Kind, number: int, num_cpus: float) -> Order:
        """The order of one actor."""
        return Order(
            kind, f"{kind}-{number}", self._settings, self._reward if kind == "score" else None,
            max(1, int(num_cpus)), _versions(), self._is_limited,
        )  # fmt: skip


def _versions() -> tuple[str, str]:
    return __version__, f"{sys.version_info.major}.{sys.version_info.minor}"


def _plain(value: Any) -> Any:
    """Settings as JSON, the secrets among them as they are."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return {str(key): _plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(held) for held in value]
    return value


def _crypted(data: bytes, key: str) -> bytes:
    """Encrypted, or, once more, decrypted: by a stream of SHAKE-256. A key is used for one text only."""
    stream = hashlib.shake_256(key.encode()).digest(len(data))
    return (int.from_bytes(data) ^ int.from_bytes(stream)).to_bytes(len(data))


def _by_value(reward: Callable[..., Any]) -> bytes:
    import cloudpickle  # type: ignore[import-untyped]

    module = sys.modules.get(getattr(reward, "__module__", "") or "")
    by_value = module is not None and not _is_installed(module)
    try:
        if by_value:
            cloudpickle.register_pickle_by_value(module)
        return bytes(cloudpickle.dumps(reward, 5))
    except Exception as error:
        raise ConfigError(
            f"The reward cannot be sent to the actors: {type(error).__name__}: {error}. "
            "Put it into a file, and name that instead."
        ) from error
    finally:
        if by_value:
            cloudpickle.unregister_pickle_by_value(module)


def _is_installed(module: Any) -> bool:
    """Whether a module is where packages are installed: the actors have such ones, too."""
    path = getattr(module, "__file__", None) or ""
    return module.__name__ == "__main__" or "site-packages" in path or module.__name__.startswith("reward_kit.")
