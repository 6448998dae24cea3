"""`RewardFunction`: one object for a reward that is here, behind an endpoint, or hosted by Fireworks.

The decorator `reward_function` and the names for calling a reward (`RewardCall`, `load_scorer` …) can be imported from
here too.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pydantic import BaseModel

from reward_kit.auth import get_fireworks_api_key, is_private_host
from reward_kit.errors import AuthError, ConfigError, ItemError, RewardError, RewardTimeoutError
from reward_kit.models import EvaluateResult, Message
from reward_kit.reward_call import (
    BatchScorer,
    Payload,
    PointwiseScorer,
    RewardCall,
    concurrency_of,
    is_async,
    load_scorer,
    mode_of,
    run_blocking,
    timeout_of,
    verdict_or_raise,
    wants,
)
from reward_kit.typed_interface import as_result, reward_function

__all__ = [
    "BatchScorer",
    "Payload",
    "PointwiseScorer",
    "RewardCall",
    "RewardFunction",
    "TRLAdapter",
    "concurrency_of",
    "is_async",
    "load_scorer",
    "mode_of",
    "reward_function",
    "run_blocking",
    "timeout_of",
    "verdict_or_raise",
    "wants",
]

FIREWORKS_REWARDS = "https://api.fireworks.ai/v1"
"""Where rewards known to Fireworks by name or by model answer."""

Turns = Sequence[Message | Mapping[str, Any]]
"""A conversation, as messages or as dicts."""

_logger = logging.getLogger(__name__)


class RewardFunction:
    """A reward to be called with messages, wherever it runs.

    `local` takes `func` or its import path `func_path`; `remote` an `endpoint`, or the `name` of a reward that
    Fireworks serves; `fireworks_hosted` the `model_id` of a reward model. Further keywords are defaults of every call.
    """

    def __init__(
        self,
        func: Callable[..., Any] | None = None,
        func_path: str | None = None,
        mode: Literal["local", "remote", "fireworks_hosted"] = "local",
        endpoint: str | None = None,
        name: str | None = None,
        model_id: str | None = None,
        *,
        request_timeout: float = 60.0,
        **kwargs: Any,
    ) -> None:
        """Find the reward; a path that does not load is an ImportError, anything else missing a ValueError."""
        self.func = func
        self.func_path = func_path
        self.mode = mode
        self.endpoint = endpoint
        self.name = name
        self.model_id = model_id
        self.request_timeout = request_timeout
        self.kwargs = kwargs
        self._local: RewardCall | None = None
        if mode == "local":
            self._local = self._load()
        elif mode in {"remote", "fireworks_hosted"}:
            self.endpoint = self._find_endpoint()
        else:
            raise ValueError(f"Unknown mode {mode!r}; use 'local', 'remote' or 'fireworks_hosted'.")

    def _load(self) -> RewardCall:
        reward = self.func if self.func is not None else self.func_path
        if reward is None:
            raise ValueError("A local RewardFunction needs `func` or `func_path`; give one of them.")
        call = RewardCall(reward)
        if call.mode == "batch":
            raise ValueError(
                f"{call.name!r} judges all rollouts of a sample at once, and a RewardFunction judges one conversation. "
                "Call it directly, or give it to reward_kit.evaluate."
            )
        self.func = call.func
        return call

    def _find_endpoint(self) -> str:
        if self.mode == "fireworks_hosted":
            if self.model_id is None:
                raise ValueError("A Fireworks-hosted RewardFunction needs `model_id`; give the reward model's id.")
            return f"{FIREWORKS_REWARDS}/models/{self.model_id}/reward"
        if self.endpoint is None and self.name is None:
            raise ValueError("A remote RewardFunction needs `endpoint` or `name`; give one of them.")
        endpoint = self.endpoint or f"{FIREWORKS_REWARDS}/reward/{self.name}"
        if urlsplit(endpoint).scheme not in {"http", "https"}:
            raise ValueError(f"The endpoint {endpoint!r} is no URL of a web service; start it with https://.")
        return endpoint

    def __call__(self, messages: Turns, ground_truth: Any = None, **kwargs: Any) -> Any:
        """The `EvaluateResult` (for an `async def` reward: something to await). Without ground truth: the prompt."""
        if ground_truth is None:
            ground_truth = messages[:-1]
        given = {**self.kwargs, **kwargs}
        if self._local is None:
            return self._post({"messages": messages, "ground_truth": ground_truth, **given})
        payload = Payload(messages=messages, ground_truth=ground_truth, columns=given)
        return self._local.function(**self._local.arguments_for(payload))

    def _post(self, body: Mapping[str, Any]) -> EvaluateResult:
        endpoint = str(self.endpoint)
        data = json.dumps(body, default=_jsonable).encode()
        request = Request(endpoint, data=data, headers=_headers(endpoint), method="POST")
        return as_result(_answer_to(request, self.request_timeout), f"the reward at {endpoint}")

    def get_trl_adapter(self) -> TRLAdapter:
        """This reward as a trainer calls it: `f(prompts, completions=None, **columns) -> list[float | None]`."""
        name = self.name or (self._local.name if self._local is not None else "remote_reward")
        call = self._local if self._local is not None else RewardCall(self)
        return TRLAdapter(call, name=name, defaults=self.kwargs, prompt_is_ground_truth=True)


# ── a reward behind an endpoint ──────────────────────────────────────────────────────────────────────────────────────


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would carry the key to another host, and the body to nowhere: it is an error instead."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _headers(endpoint: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "reward-kit"}
    url = urlsplit(endpoint)
    key = get_fireworks_api_key()
    if key is None:
        if url.hostname == urlsplit(FIREWORKS_REWARDS).hostname:
            raise AuthError("Fireworks needs an API key. Set FIREWORKS_API_KEY, or put it into ~/.fireworks/auth.ini.")
        return headers
    if url.scheme == "http" and not is_private_host(url.hostname or ""):
        raise AuthError(f"The Fireworks key would travel unencrypted to {endpoint!r}. Use https://.")
    return {**headers, "Authorization": f"Bearer {key}"}


def _answer_to(request: Request, timeout: float) -> Any:
    url = request.full_url
    try:
        with build_opener(_NoRedirect).open(request, timeout=timeout) as response:
            return json.loads(response.read())
    except HTTPError as error:
        with error:
            raise _refusal(url, error.code, error.read(500).decode(errors="replace").strip()) from None
    except TimeoutError:
        raise RewardTimeoutError(_too_slow(url, timeout)) from None
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise RewardTimeoutError(_too_slow(url, timeout)) from None
        raise RewardError(
            f"The reward at {url!r} cannot be reached: {error.reason}. Is it running?", retryable=True
        ) from None
    except (OSError, HTTPException) as error:
        raise RewardError(
            f"The reward at {url!r} broke off its answer: {error!r}. Try again.", retryable=True
        ) from None
    except ValueError:
        raise RewardError(
            f"The reward at {url!r} did not answer with JSON. Check that the URL is a reward's."
        ) from None


def _too_slow(url: str, timeout: float) -> str:
    return f"The reward at {url!r} did not answer within {timeout:g} s. Raise request_timeout, or look at the service."


def _refusal(url: str, status: int, detail: str) -> AuthError | RewardError:
    said = f": {detail}" if detail else ""
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return AuthError(f"The reward at {url!r} refused the key ({status}){said}. Check FIREWORKS_API_KEY.")
    passing = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    what_to_do = "Try again later." if passing else "Check the URL and what is sent."
    return RewardError(f"The reward at {url!r} answered {status}{said}. {what_to_do}", retryable=passing)


def _jsonable(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    raise TypeError(f"{value!r} cannot be sent as JSON; give plain data.")


# ── a reward inside a trainer ────────────────────────────────────────────────────────────────────────────────────────

TRAINER_NAMES = frozenset({"completion_ids", "trainer_state", "log_extra", "log_metric"})
"""What TRL passes beside the dataset's columns; handed on only to a reward that names it."""


class TRLAdapter:
    """A reward as TRL calls it. An item that cannot be judged is `None`, and the first such is logged.

    Prompts and completions are texts or lists of messages; without completions, prompts are whole conversations. A
    column is a list with one value an item; anything else is the same for all. It pickles if the reward does.
    """

    def __init__(
        self,
        call: RewardCall,
        *,
        name: str | None = None,
        columns: Mapping[str, str] | None = None,
        defaults: Mapping[str, Any] | None = None,
        prompt_is_ground_truth: bool = False,
        user_message_fn: Callable[[Any], str] | None = None,
        assistant_message_fn: Callable[[Any], str] | None = None,
    ) -> None:
        """Adapt `call`.

        `columns` maps dataset columns to reward parameters; left out, every column is given by its own name, and
        `solution` serves as ground truth too. `defaults` are given where the dataset has no such column.
        """
        self.__name__ = name or call.name
        self._call = call
        self._columns = columns
        self._defaults = dict(defaults or {})
        self._prompt_is_ground_truth = prompt_is_ground_truth
        self._user_message_fn = user_message_fn
        self._assistant_message_fn = assistant_message_fn
        self.failures = 0
        """Items that could not be judged so far."""

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any] | None = None, **columns: Any
    ) -> list[float | None]:
        """One score an item, in order."""
        if completions is not None and len(completions) != len(prompts):
            raise ValueError(f"{len(prompts)} prompts came with {len(completions)} completions; give one for each.")
        pairs = zip(prompts, completions if completions is not None else [None] * len(prompts), strict=True)
        shared, by_item = self._split(columns, len(prompts))
        payloads = [
            self._payload(
                self._messages(prompt, completion), {**shared, **{name: by_item[name][i] for name in by_item}}
            )
            for i, (prompt, completion) in enumerate(pairs)
        ]
        if self._call.is_async:
            return run_blocking(self._scores_async(payloads))
        return [self._score(payload) for payload in payloads]

    def _split(self, columns: Mapping[str, Any], size: int) -> tuple[dict[str, Any], dict[str, Sequence[Any]]]:
        """What is the same for all items, and what each item has its own of."""
        chosen = self._choose(columns)
        by_item: dict[str, Sequence[Any]] = {
            name: value for name, value in chosen.items() if isinstance(value, (list, tuple)) and len(value) == size
        }
        shared = {name: value for name, value in chosen.items() if name not in by_item}
        return {**self._defaults, **shared}, by_item

    def _choose(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        if self._columns is None:
            return {n: v for n, v in columns.items() if n not in TRAINER_NAMES or self._call.wants(n)}
        if missing := sorted(self._columns.keys() - columns.keys()):
            raise ConfigError(
                f"The dataset has no column {missing[0]!r}; there are {sorted(columns)}. "
                "Correct dataset_to_reward_kwargs_map."
            )
        return {parameter: columns[column] for column, parameter in self._columns.items()}

    def _messages(self, prompt: Any, completion: Any) -> list[Any]:
        if self._user_message_fn is not None:
            prompt = self._user_message_fn(prompt)
        if self._assistant_message_fn is not None and completion is not None:
            completion = self._assistant_message_fn(completion)
        return [*_as_turns(prompt, "user"), *([] if completion is None else _as_turns(completion, "assistant"))]

    def _payload(self, messages: list[Any], columns: dict[str, Any]) -> Payload:
        ground_truth = columns.pop("ground_truth", None)
        if ground_truth is None and self._columns is None:
            ground_truth = columns.get("solution")
        if ground_truth is None and self._prompt_is_ground_truth:
            ground_truth = messages[:-1]
        return Payload(messages=messages, ground_truth=ground_truth, columns=columns)

    def _score(self, payload: Payload) -> float | None:
        try:
            return self._call.judge(payload).score
        except ItemError as error:
            self._note(error)
            return None

    async def _scores_async(self, payloads: Sequence[Payload]) -> list[float | None]:
        async def score(payload: Payload) -> float | None:
            try:
                return (await self._call.judge_async(payload)).score
            except ItemError as error:
                self._note(error)
                return None

        return list(await asyncio.gather(*map(score, payloads)))

    def _note(self, error: ItemError) -> None:
        self.failures += 1
        if self.failures == 1:
            _logger.warning("%s; the trainer is given None for it. Further failures are only counted.", error)


def _as_turns(value: Any, role: str) -> list[Any]:
    """A text as one turn of `role`; a list of messages as it is."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return list(value) if isinstance(value, (list, tuple)) else [value]
