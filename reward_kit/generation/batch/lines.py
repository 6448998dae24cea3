# SPDX-License-Identifier: Apache-2.0
"""The lines of batches: what a draw asks as a line of requests, and what a line of answers says.

    {"custom_id":"q17#3#5e0c1f2a9b77","method":"POST","url":"/v1/chat/completions","body":{…}}
    {"id":…,"custom_id":"q17#3#5e0c1f2a9b77","response":{"status_code":200,"body":{…}},"error":null}

A custom id names the sample, the draw, and a digest of all that is asked: an answer to another prompt, or to another
sampling, has another one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import orjson

from reward_kit.errors import GenerationError, KeyInAnswerError, ProviderError, RateLimitError, RewardKitError
from reward_kit.generation.batch.provider import BatchLimits, LineShape
from reward_kit.generation.http.endpoint import EndpointClient
from reward_kit.generation.http.refusals import SentRequest, error_in_answer, is_unread, read_complaint, refusal
from reward_kit.generation.usage import usage_of
from reward_kit.generation.wire import Prompt, encode, read_json, unserved
from reward_kit.models import Completion, Usage
from reward_kit.redaction import echoes

__all__ = [
    "AnswerLines",
    "FileFill",
    "RequestLine",
    "RequestLines",
    "custom_id",
    "id_in",
    "is_answered",
    "is_final",
    "used_in",
    "without_keys",
]

_SHOWN_AS_IT_IS = re.compile(r"[A-Za-z0-9._:-]{1,40}")
_CUSTOM_ID = re.compile(rb'"custom_id"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)"')
"""The key itself: inside a text its quotes would be escaped."""
_CHOICES = re.compile(rb'"(?:choices|output)"\s*:\s*\[')
_REFUSED_FOR_GOOD = re.compile(r"invalid|bad_request|unsupported|context_length|content_(filter|policy)", re.IGNORECASE)


def custom_id(sample_id: str, draw: int, request: bytes) -> str:
    """The custom id of a draw; `request` is the digest of what is asked, as in the response cache.

    >>> custom_id("q17", 3, bytes.fromhex("5e0c1f2a9b77ff"))
    'q17#3#5e0c1f2a9b77'
    """
    shown = sample_id
    if _SHOWN_AS_IT_IS.fullmatch(sample_id) is None:
        shown = "~" + hashlib.blake2b(sample_id.encode(errors="surrogatepass"), digest_size=12).hexdigest()
    return f"{shown}#{draw}#{request[:6].hex()}"


def id_in(line: bytes) -> bytes | None:
    """The custom id in a line of requests or answers, without reading all of it; None where there is none."""
    found = _CUSTOM_ID.search(line)
    if found is None:
        return None
    return found[1] if b"\\" not in found[1] else orjson.loads(b'"%b"' % found[1]).encode()


def without_keys(lines: bytes) -> bytes:
    """Whole lines of answers; in the place of one that holds a key which was sent, one that says so."""
    if not echoes(lines):
        return lines
    return b"".join(_withheld(line) if echoes(line) else line for line in lines.splitlines(keepends=True))


def _withheld(line: bytes) -> bytes:
    """What is kept of an answer that holds a key: whose it is, and what it used."""
    try:
        body = _response(read_json(line))[1]
        usage = body.get("usage") if isinstance(body, dict) else None
    except ProviderError:
        usage = None
    name = id_in(line) or b""
    kept = {"custom_id": name.decode(errors="replace"), "error": {"code": _HOLDS_KEY, "usage": usage}}
    written = orjson.dumps(kept) + b"\n"
    return b"{}\n" if echoes(written) else written


def used_in(line: bytes) -> Usage | None:
    """What an answer used of which nothing else was kept."""
    error = read_json(line).get("error")
    return usage_of(error.get("usage")) if isinstance(error, dict) and error.get("code") == _HOLDS_KEY else None


_HOLDS_KEY = "holds_key_that_was_sent"
_KEY_WAS_HELD = (
    "The answer held a key that was sent with a request. Nothing of it is kept or judged, and it is not asked for "
    "again. Ask whoever runs the endpoint to mend that."
)


def is_answered(line: bytes) -> bool:
    """Whether a line holds an answer, by its looks: to be sure, read it."""
    return _CHOICES.search(line) is not None


class FileFill:
    """How lines are spread over files: the next one is begun where a limit would be passed."""

    def __init__(self, limits: BatchLimits) -> None:
        """Begin with no file."""
        self._limits = limits
        self.files = self.requests = self.size = 0
        self._here = BatchLimits(0, 0)

    def takes(self, line: int) -> bool:
        """Whether any file can take a line of so many bytes."""
        return line <= self._limits.size

    def add(self, line: int) -> bool:
        """Take account of a line; True where it is the first of a new file."""
        here, most = self._here, self._limits
        begins = not self.files or here.requests >= most.requests or here.size + line > most.size
        self._here = BatchLimits(1, line) if begins else BatchLimits(here.requests + 1, here.size + line)
        self.files += begins
        self.requests += 1
        self.size += line
        return begins


class RequestLine(NamedTuple):
    """One line of requests."""

    id: str
    line: bytes


class RequestLines:
    """Makes the lines of requests, from the same bodies that would be sent online."""

    def __init__(self, client: EndpointClient, shape: LineShape) -> None:
        """Write what `client` would send, in the provider's shape."""
        self._client = client
        self._shape = shape

    def of(self, prompt: Prompt, draws: Sequence[int], request: bytes) -> list[RequestLine]:
        """A line for each draw. A `BadRequestError` where a prompt cannot be written as JSON."""
        shared = None if prompt.sampling.seed is not None else self._body(prompt, 0)
        before = self._shape.before_body
        lines = []
        for draw in draws:
            name = custom_id(prompt.sample_id, draw, request)
            body = shared or self._body(prompt, draw)
            lines.append(RequestLine(name, b'{"custom_id":"%b"%b%b}\n' % (name.encode(), before, body)))
        return lines

    def _body(self, prompt: Prompt, draw: int) -> bytes:
        body = self._client.body(prompt, [draw])
        if not self._shape.names_model:
            del body["model"]
        return encode(body)


class AnswerLines:
    """Reads the lines of answers, by the rules that hold for answers online."""

    def __init__(self, client: EndpointClient, endpoint: str, parameters: Sequence[str]) -> None:
        """Answers are of `client`'s model at `endpoint`; `parameters` are the fields of what was asked."""
        self._client = client
        self._sent = SentRequest(endpoint, client.model, parameters)

    def read(self, line: bytes) -> Completion:
        """The answer in a line, else the error it stands for: an item's, or one that stops the run."""
        fields = read_json(line)
        status, body = _response(fields)
        error = fields.get("error")
        if isinstance(error, dict) and error.get("code") == _HOLDS_KEY:
            raise KeyInAnswerError(_KEY_WAS_HELD)
        if error:
            return self._unserved(_status_of(error, status), orjson.dumps({"error": error}))
        if not isinstance(body, dict):
            raise ProviderError("The line of the batch has neither an answer nor an error. Run again to ask for it.")
        if status == 200 and (hidden := error_in_answer(body)) is not None:
            status = hidden
        if status == 200:
            (answer,) = self._client.completions(body, 1, 0.0)
            if isinstance(answer, Completion):
                return answer
        return self._unserved(status, orjson.dumps(body))

    def used(self, line: bytes) -> Usage | Literal[False] | None:
        """What was used for a line that is no answer: False where nobody knows, None where it is sure to be nothing."""
        try:
            fields = read_json(line)
        except GenerationError:
            return False
        status, body = _response(fields)
        told = usage_of(body.get("usage")) if isinstance(body, dict) else None
        if told is not None:
            return told
        if fields.get("error") or not isinstance(body, dict):
            return None  # no provider takes money for a line that it could not answer
        return None if is_unread(error_in_answer(body) or status) else False

    def _unserved(self, status: int, body: bytes) -> Completion:
        """What the model wrote, where that is what the endpoint could not serve; else the error is raised."""
        complaint = read_complaint(body)
        if complaint.answer is not None:
            return unserved(complaint.answer, 0.0)
        found = refusal(status, {}, complaint, self._sent)
        if isinstance(found, RateLimitError):  # its advice is for those who send requests themselves
            found = ProviderError(
                f"{self._sent.endpoint} answered {status}: {complaint.words}. Run again to ask for it."
            )
        raise found


def _status_of(error: Any, status: int) -> int:
    """The status of a line's error, where the line tells none of its own."""
    if status >= 300:
        return status
    code = str(error.get("code") or "") if isinstance(error, dict) else str(error)
    return 400 if _REFUSED_FOR_GOOD.search(code) else 502


def is_final(error: RewardKitError) -> bool:
    """Whether asking again would come to the same."""
    return isinstance(error, GenerationError) and not error.retryable


def _response(fields: dict[str, Any]) -> tuple[int, Any]:
    """Status and body, whether they are told apart or the body stands alone."""
    response = fields.get("response")
    if not isinstance(response, dict):
        return 200, None
    if "choices" in response or "output" in response:
        return 200, response
    status = response.get("status_code")
    return status if isinstance(status, int) else 200, response.get("body")
