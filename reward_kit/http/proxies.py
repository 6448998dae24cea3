# SPDX-License-Identifier: Apache-2.0
"""The proxy that the environment names for an address."""

from __future__ import annotations

from urllib.parse import urlsplit

from reward_kit.redaction import remember_settings

__all__ = ["proxy_for"]


def proxy_for(url: str) -> str | None:
    """The proxy the environment names for `url`; asked once, not for every request. Never one for this machine."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in {"localhost", "127.0.0.1", "::1"} or proxy_bypass(host):
        return None
    proxy = getproxies().get(parts.scheme)
    if proxy is not None:
        remember_settings({"proxy": proxy})
    return proxy
