# SPDX-License-Identifier: Apache-2.0
"""The resource whose state is a dict."""

from __future__ import annotations

import os
import pickle
import threading
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.agent.resources import PythonStateResource, plain_pickle

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.sets(st.integers()),
    max_leaves=20,
)


async def made(**state: Any) -> PythonStateResource:
    resource = PythonStateResource()
    await resource.setup({"initial_state": state})
    return resource


async def test_what_goes_in_and_out_is_copied() -> None:
    mine = {"list": [1]}
    resource = await made(mine=mine)
    mine["list"].append(2)
    assert resource.get_state() == {"mine": {"list": [1]}}
    for seen in (resource.get_state()["mine"], await resource.step("get_value", {"key": "mine"})):
        seen["list"].append(3)
    given = {"x": [1]}
    await resource.step("update_state", {"given": given})
    given["x"].append(2)
    assert resource.get_state() == {"mine": {"list": [1]}, "given": {"x": [1]}}


async def test_updates_come_plainly_or_as_the_schema_has_them() -> None:
    resource = await made(n=1)
    assert await resource.step("update_state", {"n": 2}) == {"n": 2}
    assert await resource.step("update_state", {"updates": {"n": 3}}) == {"n": 3}


class Evil:
    """Runs a command when it is read from a pickle."""

    def __reduce__(self) -> Any:
        return os.system, ("touch evil",)


@pytest.mark.parametrize("state", [Evil(), {"inside": [Evil()]}], ids=["itself", "inside"])
async def test_a_hostile_checkpoint_runs_nothing(state: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    resource = await made(n=1)
    with pytest.raises(ValueError, match=r"posix\.system|nt\.system"):
        await resource.restore(pickle.dumps(state))
    assert list(tmp_path.iterdir()) == []
    assert resource.get_state() == {"n": 1}


async def test_a_class_is_read_from_a_checkpoint_only_where_the_config_allows_it() -> None:
    resource = await made(one=Decimal("1.5"), day=date(2026, 1, 2), many=threading.ThreadError)
    checkpoint = await resource.checkpoint()
    with pytest.raises(ValueError, match="allowed_classes"):
        await resource.restore(checkpoint)
    other = PythonStateResource()
    await other.setup({"allowed_classes": ["builtins:RuntimeError"]})
    await other.restore(checkpoint)
    assert other.get_state() == resource.get_state()


async def test_what_cannot_be_pickled_is_forked_all_the_same() -> None:
    resource = await made(f=lambda: 7, n=[1])
    fork = await resource.fork()
    await fork.step("update_state", {"n": [2]})
    assert fork.get_state()["f"]() == 7
    assert resource.get_state()["n"] == [1]


@given(st.dictionaries(st.text(), JSON))
def test_values_come_back_from_a_plain_pickle(state: dict[str, Any]) -> None:
    assert plain_pickle.loads(plain_pickle.dumps(state)) == state


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_value_error(data: bytes) -> None:
    with suppress(ValueError):
        plain_pickle.loads(data)
