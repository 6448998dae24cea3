# SPDX-License-Identifier: Apache-2.0
"""`RemoteReward`: a reward at an address, to be called like one that is here.

    RewardCall("https://rewards.example.com/evaluate")      in runs, trainers, best-of-n: wherever a path may stand

It is asynchronous, and names the parameters that the server says the reward has. So it is handed what the reward would
be handed here, and what comes back is what would have come back here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import ValidationError

from reward_kit.config_models import RemoteRewardConfig, check_address, validated
from reward_kit.errors import ConfigError, EndpointError, ItemError
from reward_kit.models import EvaluateResult
from reward_kit.redaction import mask, remember_settings, url_holds_login, without_secrets
from reward_kit.remote.line import Line
from reward_kit.remote.protocol import ROUTE, Description, Outcome, address_of, body_of
from reward_kit.typed_interface import Mode
from reward_kit.utils.event_loop import background_loop
from reward_kit.utils.per_process import PerProcess

__all__ = ["RemoteReward", "open_remote"]

T = TypeVar("T")

_CLOSE_SECONDS = 5.0
_WHOLE_SECONDS = 600.0
"""That a call may take, waiting and further attempts included, where nobody says otherwise."""


class RemoteReward:
    """A reward at an address. Making one asks nobody; `open_remote` asks the server what the reward is."""

    _reward_function_resources: Mapping[str, Any] = {}
    _reward_function_requirements = None
    _reward_function_is_remote = True

    def __init__(
        self,
        endpoint: str,
        settings: RemoteRewardConfig | Mapping[str, Any] | None = None,
        *,
        stops_run: bool = False,
        inherited_key: bool = False,
        description: Description | None = None,
        has_answered: bool = False,
    ) -> None:
        """`stops_run`: a server that cannot be reached ends the run, instead of failing each of its answers.
        `has_answered`: the server was there before, so that it is waited for while it restarts.

        `inherited_key`: where no key is named, a server on this machine is sent Fireworks', as older callers expect.
        """
        self.settings = _settings(settings)
        self.endpoint = _address(endpoint)
        self.description = description
        self._stops_run = stops_run
        self._inherited_key = inherited_key
        make = partial(
            _Desk, address_of(endpoint), self.settings, stops_run=stops_run, inherited_key=inherited_key,
            description=description, has_answered=has_answered,
        )  # fmt: skip
        self._has_answered = has_answered
        self._desk = PerProcess(make, _Desk.close)
        self._nested = urlsplit(address_of(endpoint)).path.endswith(ROUTE)
        self.__name__ = description.name if description is not None else "remote_reward"
        self.__signature__ = (description or Description(name=self.__name__)).signature()
        self._reward_function_mode: Mode = description.mode if description is not None else "pointwise"
        self._reward_function_id = self.__name__
        self._reward_function_concurrency = None
        self._reward_function_timeout = max(_WHOLE_SECONDS, self.settings.timeout)

    def __reduce__(self) -> tuple[Any, ...]:
        options: dict[str, Any] = {
            "stops_run": self._stops_run,
            "inherited_key": self._inherited_key,
            "description": self.description,
            "has_answered": self._has_answered,
        }
        return partial(RemoteReward, **options), (self.endpoint, self.settings)

    def __repr__(self) -> str:
        return f"RemoteReward({mask(self.endpoint)!r})"

    async def __call__(self, **given: Any) -> EvaluateResult | list[EvaluateResult]:
        """The result, or in a group one per answer; what is none is raised as the error that it would be here."""
        body = body_of(given, nested=self._nested)
        desk = self._desk.get()
        if self._reward_function_mode == "batch":
            size = len(given["rollouts_messages"])
            return self._group(await desk.here(lambda line: line.judge_group(body, size)))
        return await desk.here(lambda line: line.judge(body))

    def judge(self, given: Mapping[str, Any]) -> EvaluateResult:
        """The result of one conversation, for code that does not await."""
        body = body_of(given, nested=self._nested)
        return self._desk.get().wait_for(lambda line: line.judge(body))

    def _group(self, outcomes: Sequence[Outcome]) -> list[EvaluateResult]:
        """The results of a group. Where all of it failed the error is raised; what gave no verdict alone says so."""
        errors = [outcome for outcome in outcomes if isinstance(outcome, ItemError)]
        if errors and len({*map(str, errors)}) == 1 and len(errors) == len(outcomes):
            raise errors[0]
        said = f"{self.__name__!r} gave no verdict: "  # which the caller will say, too
        return [
            EvaluateResult(score=0.0, is_score_valid=False, error=str(outcome).removeprefix(said))
            if isinstance(outcome, ItemError)
            else outcome
            for outcome in outcomes
        ]

    def close(self) -> None:
        """Close the connections now; a further call opens others."""
        self._desk.close()

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the results: what the server says of the reward, else its address."""
        if self.description is None or not self.description.identity:
            return {"reward.endpoint": without_secrets({"url": self.endpoint}).get("url", "")}
        return dict(self.description.identity)


def open_remote(
    endpoint: str, settings: RemoteRewardConfig | Mapping[str, Any] | None = None, *, stops_run: bool = False,
    inherited_key: bool = False,
) -> RemoteReward:  # fmt: skip
    """The reward at an address, as its server describes it. A server that does not describe it is taken at its word."""
    unknown = RemoteReward(endpoint, settings, stops_run=True, inherited_key=inherited_key)
    try:
        said = unknown._desk.get().wait_for(lambda line: line.describe())
    except ItemError as error:  # nothing was asked yet: it is no answer that failed
        raise EndpointError(str(error)) from None
    finally:
        unknown.close()
    return RemoteReward(
        endpoint, unknown.settings, stops_run=stops_run, inherited_key=inherited_key, description=said,
        has_answered=True,
    )  # fmt: skip


def _settings(given: RemoteRewardConfig | Mapping[str, Any] | None) -> RemoteRewardConfig:
    if isinstance(given, RemoteRewardConfig):
        return given
    return validated(RemoteRewardConfig, dict(given or {}), "The remote reward", section="reward.remote")


def _address(endpoint: str) -> str:
    if url_holds_login(endpoint):
        remember_settings({"api_base": endpoint})
        raise ConfigError(
            "The reward's address holds a login. Remove it, and name the variable that holds a key: "
            "`reward.remote.api_key_env`."
        )
    try:
        check_address(endpoint)
    except (ValueError, ValidationError):
        raise ConfigError(
            f"The reward's address {mask(endpoint)!r} is not a valid address. Give one such as 'https://host/evaluate'."
        ) from None
    remember_settings({"api_base": endpoint})
    return endpoint


class _Desk:
    """The line of this process, on its background loop, and the way there from other loops and threads."""

    def __init__(
        self,
        url: str,
        settings: RemoteRewardConfig,
        *,
        stops_run: bool,
        inherited_key: bool,
        description: Description | None,
        has_answered: bool,
    ) -> None:
        self._loop = background_loop()
        self._line = Line(
            url, settings, stops_run=stops_run, inherited_key=inherited_key,
            batches=description is None or description.batch, has_answered=has_answered,
        )  # fmt: skip

    def wait_for(self, ask: Callable[[Line], Coroutine[Any, Any, T]]) -> T:
        """Ask, and wait without a loop."""
        if _running_loop() is self._loop:
            raise RuntimeError(
                "This call would wait for the event loop that it runs on. Await the reward instead, or call it in a "
                "thread."
            )
        asked = self._submit(ask)
        try:
            return asked.result()
        except BaseException:  # such as Ctrl-C: the request is of no use any more
            asked.cancel()
            raise

    def _submit(self, ask: Callable[[Line], Coroutine[Any, Any, T]]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(ask(self._line), self._loop)

    async def here(self, ask: Callable[[Line], Coroutine[Any, Any, T]]) -> T:
        """Ask, and wait on whichever loop we are."""
        if asyncio.get_running_loop() is self._loop:
            return await ask(self._line)
        return await asyncio.wrap_future(self._submit(ask))

    def close(self) -> None:
        """Close the line, and wait for it, unless the loop that would do it is the one that waits."""
        if not self._loop.is_running():
            return
        closing = asyncio.run_coroutine_threadsafe(self._line.close(), self._loop)
        if _running_loop() is None:  # garbage may be collected on any thread
            with contextlib.suppress(TimeoutError):
                closing.result(timeout=_CLOSE_SECONDS)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
