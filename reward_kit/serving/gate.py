# SPDX-License-Identifier: Apache-2.0
"""The gate: who a request is from, or why it is not let in.

    client certificate   asked for in the handshake; one of its names must be on the list
    and then, where there are any, one of:
      API key            X-Api-Key: KEY, Authorization: Bearer KEY, or the password in the address (Basic)
      Google ID token    Authorization: Bearer TOKEN

What was wrong with a credential is not told. Where the platform in front checks callers, or where only this machine can
call, there is nothing left to check.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from reward_kit.serving.api_keys import ApiKeys, FileOfKeys, KeySource, OneKey, TextOfKeys
from reward_kit.serving.callers import ANYBODY, Caller
from reward_kit.serving.google_tokens import GoogleTokens
from reward_kit.serving.refusals import Refusal
from reward_kit.serving.request_head import Head
from reward_kit.serving.settings import INHERITED_KEY_VARIABLE, ServeSettings, check_protected, is_loopback

__all__ = ["Gate"]

_TOKEN_DOTS = 2
_NAMES_OF_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


class Gate:
    """Lets callers in."""

    def __init__(
        self,
        settings: ServeSettings,
        environment: Mapping[str, str] | None = None,
        *,
        tokens: GoogleTokens | None = None,
    ) -> None:
        """Read the keys; a `ConfigError` where anybody could call although others than this machine can."""
        check_protected(settings, environment)
        sources = _key_sources(settings, environment)
        self.keys = ApiKeys(sources) if sources else None
        self._tokens = tokens or (GoogleTokens(settings.access) if settings.access.google_audience else None)
        self._certificates = settings.tls.client_ca is not None
        self._allowed_names = frozenset(name.lower() for name in settings.tls.allow_clients)
        self.is_open = self.keys is None and self._tokens is None and not self._certificates
        """Whether nobody is asked who they are."""
        only_here = self.is_open and is_loopback(settings.host) and settings.access.behind is None
        self._hosts = _NAMES_OF_THIS_MACHINE | {settings.host.lower()} if only_here else frozenset[str]()
        """What callers may call this server, where only this machine can call and nobody is asked who they are: a web
        page may have a name of its own lead here. Empty: anything."""

    async def caller_of(self, head: Head, peer_names: Sequence[str]) -> Caller:
        """Who the request is from; a `Refusal` where it is from nobody who may call.

        `peer_names` are those in the certificate that came with the connection.
        """
        if self._hosts and head.host is not None and _without_port(head.host) not in self._hosts:
            raise Refusal.wrong_host()
        peer = self._peer(peer_names) if self._certificates else None
        if self.keys is None and self._tokens is None:
            if head.origin is not None:  # a browser sends its certificate with what any page asks
                raise Refusal.from_a_web_page()
            return peer or ANYBODY
        key, bearer, by_itself = head.credentials()
        if by_itself and head.origin is not None:
            raise Refusal.from_a_web_page()
        if self._tokens is not None and bearer is not None and bearer.count(b".") == _TOKEN_DOTS:
            return await self._tokens.caller_of(bearer.decode("latin-1"))
        presented = key if key is not None else bearer
        if presented is None:
            raise Refusal.no_credential()
        caller = self.keys.caller_of(presented) if self.keys is not None else None
        if caller is None:
            raise Refusal.bad_credential()
        return caller

    def _peer(self, names: Sequence[str]) -> Caller:
        if not self._allowed_names:
            return Caller(names[0] if names else "certificate")
        for name in names:
            if name in self._allowed_names or name.removeprefix("dns:") in self._allowed_names:
                return Caller(name)
        raise Refusal.bad_credential()


def _key_sources(settings: ServeSettings, environment: Mapping[str, str] | None) -> list[KeySource]:
    variables = os.environ if environment is None else environment
    access = settings.access
    inherited = variables.get(INHERITED_KEY_VARIABLE, "")
    return [
        *([OneKey(INHERITED_KEY_VARIABLE, inherited)] if inherited.strip() else ()),
        *(TextOfKeys(name, variables) for name in access.api_key_envs if name != INHERITED_KEY_VARIABLE),
        *(FileOfKeys(path) for path in access.api_key_files),
    ]


def _without_port(host: bytes) -> str:
    name = host.decode("latin-1").strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]
