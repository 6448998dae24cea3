# SPDX-License-Identifier: Apache-2.0
"""Every exception reward-kit raises, by consequence: stop the run, or record the item.

    RewardKitError
    ├── ConfigError (ValueError)         the run cannot start: fix the config
    ├── DatasetError (ValueError)        the run cannot start: fix the data
    ├── AuthError                        the run cannot go on: fix the credentials
    ├── EndpointError                    the run cannot go on: the endpoint has no such model, or does not answer at all
    ├── SandboxUnavailableError          the run cannot go on: no sandbox can be had at all
    ├── ClusterError                     the run cannot go on: its cluster does not answer, or cannot hold its actors
    ├── StorageError                     the run cannot go on: its files cannot be trusted or written
    ├── AnswersFailedError               some answers failed, and the caller wanted all of them
    │   └── SameFailureError             the first answers all failed in the same way
    ├── DeployError
    ├── MissingExtraError (ImportError)  an optional package is not installed
    └── ItemError  .retryable            one item failed; recorded, the run goes on
        ├── GenerationError
        │   ├── RateLimitError           429
        │   ├── ProviderError            5xx, overload, broken or empty answers, time-outs, lost connections
        │   ├── BadRequestError          the endpoint refuses this request
        │   ├── FilteredError            the provider's filter withheld the answer, or did not take the prompt
        │   ├── UnreadableReplyError     the endpoint answered, and no answer can be read from it
        │   ├── ReplyTooLargeError       the endpoint's answer is larger than is taken
    │   ├── KeyInAnswerError         the endpoint's answer holds the key that was sent to it
        │   └── ContextLengthError       the prompt does not fit the model
        ├── SandboxError                 the sandbox failed (a failing command is an ExecResult)
        ├── EnvironmentFailure           an agent's world failed (a failing tool is a message to the model)
        │   └── ReplayError              a world did other things when recorded steps were played again
        └── RewardError                  the reward raised, timed out, or returned something else
            └── RewardTimeoutError

Every message names the thing with ``!r``, says what was expected, and ends with what to do. It names a setting between
backticks, by its place in the config of a run: `output.output_dir`, or `dataset.on_bad_row=skip` with a value. So a
command can say the same with its own flags, and so can whoever shows a failure that was recorded long ago.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

__all__ = [
    "AnswersFailedError",
    "AuthError",
    "BadRequestError",
    "ClusterError",
    "ConfigError",
    "ContextLengthError",
    "DatasetError",
    "DeployError",
    "EndpointError",
    "EnvironmentFailure",
    "FilteredError",
    "GenerationError",
    "ItemError",
    "KeyInAnswerError",
    "MissingExtraError",
    "ProviderError",
    "RateLimitError",
    "ReplayError",
    "ReplyTooLargeError",
    "RewardError",
    "RewardKitError",
    "RewardTimeoutError",
    "SameFailureError",
    "SandboxError",
    "SandboxUnavailableError",
    "Setting",
    "StorageError",
    "UnreadableReplyError",
    "boundary",
    "needs_extra",
    "settings_in",
    "with_settings_named",
]


class Setting(NamedTuple):
    """A setting that a message names, by its place in the config of a run, and with a value where it names one."""

    place: str
    value: str | None = None

    @property
    def whole(self) -> str:
        """As it is written in a config: `output.output_dir`, or `dataset.on_bad_row=skip`."""
        return self.place if self.value is None else f"{self.place}={self.value}"

    def __str__(self) -> str:
        return f"`{self.whole}`"


_SETTING = re.compile(r"`([a-z_]+(?:\.\w+)*)(?:=([^`]*))?`")


def settings_in(text: str) -> tuple[str, ...]:
    """The places of what a message names between backticks that may be a setting, such as `output.output_dir`."""
    return tuple(dict.fromkeys(match[1] for match in _SETTING.finditer(text)))


def with_settings_named(text: str, spell: Callable[[Setting], str]) -> str:
    """A message with each of its settings spelled in another way: `spell` gives all that stands in its place."""
    return _SETTING.sub(lambda match: spell(Setting(match[1], match[2])), text)


class RewardKitError(Exception):
    """The base class of all errors that reward-kit raises on purpose."""

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that the message names, by their places in the config of a run."""
        return settings_in(str(self))


class ConfigError(RewardKitError, ValueError):
    """The run cannot start until its configuration is fixed."""


class DatasetError(RewardKitError, ValueError):
    """The run cannot start until its data is fixed."""


class AuthError(RewardKitError):
    """The credentials are missing or refused."""


class EndpointError(RewardKitError):
    """The endpoint cannot serve this run at all: no such model or route, or nobody answers."""


class SandboxUnavailableError(RewardKitError):
    """No sandbox can be opened: no backend works here, the image is missing, or the server does not answer."""


class ClusterError(RewardKitError):
    """The cluster that a run was to use does not answer, or its actors cannot live there."""


class StorageError(RewardKitError):
    """A run's files are damaged, in use, or cannot be written."""


class DeployError(RewardKitError):
    """A deployment could not be made."""


class AnswersFailedError(RewardKitError):
    """Answers of a run failed, or are missing because it ended early, and the caller wanted all of them."""


class SameFailureError(AnswersFailedError):
    """The first answers of an evaluation could not be judged, all for the same reason; `result` has what there is."""

    def __init__(self, message: str, result: object) -> None:
        """`result` is the `RunResult` of what was done."""
        super().__init__(message)
        self.result = result


class MissingExtraError(RewardKitError, ImportError):
    """An optional package is needed here and is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        """Say that `what` needs the optional dependencies called `extra`."""
        super().__init__(f"{what} needs an optional package. Install it with: pip install 'reward-kit[{extra}]'")
        self.extra = extra


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Around the imports of an optional package: where one is missing, that `what` needs the dependencies `extra`."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(what, extra) from error


class ItemError(RewardKitError):
    """One item failed. It is recorded as a `Failure`; the run goes on."""

    retryable: bool = False
    raised: BaseException | None = None
    """What extension code raised, where this error stands for it."""

    def __init__(self, message: str, *, retryable: bool | None = None) -> None:
        """Describe the failure; `retryable` overrides the default of the class."""
        super().__init__(message)
        if retryable is not None:
            self.retryable = retryable


class GenerationError(ItemError):
    """A model answer could not be had."""


class KeyInAnswerError(GenerationError):
    """An answer holds a credential that this process sent. It is neither kept nor judged, nor edited."""


class RateLimitError(GenerationError):
    """The endpoint asked us to slow down (429)."""

    retryable = True

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        """Keep the seconds the endpoint asked us to wait, where it named them."""
        super().__init__(message)
        self.retry_after = retry_after


class ProviderError(GenerationError):
    """The endpoint failed in a way that may pass: overload, 5xx, a broken answer, a time-out, a lost connection."""

    retryable = True
    unsent = False
    """Whether the endpoint surely never had the request."""

    def __init__(self, message: str, *, retry_after: float | None = None, overloaded: bool = False) -> None:
        """Keep what the endpoint asked us to wait, and whether it complained of load."""
        super().__init__(message)
        self.retry_after = retry_after
        self.overloaded = overloaded


class BadRequestError(GenerationError):
    """The endpoint refuses this request; sending it again would not help."""


class FilteredError(GenerationError):
    """The provider's own filter withheld the answer, or did not take the prompt; asking again would not help."""


class UnreadableReplyError(GenerationError):
    """The endpoint answered, and no answer can be read from its reply; asking again would come to the same."""


class ReplyTooLargeError(GenerationError):
    """The endpoint's answer is larger than the limit; asking again would not help."""


class ContextLengthError(GenerationError):
    """The prompt, with the answer's room, does not fit the model's context."""


class SandboxError(ItemError):
    """The sandbox itself failed. A command that fails inside it is an `ExecResult` instead."""

    retryable = True


class EnvironmentFailure(ItemError):
    """An agent's world failed: it could not be opened, raised, hung or died. A tool that fails is no such failure."""

    retryable = True
    cost: float = 0.0
    """Money that it had spent, such as on a model that plays the user."""
    cost_is_at_most: bool = False


class ReplayError(EnvironmentFailure):
    """Recorded steps, played again in a fresh world, gave something else than the record."""

    retryable = False


class RewardError(ItemError):
    """The reward raised, timed out, or returned something that is not a result."""

    unread_replies: tuple[str, ...] = ()
    """What a judge replied, where no verdict could be read from it."""
    invalid_score: float | None = None
    """The score of a result that says of itself that it is not valid, and names no error."""
    invalid_result: object = None
    """The result that says of itself that it is no verdict."""


class RewardTimeoutError(RewardError):
    """The reward did not return within its time."""


class boundary:
    """Attribute whatever extension code raises inside to `name`, as an item error of `kind`.

    Errors of our own pass through unchanged, so that a failure is attributed once, where it arose.
    """

    __slots__ = ("_kind", "_name")

    def __init__(self, kind: type[ItemError], name: str) -> None:
        """Name the code that runs inside, and what its errors become."""
        self._kind = kind
        self._name = name

    def __enter__(self) -> None:
        """Begin to run code that is not ours."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Leave it, with any error turned into one of ours, SystemExit included; a wish to stop is passed on."""
        if error is None or isinstance(error, _PASSED_ON):
            return
        from asyncio import CancelledError  # here: a worker process that never needs it is ready sooner

        if isinstance(error, CancelledError) or (isinstance(error, GeneratorExit) and not _in_a_task()):
            return
        attributed = self._kind(f"{self._name} raised {type(error).__name__}: {message_of(error)}")
        attributed.raised = error
        raise attributed from error


def message_of(error: BaseException, most: int = 4000) -> str:
    """What an exception says, whatever its own `__str__` does."""
    try:
        text = "".join(str(error)).strip()
    except KeyboardInterrupt:
        raise
    except BaseException as worse:  # noqa: BLE001 - a named boundary: somebody's exception runs its own code here
        return f"no readable message (its __str__ raised {type(worse).__name__})"
    return text[:most] or "no message"


def _in_a_task() -> bool:
    """Whether code is run by a task just now. A coroutine that is thrown away is closed by nobody's."""
    from asyncio import current_task

    try:
        return current_task() is not None
    except RuntimeError:
        return False


_PASSED_ON = (RewardKitError, KeyboardInterrupt)
