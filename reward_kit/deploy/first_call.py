# SPDX-License-Identifier: Apache-2.0
"""The first call of what was deployed: it answers, it lets us in, and it judges."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from reward_kit.config_models import RemoteRewardConfig
from reward_kit.deploy.plan import Command, FirstCall, ListTools
from reward_kit.errors import DeployError, ItemError
from reward_kit.http.blocking import ask
from reward_kit.http.faults import HttpFault, moved_to
from reward_kit.redaction import mask, remember
from reward_kit.remote.sign_in import sign_in_for
from reward_kit.utils.event_loop import run_sync

__all__ = ["call_first", "list_tools", "verdict_line"]

_TIMEOUT = 60.0
_PAUSE = 0.5
_LARGEST = 1 << 20
_OK = 200
_NOT_YET = frozenset({404, 502, 503, 504})
"""What a platform answers while a service that was made a moment ago is not there everywhere."""


class _NotYet(DeployError):
    """Nobody answers; perhaps in a moment."""


def call_first(action: FirstCall, key: str | None, run: Callable[[Command], str]) -> dict[str, Any]:
    """What the deployed reward says of the sample. `run` runs a command, for a token where one is needed."""
    deadline = time.monotonic() + action.patience
    while True:
        try:
            result = _post(action, _headers(action, key, run))
            break
        except _NotYet:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE)
    if not _is_verdict(result) and action.is_own:
        raise DeployError(
            "The deployed reward answers, but could not judge the sample: "
            f"{result.get('error') or result.get('reason')}"
        )
    return result


def list_tools(action: ListTools, run: Callable[[Command], str]) -> list[str]:
    """The names of the tools that a deployed MCP server has; tried again while nobody answers."""
    token = _identity_token(run) if action.auth == "google" else None
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    deadline = time.monotonic() + action.patience
    while True:
        try:
            return run_sync(lambda: _tools(action.url, headers))
        except ItemError as error:
            if time.monotonic() >= deadline:
                raise DeployError(f"{action.url!r} does not answer as an MCP server: {mask(str(error))}") from None
            time.sleep(_PAUSE)


async def _tools(url: str, headers: Mapping[str, str]) -> list[str]:
    from reward_kit.agent.mcp.client import McpClient
    from reward_kit.agent.mcp.http import HttpServer

    server = HttpServer(url, headers=headers)
    client = McpClient(server.channel())
    try:
        await client.connect(_TIMEOUT)
        return [tool.name for tool in await client.list_tools(_TIMEOUT)]
    finally:
        await client.close()
        await server.close()


def _identity_token(run: Callable[[Command], str]) -> str:
    token = run(Command(argv=("gcloud", "auth", "print-identity-token", "--quiet"))).strip()
    remember(token)
    return token


def _is_verdict(result: Mapping[str, Any]) -> bool:
    return result.get("score") is not None and not result.get("error")


def verdict_line(result: Mapping[str, Any]) -> str:
    """The verdict, as it is shown."""
    if _is_verdict(result):
        reason = f" ({result['reason']})" if result.get("reason") else ""
        return f"  verdict: {result['score']:g}{reason}"
    why = result.get("error") or result.get("reason") or "it does not say why"
    return f"  It answers, and cannot judge our small sample: {why}\n  Give one of your own with --sample FILE."


def _headers(action: FirstCall, key: str | None, run: Callable[[Command], str]) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "User-Agent": "reward-kit"}
    if action.auth == "api-key":
        return {**headers, "X-Api-Key": str(key)}
    if action.auth == "google":
        return {**headers, "Authorization": f"Bearer {_identity_token(run)}"}
    return _signed(action, headers) if action.auth == "aws" else headers


def _signed(action: FirstCall, headers: Mapping[str, str]) -> dict[str, str]:
    """With AWS's signature, which the function URL checks."""
    signer = sign_in_for(action.url, RemoteRewardConfig(sign_in="aws", aws_region=action.region or None))
    return {**headers, **run_sync(lambda: signer.headers("POST", action.url, _body(action)))}


def _body(action: FirstCall) -> bytes:
    return json.dumps(action.sample).encode()


def _post(action: FirstCall, headers: Mapping[str, str]) -> dict[str, Any]:
    if urlsplit(action.url).scheme not in {"http", "https"}:
        raise DeployError(f"{action.url!r} is not the address of a web service.")
    try:
        reply = ask("POST", action.url, _body(action), headers, seconds=_TIMEOUT, max_reply=_LARGEST)
    except HttpFault as fault:
        raise _NotYet(f"{action.url!r} cannot be reached: {fault}") from None
    if reply.status != _OK:
        said = moved_to(reply.status, reply.headers) or mask(reply.data[:500].decode(errors="replace").strip())
        kind = _NotYet if reply.status in _NOT_YET else DeployError
        raise kind(f"{action.url!r} answered {reply.status}: {said}")
    try:
        answer = json.loads(reply.data)
    except ValueError:
        raise DeployError(f"{action.url!r} did not answer with JSON. Look at its log.") from None
    if not isinstance(answer, dict):
        raise DeployError(f"{action.url!r} did not answer with a verdict. Look at its log.")
    return answer
