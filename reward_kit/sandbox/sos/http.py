"""Requests to an SoS server: a deadline on every one, and every way to fail as an error of ours."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from reward_kit.errors import AuthError, SandboxError
from reward_kit.sandbox.sos.protocol import FAILED_TO_PULL, SETUP_FAILED, TOKEN_VARIABLE

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

__all__ = ["SosConnection"]

_log = logging.getLogger(__name__)
_A = TypeVar("_A", bound=BaseModel)
_SHOWN = 2000
_LARGEST = 64 << 20
"""Bytes of one answer."""


class SosConnection:
    """One server, spoken to over kept-alive connections."""

    def __init__(self, base_url: str, token: str | None) -> None:
        self.base_url = base_url.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._session: ClientSession | None = None

    async def post(self, path: str, body: object, answer: type[_A], *, deadline: float) -> _A:
        """What the server answers to `body`; anything but a 200 with that shape is an error."""
        content = await self.request("POST", path, body, deadline=deadline)
        try:
            return answer.model_validate(orjson.loads(content))
        except (orjson.JSONDecodeError, ValidationError):
            raise SandboxError(
                f"{self.base_url}{path} answered {content[:200]!r}, which no SoS server says; check the address"
            ) from None

    async def request(self, method: str, path: str, body: object = None, *, deadline: float) -> bytes:
        """The body of the 200 that comes within `deadline` seconds."""
        import aiohttp

        place = f"the sandbox server {self.base_url}"
        data = None if body is None else orjson.dumps(body)
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            async with (
                asyncio.timeout(deadline),
                self._open_session().request(method, f"{self.base_url}{path}", data=data, headers=headers) as answer,
            ):
                status, content = answer.status, await _read(answer, place)
        except TimeoutError:
            raise SandboxError(
                f"{place} did not answer {method} {path} within {deadline:g} s; check that it is well, and try again"
            ) from None
        except aiohttp.ClientConnectorError as error:
            raise SandboxError(
                f"cannot reach {place}: {error.strerror or error}; start one with `reward-kit sandbox serve`, or name "
                "the right address with `sandbox.sos_url`"
            ) from error
        except (aiohttp.ClientError, ConnectionError, OSError) as error:
            text = str(error) or type(error).__name__
            raise SandboxError(
                f"{place} broke off {method} {path}: {text}; check that it is well, and try again"
            ) from error
        if status == 200:  # noqa: PLR2004
            return content
        raise _failure(place, f"{method} {path}", status, content.decode("utf-8", "replace")[:_SHOWN])

    async def quietly(self, path: str, body: object, *, deadline: float) -> None:
        """Post something whose failure changes nothing for the caller: the server's own reaper mends it."""
        try:
            await self.request("POST", path, body, deadline=deadline)
        except (SandboxError, AuthError) as error:
            _log.warning("%s", error)

    async def close(self) -> None:
        """Close the connections. The next request would open new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open_session(self) -> ClientSession:
        if self._session is None:
            import aiohttp

            # A start waits for its turn on an open connection, so there is no bound on their number here.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
                headers={"Accept-Encoding": "identity"},
                auto_decompress=False,  # nothing packed is asked for, and nothing is unpacked
            )
        return self._session


async def _read(answer: ClientResponse, place: str) -> bytes:
    """The body, as long as it is not too large."""
    parts, size = [], 0
    async for part in answer.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > _LARGEST:
            raise SandboxError(
                f"{place} answered with more than {_LARGEST >> 20} MB; check the address", retryable=False
            )
    return b"".join(parts)


def _failure(place: str, what: str, status: int, text: str) -> SandboxError | AuthError:
    if status == 401:  # noqa: PLR2004
        return AuthError(f"{place} refuses the token; set {TOKEN_VARIABLE} to the one it printed at its start")
    if status == 400 and text.startswith(SETUP_FAILED):  # noqa: PLR2004
        return SandboxError(f"{text.rstrip()}; correct the set-up commands of this task", retryable=False)
    if status == 400 and text.startswith(FAILED_TO_PULL):  # noqa: PLR2004
        return SandboxError(f"{place}: {text}; name an image it has with `sandbox.image`", retryable=False)
    if status == 400 and what.endswith("/start"):  # noqa: PLR2004 - a server of ours says what its backend said
        return SandboxError(text, retryable=False)
    final = status in (400, 413, 415, 422)
    advice = "check what is asked of it" if final else "check that it is well, and try again"
    return SandboxError(f"{place} answered {status} to {what}: {text}; {advice}", retryable=not final)
