# SPDX-License-Identifier: Apache-2.0
"""A setup that takes long is done once, and whoever gets its result cannot tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from reward_kit.sandbox.contract import SandboxSpec
from reward_kit.sandbox.local.sandbox import LocalSandbox
from reward_kit.sandbox.namespaces.backend import NamespacesBackend
from reward_kit.sandbox.namespaces.snapshots import SnapshotPolicy, snapshot_key
from tests.sandbox.every_backend import opened
from tests.sandbox.leftovers import leftovers

COUNTED = "for i in {1..30000}; do :; done; echo $(($(cat /root/runs 2>/dev/null || echo 0) + 1)) > /root/runs"
HEAVY = SandboxSpec(
    setup=(
        "mkdir -p '/root/a b' && cd '/root/a b'",
        COUNTED,
        "x='it'\"'\"'s'; declare -A m=([k]=v); export y=2; f() { echo \"f $x\"; }; shopt -s nullglob; umask 077",
        "rm -rf /usr/share/doc/bash; echo new > /usr/new; ln -s /nowhere link; alias hi='echo hi'",
    )
)
LOOK = (
    "pwd; f; echo $y ${m[k]} nothing*; umask; env | grep ^y=; ls -d /usr/share/doc/bash 2>&1 | head -c 3; "
    "cat /usr/new; readlink link; alias hi; cat /root/runs; echo mine >> /usr/new; x=changed"
)


@pytest.fixture
async def works() -> AsyncIterator[None]:
    async with opened("namespaces"):
        pass
    yield
    assert leftovers() == []


async def look(backend: NamespacesBackend, spec: SandboxSpec = HEAVY) -> str:
    async with await backend.open(spec) as sandbox:
        seen = (await sandbox.run(LOOK)).output
        assert (await sandbox.run_standalone("pwd")).output == "/root/a b\n"
        return seen


@pytest.mark.usefixtures("works")
async def test_the_same_is_seen_with_and_without() -> None:
    plain, kept = NamespacesBackend(snapshots=None), NamespacesBackend(snapshots=SnapshotPolicy(slower_than=0.0))
    expected = await look(plain)
    assert "f it's" in expected
    for _ in range(3):
        assert await look(kept) == expected
    assert await asyncio.gather(*(look(kept) for _ in range(4))) == [expected] * 4
    await plain.close()
    await kept.close()


async def shared_inode(backend: NamespacesBackend, spec: SandboxSpec) -> str:
    """Tells whether two sandboxes have been set up by one run: then a file of the setup is one and the same."""
    async with await backend.open(spec) as sandbox:
        return (await sandbox.run("stat -c '%i %y' /root/runs")).output


@pytest.mark.usefixtures("works")
async def test_a_long_set_up_runs_once_and_a_short_one_each_time() -> None:
    eager = NamespacesBackend(snapshots=SnapshotPolicy(slower_than=0.0))
    assert await shared_inode(eager, HEAVY) == await shared_inode(eager, HEAVY)
    await eager.close()
    patient = NamespacesBackend(snapshots=SnapshotPolicy(slower_than=60.0))
    assert await shared_inode(patient, HEAVY) != await shared_inode(patient, HEAVY)
    await patient.close()


@pytest.mark.usefixtures("works")
async def test_a_snapshot_has_its_time_and_its_room() -> None:
    backend = NamespacesBackend(snapshots=SnapshotPolicy(slower_than=0.0, seconds=0.0))
    assert await shared_inode(backend, HEAVY) != await shared_inode(backend, HEAVY)
    await backend.close()
    backend = NamespacesBackend(snapshots=SnapshotPolicy(slower_than=0.0, most_bytes=1))
    first = await shared_inode(backend, HEAVY)
    await shared_inode(backend, replace(HEAVY, setup=(*HEAVY.setup, "true")))  # takes the room of the first
    assert await shared_inode(backend, HEAVY) != first
    await backend.close()


@pytest.mark.usefixtures("works")
async def test_a_setup_that_leaves_a_process_is_not_kept() -> None:
    backend = NamespacesBackend(snapshots=SnapshotPolicy(slower_than=0.0))
    spec = SandboxSpec(setup=(COUNTED, "coproc cat"))
    for _ in range(2):
        async with await backend.open(spec) as sandbox:
            assert (await sandbox.run("jobs -r | wc -l")).output == "1\n"
    await backend.close()


@pytest.mark.usefixtures("works")
async def test_a_sandbox_that_nobody_is_given_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: LocalSandbox) -> bool:
        raise OSError("nobody can look")

    backend = NamespacesBackend(snapshots=SnapshotPolicy(slower_than=0.0))
    with monkeypatch.context() as patch, pytest.raises(OSError, match="nobody can look"):
        patch.setattr(LocalSandbox, "is_quiet", broken)
        await backend.open(HEAVY)
    assert not backend.sandboxes
    await backend.close()


def test_what_has_to_be_different_each_time_has_no_key() -> None:
    timely = ("date > d", "sleep 1", "cat /proc/uptime", "touch -d '1 hour ago' f")
    for command in (*timely, "echo $RANDOM", "server &", "mktemp", "echo $$"):
        assert snapshot_key(SandboxSpec(setup=("true", command))) is None, command
    assert snapshot_key(SandboxSpec()) is None


def test_a_key_tells_apart_what_leaves_something_else() -> None:
    spec = SandboxSpec(setup=("echo a && echo b 2>&1 &> f",))
    keys = {
        snapshot_key(one)
        for one in (
            spec,
            replace(spec, setup=("echo A && echo b 2>&1 &> f",)),
            replace(spec, setup_join=";"),
            replace(spec, image="/other"),
            replace(spec, environment={"a": "b"}),
            replace(spec, workdir="/tmp"),
            replace(spec, files={"f": b"1"}),
            replace(spec, files={"f": b"2"}),
        )
    }
    assert None not in keys
    assert len(keys) == 8
    assert snapshot_key(spec) == snapshot_key(replace(spec))
