# SPDX-License-Identifier: Apache-2.0
"""A reward as TRL's trainers call it: GRPO, RLOO, AsyncGRPO and OnlineDPO. Imports neither torch nor trl.

    GRPOTrainer(..., reward_funcs=[create_trl_adapter("my_rewards:correct", {"answer": "ground_truth"})])

    prompts, completions, columns ─▶ rollouts ─▶ verdicts ─▶ list[float | None]
                                                    └──────▶ log_metric, log_extra

A completion that cannot be judged is `None`, which TRL leaves out of the advantages; never a zero unless that is asked
for. What is wrong with the whole training (a missing column, a list of another length) stops it at the first step.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

from reward_kit.errors import ConfigError, RewardError
from reward_kit.integrations.scoring import Scoring, hint_of
from reward_kit.integrations.trainer_batch import TRAINER_OBJECTS, Batch, BatchReader
from reward_kit.models import EvaluateResult, Failure, Verdict
from reward_kit.reward_call import OnInvalid, RewardCall
from reward_kit.scoring import defaults
from reward_kit.scoring.failure_log import traceback_lines

__all__ = ["AsyncTRLAdapter", "OnError", "TRLAdapter", "create_trl_adapter"]

OnError = Literal["none", "zero", "raise"]
"""What a completion that cannot be judged becomes: left out, a score of 0.0, or the end of the training."""

_logger = logging.getLogger(__name__)


def create_trl_adapter(
    reward_fn: Callable[..., Any] | str,
    dataset_to_reward_kwargs_map: Mapping[str, str] | None = None,
    static_reward_kwargs: Mapping[str, Any] | None = None,
    user_message_fn: Callable[[Any], str] | None = None,
    assistant_message_fn: Callable[[Any], str] | None = None,
    **options: Any,
) -> TRLAdapter:
    """Adapt a reward (or its import path) to `f(prompts, completions, **columns) -> list[float | None]`.

    The map says which dataset column fills which parameter of the reward; without one, every column is given by its
    own name. The static keywords are given to every call. `user_message_fn` and `assistant_message_fn` make a turn's
    text from a prompt and a completion, where they are not texts or lists of messages already. The options are those
    of `TRLAdapter`: `name`, `on_error`, `on_invalid`, `workers`, `timeout`, `step_timeout`.
    """
    reading = BatchReader(
        RewardCall(reward_fn, static_reward_kwargs),
        columns=dataset_to_reward_kwargs_map,
        user_message_fn=user_message_fn,
        assistant_message_fn=assistant_message_fn,
    )
    return TRLAdapter(reading, **options)


class _Adapter:
    """What the synchronous and the asynchronous adapter share."""

    def __init__(
        self,
        reading: BatchReader,
        *,
        name: str | None = None,
        on_error: OnError = "none",
        on_invalid: OnInvalid = "failure",
        workers: int | None = None,
        timeout: float | None = None,
        step_timeout: float = defaults.STEP_SECONDS,
    ) -> None:
        """Adapt the reward that `reading` reads for.

        A synchronous reward is judged in `workers` processes (0: in the trainer's), each completion within `timeout`
        seconds and all of a step's within `step_timeout`. `on_error` says what becomes of those that cannot be judged.
        A result with `is_score_valid=False` is one of them, unless `on_invalid` is "score": then its score counts.
        `name` is what TRL calls the reward in its logs.
        """
        if on_error not in get_args(OnError):
            raise ConfigError(f"Unknown on_error {on_error!r}; use 'none', 'zero' or 'raise'.")
        call = reading.call
        self.__name__ = name or call.name
        self.on_error: OnError = on_error
        self._reading = reading
        self._scoring = Scoring(
            call, workers=workers, timeout=timeout, step_timeout=step_timeout, on_invalid=on_invalid
        )
        self._here = any(call.wants(name) for name in TRAINER_OBJECTS)
        self._counting = threading.Lock()
        self.failures = 0
        """Completions that could not be judged so far."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_counting"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _counting=threading.Lock())

    def close(self) -> None:
        """End the worker processes now rather than with the trainer; a further call starts others."""
        self._scoring.close()

    def _scores(
        self, batch: Batch, judged: Sequence[Sequence[Verdict]], trainer: Mapping[str, Any]
    ) -> list[float | None]:
        verdicts = batch.verdicts(judged)
        failed = [verdict for verdict in verdicts if isinstance(verdict, Failure)]
        if failed:
            self._note(failed, batch.size)
        self._log(verdicts, len(failed), trainer)
        unjudged = 0.0 if self.on_error == "zero" else None
        return [unjudged if isinstance(verdict, Failure) else verdict.score for verdict in verdicts]

    def _note(self, failed: Sequence[Failure], size: int) -> None:
        message, trace = failed[0].message.rstrip("."), traceback_lines(failed[0])
        if self.on_error == "raise":
            error = RewardError(
                f"{message}. (on_error='raise': {len(failed)} of {size} completions could not be judged.)"
            )
            if trace:
                error.add_note(trace.lstrip())
            raise error
        with self._counting:
            first = self.failures == 0
            self.failures += len(failed)
        given = "0.0" if self.on_error == "zero" else "None"
        if first:
            _logger.warning(
                "%s. The trainer is given %s for it; further failures are only counted.%s%s",
                message,
                given,
                hint_of(failed[0]),
                trace,
            )
        if len(failed) == size and size > 1:
            _logger.warning("%r judged none of %d completions: %s", self.__name__, size, message)

    def _log(self, verdicts: Sequence[Verdict], failed: int, trainer: Mapping[str, Any]) -> None:
        """Reasons to the trainer's table of completions, the metrics' means and the share of failures to its curves."""
        if (log_extra := trainer.get("log_extra")) is not None:
            log_extra(f"{self.__name__}/reason", [_reason(verdict) for verdict in verdicts])
        if (log_metric := trainer.get("log_metric")) is not None and verdicts:
            log_metric(f"{self.__name__}/failed", failed / len(verdicts))
            found: dict[str, list[float]] = {}
            for verdict in verdicts:
                for name, metric in verdict.metrics.items() if isinstance(verdict, EvaluateResult) else ():
                    found.setdefault(name, []).append(metric.score)
            for name, scores in found.items():
                log_metric(f"{self.__name__}/{name}", sum(scores) / len(scores))


def _reason(verdict: Verdict) -> str | None:
    return verdict.message if isinstance(verdict, Failure) else verdict.reason


class TRLAdapter(_Adapter):
    """A reward as TRL calls it. A completion that cannot be judged is `None`, and the first such is logged.

    Prompts and completions are texts or lists of messages; without completions, prompts are whole conversations. A
    reward that judges groups is given all completions of a prompt at once. It pickles if the reward does.
    """

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any] | None = None, **columns: Any
    ) -> list[float | None]:
        """One score an item, in order."""
        batch = self._reading.batch(prompts, completions, columns)
        return self._scores(batch, self._scoring.score(batch.groups, here=self._here), columns)

    @property
    def sync(self) -> TRLAdapter:
        """This adapter itself: it is the one for trainers that call their rewards. See `async_` for the other."""
        return self

    @property
    def async_(self) -> AsyncTRLAdapter:
        """The same to be awaited: GRPO, RLOO and AsyncGRPO await several rewards together."""
        return _as(AsyncTRLAdapter, self)


class AsyncTRLAdapter(_Adapter):
    """The same for trainers that await their rewards; OnlineDPO does not."""

    async def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any] | None = None, **columns: Any
    ) -> list[float | None]:
        """One score an item, in order."""
        batch = self._reading.batch(prompts, completions, columns)
        return self._scores(batch, await self._scoring.score_async(batch.groups, here=self._here), columns)

    @property
    def sync(self) -> TRLAdapter:
        """The same as a plain function."""
        return _as(TRLAdapter, self)

    @property
    def async_(self) -> AsyncTRLAdapter:
        """This adapter itself: it is the one for trainers that await their rewards. See `sync` for the other."""
        return self


_Kind = TypeVar("_Kind", bound=_Adapter)


def _as(kind: type[_Kind], adapter: _Adapter) -> _Kind:
    """The same adapter of another kind; the two share their worker processes."""
    made = kind.__new__(kind)
    made.__setstate__(adapter.__getstate__())
    return made
