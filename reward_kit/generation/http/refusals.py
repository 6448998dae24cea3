# SPDX-License-Identifier: Apache-2.0
"""An endpoint's refusal, turned into the error whose consequence it deserves.

401, 403                          AuthError            the run stops
402, quota used up                EndpointError        the run stops
407                               AuthError            the run stops: it is the proxy that wants a login
201, 202, 204, 206 …              ProviderError        tried again: it is no whole answer
404, 405, 410, a redirect         EndpointError        the run stops
408, 409, 425, 5xx                ProviderError        tried again
429                               RateLimitError       tried again, and the whole client slows down
400 … about the context's length  ContextLengthError   this prompt fails
400 … about `n`                   ChoicesRefused       asked again, fewer at a time
400 … about a parameter           ParameterRefused     asked again without it
other 4xx                         BadRequestError      this prompt fails
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import orjson

from reward_kit.errors import (
    AuthError,
    BadRequestError,
    ContextLengthError,
    EndpointError,
    ProviderError,
    RateLimitError,
    RewardKitError,
)
from reward_kit.generation.wire import PROTECTED_FIELDS, readable
from reward_kit.http.retry import retry_after
from reward_kit.redaction import mask

__all__ = [
    "ChoicesRefused",
    "Complaint",
    "ParameterRefused",
    "SentRequest",
    "error_in_answer",
    "is_unread",
    "read_complaint",
    "refusal",
]

_LONGEST_QUOTE = 300
_NO_ROOM = frozenset({503, 529})
_CAMEL = re.compile(r"_([a-z])")

_CONTEXT = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|too many (input )?tokens|prompt is too long|input is too long"
    r"|exceeds? the (model'?s )?(maximum|max) (number of )?(context|sequence|input|prompt|tokens)"
    r"|longer than the maximum model length",
    re.IGNORECASE,
)
_NO_SUCH_MODEL = re.compile(
    r"model\b.{0,80}\b(not found|does not exist|not exist|is not available)|not a valid model",
    re.IGNORECASE | re.DOTALL,
)
_NO_CREDIT = re.compile(
    r"insufficient[_ ](quota|balance|credit|funds)|exceeded your current quota|out of credit"
    r"|credit balance is too low",
    re.IGNORECASE,
)
_FLAGGED = re.compile(r"moderation|flagged|content[ _](policy|filter)", re.IGNORECASE)
_ABOUT_CHOICES = re.compile(
    r"\bn\b|\bn_cmpl\b|(one|number of|multiple) (completion )?(choices?|candidates?)|candidate_?count", re.IGNORECASE
)
_NOT_KNOWN = re.compile(
    r"unsupported|not supported|n[o']t support|unrecogni[sz]ed|unknown|unexpected|extra[ _](fields|inputs|forbidden)"
    r"|not permitted|not allowed|deprecated|invalid (argument|parameter|field) name|not (enabled|available|implemented)"
    r"|cannot both be|may only be set|must be unset|only \S{1,12} is allowed",
    re.IGNORECASE,
)


class ChoicesRefused(BadRequestError):
    """The endpoint does not give that many choices in one request."""

    name = "n"

    def __init__(self, message: str, reason: str) -> None:
        """Keep the endpoint's words beside what is said to a person."""
        super().__init__(message)
        self.reason = reason


class ParameterRefused(BadRequestError):
    """The endpoint does not take one of the parameters."""

    def __init__(self, name: str, reason: str) -> None:
        """Name the parameter, and keep the endpoint's words."""
        super().__init__(f"The endpoint refuses the parameter {name!r}: {reason}. Take it out of the configuration.")
        self.name = name
        self.reason = reason


class Complaint(NamedTuple):
    """What an endpoint says of a request it did not serve."""

    words: str
    """Its own words, shortened."""
    text: str
    """All of it, to search in."""
    code: str
    param: str | None


def read_complaint(data: bytes) -> Complaint:
    """The complaint in a reply's body, whatever its shape; the key, should it be echoed, is blotted out."""
    text = readable(data)
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError:
        body = None
    if isinstance(body, list) and body and isinstance(body[0], dict) and "error" in body[0]:
        body = body[0]  # Google's way
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        message = error if isinstance(error, str) else text
        return Complaint(_shortened(message), message, "", None)
    said = error.get("message") or error.get("detail") or error.get("error") or text
    message = said if isinstance(said, str) else orjson.dumps(said).decode()
    code = error.get("code") or error.get("type") or ""
    param = error.get("param")
    complaint = Complaint(
        _shortened(message), f"{message} {code}", str(code), param if isinstance(param, str) else _located(said)
    )
    return _with_what_is_behind(complaint, error.get("metadata"))


def _located(said: Any) -> str | None:
    """The field that a complaint in the way of FastAPI is about: `[{"loc": ["body", FIELD], "msg": …}]`."""
    if isinstance(said, dict):
        said = said.get("detail")
    first = said[0] if isinstance(said, list) and said else None
    place = first.get("loc") if isinstance(first, dict) else None
    names = [part for part in place if isinstance(part, str)] if isinstance(place, list) else []
    return names[-1] if names else None


def _with_what_is_behind(complaint: Complaint, metadata: Any) -> Complaint:
    """A gateway's complaint with that of the provider behind it, where it passes one on (OpenRouter does)."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str) or not raw.strip():
        return complaint
    behind = read_complaint(raw.encode(errors="replace"))
    words, text = f"{complaint.words}: {behind.words}", f"{complaint.text} {behind.text}"
    return Complaint(_shortened(words), text, behind.code or complaint.code, complaint.param or behind.param)


def _shortened(words: str) -> str:
    words = " ".join(words.split())
    shortened = words if len(words) <= _LONGEST_QUOTE else words[: _LONGEST_QUOTE - 1] + "…"
    return shortened.rstrip(".") or "it says nothing"


class SentRequest(NamedTuple):
    """The request that was refused, as far as it matters to the error."""

    endpoint: str
    model: str
    parameters: Collection[str]


def refusal(status: int, headers: Mapping[str, str], complaint: Complaint, request: SentRequest) -> RewardKitError:
    """The error for a reply that is not an answer."""
    what = f"{request.endpoint} answered {status}: {complaint.words}"
    stops = _stopping(status, headers, complaint, request, what)
    if stops is not None:
        return stops
    if status == 429:
        return RateLimitError(f"{what}. Lower api_params.max_concurrent_requests.", retry_after=retry_after(headers))
    if status < 300:
        return ProviderError(f"{what}. The answer is not complete. Check `generation.api_base`, or try again later.")
    if status >= 500 or status in {408, 409, 425}:
        overloaded = status in {503, 529}
        return ProviderError(f"{what}. Try again later.", retry_after=retry_after(headers), overloaded=overloaded)
    return _of_this_request(status, complaint, request, what)


def _stopping(
    status: int, headers: Mapping[str, str], complaint: Complaint, request: SentRequest, what: str
) -> RewardKitError | None:
    """The error that ends the run, where no request can succeed before a person mends something."""
    if status == 402 or (status in {400, 403, 429} and _NO_CREDIT.search(complaint.text)):
        return EndpointError(f"{what}. The account is out of credit: top it up, then run again to go on.")
    forbidden = status == 403 and not _FLAGGED.search(complaint.text) and not _is_about_logprobs(complaint, request)
    if status == 401 or forbidden:
        return AuthError(f"{what}. Check the key: `generation.api_key_env` names the variable that holds it.")
    if status == 407:
        return AuthError(
            f"The proxy on the way to {what}. Give it a login: HTTPS_PROXY=http://user:password@host:port, or unset it."
        )
    if 300 <= status < 400:
        where = headers.get("Location", "elsewhere")
        return EndpointError(
            f"{request.endpoint} redirects to {mask(where)!r}. Set `generation.api_base` to the address meant."
        )
    if status in {404, 405, 410} or (status == 400 and _NO_SUCH_MODEL.search(complaint.text)):
        return EndpointError(f"{what}. Check `generation.model_name` ({request.model!r}) and `generation.api_base`.")
    return None


def _of_this_request(status: int, complaint: Complaint, request: SentRequest, what: str) -> RewardKitError:
    if status == 413 or _CONTEXT.search(complaint.text):
        return ContextLengthError(f"{what}. Shorten the prompt or lower `generation.max_tokens`.")
    choices = complaint.param == "n" or (complaint.param is None and _ABOUT_CHOICES.search(complaint.text))
    if "n" in request.parameters and choices:
        return ChoicesRefused(f"{what}. Set `generation.n_mode=fanout`.", complaint.words)
    name = _refused_parameter(complaint, request.parameters)
    if name is not None:
        return ParameterRefused(name, complaint.words)
    return BadRequestError(f"{what}. Correct the prompt or the sampling parameters.")


def _is_about_logprobs(complaint: Complaint, request: SentRequest) -> bool:
    """OpenAI's way to say that a model gives no log-probabilities is a 403: no key mends it."""
    return (_refused_parameter(complaint, request.parameters) or "").endswith("logprobs")


def _refused_parameter(complaint: Complaint, parameters: Collection[str]) -> str | None:
    """The parameter that the endpoint says it does not take. One whose value is out of range is the user's to mend."""
    if not _NOT_KNOWN.search(complaint.text):
        return None
    droppable = [name for name in parameters if name not in PROTECTED_FIELDS]
    if complaint.param is not None:
        last = complaint.param.rpartition(".")[2]
        return last if last in droppable else None
    # Of two that do not go together, the one that is named last: `temperature` stays where `top_p` goes.
    choose = max if "both" in complaint.text else min
    for pattern in (r"""['"`]{}['"`]""", r"\b{}\b"):
        found = [
            (match.start(), name)
            for name in droppable
            for spelling in {name, _CAMEL.sub(lambda part: part[1].upper(), name)}
            if (match := re.search(pattern.format(re.escape(spelling)), complaint.text, re.IGNORECASE))
        ]
        if found:
            return choose(found)[1]
    return None


def is_unread(status: int) -> bool:
    """Whether a refusal says that the request was not worked on. 408 and others from 500 on may come after the work."""
    return (400 <= status < 500 and status != 408) or status in _NO_ROOM


def error_in_answer(reply: dict[str, Any]) -> int | None:
    """The status a gateway hides in a 200 reply that holds an error in place of choices."""
    error = reply.get("error")
    if not error or reply.get("choices"):
        return None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 502
