# SPDX-License-Identifier: Apache-2.0
"""The resource over BFCL's simulators, where the package is installed."""

from __future__ import annotations

import os
import pickle
from typing import Any

import pytest

from reward_kit.agent.resources import BFCLSimAPIResource

pytest.importorskip("bfcl_eval", reason="bfcl-eval is not installed")

_CONTENTS = {"a.txt": {"type": "file", "content": "one"}, "empty": {"type": "directory", "contents": {}}}
FILES = {"root": {"work": {"type": "directory", "contents": _CONTENTS}}}
ALL = [
    "GorillaFileSystem", "MathAPI", "MessageAPI", "TicketAPI", "TradingBot", "TravelAPI", "TwitterAPI",
    "VehicleControlAPI",
]  # fmt: skip


async def made(*classes: str) -> BFCLSimAPIResource:
    resource = BFCLSimAPIResource()
    chosen = list(classes) or ["GorillaFileSystem", "MathAPI"]
    await resource.setup({"involved_classes": chosen, "initial_config": {"GorillaFileSystem": FILES}})
    return resource


async def test_forks_share_nothing() -> None:
    one = await made()
    before = one.get_comparable_state()
    other = await one.fork()
    await other.step("echo", {"content": "two", "file_name": "a.txt"})
    assert await one.step("cat", {"file_name": "a.txt"}) == {"file_content": "one"}
    assert await other.step("cat", {"file_name": "a.txt"}) == {"file_content": "two"}
    assert one.get_comparable_state() == before != other.get_comparable_state()


@pytest.mark.parametrize("classes", [ALL, *([name] for name in ALL)], ids="+".join)
async def test_a_restored_world_has_objects_and_goes_on(classes: list[str]) -> None:
    one = await made(*classes)
    checkpoint, before = await one.checkpoint(), one.get_comparable_state()
    if "GorillaFileSystem" in classes:
        await one.step("mkdir", {"dir_name": "new"})
        assert one.get_comparable_state() != before
    await one.restore(checkpoint)
    assert one.get_comparable_state() == before
    if "GorillaFileSystem" in classes:
        assert await one.step("cd", {"folder": "empty"}) == {"current_working_directory": "empty"}
        assert await one.step("touch", {"file_name": "b"}) is None
        assert await one.step("ls", {}) == {"current_directory_content": ["b"]}
    again = BFCLSimAPIResource()
    await again.restore(await one.snapshot())
    assert again.get_comparable_state() == one.get_comparable_state()


async def test_errors_are_values() -> None:
    one = await made()
    assert "error" in await one.step("cat", {"file_name": "missing"})
    assert "error" in await one.step("cat", {"wrong": 1})
    assert "error" in await one.step("fly", {})
    assert "error" in await one.step("_load_scenario", {"scenario": {}})


async def test_tools_have_schemas() -> None:
    specs = {spec["function"]["name"]: spec["function"] for spec in await (await made()).get_tools_spec()}
    assert not any(name.startswith("_") for name in specs)
    assert specs["mean"]["parameters"]["properties"]["numbers"]["type"] == "array"
    assert specs["cat"]["parameters"] == {
        "type": "object",
        "properties": {"file_name": {"type": "string"}},
        "required": ["file_name"],
    }
    assert "list" in specs["ls"]["description"].lower()


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


async def test_a_hostile_state_is_refused() -> None:
    one = await made()
    with pytest.raises(ValueError, match="system"):
        await one.restore(pickle.dumps({"x": Evil()}))
    with pytest.raises(ValueError, match="'Elevator'"):
        await made("Elevator")
