# SPDX-License-Identifier: Apache-2.0
"""An aiohttp that is inside not as expected: requests go through its ordinary sessions, and all else is as it was."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import ClientRequest, TCPConnector
from aiohttp.client_proto import ResponseHandler

from reward_kit.generation.http.clients import OpenAICompatibleClient
from reward_kit.http import raw_exchange
from reward_kit.http.exchange import SessionExchange
from reward_kit.http.transport import Transport
from tests.generation.loopback import answer, ask, client_of, failure, loopback, scripted, texts

Break = Callable[[pytest.MonkeyPatch], None]


def without_a_method(patch: pytest.MonkeyPatch) -> None:
    class Handler(ResponseHandler):
        set_response_params = property()  # unreadable: as if it were not there

    patch.setattr(raw_exchange, "ResponseHandler", Handler)


def other_arguments_of_a_request(patch: pytest.MonkeyPatch) -> None:
    def request(method: str, url: Any, *, headers: Any) -> ClientRequest:
        raise AssertionError("it is called otherwise")

    patch.setattr(raw_exchange, "ClientRequest", request)


def other_arguments_of_connect(patch: pytest.MonkeyPatch) -> None:
    class Connector(TCPConnector):
        async def connect(self, req: Any, timeout: Any) -> Any:  # type: ignore[override]
            raise AssertionError("it is called otherwise")

    patch.setattr(raw_exchange, "TCPConnector", Connector)


def another_shape_of_a_reply(patch: pytest.MonkeyPatch) -> None:
    class Handler(ResponseHandler):
        async def read(self) -> Any:
            return (*await super().read(), "trailers")

    patch.setattr(raw_exchange, "ResponseHandler", Handler)


def bytes_of_another_kind(patch: pytest.MonkeyPatch) -> None:
    class Handler(ResponseHandler):
        async def read(self) -> Any:
            message: Any
            message, payload = await super().read()
            return message._replace(code=str(message.code)), payload

    patch.setattr(raw_exchange, "ResponseHandler", Handler)


def no_notice_of_what_was_not_asked_for(patch: pytest.MonkeyPatch) -> None:
    class Handler(ResponseHandler):
        should_close = False

    patch.setattr(raw_exchange, "ResponseHandler", Handler)


def a_request_without_a_host(patch: pytest.MonkeyPatch) -> None:
    def request(*given: Any, **named: Any) -> ClientRequest:
        made = ClientRequest(*given, **named)
        del made.headers["Host"]
        return made

    patch.setattr(raw_exchange, "ClientRequest", request)


def no_such_module(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(sys.modules, raw_exchange.__name__, None)


BREAKS: tuple[Break, ...] = (
    without_a_method,
    other_arguments_of_a_request,
    other_arguments_of_connect,
    another_shape_of_a_reply,
    bytes_of_another_kind,
    no_notice_of_what_was_not_asked_for,
    a_request_without_a_host,
    no_such_module,
)


def transport_of(client: OpenAICompatibleClient) -> Transport:
    transport = client._transport
    assert isinstance(transport, Transport)
    return transport


@pytest.mark.parametrize("broken", BREAKS)
async def test_what_the_rehearsal_finds_changed_costs_no_request(
    broken: Break, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken(monkeypatch)
    async with loopback(scripted(answer("yes"))) as endpoint, client_of(endpoint.api_base, max_retries=0) as client:
        assert texts(await ask(client)) == ["yes"]
        assert texts(await ask(client)) == ["yes"]
        assert isinstance(transport_of(client)._exchange, SessionExchange)
    assert len(endpoint.requests) == 2
    assert [(record.levelno, "sessions" in record.message) for record in caplog.records] == [(logging.WARNING, True)]


async def test_an_aiohttp_that_is_as_expected_is_not_complained_of(caplog: pytest.LogCaptureFixture) -> None:
    async with loopback(scripted(answer("yes"))) as endpoint, client_of(endpoint.api_base) as client:
        assert texts(await ask(client)) == ["yes"]
        assert isinstance(transport_of(client)._exchange, raw_exchange.RawExchange)
    assert caplog.records == []


async def test_a_change_met_while_connecting_costs_no_request_either(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(self: TCPConnector, req: Any, traces: Any, timeout: Any) -> Any:
        return object()

    connector = type("Connector", (TCPConnector,), {"connect": connect})
    monkeypatch.setattr(raw_exchange, "TCPConnector", connector)
    async with loopback(scripted(answer("yes"))) as endpoint, client_of(endpoint.api_base, max_retries=0) as client:
        assert texts(await ask(client)) == ["yes"]
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("retries", [0, 1])
async def test_a_request_that_was_sent_when_a_change_was_met_is_lost_as_on_a_broken_connection(
    retries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        loopback(scripted(answer("yes"))) as endpoint,
        client_of(endpoint.api_base, max_retries=retries) as client,
    ):
        monkeypatch.delattr(transport_of(client)._open(), "_limit")  # missed when the reply is there
        first = await ask(client)
        assert texts(await ask(client)) == ["yes"]
    if retries:
        assert texts(first) == ["yes"]
    else:
        assert (failure(first).type, failure(first).retryable) == ("ProviderError", True)
    assert len(endpoint.requests) == 2 + retries
