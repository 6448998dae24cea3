# SPDX-License-Identifier: Apache-2.0
"""What every resource promises: forks share nothing, a state can be gone back to, and nothing is left behind."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resources import FileSystemResource, PythonStateResource, SQLResource


class Kind(NamedTuple):
    """One kind of resource, and how to see and change its state."""

    make: type[ForkableResource]
    config: dict[str, Any]
    change: tuple[str, dict[str, Any]]
    """An action that changes the first state."""
    change_again: tuple[str, dict[str, Any]]
    """Another one."""
    look: Callable[[ForkableResource], Awaitable[Any]]


async def _values(resource: ForkableResource) -> Any:
    return await resource.get_observation()


async def _rows(resource: ForkableResource) -> Any:
    return await resource.step("execute_sql", {"query": "SELECT * FROM t ORDER BY a", "fetch_mode": "all"})


async def _files(resource: ForkableResource) -> Any:
    names = await resource.step("list_dir", {"path": ".", "recursive": True})
    return {name: await resource.step("read_file", {"path": name}) for name in names if "." in name}


KINDS = {
    "python": Kind(
        PythonStateResource,
        {"initial_state": {"n": 1, "deep": {"list": [1, 2]}}},
        ("update_state", {"n": 2, "deep": {"list": []}}),
        ("update_state", {"m": [3]}),
        _values,
    ),
    "sql": Kind(
        SQLResource,
        {"schema_sql": "CREATE TABLE t (a INTEGER, b TEXT);", "seed_sql": "INSERT INTO t VALUES (1, 'one');"},
        ("execute_sql", {"query": "INSERT INTO t VALUES (2, 'two')"}),
        ("execute_sql", {"query": "DELETE FROM t WHERE a = 1"}),
        _rows,
    ),
    "files": Kind(
        FileSystemResource,
        {"initial_files": {"a.txt": "one", "sub/b.txt": "two"}},
        ("write_file", {"path": "a.txt", "content": "changed"}),
        ("delete_dir", {"path": "sub"}),
        _files,
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory for temporary files, and another one to work in; both are to be empty afterwards."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


async def made(kind: Kind) -> ForkableResource:
    resource = kind.make()
    await resource.setup(kind.config)
    return resource


async def test_a_fork_and_its_origin_do_not_touch_each_other(kind: Kind) -> None:
    async with await made(kind) as origin, await origin.fork() as fork:
        first = await kind.look(origin)
        assert await kind.look(fork) == first
        await origin.step(*kind.change)
        assert await kind.look(fork) == first
        changed = await kind.look(origin)
        assert changed != first
        await fork.step(*kind.change_again)
        assert await kind.look(origin) == changed
        assert await kind.look(fork) not in (first, changed)


async def test_many_forks_of_one_state_are_equal_and_apart(kind: Kind) -> None:
    async with await made(kind) as origin:
        first = await kind.look(origin)
        forks = [await origin.fork() for _ in range(4)]
        await forks[1].step(*kind.change)
        await forks[2].step(*kind.change_again)
        grandchild = await forks[1].fork()
        for unchanged in (forks[0], forks[3], origin):
            assert await kind.look(unchanged) == first
        assert await kind.look(grandchild) == await kind.look(forks[1])
        await origin.step(*kind.change)
        assert await kind.look(await origin.fork()) == await kind.look(origin)
        assert await kind.look(forks[0]) == first
        for one in (*forks, grandchild):
            await one.close()


async def test_a_fork_outlives_its_origin(kind: Kind) -> None:
    origin = await made(kind)
    first = await kind.look(origin)
    fork = await origin.fork()
    await origin.close()
    assert await kind.look(fork) == first
    await fork.close()


async def test_restoring_a_checkpoint_undoes_what_came_after(kind: Kind) -> None:
    async with await made(kind) as resource:
        first, checkpoint = await kind.look(resource), await resource.checkpoint()
        await resource.step(*kind.change)
        second, later = await kind.look(resource), await resource.checkpoint()
        await resource.step(*kind.change_again)
        await resource.restore(checkpoint)
        assert await kind.look(resource) == first
        await resource.restore(later)
        assert await kind.look(resource) == second
        await resource.restore(checkpoint)  # twice: a checkpoint is not used up
        assert await kind.look(resource) == first
        assert await kind.look(await resource.fork()) == first


async def test_an_exported_state_is_loaded_by_a_resource_of_another_process(kind: Kind) -> None:
    async with await made(kind) as resource:
        await resource.step(*kind.change)
        state, expected = await resource.snapshot(), await kind.look(resource)
    assert isinstance(state, bytes)
    async with await made(kind) as other:
        await other.restore(state)
        assert await kind.look(other) == expected
        assert await other.snapshot() == state


@pytest.mark.parametrize("state", [b"", b"nonsense", b"\x80\x04K\x01."], ids=["empty", "nonsense", "another value"])
async def test_bytes_that_are_no_state_are_refused(kind: Kind, state: bytes) -> None:
    async with await made(kind) as resource:
        before = await kind.look(resource)
        if kind.make is SQLResource and not state:
            await resource.restore(state)  # an empty file is an empty database
            return
        with pytest.raises(ValueError):
            await resource.restore(state)
        assert await kind.look(resource) == before


async def test_closing_leaves_nothing(kind: Kind, temporary: Path) -> None:
    resource = await made(kind)
    await resource.get_observation()
    await resource.checkpoint()
    fork = await resource.fork()
    await fork.get_observation()
    await fork.checkpoint()
    await fork.step(*kind.change)
    await resource.close()
    await fork.close()
    await fork.close()
    assert [*(temporary / "tmp").iterdir(), *(temporary / "here").iterdir()] == []


async def test_every_tool_of_the_schema_is_an_action_and_takes_what_the_schema_says(kind: Kind) -> None:
    samples = {
        "query": "SELECT 1", "parameters": [], "fetch_mode": "all", "path": "a.txt", "content": "text", "key": "n",
        "recursive": True, "updates": {"n": 5},
    }  # fmt: skip
    for spec in await made_tools(kind):
        function = spec["function"]
        assert spec["type"] == "function"
        schema = function["parameters"]
        assert set(schema["required"]) <= set(schema["properties"])
        arguments = {name: samples[name] for name in schema["properties"]}
        if function["name"].endswith("_dir"):
            arguments["path"] = "sub"
        async with await made(kind) as resource:
            await resource.step(function["name"], arguments)


async def made_tools(kind: Kind) -> list[dict[str, Any]]:
    async with await made(kind) as resource:
        return await resource.get_tools_spec()


async def test_an_unknown_action_is_named(kind: Kind) -> None:
    async with await made(kind) as resource:
        with pytest.raises(NotImplementedError, match="'fly'"):
            await resource.step("fly", {})


async def test_equal_states_are_described_alike(kind: Kind) -> None:
    async with await made(kind) as one, await made(kind) as other:
        assert await one.describe() == await other.describe()
