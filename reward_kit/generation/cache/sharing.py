# SPDX-License-Identifier: Apache-2.0
"""Whose answers a cache may give: at an address of one's own, a name says little of the model behind it.

public address, mock, embedded model   shared by all runs: a name there, or a file's digest, is a model
this machine, a private network        `cache.enabled` not written   within one output directory
                                       `cache.enabled: true`         shared, as far as the server tells no other
                                                                     `root` or digest of the model
"""

from __future__ import annotations

import contextlib
import ipaddress
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from reward_kit.config_models import CacheConfig

__all__ = ["asks_who_answers", "is_own_address", "key_identity", "scope", "stay_within_scope", "within_scope"]

_of_process = uuid.uuid4().hex
_scope: ContextVar[Callable[[], str] | None] = ContextVar("reward-kit cache scope", default=None)


def scope() -> str:
    """Names the output directory that answers are for; outside of a run, this process."""
    within = _scope.get()
    return _of_process if within is None else within()


@contextlib.contextmanager
def within_scope(name: Callable[[], str]) -> Iterator[None]:
    """Let the answers asked for inside be for what `name` returns. It is called where that matters, and only there."""
    token = _scope.set(name)
    try:
        yield
    finally:
        _scope.reset(token)


def stay_within_scope(name: str) -> None:
    """Let all answers that this process asks for from now on be for `name`."""
    global _of_process  # noqa: PLW0603 - it belongs to the process, which works for one run
    _of_process = name


def is_own_address(endpoint: str | None) -> bool:
    """Whether an endpoint is on this machine or in a private network: by its address, or a name without a domain."""
    host = urlsplit(endpoint or "").hostname
    if not host:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        host = host.rstrip(".")
        return "." not in host or host.endswith(_OWN_DOMAINS)
    return address.is_private or address.is_loopback or address.is_link_local or address in _CARRIERS


_OWN_DOMAINS = (".local", ".localhost", ".internal", ".lan", ".home.arpa", ".svc")
_CARRIERS = ipaddress.ip_network("100.64.0.0/10")
"""Shared by the machines of a provider or a mesh, and by nobody else."""


def asks_who_answers(identity: Mapping[str, Any], settings: CacheConfig) -> bool:
    """Whether the server is to be asked which model it has, before its answers are shared."""
    return settings.enabled is True and is_own_address(identity.get("endpoint"))


def key_identity(
    identity: Mapping[str, Any], settings: CacheConfig, told: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """What a model's answers depend on, for the keys of a cache; `told` is what its server says of the model."""
    if told:
        return {**identity, "told": told}
    if settings.enabled is None and is_own_address(identity.get("endpoint")):
        return {**identity, "scope": scope()}
    return identity
