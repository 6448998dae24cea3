# SPDX-License-Identifier: Apache-2.0
"""An OpenAI-compatible endpoint on this machine that says what a script tells it to, and fails as it is told to.

    POST /v1/chat/completions   answers, or a fault; `n`, tools, log-probabilities and `stream` are understood
    GET  /v1/models             the models there are
    GET  /requests              what was asked so far, as JSON; DELETE forgets it

It serves from a thread of its own, so that the code under test may block, or run an event loop, as it likes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple, Self

from aiohttp import web
from pydantic import ValidationError

from reward_kit.errors import RewardKitError
from reward_kit.generation.mock_script import (
    Fault,
    Script,
    ScriptedAnswer,
    ScriptLike,
    called,
    cut_after,
    echo_of,
    ended_before,
    last_user_text,
    read_script,
    words_of,
)
from reward_kit.http.server import serving
from reward_kit.models import Message
from reward_kit.utils.event_loop import new_loop

__all__ = ["AskedRequest", "MockServer", "serve_mock"]

_LARGEST_REQUEST = 1 << 30
_GRACE_SECONDS = 0.5
"""How long requests that are under way may hold up the end."""
_START_SECONDS = 60.0
_ROUTES = ("/v1/chat/completions", "/chat/completions")
_WEB_PAGE = "<html><body><h1>502 Bad Gateway</h1></body></html>"


@dataclass(frozen=True)
class AskedRequest:
    """One request, and what became of it. The key that came with it is not kept."""

    number: int
    """Counted from 1."""
    body: dict[str, Any]
    status: int
    """The HTTP status of the reply; 0 where the connection was cut."""
    fault: str | None
    """The fault that happened; None where it was answered as the script says."""
    answers: tuple[str, ...] = ()
    """The text of each choice."""

    @property
    def model(self) -> str:
        """The model that was asked."""
        return str(self.body.get("model"))

    @property
    def prompt(self) -> str:
        """The last user turn."""
        return last_user_text(_messages(self.body))


class MockServer:
    """A mock endpoint for tests. It runs inside its `with` block.

    with MockServer({"rules": [{"pattern": "capital of France", "response": "Paris"}]}) as server:
        result = evaluate(rows, reward, model={"model_name": "m", "api_base": server.url})
    assert len(server.requests) == 1

    `script` is a file, a mapping with the keys of such a file, a list of answers in order, a function of the messages
    and the draw, or nothing for an echo.
    """

    def __init__(
        self, script: ScriptLike = None, *, host: str = "127.0.0.1", port: int = 0, log: str | Path | None = None
    ) -> None:
        """Read the script; nothing is opened yet. `port=0` takes a free one; `log` is a file for the requests."""
        self._endpoint = _Endpoint(read_script(script), log)
        self._host, self._port = host, port
        self._url: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._fault: BaseException | None = None

    @property
    def url(self) -> str:
        """The address for `api_base`: it ends in /v1."""
        if self._url is None:
            raise RuntimeError("The mock server is not running. Use it in a `with` block.")
        return self._url

    @property
    def requests(self) -> list[AskedRequest]:
        """What was asked so far, in the order in which the replies were made."""
        return list(self._endpoint.requests)

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="reward-kit mock server", daemon=True)
        self._thread.start()
        if not ready.wait(_START_SECONDS):
            raise RuntimeError(f"The mock server did not start within {_START_SECONDS:g} s.")
        if self._fault is not None:
            self._thread.join()
            raise self._fault
        return self

    def __exit__(self, *_: object) -> None:
        loop, stopped, thread = self._loop, self._stopped, self._thread
        if loop is not None and stopped is not None and thread is not None:
            loop.call_soon_threadsafe(stopped.set)
            thread.join()
        self._url = None

    def _run(self, ready: threading.Event) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(self._serve(ready))

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with serve_mock(self._endpoint, self._host, self._port) as url:
                self._url = url
                ready.set()
                await self._stopped.wait()
        except Exception as error:  # noqa: BLE001 - handed over to the thread that waits for the start
            self._fault = error
        finally:
            ready.set()


@asynccontextmanager
async def serve_mock(endpoint: _Endpoint, host: str, port: int) -> AsyncIterator[str]:
    """Serve in this event loop until the block ends; yields the address."""
    app = web.Application(client_max_size=_LARGEST_REQUEST)
    for route in _ROUTES:
        app.router.add_post(route, endpoint.answer)
    app.router.add_get("/v1/models", endpoint.list_models)
    app.router.add_get("/requests", endpoint.list_requests)
    app.router.add_delete("/requests", endpoint.forget_requests)
    async with serving(app, host, port, "port, or 0 for a free one", drain_seconds=_GRACE_SECONDS) as address:
        yield f"{address}/v1"


class _Endpoint:
    """What the server does with a request."""

    def __init__(self, script: Script, log: str | Path | None = None) -> None:
        self.requests: list[AskedRequest] = []
        self._script = script
        self._settings = script.settings
        self._log = None if log is None else Path(log)
        self._came = 0
        self._happened: Counter[int] = Counter()
        self._given: Counter[bytes] = Counter()

    # -- routes

    async def list_models(self, request: web.Request) -> web.Response:
        names = self._settings.models or ["mock"]
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})

    async def list_requests(self, request: web.Request) -> web.Response:
        return web.json_response([asdict(asked) for asked in self.requests])

    async def forget_requests(self, request: web.Request) -> web.Response:
        self.requests.clear()
        return web.Response(status=204)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One request: refused, broken as a fault says, or answered."""
        self._came += 1
        number = self._came
        body = _object(await request.read())
        fault = self._fault_for(number, body)
        if fault is not None and fault.delay:
            await asyncio.sleep(fault.delay)
        refused = _planned(fault) or next(self._refusals(request.headers, body), None)
        if refused is not None:
            self._note(number, body, refused.status, refused.fault)
            return refused.response()
        if fault is not None and fault.cut == "before":
            self._note(number, body, 0, fault.name)
            return _cut_off(request)
        try:
            reply, texts = await self._reply(
                body, number, spoilt=fault is not None and bool(fault.cut or fault.malformed)
            )
        except RewardKitError as error:
            self._note(number, body, 500, "script")
            return _Refused(500, str(error), kind="script_error").response()
        return await self._send(request, number, body, reply, texts, fault)

    async def _send(
        self,
        request: web.Request,
        number: int,
        body: dict[str, Any],
        reply: dict[str, Any],
        texts: Sequence[str],
        fault: Fault | None,
    ) -> web.StreamResponse:
        name = None if fault is None else fault.name
        data = json.dumps(reply).encode()
        if fault is not None and fault.cut == "within":
            self._note(number, body, 0, name)
            return await _break_off(request, data)
        self._note(number, body, 200, name, texts)
        headers = {} if fault is None else _headers(fault)
        if fault is not None and fault.malformed is not None:
            html = fault.malformed == "html"
            kind = "text/html" if html else "application/json"
            return web.Response(body=_malformed(fault.malformed, data, reply), content_type=kind, headers=headers)
        if body.get("stream") is True:
            return await _stream(request, reply, body)
        return web.Response(body=data, content_type="application/json", headers=headers)

    # -- what goes wrong

    def _fault_for(self, number: int, body: Mapping[str, Any]) -> Fault | None:
        """The first fault that happens to this request."""
        for place, fault in enumerate(self._settings.faults):
            often_enough = fault.times is not None and self._happened[place] >= fault.times
            if not often_enough and self._happens(fault, place, number) and _concerns(fault, body):
                self._happened[place] += 1
                return fault
        return None

    def _happens(self, fault: Fault, place: int, number: int) -> bool:
        if not fault.at and fault.every is None and fault.rate is None:
            return True
        if number in fault.at or (fault.every is not None and number % fault.every == 0):
            return True
        # By the request's number, and not by a sequence of dice: the same requests fail however often one is repeated.
        return fault.rate is not None and random.Random(f"{self._settings.seed}/{place}/{number}").random() < fault.rate

    def _refusals(self, headers: Mapping[str, str], body: Mapping[str, Any]) -> Iterator[_Refused]:
        """What an endpoint with these settings does not take of a request."""
        known, choices = self._settings, body.get("n", 1)
        if known.api_key is not None and headers.get("Authorization") != f"Bearer {known.api_key}":
            yield _Refused(401, "Incorrect API key provided.", kind="invalid_api_key")
        if not isinstance(body.get("model"), str) or not isinstance(body.get("messages"), list) or not body["messages"]:
            yield _Refused(400, "A request needs a `model` and a list of `messages`.")
        elif known.models and not any(fnmatchcase(body["model"], name) for name in known.models):
            yield _Refused(404, f"The model {body['model']!r} does not exist.", kind="model_not_found")
        for name in known.refuse_parameters:
            if name in body:
                said = f"Unsupported parameter: {name!r} is not supported with this model."
                yield _Refused(400, said, param=name, kind="unsupported_parameter")
        if not isinstance(choices, int) or choices < 1:
            yield _Refused(400, "`n` must be a whole number of at least 1.", param="n")
        elif known.most_choices is not None and choices > known.most_choices:
            yield _Refused(400, f"`n` must be at most {known.most_choices}.", param="n")
        try:
            _messages(body)
        except ValidationError as error:
            yield _Refused(400, f"`messages`: {error.errors(include_url=False)[0]['msg']}", param="messages")

    # -- what is answered

    async def _reply(self, body: dict[str, Any], number: int, *, spoilt: bool) -> tuple[dict[str, Any], list[str]]:
        """The body of a right answer, and the text of each choice. One that will be `spoilt` uses no answer up."""
        messages, wanted, model = _messages(body), body.get("n", 1), str(body["model"])
        key = hashlib.sha256(json.dumps([model, body["messages"]], sort_keys=True).encode()).digest()
        in_order = 0 if spoilt else min(wanted, self._script.waiting)  # these are nobody's turn
        first = self._given[key] - in_order
        draws = range(first, first + wanted)
        if spoilt:
            answers = [_echo(messages, draw) for draw in draws]
        else:
            self._given[key] += wanted - in_order
            answers = [await self._answer_for(messages, draw, model) for draw in draws]
        if wait := max(answer.how.delay for answer in answers):
            await asyncio.sleep(wait)
        most = body.get("max_tokens") or body.get("max_completion_tokens")
        choices, texts, spoken = [], [], 0
        for index, answer in enumerate(answers):
            message, _ = ended_before(answer.message, body.get("stop"))
            message, was_cut = cut_after(message, most if isinstance(most, int) else None)
            choices.append(
                _choice(index, answer.how, message, was_cut=was_cut, with_logprobs=bool(body.get("logprobs")))
            )
            texts.append(message.text)
            spoken += words_of(message)
        counted = {"prompt_tokens": sum(map(words_of, messages)), "completion_tokens": spoken}
        usage = next((answer.how.usage for answer in answers if answer.how.usage is not None), None)
        if usage is None:
            usage = counted | {"total_tokens": sum(counted.values())}
        named = next((answer.how.model for answer in answers if answer.how.model is not None), model)
        reply = {
            "id": f"chatcmpl-mock-{number}", "object": "chat.completion", "created": 0, "model": named,
            "choices": choices, "usage": usage,
        }  # fmt: skip
        return reply, texts

    async def _answer_for(self, messages: Sequence[Message], draw: int, model: str) -> _Said:
        scripted = self._script.scripted(messages, draw, model)
        if scripted is None and self._script.function is not None:
            said = await called(self._script.function, messages, draw, "The mock's function")
            if isinstance(said, Message):
                return _Said(ScriptedAnswer(), said)
            scripted = said
        return _echo(messages, draw) if scripted is None else _Said(scripted, scripted.message())

    def _note(
        self, number: int, body: dict[str, Any], status: int, fault: str | None, texts: Sequence[str] = ()
    ) -> None:
        asked = AskedRequest(number, body, status, fault, tuple(texts))
        self.requests.append(asked)
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(asked)) + "\n")


class _Said(NamedTuple):
    """An answer, and what the script says of it beside its words."""

    how: ScriptedAnswer
    message: Message


def _echo(messages: Sequence[Message], draw: int) -> _Said:
    return _Said(ScriptedAnswer(), Message(role="assistant", content=echo_of(messages, draw)))


class _Refused(NamedTuple):
    """A reply that is an error, in OpenAI's shape."""

    status: int
    message: str
    param: str | None = None
    kind: str = "invalid_request_error"
    headers: Mapping[str, str] = {}
    fault: str | None = None

    def response(self) -> web.Response:
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.kind}
        return web.json_response({"error": error}, status=self.status, headers=dict(self.headers))


_KINDS = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


def _planned(fault: Fault | None) -> _Refused | None:
    """The error of a fault that has a status."""
    if fault is None or fault.status is None:
        return None
    kind = _KINDS.get(fault.status, "server_error" if fault.status >= 500 else "invalid_request_error")
    said = fault.message or f"The mock answers {fault.status}, as its script says."
    return _Refused(fault.status, said, kind=kind, headers=_headers(fault), fault=fault.name)


def _headers(fault: Fault) -> dict[str, str]:
    asked = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
    return {**asked, **fault.headers}


def _concerns(fault: Fault, body: Mapping[str, Any]) -> bool:
    if fault.model is not None and not fnmatchcase(str(body.get("model")), fault.model):
        return False
    if fault.pattern is None:
        return True
    try:
        prompt = last_user_text(_messages(body))
    except ValidationError:
        return False
    return re.search(fault.pattern, prompt) is not None


def _object(data: bytes) -> dict[str, Any]:
    """The body of a request; empty where it is no JSON object, which is refused later."""
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _messages(body: Mapping[str, Any]) -> list[Message]:
    turns = body.get("messages")
    return [Message.model_validate(turn) for turn in turns] if isinstance(turns, list) else []


# ── replies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _choice(index: int, how: ScriptedAnswer, message: Message, *, was_cut: bool, with_logprobs: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": message.content}
    if how.refusal is not None:
        said |= {"content": how.content, "refusal": how.refusal}
    if message.reasoning_content is not None:
        said["reasoning_content"] = message.reasoning_content
    if message.tool_calls:
        said["tool_calls"] = [call.model_dump() for call in message.tool_calls]
    reason = how.finish_reason or ("length" if was_cut else "tool_calls" if message.tool_calls else "stop")
    choice = {"index": index, "message": said, "finish_reason": reason}
    return choice | {"logprobs": _logprobs(message.text, how.logprobs)} if with_logprobs else choice


def _logprobs(text: str, given: Sequence[float] | None) -> dict[str, Any]:
    """Log-probabilities in OpenAI's shape: those of the script, then 0 for words that have none."""
    tokens = re.findall(r"\s*\S+", text)
    values = [*(given or []), *[0.0] * len(tokens)]
    return {
        "content": [
            {"token": token, "logprob": value, "bytes": list(token.encode()), "top_logprobs": []}
            for token, value in zip(tokens, values, strict=False)
        ]
    }


def _malformed(how: str, data: bytes, reply: Mapping[str, Any]) -> bytes:
    bodies = {
        "half": data[: len(data) // 2],
        "empty": b"",
        "html": _WEB_PAGE.encode(),
        "no_choices": json.dumps({**reply, "choices": []}).encode(),
    }
    return bodies[how]


def _cut_off(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.close()
    return web.Response()


async def _break_off(request: web.Request, data: bytes) -> web.StreamResponse:
    """Half of the answer, and then nothing more."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(data))})
    await response.prepare(request)
    await response.write(data[: len(data) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


async def _stream(request: web.Request, reply: dict[str, Any], body: Mapping[str, Any]) -> web.StreamResponse:
    """The reply as server-sent events: a word at a time, then why it ended."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    head = {name: reply[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for choice in reply["choices"]:
        for delta in _deltas(choice["message"]):
            part = {"index": choice["index"], "delta": delta, "finish_reason": None}
            await _send_event(response, {**head, "choices": [part]})
        last = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
        await _send_event(response, {**head, "choices": [last]})
    if (body.get("stream_options") or {}).get("include_usage"):
        await _send_event(response, {**head, "choices": [], "usage": reply["usage"]})
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


def _deltas(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"role": "assistant"}]
    for name in ("reasoning_content", "refusal"):
        if message.get(name):
            parts.append({name: message[name]})
    parts += [{"content": piece} for piece in re.findall(r"\s*\S+|\s+", message.get("content") or "")]
    if message.get("tool_calls"):
        parts.append({"tool_calls": [{"index": place, **call} for place, call in enumerate(message["tool_calls"])]})
    return parts


async def _send_event(response: web.StreamResponse, value: Mapping[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(value).encode() + b"\n\n")
