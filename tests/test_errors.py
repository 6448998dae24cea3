# SPDX-License-Identifier: Apache-2.0
"""The exception tree, and the boundary to other people's code."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from importlib import import_module

import pytest

from reward_kit import errors
from reward_kit.errors import (
    ConfigError,
    DatasetError,
    GenerationError,
    ItemError,
    MissingExtraError,
    ProviderError,
    RateLimitError,
    RewardError,
    RewardKitError,
    RewardTimeoutError,
    SandboxError,
    StorageError,
    boundary,
)

CLASSES = [item for _, item in inspect.getmembers(errors, inspect.isclass) if issubclass(item, BaseException)]


def test_everything_is_exported_and_has_one_root() -> None:
    others = {"Setting", "boundary", "needs_extra", "settings_in", "with_settings_named"}
    assert {error.__name__ for error in CLASSES} | others == set(errors.__all__)
    assert all(issubclass(error, RewardKitError) for error in CLASSES)


def test_the_drawing_names_every_class() -> None:
    assert errors.__doc__ is not None
    assert [error.__name__ for error in CLASSES if error.__name__ not in errors.__doc__] == []


def test_what_else_they_are() -> None:
    assert issubclass(ConfigError, ValueError) and issubclass(DatasetError, ValueError)
    assert issubclass(MissingExtraError, ImportError)
    assert not issubclass(StorageError, ItemError), "a run cannot go on without its files"
    with (
        pytest.raises(MissingExtraError, match="Reading this needs") as caught,
        errors.needs_extra("Reading this", "hf"),
    ):
        import_module("a_package_that_nobody_has")
    assert "pip install 'reward-kit[hf]'" in str(caught.value)


def test_what_may_mend_by_itself() -> None:
    assert [RateLimitError("x").retryable, ProviderError("x").retryable, SandboxError("x").retryable] == [True] * 3
    assert [RewardError("x").retryable, GenerationError("x").retryable] == [False] * 2
    assert RewardError("x", retryable=True).retryable


def test_item_errors_cross_process_borders() -> None:
    for error in (RewardError("x", retryable=True), RewardTimeoutError("slow"), RateLimitError("x", retry_after=2.0)):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("raised", [KeyError("k"), SystemExit(1), MemoryError(), RecursionError(), AssertionError()])
def test_the_boundary_attributes_whatever_is_raised(raised: BaseException) -> None:
    with (
        pytest.raises(RewardError, match=f"my_reward raised {type(raised).__name__}") as caught,
        boundary(RewardError, "my_reward"),
    ):
        raise raised
    assert caught.value.__cause__ is raised


@pytest.mark.parametrize(
    "raised", [StorageError("s"), SandboxError("s"), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_the_boundary_lets_our_own_errors_and_interruptions_through(raised: BaseException) -> None:
    with pytest.raises(type(raised)) as caught, boundary(RewardError, "my_reward"):
        raise raised
    assert caught.value is raised


def test_the_boundary_is_silent_when_nothing_happens() -> None:
    with boundary(RewardError, "my_reward"):
        pass
