# SPDX-License-Identifier: Apache-2.0
"""The few calls that batches need, over HTTP: JSON, a file sent as a form, a file received piece by piece.

A call that may be repeated is repeated while its failure may pass, as requests for answers are. Files are never in
memory as a whole.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode, urlsplit

import orjson

from reward_kit.config_models import ApiParamsConfig
from reward_kit.errors import EndpointError, ProviderError, RewardKitError
from reward_kit.generation.http.refusals import SentRequest, read_complaint, refusal
from reward_kit.generation.wire import read_json
from reward_kit.http.faults import HttpFault
from reward_kit.http.retry import Patience, Timing, with_retries
from reward_kit.redaction import mask, remember, sent

if TYPE_CHECKING:
    from reward_kit.http.exchange import Body, HttpSession, Response

__all__ = ["NotThere", "Rest"]

T = TypeVar("T")

_LONGEST_SILENCE = 120.0
"""Seconds in which nothing at all comes of a file, before the connection is given up."""


class NotThere(EndpointError):
    """The endpoint does not know what was asked for (404), or has it already where it should be new (409)."""

    def __init__(self, message: str, status: int) -> None:
        """Keep the status, which tells the two apart."""
        super().__init__(message)
        self.status = status


class Rest:
    """One provider's API. Connections are opened in the loop that first uses them."""

    def __init__(
        self, base: str, *, api_key: str | None, model: str, params: ApiParamsConfig, timing: Timing | None = None
    ) -> None:
        """Remember whom to ask, and about which model messages speak."""
        self._base = base.rstrip("/")
        self.shown = mask(self._base)
        self._model = model
        self._params = params
        self._timing = timing or Timing()
        remember(api_key)
        self._api_key = api_key
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._open: HttpSession | None = None
        self.clock_ahead = 0.0
        """By how many seconds the provider's clock is ahead of this one, as far as its replies say."""

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON at `path`."""
        return await self._repeated(partial(self._json, "GET", path, query=query))

    async def post(self, path: str, body: Mapping[str, Any], query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Send JSON that may be sent again."""
        return await self._repeated(partial(self._json, "POST", path, body=body, query=query))

    async def post_once(
        self, path: str, body: Mapping[str, Any], query: Mapping[str, str] | None = None, *, key: str | None = None
    ) -> dict[str, Any]:
        """Send JSON that must not be sent twice. `key` tells servers that know of such keys that it is the same."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return await self._json("POST", path, body=body, query=query, headers=headers)

    async def send_file(self, path: str, file: Path, name: str, fields: Mapping[str, str]) -> dict[str, Any]:
        """Send a file as a form with these fields."""
        return await self._repeated(partial(self._form, path, file, name, fields))

    async def receive(self, url: str, write: Callable[[bytes], None]) -> None:
        """Read what is at a path of ours, or at an address somewhere else (which is not told the key). Done once."""
        async with self._request("GET", url, timeout=None) as response:
            if response.status != 200:
                raise self._refusal(response, await response.read())
            expected = response.headers.get("Content-Length")
            size = 0
            async for piece in response.pieces():
                size += len(piece)
                write(piece)
            if expected is not None and int(expected) != size:
                raise ProviderError(f"{self.shown} sent {size} of {expected} bytes of a file. Try again.")

    async def close(self) -> None:
        """Close the connections."""
        if self._open is not None:
            await self._open.close()
            self._open = None

    # -- one call

    async def _repeated(self, attempt: Callable[[], Any]) -> dict[str, Any]:
        params = self._params
        reply: dict[str, Any] = await with_retries(
            attempt, retries=params.max_retries, timing=self._timing, longest_asked=params.max_retry_after,
            patience=Patience(self._timing, params.max_wait),
        )  # fmt: skip
        return reply

    async def _json(
        self, method: str, path: str, *, body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        data, kind = (None, {}) if body is None else (orjson.dumps(body), {"Content-Type": "application/json"})
        async with self._request(
            method, path, timeout=self._params.timeout, query=query, headers={**kind, **(headers or {})}, data=data
        ) as response:
            return await self._answer(response)

    async def _form(self, path: str, file: Path, name: str, fields: Mapping[str, str]) -> dict[str, Any]:
        from reward_kit.http.exchange import form

        with file.open("rb") as content:
            sent = form(fields, content, name, "application/jsonl")
            async with self._request("POST", path, timeout=None, data=sent) as response:
                return await self._answer(response)

    async def _answer(self, response: Response) -> dict[str, Any]:
        data = await response.read()
        if not 200 <= response.status < 300:
            raise self._refusal(response, data)
        return read_json(data)

    def _refusal(self, response: Response, data: bytes) -> RewardKitError:
        complaint = read_complaint(data)
        if response.status in {404, 409}:
            return NotThere(f"{self.shown} answered {response.status}: {complaint.words}", response.status)
        return refusal(response.status, response.headers, complaint, SentRequest(self.shown, self._model, ()))

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, *, timeout: float | None, query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None, data: Body | None = None,
    ) -> AsyncIterator[Response]:  # fmt: skip
        """One request; a connection that fails is a `ProviderError`."""
        ours = not path.startswith(("http://", "https://"))
        url = f"{self._base}{path}" if ours else path
        sent = {**(self._headers if ours else {}), **(headers or {})}
        try:
            async with self._session().open(
                method, f"{url}?{urlencode(query)}" if query else url, data, sent, seconds=timeout
            ) as response:
                if ours:
                    self._compare_clocks(response.headers.get("Date", ""))
                yield response
        except HttpFault as fault:
            where = urlsplit(url).hostname if not ours else self.shown
            if fault.kind == "too_large":
                raise EndpointError(
                    f"{where}: {fault} where a few lines were expected. Check `generation.api_base`."
                ) from None
            raise ProviderError(
                f"{where} cannot be reached, or ended the connection: {fault}. Check that it runs."
            ) from None

    def _compare_clocks(self, date: str) -> None:
        with suppress(ValueError, OverflowError):
            self.clock_ahead = parsedate_to_datetime(date).timestamp() - time.time()

    def _session(self) -> HttpSession:
        if self._open is None:
            from reward_kit.http.exchange import HttpSession

            self._open = HttpSession(silence=_LONGEST_SILENCE)
            sent(self._api_key)
        return self._open
