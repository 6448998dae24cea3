# SPDX-License-Identifier: Apache-2.0
"""What the clients of all endpoints do alike, whichever API they speak.

generate(messages, draws) ─▶ requests (n draws in one, or fewer) ─▶ retry ─▶ limits ─▶ transport
                                    ▲                                                    │
                                    └── fewer choices, refused parameters: learned ◀─────┘
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

import orjson

from reward_kit.config_models import ApiParamsConfig, Sampling
from reward_kit.errors import BadRequestError, GenerationError, ProviderError, RateLimitError, RewardKitError
from reward_kit.generation.commons import PURSE, Limits, commons
from reward_kit.generation.http.refusals import (
    ChoicesRefused,
    ParameterRefused,
    SentRequest,
    error_in_answer,
    is_unread,
    read_complaint,
    refusal,
)
from reward_kit.generation.token_data import check_told
from reward_kit.generation.tokens import most_usage
from reward_kit.generation.usage import counted, usage_of, used_by
from reward_kit.generation.wire import (
    Prompt,
    encode,
    holding_key,
    names_sent_back,
    read_json,
    speaker,
    unserved,
)
from reward_kit.http.limits import RequestLimits
from reward_kit.http.retry import Timing, with_retries
from reward_kit.http.transport import CHAT_ROUTE, KeyHeader, Transport
from reward_kit.models import Completion, Failure, Message, Usage
from reward_kit.redaction import echoes, mask, without_secrets
from reward_kit.utils.tasks import together

if TYPE_CHECKING:
    from reward_kit.http.exchange import Reply

__all__ = ["Carrier", "EndpointClient"]

_log = logging.getLogger(__name__)

_MODELS_ROUTE = "/models"
_TOLD_SECONDS = 5.0
"""That a server may take to say which models it has."""
_TELLING = frozenset({"root", "parent", "meta", "revision", "sha256"})
"""What servers call it: vLLM `root`, llama.cpp `meta`. `created` is when the server was started."""
_AS_MANY_AS_ASKED = 1 << 30
_ROOM = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
_UNKNOWN_ANSWER_TOKENS = 512
_CHARACTERS_PER_TOKEN = 4


class Carrier(Protocol):
    """What carries bodies to an endpoint, and replies back."""

    async def post(self, data: bytes) -> Reply:
        """The reply to one body, whatever it means."""
        ...

    def check_reachable(self, attempts_per_call: int) -> None:
        """Stop the run when nobody has answered for long: called when a call has used up its attempts."""
        ...

    async def close(self) -> None:
        """Give up all connections."""
        ...


class _Tries:
    """The requests for some draws that came to nothing."""

    __slots__ = ("last", "used")

    def __init__(self) -> None:
        """None did yet."""
        self.used: list[Usage] = []
        self.last = ""
        """What the last of them said."""


class EndpointClient(ABC):
    """What all clients of endpoints do alike. How a prompt becomes a body, and an answer completions, each says."""

    _writes = True
    """Whether an answer has tokens of its own."""

    def __init__(  # noqa: PLR0913 - one parameter a part
        self,
        model: str,
        *,
        api_base: str,
        api_key: str | None = None,
        api_params: ApiParamsConfig | None = None,
        n_mode: Literal["auto", "native", "fanout"] = "auto",
        headers: Mapping[str, str] | None = None,
        timing: Timing | None = None,
        route: str = CHAT_ROUTE,
        key_header: KeyHeader = "Authorization",
        carrier: Carrier | None = None,
    ) -> None:
        """Remember whom to ask; nothing is opened before the first request."""
        self.model = model
        self.api_base = api_base.rstrip("/")
        self.dropped_parameters: dict[str, str] = {}
        """Parameters that are not sent (any more), or are sent otherwise, and why: the endpoint's words, or ours."""
        self._refused: set[str] = set()
        """The parameters among them that the endpoint itself refused."""
        self._params = api_params or ApiParamsConfig()
        self._shown = mask(self.api_base)
        self._endpoint = without_secrets({"api_base": self.api_base}).get("api_base", "")
        self._speaker = speaker({"model": model, "endpoint": self._endpoint})
        self._has_key = api_key is not None
        self._n_mode = n_mode
        self._most_choices = 1 if n_mode == "fanout" else _AS_MANY_AS_ASKED
        self._timing = timing or Timing()
        self._transport: Carrier = carrier or Transport(
            self.api_base,
            api_key=api_key,
            headers=headers or {},
            timeout=self._params.timeout,
            max_reply_mb=self._params.max_reply_mb,
            route=route,
            key_header=key_header,
        )
        self._limits = self._make_limits()
        self._has_told = False
        """Whether it was said that the endpoint repeats a key."""
        self._settings_for: Sampling | None = None
        self._settings: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, api_base={self._shown!r})"

    @property
    def identity(self) -> Mapping[str, Any]:
        """The endpoint and the model."""
        return {"endpoint": self._endpoint, "model": self.model}

    @property
    def draws_at_once(self) -> int:
        """How many draws one request may ask for, as far as is known: 1 where the endpoint does not take `n`."""
        return self._most_choices

    @property
    def limit(self) -> int:
        """How many requests may be in flight now; lower than asked for while the endpoint complains of load."""
        return self._limits.limit

    @property
    def in_flight(self) -> int:
        """How many requests hold a slot now."""
        return self._limits.in_flight

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        """One completion, or the failure in its place, for each of `draws`, in their order."""
        try:
            prompt = self._prompt(messages, tools, sampling, sample_id)
        except GenerationError as error:
            return [Failure.of(error, "generate")] * len(draws)
        return await self._fetch(prompt, draws) if draws else []

    async def close(self) -> None:
        """Close the connections; a later request opens new ones, in whatever loop it runs."""
        await self._transport.close()
        self._limits = self._make_limits()

    async def model_facts(self) -> Mapping[str, Any]:
        """What the endpoint's list says of the model that another one of its name would not have."""
        if not isinstance(self._transport, Transport):
            return {}
        try:
            reply = await self._transport.get(_MODELS_ROUTE, _TOLD_SECONDS)
            listed = orjson.loads(reply.data)["data"]
            entry = next(each for each in listed if each["id"] == self.model)
            return _told_in(entry)
        except (RewardKitError, ValueError, TypeError, LookupError, StopIteration):
            return {}  # there is no such list, or the model is not in it

    # ── what each API has of its own ─────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def body(self, prompt: Prompt, draws: Sequence[int]) -> dict[str, Any]:
        """The body of a request for these draws of a prompt."""

    @abstractmethod
    def completions(self, answer: dict[str, Any], most: int, latency_ms: float) -> list[Completion | Failure]:
        """Up to `most` choices of a reply; its usage stands on the first answer. Where none is one, why is raised."""

    def _usage(self, answer: dict[str, Any]) -> Usage | None:
        """What an answer says that it used."""
        return usage_of(answer.get("usage"))

    def _parameters(self, body: dict[str, Any]) -> set[str]:
        """What an endpoint may refuse of a request by its name."""
        return {*body, *names_sent_back(body.get("messages", ()))}

    def _sent_settings(self, sampling: Sampling) -> dict[str, Any]:
        """The settings as this API takes them: worked out once for a sampling, and anew when one is refused."""
        if sampling is not self._settings_for:
            self._settings = self._accepted_of(sampling)
            self._settings_for = sampling
        return self._settings

    def _accepted_of(self, sampling: Sampling) -> dict[str, Any]:
        """The settings in this API's words, without what it refuses. Each difference is recorded."""
        return {}

    def _prompt(
        self, messages: Sequence[Message], tools: list[dict[str, Any]] | None, sampling: Sampling, sample_id: str
    ) -> Prompt:
        """The prompt as this API wants it; every request for its draws is made from it."""
        asked = [message.as_request(self._speaker) for message in messages]
        return Prompt(asked, tools, sampling, sample_id, given=messages)

    def _make_limits(self) -> Limits:
        shared = commons()
        if shared is not None:
            return shared.limits(f"{self.model} at {self._endpoint}", self._params)
        return RequestLimits(self._params, self._timing)

    # ── draws into requests ──────────────────────────────────────────────────────────────────────────────────────────

    def _fetch(self, prompt: Prompt, draws: Sequence[int]) -> Coroutine[Any, Any, list[Completion | Failure]]:
        """The draws, in one request where the endpoint gives so many choices, else in several at a time."""
        most = self._most_choices
        if len(draws) <= most:
            return self._fetch_together(prompt, draws)
        return self._fetch_in_parts(prompt, draws, most)

    async def _fetch_in_parts(self, prompt: Prompt, draws: Sequence[int], most: int) -> list[Completion | Failure]:
        parts = [draws[start : start + most] for start in range(0, len(draws), most)]
        fetched = await together(self._fetch_together(prompt, part) for part in parts)
        return [entry for part in fetched for entry in part]

    async def _fetch_together(
        self, prompt: Prompt, draws: Sequence[int], refused: frozenset[str] = frozenset()
    ) -> list[Completion | Failure]:
        """The draws in one request; what it leaves out is fetched in further ones.

        `refused` are the parameters that it was refused for before. One that is refused twice cannot be left out.
        """
        tries = _Tries()
        try:
            completions = await self._ask(prompt, draws, tries)
        except (ParameterRefused, ChoicesRefused) as error:
            if error.name in refused or (error.name == "n" and self._n_mode == "native"):
                return _failures(BadRequestError(str(error)), draws, tries)
            if error.name == "n":
                self._learn_most_choices(len(draws) // 2, error.reason)
                return _after(tries, await self._fetch(prompt, draws))
            self._drop(error)
            return _after(tries, await self._fetch_together(prompt, draws, refused | {error.name}))
        except GenerationError as error:
            return _failures(error, draws, tries)
        more = await self._fetch_missing(prompt, draws, completions) if len(completions) < len(draws) else []
        return [*_after(tries, completions), *more]

    async def _fetch_missing(
        self, prompt: Prompt, draws: Sequence[int], came: Sequence[Completion | Failure]
    ) -> list[Completion | Failure]:
        """The draws that did not come with the others, where there is money for them."""
        missing = draws[len(came) :]
        if self._n_mode == "auto":
            self._learn_most_choices(len(came), f"{len(came)} of {len(draws)} answers came back")
        if await _is_left_for_more(came):
            return await self._fetch(prompt, missing)
        error = GenerationError(
            "This answer did not come with the others of its prompt, and was not asked for again: that could cost more "
            "than is left of `max_cost`.", retryable=True
        )  # fmt: skip
        return [Failure.of(error, "generate")] * len(missing)

    def _learn_most_choices(self, most: int, why: str) -> None:
        if most < self._most_choices:
            self._most_choices = most
            self._record("n", f"{why}: {most} per request from now on, each of which pays for the prompt")

    # ── one request ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, prompt: Prompt, draws: Sequence[int], tries: _Tries) -> list[Completion | Failure]:
        """One request, repeated while its failure may pass."""
        params = self._params
        try:
            return await with_retries(
                partial(self._attempt, prompt, draws, tries),
                retries=params.max_retries,
                timing=self._timing,
                longest_asked=params.max_retry_after,
                patience=self._limits.patience,
            )
        except ProviderError:
            self._transport.check_reachable(1 + params.max_retries)
            raise

    async def _attempt(self, prompt: Prompt, draws: Sequence[int], tries: _Tries) -> list[Completion | Failure]:
        if tries.used:
            await _afford_another(tries)
        body = self.body(prompt, draws)
        data = encode(body)
        limits = self._limits
        tokens = _estimate(data, body, len(draws)) if limits.counts_tokens else 0.0
        mark = await limits.enter(tokens)
        reply: Reply | None = None
        try:
            started = self._timing.clock()
            reply = await self._transport.post(data)
            latency_ms = (self._timing.clock() - started) * 1000
            completions = self._read(reply, body, len(draws), latency_ms)
            check_told(completions, prompt.sampling.tokens, self._shown)
        except GenerationError as error:
            if isinstance(error, RateLimitError | ProviderError):
                limits.failed(error, mark, tokens)
            self._note_loss(tries, error, reply, prompt, len(draws))
            raise
        finally:
            limits.leave()
        place, first = _first_answer(completions)
        usage = first.usage
        limits.answered(tokens, usage.prompt_tokens + usage.completion_tokens if usage else None)
        if usage is None or (self._writes and not usage.completion_tokens):
            completions[place] = counted(first, _most(prompt, len(draws)))
        if echoes(reply.data):
            return [self._unless_it_tells(each, prompt, draw) for each, draw in zip(completions, draws, strict=False)]
        return completions

    def _unless_it_tells(self, completion: Completion | Failure, prompt: Prompt, draw: int) -> Completion | Failure:
        """The answer, or the failure in its place where it holds a key that was sent. What it used counts."""
        if isinstance(completion, Failure):
            return completion
        error = holding_key(completion, f"The answer of {self._shown}")
        if error is None:
            return completion
        if not self._has_told:
            self._has_told = True
            _log.warning("Sample %r, answer %d: %s", prompt.sample_id, draw, error)
        failure = Failure.of(error, "generate")
        return failure if completion.usage is None else failure.model_copy(update={"spent": [completion.usage]})

    def _read(self, reply: Reply, body: dict[str, Any], most: int, latency_ms: float) -> list[Completion | Failure]:
        status = reply.status
        if status == 200:
            answer = read_json(reply.data)
            hidden = error_in_answer(answer)
            if hidden is None:
                return self.completions(answer, most, latency_ms)
            status = hidden
        complaint = read_complaint(reply.data)
        if complaint.answer is not None:
            return [unserved(complaint.answer, latency_ms)]
        text = encode(body).decode(errors="replace")
        asked = SentRequest(self._shown, self.model, self._parameters(body), self._has_key, text)
        raise refusal(status, reply.headers, complaint, asked)

    def _note_loss(
        self, tries: _Tries, error: GenerationError, reply: Reply | None, prompt: Prompt, draws: int
    ) -> None:
        """Count what a request used that came to nothing."""
        tries.last = str(error)
        used = self._used(error, reply)
        if used is None:
            return
        used = used or _most(prompt, draws)
        tries.used.append(used)
        purse = PURSE.get()
        if purse is not None:
            purse.lose(used)

    def _used(self, error: GenerationError, reply: Reply | None) -> Usage | Literal[False] | None:
        """What a request used that came to nothing: False where nobody knows, None where it is sure to be nothing."""
        if reply is None:
            unsent = isinstance(error, ProviderError) and error.unsent
            return None if unsent else False
        try:
            answer = read_json(reply.data)
        except GenerationError:
            answer = {}
        told = self._usage(answer)
        if told is not None:
            return told
        status = (error_in_answer(answer) or 200) if reply.status == 200 else reply.status
        return None if is_unread(status) else False

    # ── what the endpoint does not take ──────────────────────────────────────────────────────────────────────────────

    def _drop(self, refused: ParameterRefused | ChoicesRefused) -> None:
        """Send the parameter no more, to nobody: what is refused once would be refused for each sample."""
        if refused.name not in self._refused:
            self._refused.add(refused.name)
            self._settings_for = None
            self._record(refused.name, refused.reason)

    def _record(self, name: str, why: str) -> None:
        """Keep for the run's manifest what is sent otherwise than was asked for, and say it once."""
        if self.dropped_parameters.get(name) != why:
            self.dropped_parameters[name] = why
            _log.warning("%s does not accept the setting %r as it was given: %s.", self._shown, name, mask(why))


async def _afford_another(tries: _Tries) -> None:
    """Go on where there is money for another request; else the last failure is final, until there is."""
    purse = PURSE.get()
    if purse is not None and not await purse.may_go_on():
        raise GenerationError(
            f"{tries.last} It was not asked again: that could cost more than is left of `max_cost`.", retryable=True
        )


async def _is_left_for_more(came: Sequence[Completion | Failure]) -> bool:
    """Whether there is money for the answers that did not come, once what came is counted."""
    purse = PURSE.get()
    if purse is None:
        return True
    for usage in (usage for each in came for usage in used_by(each)):
        purse.lose(usage)
    purse.give_back(len(came))
    return await purse.may_go_on()


def _first_answer(completions: Sequence[Completion | Failure]) -> tuple[int, Completion]:
    for place, each in enumerate(completions):
        if isinstance(each, Completion):
            return place, each
    raise AssertionError("a reply without an answer is an error")


def _most(prompt: Prompt, draws: int) -> Usage:
    """What a request that does not tell what it used counts for."""
    purse = PURSE.get()
    return purse.most(draws) if purse is not None else most_usage(prompt.given, prompt.tools, prompt.sampling, draws)


def _failures(error: GenerationError, draws: Sequence[int], tries: _Tries) -> list[Completion | Failure]:
    """The failure of each draw; the first has what they used together."""
    failure = Failure.of(error, "generate")
    first = failure.model_copy(update={"spent": tries.used}) if tries.used else failure
    return [first, *([failure] * (len(draws) - 1))]


def _after(tries: _Tries, outcomes: list[Completion | Failure]) -> list[Completion | Failure]:
    """The outcomes, with what was used before in vain."""
    if tries.used:
        first = outcomes[0]
        name = "spent" if isinstance(first, Failure) else "retried"
        outcomes[0] = first.model_copy(update={name: [*tries.used, *(getattr(first, name) or ())]})
    return outcomes


def _told_in(entry: dict[str, Any], *, whole: bool = False) -> dict[str, Any]:
    """What an entry of the list, or an object inside of it, tells of the model; `whole`: all but when it was made."""
    told: dict[str, Any] = {}
    for name, value in sorted(entry.items()):
        tells = name != "created" and (whole or _tells(name))
        found = _told_in(value, whole=tells) if isinstance(value, dict) else value if tells else None
        if found is not None and found != {}:
            told[name] = found
    return told


def _tells(name: str) -> bool:
    return name in _TELLING or "digest" in name


def _estimate(data: bytes, body: dict[str, Any], draws: int) -> float:
    settings = body.get("generationConfig") or body
    room = next((settings[name] for name in _ROOM if settings.get(name)), _UNKNOWN_ANSWER_TOKENS)
    return len(data) / _CHARACTERS_PER_TOKEN + room * draws
