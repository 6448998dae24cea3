# SPDX-License-Identifier: Apache-2.0
"""What runs inside AWS Lambda: events of a function URL become requests to the same application that `serve` runs.

    event ─▶ ASGI scope ─▶ RewardApp (gate, limits, dialects, judging) ─▶ reply ─▶ what Lambda sends

The application is opened once per instance. Secrets are read from Secrets Manager when it starts; the API key again
every five minutes, so that a new one is taken without a deployment. No web server and no web framework is needed.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_kit.deploy.bundle_layout import KEY_VARIABLE, MANIFEST, PROJECT, SECRETS_VARIABLE, SERVE_FILE
from reward_kit.errors import DeployError
from reward_kit.redaction import remember

if TYPE_CHECKING:
    from reward_kit.serving.app import RewardApp

__all__ = ["Function", "SecretOfKeys", "handle"]

_FRESH_SECONDS = 300.0
_LARGEST_REPLY = 6_000_000
"""Bytes that Lambda takes for an answer: 6 MB, with room for what is around the body."""


class SecretOfKeys:
    """API keys in a secret of Secrets Manager, read again when they are five minutes old."""

    def __init__(self, arn: str, read: Callable[[str], str], clock: Callable[[], float] = time.monotonic) -> None:
        """`read` gives the value of the secret that an ARN names."""
        self.name = arn
        self._read = read
        self._clock = clock
        self._known = ""
        self._until = -1.0

    def changed(self) -> bool:
        """Whether what is known is old enough to be read again."""
        return self._clock() >= self._until

    def read(self) -> str:
        """The keys, a line each. Where the secret cannot be read for a while, what was known stays known."""
        try:
            self._known = self._read(self.name)
        except DeployError as error:
            if not self._known:
                raise OSError(str(error)) from error
        self._until = self._clock() + _FRESH_SECONDS
        return self._known


class Function:
    """One instance: the application, and the event loop that it lives in."""

    def __init__(self, root: Path, read_secret: Callable[[str], str]) -> None:
        """Open what the bundle in `root` serves."""
        with contextlib.suppress(FileNotFoundError):
            os.chdir(root / PROJECT)
        manifest = json.loads((root / MANIFEST).read_bytes())
        for place in reversed(manifest["import_roots"]):
            sys.path.insert(0, str(root / place))
        self._loop = asyncio.new_event_loop()
        self._app = _application(root, read_secret)
        self._opened = self._app.open()
        self._loop.run_until_complete(self._opened.__aenter__())

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """What Lambda sends back for an event."""
        return self._loop.run_until_complete(_exchange(self._app, event))

    def close(self) -> None:
        """End what was opened."""
        self._loop.run_until_complete(self._opened.__aexit__(None, None, None))
        self._loop.close()


def _application(root: Path, read_secret: Callable[[str], str]) -> RewardApp:
    from reward_kit.serving.api_keys import ApiKeys
    from reward_kit.serving.app import build_app
    from reward_kit.serving.settings import settings_from_file

    arns: dict[str, str] = json.loads(os.environ.get(SECRETS_VARIABLE, "{}"))
    with _variables({name: read_secret(arn) for name, arn in arns.items()}, only_here={KEY_VARIABLE}):
        app = build_app(settings_from_file(root / SERVE_FILE))
    if KEY_VARIABLE in arns:
        app.gate.keys = ApiKeys([SecretOfKeys(arns[KEY_VARIABLE], read_secret)])
    return app


@contextlib.contextmanager
def _variables(values: Mapping[str, str], *, only_here: set[str]) -> Iterator[None]:
    """Set variables; take those back that no reward needs to see."""
    for name, value in values.items():
        remember(value)
        os.environ[name] = value
    try:
        yield
    finally:
        for name in only_here:
            os.environ.pop(name, None)


def secret_value(arn: str) -> str:
    """The value of a secret of Secrets Manager. Lambda's own runtime brings boto3."""
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client = boto3.client("secretsmanager", region_name=arn.split(":")[3])
        return str(client.get_secret_value(SecretId=arn)["SecretString"])
    except (BotoCoreError, ClientError) as error:
        raise DeployError(f"The secret {arn!r} cannot be read: {error}. Check the permissions of the role.") from None


# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _exchange(app: RewardApp, event: Mapping[str, Any]) -> dict[str, Any]:
    try:
        body = _body(event)
    except ValueError:
        return _refusal(400, "The body is not base64, though it is said to be.")
    sent: list[MutableMapping[str, Any]] = []
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await app(_scope(event, body), receive, send)
    head, content = sent[0], b"".join(message.get("body", b"") for message in sent[1:])
    if len(content) > _LARGEST_REPLY:
        return _refusal(413, "The reply is larger than Lambda takes (6 MB). Send fewer answers at once.")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head["headers"]}
    return _reply(head["status"], headers, content)


def _body(event: Mapping[str, Any]) -> bytes:
    text = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(text).encode("utf-8", errors="surrogatepass")
    return base64.b64decode(text)


def _scope(event: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """The request as ASGI has it. What the event says of the body's size is not believed."""
    request = event.get("requestContext", {}).get("http", {})
    given = {str(name).lower(): str(value) for name, value in (event.get("headers") or {}).items()}
    headers = {**given, "content-length": str(len(body))}
    pairs = [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in headers.items()]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": str(request.get("method", "GET")).upper(),
        "scheme": "https",
        "path": event.get("rawPath") or "/",
        "raw_path": str(event.get("rawPath") or "/").encode(),
        "query_string": str(event.get("rawQueryString") or "").encode(),
        "headers": pairs,
        "client": (str(request.get("sourceIp", "")), 0),
        "server": (given.get("host", ""), 443),
        "state": {},
    }  # fmt: skip


def _refusal(status: int, detail: str) -> dict[str, Any]:
    return _reply(status, {"content-type": "application/json"}, json.dumps({"detail": detail}).encode())


def _reply(status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    try:
        return {"statusCode": status, "headers": dict(headers), "body": body.decode(), "isBase64Encoded": False}
    except UnicodeDecodeError:
        text = base64.b64encode(body).decode()
        return {"statusCode": status, "headers": dict(headers), "body": text, "isBase64Encoded": True}


_function: Function | None = None


def handle(event: Mapping[str, Any], _: Any) -> dict[str, Any]:
    """Lambda's way in. The application is opened with the first event of an instance."""
    global _function  # noqa: PLW0603 - one instance of Lambda is one process, and keeps what it has opened
    if _function is None:
        root = Path(os.environ.get("LAMBDA_TASK_ROOT", "/var/task"))
        _function = Function(root, secret_value)
    return _function.answer(event)
