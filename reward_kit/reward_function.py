# SPDX-License-Identifier: Apache-2.0
"""`RewardFunction`: one object for a reward that is here, behind an endpoint, or hosted by Fireworks.

The decorator `reward_function` and the names for calling a reward (`RewardCall`, `wants` …) can be imported from
here too.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPException, IncompleteRead
from typing import TYPE_CHECKING, Any, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pydantic import BaseModel

from reward_kit.auth import get_fireworks_api_key, is_private_host
from reward_kit.errors import AuthError, RewardError, RewardTimeoutError
from reward_kit.models import EvaluateResult, Message
from reward_kit.reward_call import (
    Payload,
    RewardCall,
    concurrency_of,
    is_async,
    mode_of,
    run_blocking,
    timeout_of,
    verdict_or_raise,
    wants,
)
from reward_kit.typed_interface import as_result, reward_function

if TYPE_CHECKING:
    from reward_kit.integrations.trl import TRLAdapter

__all__ = [
    "Payload",
    "RewardCall",
    "RewardFunction",
    "concurrency_of",
    "is_async",
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

    def get_trl_adapter(self, **options: Any) -> TRLAdapter:
        """This reward as a trainer calls it: `f(prompts, completions=None, **columns) -> list[float | None]`.

        The options are those of `TRLAdapter`: `on_error`, `on_invalid`, `workers`, `timeout`, `step_timeout`.
        """
        from reward_kit.integrations.trainer_batch import BatchReader
        from reward_kit.integrations.trl import TRLAdapter

        name = self.name or (self._local.name if self._local is not None else "remote_reward")
        call = self._local if self._local is not None else RewardCall(_Awaited(self))
        reading = BatchReader(call, defaults=self.kwargs)
        return TRLAdapter(reading, **{"name": name, **options})


# ── a reward behind an endpoint ──────────────────────────────────────────────────────────────────────────────────────


class _Awaited:
    """A remote reward to be awaited, so that a trainer's completions are judged many at a time."""

    _reward_function_concurrency = min(32, (os.cpu_count() or 1) + 4)
    """As many as asyncio has threads: a call's time does not run while it waits for one."""

    def __init__(self, reward: RewardFunction) -> None:
        self._reward = reward

    async def __call__(self, messages: list[dict[str, Any]], ground_truth: Any = None, **kwargs: Any) -> Any:
        return await asyncio.to_thread(self._reward, messages, ground_truth, **kwargs)


_LARGEST_ANSWER = 64 << 20
"""Bytes of one answer of a remote reward."""


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
            content = response.read(_LARGEST_ANSWER + 1)
            if response.length and len(content) <= _LARGEST_ANSWER:
                raise IncompleteRead(content, response.length)  # a read of a certain size does not say so by itself
            if len(content) > _LARGEST_ANSWER:
                raise RewardError(f"The reward at {url!r} answered with more than {_LARGEST_ANSWER >> 20} MB. Mend it.")
            return json.loads(content)
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
    why = f": {detail}" if detail else ""
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return AuthError(f"The reward at {url!r} refused the key ({status}){why}. Check FIREWORKS_API_KEY.")
    passing = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    what_to_do = "Try again later." if passing else "Check the URL and what is sent."
    return RewardError(f"The reward at {url!r} answered {status}{why}. {what_to_do}", retryable=passing)


def _jsonable(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    raise TypeError(f"{value!r} cannot be sent as JSON; give plain data.")
