# SPDX-License-Identifier: Apache-2.0
"""An endpoint's refusal, turned into the error whose consequence it deserves.

401, 403, a wrong key as 400       AuthError            the run stops
402, 412, no credit, a limit of    EndpointError        the run stops
  spending, an account or a place
  that is not served
407                                AuthError            the run stops: it is the proxy that wants a login
404, 405, 410, a redirect, 400     EndpointError        the run stops
  about the model, or that it, or
  its server, cannot call tools
429, 498                           RateLimitError       waited for: the whole client slows down
503, 529 with Retry-After          ProviderError        waited for: the whole client slows down
201, 202, 204, 206 …               ProviderError        tried again: it is no whole answer
408, 409, 425, other 5xx           ProviderError        tried again
a call that the endpoint could     (no error)           what the model wrote is its answer
  not read, room that ran out
400, 403 … about the content       FilteredError        this prompt fails
400, 413 … about the length        ContextLengthError   this prompt fails
400 … about `n`                    ChoicesRefused       asked again, fewer at a time
400 … about a parameter            ParameterRefused     asked again without it
other 4xx                          BadRequestError      this prompt fails

What an error repeats of the request means nothing. Which words mean what is held to replies of each provider in
`tests/generation/http/refused_replies.py`.
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
    FilteredError,
    ProviderError,
    RateLimitError,
    RewardKitError,
)
from reward_kit.generation.endings import Unserved, unserved_answer
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
    r"context[ _-]?(length|window|size|limit)|maximum context|too many (input )?tokens|(prompt|input) is too long"
    r"|exceeds? the (model'?s )?(maximum|max) (number of )?(context|sequence|input|prompt|tokens)"
    r"|longer than the (maximum model length|model'?s)|maximum prompt length|tokens? \+ .{0,40} must be <="
    r"|reduce the length of the messages|max_tokens must be at least 1, got -|string_above_max_length"
    r"|tokens exceed the (\w+ )?limit|token_limit_exceeded|string_too_long",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile(r"request too large|required for long context", re.IGNORECASE)
"""Of a 429: the request alone is more than the limit, so that waiting does not help."""
_NO_SUCH_MODEL = re.compile(
    r"model\b.{0,80}\b(not found|does not exist|not exist|is not available)|not a valid model|invalid[ _]model\b"
    r"|model_(not_\w+|decommissioned|deprecated|terms_required)|non-serverless model|no models? (is )?loaded"
    r"|model\b.{0,80}\b(has been (decommissioned|deprecated|retired)|not supported by any provider)"
    r"|does not work with the specified model",
    re.IGNORECASE | re.DOTALL,
)
_WRONG_KEY = re.compile(
    r"API_KEY_INVALID|invalid[ _]api[ _]key|incorrect api key|api[ _]key (is )?(not valid|invalid|expired|not found)"
    r"|api key not valid|malformed api key|no api key|api key is missing",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient[_ ](quota|balance|credit|funds)|(balance|credits?) (is|are) (insufficient|depleted|exhausted)"
    r"|not[_ ]enough[_ ](balance|credits?)|exceeded_current_quota_error|billing_(hard_limit|not_active)"
    r"|spend_limit|spend(ing)? cap|account\b.{0,80}\bsuspended|arrear",
    re.IGNORECASE | re.DOTALL,
)
_NOT_SERVED = re.compile(
    r"\b(account|organi[sz]ation|project|team|workspace|consumer)\b[^.]{0,40}\b(is|was|has been|have been) "
    r"(\w+ )?(disabled|restricted|suspended|deactivated|terminated|banned|blocked|flagged)\b|organization_restricted"
    r"|(location|country|region|territory)\b[^.]{0,20} not (supported|available)"
    r"|not (supported|available) in your (country|region|location)",
    re.IGNORECASE,
)
"""It is not this prompt that is not wanted, but who asks, or from where."""
_MAYBE_NO_CREDIT = re.compile(
    r"exceeded your current quota|out of credit|credit balance is too low|(all|more|no) (available )?credits?\b"
    r"|any credits\b|credit limit|(spending|spend|usage|budget|billing) limits?\b",
    re.IGNORECASE,
)
"""Said of an empty account, and by some of any limit: Google then says after which time to come back."""
_BY_TIME = re.compile(
    r"per[ _-]?(second|minute|hour|day)|(this|current) (second|minute|hour)\b|\b[rt]p[smd]\b|rate[_ ]limit",
    re.IGNORECASE,
)
"""A limit that the clock alone lifts."""
_FILTERED = re.compile(
    r"moderation|flagged|content[ _](policy|filter|management)|ResponsibleAIPolicyViolation|content exists risk"
    r"|violates? (our |the )?(usage|content|safety) (guidelines|policy|policies)|data_?inspection_?failed"
    r"|blocked by content|considered high risk|(unsafe|sensitive|inappropriate|harmful) content\b"
    r"|\brequest blocked: |\b(prompt|response) blocked\b|prompt[ _-]injection",
    re.IGNORECASE,
)
_TOOLS = r"['\"`]?(tools\b|(tool|function)[ _-](use|usage|call(s|ing)?)\b)['\"`]?"
_NO_TOOLS = re.compile(
    rf"(^|[^\w\s] ?|\b(the|field|parameter) ){_TOOLS} (is|are) (currently )?(not (yet )?(supported|enabled|available)"
    r"|unsupported) (with|by|for|on|in) ((this|the|your|requested) )?(model|endpoint|server|deployment)"
    rf"|\b(does not|doesn't|do not|don't|cannot|can't) (currently )?(support|handle) (the use of )?{_TOOLS}"
    r"(?! (of|with|named|that|whose|which|in)\b| ?['\"`:\[])"
    r"|--enable-auto-tool-choice|\btools param requires --jinja",
    re.IGNORECASE | re.MULTILINE,
)
"""It is not these tools that are not taken, but any."""
_WAIT = re.compile(
    r"(?:try again|retry|wait)(?: (?:in|after|for))? (?:about )?(?P<wait>(?:\d+[hm])*\d+(?:\.\d+)?m?s\b"
    r"|(?:\d+(?:\.\d+)? ?(?:ms|milliseconds?|h(?:ours?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)\b ?)+)",
    re.IGNORECASE,
)
_TIME = re.compile(r"(\d+(?:\.\d+)?) ?(ms|milli|h|m|s)", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_OVERLOADED = frozenset({503, 529})
_NOT_AS_ASKED = frozenset({400, 403, 404, 405, 422, 500, 501})
"""The statuses that servers have for what they cannot do at all."""
_TOO_MANY = frozenset({429, 498})
"""Too many requests; Groq's cheaper tier has no room."""
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
    wait: float | None = None
    """Seconds after which to come back, where it says so."""
    answer: Unserved | None = None
    """The answer that the endpoint could not serve, where that is the complaint."""


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
        code = body.get("code") if isinstance(body, dict) else None  # xAI's way
        code = code if isinstance(code, str) else ""
        return Complaint(
            _shortened(message), f"{message} {code}", code, None, _wait_in(message), unserved_answer({}, message)
        )
    said = error.get("message") or error.get("detail") or error.get("error") or text
    message = said if isinstance(said, str) else orjson.dumps(said).decode()
    code = error.get("code") or error.get("type") or ""
    param, details = error.get("param"), _details(error)
    marks = [code, error.get("type"), error.get("status"), *(detail.get("reason") for detail in details)]
    marks += [_kind_beside(error.get("metadata"))]
    marks += [limit for detail in details for limit in _limits_in(detail)]
    delay = next((_wait_in(f"retry in {detail['retryDelay']}") for detail in details if "retryDelay" in detail), None)
    complaint = Complaint(
        _shortened(message), " ".join(dict.fromkeys([message, *(str(mark) for mark in marks if mark)])), str(code),
        param if isinstance(param, str) else _located(said), _wait_in(message) if delay is None else delay,
        unserved_answer(error, message),
    )  # fmt: skip
    return _with_what_is_behind(complaint, error.get("metadata"))


def _kind_beside(metadata: Any) -> Any:
    """OpenRouter's name for what went wrong."""
    return metadata.get("error_type") if isinstance(metadata, dict) else None


def _details(error: dict[str, Any]) -> list[dict[str, Any]]:
    """Google's further words: `RetryInfo`, `ErrorInfo` …"""
    details = error.get("details")
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []


def _limits_in(detail: dict[str, Any]) -> list[str]:
    """Google's names of the limits that were met; they say of which time each is."""
    found = detail.get("violations")
    limits = [each.get("quotaId") for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return [limit for limit in limits if isinstance(limit, str)]


def _wait_in(text: str) -> float | None:
    """Seconds after which to come back: `Please retry in 2.1s`, `try again in 1m12.5s`, `retry after 7 seconds`.

    >>> _wait_in("Rate limit reached. Please try again in 1m12.5s.")
    72.5
    """
    found = _WAIT.search(text)
    if found is None:
        return None
    return sum(float(number) * _SECONDS[unit.lower()] for number, unit in _TIME.findall(found["wait"]))


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
    words, text = f"{complaint.words}: {behind.words}", f"{complaint.text}\n{behind.text}"
    return Complaint(
        _shortened(words), text, behind.code or complaint.code, complaint.param or behind.param,
        behind.wait if complaint.wait is None else complaint.wait, behind.answer or complaint.answer,
    )  # fmt: skip


def _shortened(words: str) -> str:
    words = " ".join(words.split())
    shortened = words if len(words) <= _LONGEST_QUOTE else words[: _LONGEST_QUOTE - 1] + "…"
    return shortened.rstrip(".") or "it says nothing"


class SentRequest(NamedTuple):
    """The request that was refused, as far as it matters to the error."""

    endpoint: str
    model: str
    parameters: Collection[str]
    has_key: bool = True
    body: str = ""
    """What was asked: what an error repeats of it is not said by the endpoint."""


def refusal(status: int, headers: Mapping[str, str], complaint: Complaint, request: SentRequest) -> RewardKitError:
    """The error for a reply that is not an answer."""
    what = f"{request.endpoint} answered {status}: {complaint.words}"
    wait = retry_after(headers)
    wait = complaint.wait if wait is None else wait
    said = _Words(complaint.text, request.body)
    if status in {400, 403, 422} and said.tell(_FILTERED) and not said.tell(_WRONG_KEY, _NOT_SERVED, _NO_SUCH_MODEL):
        return FilteredError(f"{what}. The provider's filter does not take this prompt: change it, or the filter.")
    stops = _stopping(status, wait, said, complaint, request, headers, what)
    if stops is not None:
        return stops
    if status in _TOO_MANY and not said.tell(_TOO_LARGE):
        return RateLimitError(f"{what}. {_SLOWER}", retry_after=wait)
    if status < 300:
        return ProviderError(f"{what}. The answer is not complete. Check `generation.api_base`, or try again later.")
    if status >= 500 or status in {408, 409, 425}:
        return ProviderError(f"{what}. Try again later.", retry_after=wait, overloaded=status in _OVERLOADED)
    return _of_this_request(status, said, complaint, request, what)


_SLOWER = (
    "Lower `generation.api_params.max_concurrent_requests`, or set `generation.api_params.rate_limit_qps` to the "
    "requests per second that the endpoint allows, or run again later."
)


class _Words:
    """What an endpoint says in words of its own: what it repeats of the request means nothing."""

    def __init__(self, text: str, asked: str) -> None:
        self._text, self._asked = text.casefold(), asked.casefold()

    def tell(self, *patterns: re.Pattern[str]) -> bool:
        """Whether one of these is said."""
        return any(not self._is_repeated(found) for pattern in patterns for found in pattern.finditer(self._text))

    def _is_repeated(self, found: re.Match[str]) -> bool:
        """Whether it stands in the request, too, with a little of what is before or after it."""
        start, end = found.span()
        around = {self._text[max(0, start - _AROUND) : end], self._text[start : end + _AROUND]} - {found[0]}
        return any(each in self._asked for each in around)


_AROUND = 8


def _stopping(
    status: int, wait: float | None, said: _Words, complaint: Complaint, request: SentRequest,
    headers: Mapping[str, str], what: str,
) -> RewardKitError | None:  # fmt: skip
    """The error that ends the run, where no request can succeed before a person mends something."""
    if (account := _about_the_account(status, wait, said)) is not None:
        return EndpointError(f"{what}. {account}: mend that at the provider, then run again to go on.")
    forbidden = status == 403 and not _is_about_logprobs(complaint, request)
    if status == 401 or forbidden or (status == 400 and said.tell(_WRONG_KEY)):
        return _about_the_key(what, request)
    if status == 407:
        return AuthError(
            f"The proxy on the way to {what}. Give it a login: HTTPS_PROXY=http://user:password@host:port, or unset it."
        )
    if 300 <= status < 400:
        where = headers.get("Location", "elsewhere")
        return EndpointError(
            f"{request.endpoint} redirects to {mask(where)!r}. Set `generation.api_base` to the address meant."
        )
    if (why := _about_the_model(status, said, request)) is not None:
        return EndpointError(f"{what}. {why}")
    return None


def _about_the_model(status: int, said: _Words, request: SentRequest) -> str | None:
    """What to do where it is the model, or what serves it, that cannot do what is asked; None where it can."""
    if status in _NOT_AS_ASKED and "tools" in request.parameters and said.tell(_NO_TOOLS):
        return (
            f"The model {request.model!r}, or what serves it there, cannot call tools. Choose another "
            "`generation.model_name`, or start the server so that it reads calls of tools (vLLM: "
            "--enable-auto-tool-choice and --tool-call-parser; llama.cpp: --jinja)."
        )
    if status in {404, 405, 410} or (status == 400 and said.tell(_NO_SUCH_MODEL)):
        return f"Check `generation.model_name` ({request.model!r}) and `generation.api_base`."
    return None


def _about_the_account(status: int, wait: float | None, said: _Words) -> str | None:
    """What is wrong with who asks; None where it is something else."""
    if status in {400, 403} and said.tell(_NOT_SERVED):
        return "The provider does not serve this account, or not from here"
    passes = status == 429 and (wait is not None or said.tell(_BY_TIME))
    empty = said.tell(_NO_CREDIT) or (not passes and said.tell(_MAYBE_NO_CREDIT))
    if status in {402, 412} or (status in {400, 403, 429} and empty):
        return "The account is out of credit, suspended, or at a limit of spending"
    return None


def _about_the_key(what: str, request: SentRequest) -> AuthError:
    if request.has_key:
        return AuthError(
            f"{what}. Check the key, then run again to go on: `generation.api_key_env` names its variable."
        )
    return AuthError(
        f"{what}. No key was sent: set `generation.api_key_env` to the name of the variable that holds the one for "
        "this address, then run again to go on."
    )


def _of_this_request(
    status: int, said: _Words, complaint: Complaint, request: SentRequest, what: str
) -> RewardKitError:
    if status in {413, 429} or said.tell(_CONTEXT):
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
        names = (complaint.param, complaint.param.rpartition(".")[2], complaint.param.partition("[")[0])
        return next((name for name in names if name in droppable), None)
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


_STATUS_OF_CODE = {"rate_limit_exceeded": 429, "vector_store_timeout": 504}
_OF_THE_PROMPT = re.compile(
    r"invalid_(?:prompt|image|base64)|image_|empty_image|failed_to_download_image|unsupported_image"
)
"""How OpenAI's Responses name what failed, in a reply of status 200."""


def error_in_answer(reply: dict[str, Any]) -> int | None:
    """The status a gateway hides in a 200 reply that holds an error in place of choices."""
    error = reply.get("error")
    if not error or reply.get("choices"):
        return None
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str):
        return _STATUS_OF_CODE.get(code, 400 if _OF_THE_PROMPT.match(code) else 502)
    return code if isinstance(code, int) and 400 <= code < 600 else 502
