# SPDX-License-Identifier: Apache-2.0
"""What a dialect is: how one kind of caller asks for verdicts over HTTP, and how it wants to hear them.

    request ─▶ authentication, limits, JSON        the server
            ─▶ Route.read(Incoming) ─▶ Exchange    the dialect: what is asked, and how the reply is made
            ─▶ one verdict per rollout             the server, by the scoring engine
            ─▶ Exchange.reply(verdicts) ─▶ Reply   the dialect
            ─▶ response                            the server

A dialect is a pure function of plain data: it knows no web framework, no reward and no clock. A request that it cannot
read is a `BadRequest` with a plain sentence. A `Failure` among the verdicts becomes what the dialect calls "invalid";
where it has no word for that, the whole reply is a 5xx (see `failed_reply`), so that the caller tries again. A failure
is never a score of zero.

What does not fit questions and verdicts, such as an environment that is stepped through, is an `Extension`: routes of
its own, behind the same authentication and limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pydantic import TypeAdapter, ValidationError

from reward_kit.datasets.ground_truths import AmbiguousTruth
from reward_kit.datasets.interpret import NothingAsked, RowReader
from reward_kit.datasets.rows import BadRow, Written, as_json
from reward_kit.models import Failure, Message, Rollout, Sample, Verdict, split_off_answer
from reward_kit.utils.trusted import trusted

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

__all__ = [
    "BadRequest",
    "Dialect",
    "Exchange",
    "Extension",
    "Incoming",
    "Reply",
    "Route",
    "failed_reply",
    "messages_in",
    "object_in",
    "rollout_in",
    "rollout_of_row",
]


class Incoming(NamedTuple):
    """A request whose caller may call, and whose body is valid JSON within the limits."""

    json: Any
    """The decoded body; None where the request has none."""
    headers: Mapping[str, str]
    """By their names in lower case. Credentials are not among them."""
    pass_threshold: float = 1.0
    """The reward's: the score from which on an answer has passed."""
    needs_ids: bool = True
    """Whether the reward looks at the ids of samples, or judges those together that have the same."""
    written: Written = as_json
    """How the body writes one of its numbers, where Python would write it otherwise."""


class Reply(NamedTuple):
    """What the caller is told."""

    status: int
    body: Any
    """Plain data, sent as JSON. Numbers must be finite."""
    headers: Mapping[str, str] = {}


class Exchange(NamedTuple):
    """What one request asks, and how its reply is made of the verdicts."""

    asked: Sequence[Rollout | Failure]
    """What is to be judged, or why one of them cannot be: see `rollout_in`. Those of one sample belong together. May be
    empty: then nothing is judged, and the reply is made at once."""
    reply: Callable[[Sequence[Verdict]], Reply]
    """Given one verdict each, in their order."""


class Route(NamedTuple):
    """One path of a dialect, and how a request to it is read."""

    path: str
    """Such as `/evaluate`. It is served at the root for the first reward, and under `/rewards/NAME` for each."""
    read: Callable[[Incoming], Exchange]
    summary: str
    """A sentence for the OpenAPI document."""
    method: str = "POST"
    request_schema: Mapping[str, Any] = {}
    """JSON Schema of the request's body, for the OpenAPI document."""
    response_schema: Mapping[str, Any] = {}
    """JSON Schema of the body of a reply with status 200."""


class Dialect(NamedTuple):
    """How one kind of caller asks."""

    name: str
    summary: str
    """A sentence: who speaks it."""
    routes: Sequence[Route]
    one_answer: bool = False
    """Whether its callers send one answer at a time. A reward that compares answers is not served to them."""


class Extension(Protocol):
    """Routes that are not questions to a reward. They are served behind the same authentication and limits."""

    @property
    def name(self) -> str:
        """For messages and the OpenAPI document."""
        ...

    def routes(self) -> Sequence[BaseRoute]:
        """Starlette routes, WebSockets among them. Called once for each application."""
        ...

    def open(self) -> AbstractAsyncContextManager[None]:
        """Entered before the first request is served, and left after the last one was answered."""
        ...


class BadRequest(ValueError):
    """A request that cannot be understood. The message is a plain sentence for the caller that says what to send."""

    def __init__(self, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.status = status


# ── for dialects ─────────────────────────────────────────────────────────────────────────────────────────────────────


def failed_reply(verdicts: Sequence[Verdict]) -> Reply | None:
    """The 5xx of a dialect that has no word for "not judged"; None where every verdict is a result.

    503 where trying again may help, else 500. The body says what failed first, and how many did.
    """
    failures = [verdict for verdict in verdicts if isinstance(verdict, Failure)]
    if not failures:
        return None
    first = failures[0]
    status = 503 if all(failure.retryable for failure in failures) else 500
    body = {"detail": first.message, "type": first.type, "failed": len(failures), "asked": len(verdicts)}
    return Reply(status, body, {"retry-after": "1"} if status == 503 else {})


def object_in(json: Any, *required: str) -> dict[str, Any]:
    """The body as a JSON object that has these fields."""
    if not isinstance(json, dict):
        raise BadRequest(f"The body is {_kind(json)}. Send a JSON object with {_names(required)}.")
    for name in required:
        if name not in json:
            raise BadRequest(f"The field {name!r} is missing. Send a JSON object with {_names(required)}.")
    return json


def messages_in(value: Any, field: str = "messages") -> list[Message]:
    """A conversation: a list, not empty, of objects with a `role`, OpenAI-shaped."""
    if not isinstance(value, list) or not value:
        what = "an empty list" if value == [] else _kind(value)
        raise BadRequest(f"The field {field!r} is {what}. Send a list of messages, each with a role and content.")
    for number, turn in enumerate(value):
        if type(turn) is not dict or type(turn.get("role")) is not str:
            raise BadRequest(f"{field}[{number}] is not an object with a text as its role. Send role and content.")
    try:
        return _MESSAGES.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, [f"{field}[{first['loc'][0]}]", *first["loc"][1:]]))
        raise BadRequest(f"{where}: {first['msg']}. Send OpenAI-shaped messages.") from None


_MESSAGES = TypeAdapter(list[Message])
_rows = RowReader()
_rollout = trusted(Rollout)


def rollout_in(
    incoming: Incoming, row: Mapping[str, Any], turns: Any, field: str = "messages", *,
    sample_id: str | None = None, asks: bool = False,
) -> Rollout:  # fmt: skip
    """What a caller wants judged: a whole conversation, its answer last, and the row that it belongs to.

    The row says what a right answer looks like, and has the columns that reach the reward by name: it is read as the
    rows of a dataset are. `asks`: it has a column for what is asked, too. `sample_id` says which answers belong
    together, where the caller knows; else those do that have the same prompt and the same row.
    """
    asked, answered = split_off_answer(messages_in(turns, field))
    if not asks:
        row = {**row, "messages": turns[: len(asked)]}
    row = row if sample_id is None else {**row, "id": sample_id}
    return _rollout(sample=_sample_in(incoming, row, asked), response_index=0, turns=answered)


def rollout_of_row(incoming: Incoming, row: Mapping[str, Any], answer: Mapping[str, Any]) -> Rollout:
    """The same for a caller that sends a row of a dataset, which may ask nothing, and the turn that answers it."""
    return _rollout(sample=_sample_in(incoming, row, None), response_index=0, turns=messages_in([answer]))


def _sample_in(incoming: Incoming, row: Mapping[str, Any], asked: list[Message] | None) -> Sample:
    try:
        return _rows.sample_as_it_is(row, asked, incoming.written, named=incoming.needs_ids)
    except NothingAsked:
        return _sample_in(incoming, row, [])
    except AmbiguousTruth as error:
        which = " or ".join(map(repr, error.candidates))
        raise BadRequest(f"It is unclear what is right: {which}. Send it in the field 'ground_truth'.") from None
    except BadRow as error:
        raise BadRequest(f"The request cannot be read: {error}.") from None


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return "nothing" if value is None else kinds.get(type(value), "of another kind")


def _names(required: Sequence[str]) -> str:
    return ", ".join(required) or "the fields of the documentation"
