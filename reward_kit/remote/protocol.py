# SPDX-License-Identifier: Apache-2.0
"""What is said to a reward's server, and what its replies mean.

    GET  …/evaluate         what the reward is: its name, its parameters, what it depends on (`Description`)
    POST …/evaluate         {messages, ground_truth, kwargs, rollout}  →  a result
    POST …/evaluate/batch   {items: [...]}                    →  {results: [...]}, in order
    POST any other address  {messages, ground_truth, **kwargs}  →  a result (inherited)

A result that names a `failure` is none: it becomes the error that the reward's failure would be here. So a record says
the same whether its reward is here or there.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reward_kit import errors
from reward_kit.errors import ItemError, RewardError, RewardKitError
from reward_kit.models import EvaluateResult, Message, Rollout
from reward_kit.reward_call import NOT_COLUMNS
from reward_kit.typed_interface import Mode, RewardContractError, as_result
from reward_kit.utils import exact_json

__all__ = [
    "BATCH_SUFFIX",
    "ROUTE",
    "Description",
    "Outcome",
    "Parameter",
    "address_of",
    "batch_body",
    "body_of",
    "can_be_sent",
    "outcome_of",
    "outcomes_of",
    "refused_by_reward",
    "unusable_in",
]

ROUTE = "/evaluate"
"""Where a server's reward answers, unless an address names a path."""
BATCH_SUFFIX = "/batch"

Outcome = EvaluateResult | ItemError
"""What became of one answer: a result, or the error that stands in its place."""


# ── what a server says of its reward ─────────────────────────────────────────────────────────────────────────────────


class Parameter(BaseModel):
    """A parameter of the reward."""

    name: str
    required: bool = False


class Description(BaseModel):
    """What a server says of a reward that it serves."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    mode: Mode = "pointwise"
    parameters: list[Parameter] = Field(default_factory=list)
    """Those that it names, `messages` and `ground_truth` left out."""
    takes_any: bool = True
    """Whether it takes columns that it does not name."""
    number_truth: bool = False
    """Whether a number as ground truth reaches it as a number, and not as text."""
    identity: dict[str, Any] = Field(default_factory=dict)
    """What its results depend on, by the names that a run's digest has for it: `reward.function`, `reward.source`,
    `reward.params`, and what it uses of a sandbox and a judge. Another identity is another reward."""
    batch: bool = False
    """Whether several answers may be sent in one request."""

    @classmethod
    def read(cls, data: bytes) -> Description | None:
        """The description in a reply; None where it is something else."""
        try:
            return cls.model_validate(exact_json.loads(data))
        except (exact_json.JSONDecodeError, ValidationError):
            return None

    def signature(self) -> inspect.Signature:
        """That of a function which takes what the reward takes."""
        subject = "rollouts_messages" if self.mode == "batch" else "messages"
        by_name = inspect.Parameter.KEYWORD_ONLY
        named = [
            inspect.Parameter(each.name, by_name, default=inspect.Parameter.empty if each.required else None)
            for each in self.parameters
            if each.name.isidentifier() and each.name not in {subject, "ground_truth"}
        ]
        rest = [inspect.Parameter("_others", inspect.Parameter.VAR_KEYWORD)] if self.takes_any else []
        truth = inspect.Parameter("ground_truth", by_name, default=None, annotation=float if self.number_truth else Any)
        first = [inspect.Parameter(subject, by_name), truth]
        return inspect.Signature([*first, *named, *rest])


def address_of(endpoint: str) -> str:
    """The address to post to: an endpoint without a path is a server, whose reward is at `/evaluate`."""
    parts = urlsplit(endpoint)
    path = ROUTE if parts.path in ("", "/") else parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path, fragment=""))


# ── what is sent ─────────────────────────────────────────────────────────────────────────────────────────────────────


def body_of(given: Mapping[str, Any], *, nested: bool) -> bytes:
    """One question as JSON; `nested`: for a server of ours, with columns and facts apart."""
    own = {name: given[name] for name in ("messages", "rollouts_messages", "ground_truth") if name in given}
    rest = {name: value for name, value in given.items() if name not in own}
    body = {**own, **_told_apart(rest, "rollouts_messages" in own)} if nested else {**own, **rest}
    try:
        # A NaN would arrive as nothing, and be judged as that: so it is refused. orjson would send it.
        return json.dumps(body, default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RewardError(f"The answer cannot be sent to its reward as JSON: {error}. Give plain data.") from None


def _told_apart(given: Mapping[str, Any], in_group: bool) -> dict[str, Any]:
    """The columns as `kwargs`, and what is known of each attempt as `rollout`, of a group as `rollouts`."""
    named = {name: value for name, value in given.items() if name in NOT_COLUMNS}
    columns = {name: value for name, value in given.items() if name not in named} | dict(named.pop("columns", {}))
    facts = [_facts(named)]
    if in_group and named:
        size = max(len(values) for values in named.values())
        facts = [_facts({name: values[place] for name, values in named.items()}) for place in range(size)]
    for each in facts:
        columns |= each.pop("columns", {})
    sample_id = next((each.pop("sample_id") for each in facts if each.get("sample_id")), None)
    told = {"rollouts": facts} if in_group else {"rollout": facts[0]}
    return {
        "kwargs": columns, **({"sample_id": sample_id} if sample_id else {}), **(told if any(facts) else {})
    }  # fmt: skip


def _facts(named: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of one attempt, as its fields are called; the answer's text is read from the conversation there."""
    facts = {name: value for name, value in named.items() if name not in {"response", "responses", "rollouts"}}
    whole = facts.pop("rollout", None) or named.get("rollouts")
    if isinstance(whole, Rollout):
        sample = whole.sample
        more = {"sample_id": sample.id, "split": sample.split, "tools": sample.tools, "columns": sample.columns}
        facts = {**whole.model_dump(mode="json", exclude={"sample", "turns"}), **more, **facts}
    return {name: value for name, value in facts.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    for method in ("tolist", "isoformat"):  # what numpy and pyarrow make of numbers and dates
        if callable(found := getattr(value, method, None)):
            return found()
    raise TypeError(f"a {type(value).__name__} is not plain data")


def can_be_sent(value: Any) -> bool:
    """Whether a value is plain data through and through, or what is sent as such: numbers of numpy, dates, messages."""
    if value is None or isinstance(value, str | int | float | bool | BaseModel):
        return True
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(can_be_sent, value.values()))
    if isinstance(value, list | tuple):
        return all(map(can_be_sent, value))
    try:
        return can_be_sent(_plain(value))
    except TypeError:
        return False


def batch_body(bodies: Sequence[bytes]) -> bytes:
    """Several questions as one."""
    return b'{"items":[' + b",".join(bodies) + b"]}"


# ── what comes back ──────────────────────────────────────────────────────────────────────────────────────────────────

_ITEM_ERRORS: dict[str, type[ItemError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ItemError)
} | {RewardContractError.__name__: RewardContractError}
"""The errors of one item, by the name that a failure has."""


_STOPPING = (
    frozenset(
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, RewardKitError)
    )
    - _ITEM_ERRORS.keys()
)
"""The names of errors that no further question mends: a package or a key is missing on the server."""


def outcome_of(reply: Any, who: str) -> Outcome:
    """What one result of a reply is."""
    if isinstance(reply, dict):
        if (returned := _returned_in(reply)) is not None:
            return returned  # it is no verdict, and whoever asked decides what that means
        if error := _failure_in(reply):
            return error
        if reply.get("score", 0.0) is None:  # no number: nobody judged, whatever else is said
            said = reply.get("error") or reply.get("reason") or "it gave no reason"
            return RewardError(f"{who} gave no verdict: {said}")
    try:
        return as_result(reply, who)
    except RewardContractError as error:
        return error


def outcomes_of(data: bytes, size: int, who: str) -> list[Outcome] | None:
    """What each result of a batch is; None where the reply is no list of so many."""
    try:
        reply = exact_json.loads(data)
    except exact_json.JSONDecodeError:
        return None
    results = reply.get("results") if isinstance(reply, dict) else None
    if not isinstance(results, list) or len(results) != size:
        return None
    return [outcome_of(each, who) for each in results]


def refused_by_reward(data: bytes) -> ItemError | None:
    """The reward's own failure in a reply that is no 200; None where it is the server that failed."""
    try:
        reply = exact_json.loads(data)
    except exact_json.JSONDecodeError:
        return None
    if not isinstance(reply, dict):
        return None
    return _failure_in(reply) or _error_of(reply.get("type"), reply.get("detail"), retryable=None)


def unusable_in(data: bytes) -> str | None:
    """Why the reward cannot work at all, where the server says so."""
    try:
        reply = exact_json.loads(data)
    except exact_json.JSONDecodeError:
        return None
    told = reply if isinstance(reply, dict) and reply.get("type") in _STOPPING else {}
    return str(told["detail"]) if isinstance(told.get("detail"), str) else None


def _returned_in(reply: Mapping[str, Any]) -> EvaluateResult | None:
    """What the reward returned, where that is a result which says of itself that it is no verdict."""
    failure = reply.get("failure")
    if not isinstance(failure, dict) or not isinstance(failure.get("result"), dict):
        return None
    try:
        result = EvaluateResult.model_validate(failure["result"])
    except ValidationError:
        return None
    return None if result.is_score_valid and result.error is None else result


def _failure_in(reply: Mapping[str, Any]) -> ItemError | None:
    failure = reply.get("failure")
    if not isinstance(failure, dict):
        return None
    message = failure.get("message") or reply.get("error") or reply.get("reason")
    retryable = bool(failure.get("retryable", False))
    error = _error_of(failure.get("type"), message, retryable) or RewardError(str(message), retryable=retryable)
    replies = failure.get("unread_replies")
    if isinstance(error, RewardError) and isinstance(replies, list):
        error.unread_replies = tuple(map(str, replies))
    return error


def _error_of(kind: Any, message: Any, retryable: bool | None) -> ItemError | None:
    if not isinstance(kind, str) or not isinstance(message, str) or kind not in _ITEM_ERRORS:
        return None
    error = _ITEM_ERRORS[kind](message)
    if retryable is not None:
        error.retryable = retryable
    return error
