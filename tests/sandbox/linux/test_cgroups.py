# SPDX-License-Identifier: Apache-2.0
"""Control groups: what they bound, what is read of them, and that none is left."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_kit.sandbox.linux.cgroups import (
    Accounts,
    Hierarchy,
    MemoryMeter,
    ProcessGroup,
    find_hierarchy,
    make_memory_group,
    memory_group,
)

GREEDY = "import sys; x = bytearray(int(sys.argv[1]) << 20); x[::4096] = bytes(len(x[::4096])); print(len(x))"


@pytest.fixture(scope="module")
def hierarchy() -> Hierarchy:
    found = find_hierarchy()
    if found is None:
        pytest.skip("no control group can be made here")
    return found


@pytest.fixture
def group(hierarchy: Hierarchy) -> Iterator[ProcessGroup]:
    group = ProcessGroup(hierarchy, f"reward-kit-test-{secrets.token_hex(6)}")
    group.create()
    yield group
    group.remove()


def started_in(group: ProcessGroup, *command: str) -> subprocess.Popen[str]:
    into = group.enter  # all it does is to write to files
    return subprocess.Popen(command, preexec_fn=into, stdout=subprocess.PIPE, text=True)  # noqa: PLW1509


def grown_in(group: ProcessGroup, megabytes: int) -> int:
    """How a program ended that takes so much memory."""
    with started_in(group, sys.executable, "-c", GREEDY, str(megabytes)) as greedy:
        greedy.communicate()
    return greedy.returncode


def test_who_has_entered_is_in_it_until_the_end(group: ProcessGroup) -> None:
    with started_in(group, "sleep", "600") as sleeper:
        assert group.processes() == [sleeper.pid]
        sleeper.kill()
    assert group.processes() == []


def test_no_more_processes_than_it_may_have(group: ProcessGroup) -> None:
    group.limit(memory_bytes=256 << 20, processes=1)
    fork = "import os\ntry: os.fork()\nexcept OSError: print('refused')"
    with started_in(group, sys.executable, "-c", fork) as alone:
        assert alone.communicate()[0] == "refused\n"


def test_too_much_memory_is_a_kill_that_is_counted(group: ProcessGroup) -> None:
    group.limit(memory_bytes=64 << 20, processes=16)
    accounts = group.accounts()
    assert grown_in(group, 16) == 0
    assert accounts.memory_kills() == 0
    assert grown_in(group, 256) == -signal.SIGKILL
    assert accounts.memory_kills() == 1
    cpu = accounts.cpu_seconds()
    assert cpu is not None and cpu > 0
    accounts.close()


def test_what_is_left_in_groups_of_a_killed_owner_is_ended_with_them(hierarchy: Hierarchy) -> None:
    owner = f"reward-kit-test-{secrets.token_hex(6)}"
    group, other = ProcessGroup(hierarchy, f"{owner}-1"), ProcessGroup(hierarchy, f"other-{owner}")
    for each in (group, other):
        each.create()
    try:
        with started_in(group, "sleep", "600") as sleeper:
            hierarchy.remove_groups(owner)
        assert sleeper.returncode == -signal.SIGKILL
        left = {name for parent in hierarchy.parents.values() for name in os.listdir(parent) if owner in name}
        assert left == {other.name}
    finally:
        other.remove()


def test_one_run_after_another_is_measured_in_the_same_group() -> None:
    path = make_memory_group(f"reward-kit-test-{secrets.token_hex(6)}")
    if path is None:
        pytest.skip("no control group can be made here")
    group = memory_group(path)
    try:
        meter = MemoryMeter(group)
        meter.begin(64)
        assert grown_in(group, 256) == -signal.SIGKILL
        assert (meter.kills(), meter.kills()) == (1, 0)
        meter.begin(512)
        assert grown_in(group, 128) == 0
        assert meter.kills() == 0
        assert meter.peak() == 0 or 128 << 20 <= meter.peak() < 512 << 20
        meter.begin(512)
        assert grown_in(group, 16) == 0
        assert meter.peak() < 128 << 20
    finally:
        group.remove()
    assert not os.path.exists(path)


def test_where_no_group_can_be_made_there_is_none(tmp_path: Path) -> None:
    assert find_hierarchy(str(tmp_path)) is None
    (tmp_path / "cgroup.controllers").write_text("memory pids")
    (tmp_path / "cgroup.subtree_control").write_text("")
    assert find_hierarchy(str(tmp_path)) is None
    assert sorted(os.listdir(tmp_path)) == ["cgroup.controllers", "cgroup.subtree_control"]


FILES = {
    "version 1": {"cpuacct.usage": "2500000000\n", "peak": "1000\n", "events": "oom_kill_disable 0\noom_kill 3\n"},
    "version 2": {"cpu.stat": "usage_usec 2500000\nuser_usec 1\n", "peak": "1000\n", "events": "oom 9\noom_kill 3\n"},
}


@pytest.mark.parametrize("files", FILES.values(), ids=FILES)
def test_both_versions_are_read(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    accounts = Accounts(*(str(tmp_path / name) for name in files))
    assert (accounts.cpu_seconds(), accounts.peak_bytes(), accounts.memory_kills()) == (2.5, 1000, 3)
    accounts.close()


def test_what_a_kernel_does_not_keep_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("oom_kill 0\n")
    accounts = Accounts("", str(tmp_path / "peak"), str(tmp_path / "events"))
    accounts.reset_peak()
    assert (accounts.cpu_seconds(), accounts.peak_bytes(), accounts.memory_kills()) == (None, None, 0)
    accounts.close()
    with pytest.raises(FileNotFoundError):
        Accounts("", str(tmp_path / "gone" / "peak"), str(tmp_path / "gone" / "events"))
