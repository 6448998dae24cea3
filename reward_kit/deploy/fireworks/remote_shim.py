# SPDX-License-Identifier: Apache-2.0
"""The file that Fireworks runs for a reward that is served elsewhere: it sends what it gets, and returns the verdict.

It needs nothing but Python. The key comes from a secret in its environment, and goes only to the address in the file.
A call that fails raises: Fireworks then counts a failure, and no score is made up.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from reward_kit.auth import is_private_host
from reward_kit.errors import ConfigError

__all__ = ["remote_shim"]

_SHIM = '''\
"""Judges by asking a reward that is served at URL. Made by reward-kit."""

import json
import os
import urllib.request

URL = {url!r}
SECONDS = {seconds!r}


def evaluate(messages, ground_truth=None, tools=None, **kwargs):
    body = {{"messages": messages, "ground_truth": ground_truth, "tools": tools, "kwargs": kwargs}}
    headers = {{"Content-Type": "application/json"}}
    key = os.environ.get("RK_ENDPOINT_API_KEY")
    if key:
        headers["X-Api-Key"] = key
    request = urllib.request.Request(URL, json.dumps(body, default=_plain).encode(), headers)
    opener = urllib.request.build_opener(_NoRedirect)
    with opener.open(request, timeout=SECONDS) as answer:
        return json.load(answer)


def _plain(value):
    for name in ("model_dump", "dict"):
        if hasattr(value, name):
            return getattr(value, name)()
    return str(value)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The key must not follow a redirect to another host."""

    def redirect_request(self, *_):
        return None
'''


def remote_shim(url: str, seconds: float = 30.0) -> str:
    """The source of `main.py` for a reward that is served at `url`; `/evaluate` is added where it is missing."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"--remote-url is {url!r}; expected an address such as https://rewards.example.com.")
    if parts.scheme == "http" and not is_private_host(parts.hostname):
        raise ConfigError(f"--remote-url is {url!r}: answers and a key would be sent unencrypted. Use https://.")
    if parts.username or parts.password or parts.query:
        raise ConfigError("--remote-url holds a login or a query. Give the bare address, and put a key into a secret.")
    full = url.rstrip("/")
    return _SHIM.format(url=full if full.endswith("/evaluate") else f"{full}/evaluate", seconds=seconds)
