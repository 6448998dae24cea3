# SPDX-License-Identifier: Apache-2.0
"""The disk of a sandbox: by a filesystem of a fixed size where there can be one, by looking where there cannot.

Most of these have been seen to fail with the guard they are about taken away.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reward_kit.sandbox.contract import Limits, SandboxSpec
from reward_kit.sandbox.linux.disk_use import DiskUse, held_use, tree_use
from reward_kit.sandbox.linux.processes import processes_below
from reward_kit.sandbox.local.sandbox import LocalSandbox
from reward_kit.sandbox.local.unisolated import UnisolatedBackend
from reward_kit.sandbox.namespaces import backend as namespaces
from reward_kit.sandbox.namespaces.backend import NamespacesBackend
from reward_kit.sandbox.namespaces.snapshots import SnapshotPolicy
from tests.sandbox.every_backend import opened
from tests.sandbox.leftovers import leftovers, loop_devices

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces need Linux")

LIMITS = Limits(memory_mb=256, processes=40, timeout=60, file_size_mb=32, disk_mb=64)
FILES = 8192
SPEC = SandboxSpec(limits=LIMITS)

BEGIN = """
import array, ctypes, errno, os, socket, sys, threading, time
os.makedirs("/tmp/d", exist_ok=True); os.chdir("/tmp/d")
held = []
def file(number):
    f = os.open(f"f{number}", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(f, 0, 4 << 20)
    return f
def grow(keep, steps=50):
    step = 0
    try:
        for step in range(steps):
            keep(step)
            time.sleep(0.1)
        print("all of it", flush=True)
    except OSError as error:
        print("full" if error.errno == errno.ENOSPC else error, step, flush=True)
"""
NAMED = """
def keep(number):
    os.close(file(number))
grow(keep)
"""
CLOSED = """
os.mkdir("closed"); os.chdir("closed"); os.chmod(".", 0)
def keep(number):
    os.close(file(number))
grow(keep)
"""
REMOVED = """
def keep(number):
    held.append(file(number)); os.unlink(f"f{number}")
grow(keep)
"""
MAPPED = """
libc = ctypes.CDLL(None)
def keep(number):
    f = file(number); os.unlink(f"f{number}")
    libc.mmap(None, ctypes.c_size_t(4 << 20), 1, 1, f, ctypes.c_long(0)); os.close(f)
grow(keep)
"""
ONE_PAGE = MAPPED.replace("c_size_t(4 << 20)", "c_size_t(4096)")
FIRST_THREAD_ENDED = """
def keep(number):
    held.append(file(number)); os.unlink(f"f{number}")
def work():
    grow(keep); os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""
DEEP = """
for level in range(40):
    os.mkdir("x" * 200); os.chdir("x" * 200)
def keep(number):
    os.close(file(number))
grow(keep)
"""
IN_FLIGHT = """
def keep(number):
    f = file(number); os.unlink(f"f{number}")
    pair = socket.socketpair(); held.append(pair)
    pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f]))]); os.close(f)
grow(keep)
"""
MANY = """
def keep(number):
    for each in range(1000):
        NAME = f"{number}-{each}"
        os.close(os.open(NAME, os.O_CREAT | os.O_WRONLY))
grow(keep)
"""
LINKS = MANY.replace("os.close(os.open(NAME, os.O_CREAT | os.O_WRONLY))", 'os.symlink("x" * 200, NAME)')
DIRECTORIES = MANY.replace("os.close(os.open(NAME, os.O_CREAT | os.O_WRONLY))", "os.mkdir(NAME)")
WAYS = {
    "named": NAMED,
    "closed": CLOSED,
    "removed": REMOVED,
    "mapped": MAPPED,
    "first thread ended": FIRST_THREAD_ENDED,
    "deep": DEEP,
    "many files": MANY,
    "many links": LINKS,
    "many directories": DIRECTORIES,
}
UNSEEN = {"in flight": IN_FLIGHT}
"""What nobody sees who looks from outside."""


@pytest.fixture
async def works() -> AsyncIterator[None]:
    async with opened("namespaces"):
        pass
    yield
    assert leftovers() == []


@pytest.fixture
async def bounded(works: None) -> AsyncIterator[NamespacesBackend]:
    """Skipped where no disk of a fixed size can be had."""
    backend = NamespacesBackend()
    async with await backend.open(SPEC) as sandbox:
        is_bounded = backend.sandboxes[sandbox].is_bounded
    try:
        if not is_bounded:
            pytest.skip("no loop devices here")
        yield backend
    finally:
        await backend.close()


@pytest.fixture
async def watched(works: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NamespacesBackend]:
    monkeypatch.setattr(namespaces, "make_template", lambda *_: False)
    backend = NamespacesBackend()
    yield backend
    await backend.close()


async def _has_python(sandbox: LocalSandbox) -> None:
    if not (await sandbox.run("command -v python3")).ok:
        pytest.skip("no python3 in /usr")


@pytest.mark.parametrize("way", [*WAYS, *UNSEEN])
async def test_a_disk_of_a_fixed_size_cannot_be_overfilled(bounded: NamespacesBackend, way: str) -> None:
    async with await bounded.open(SPEC) as sandbox:
        await _has_python(sandbox)
        done = await sandbox.run_standalone("python3 -", stdin=(BEGIN + (WAYS | UNSEEN)[way]).encode())
        what, _, step = done.stdout.strip().rpartition(" ")
        assert what == "full", done.output
        assert int(step) <= (9 if way.startswith("many") else 17)
        assert (await sandbox.run_standalone("exit 5")).exit_code == 5, "it still serves"
        async with await bounded.open(SPEC) as another:
            assert (await another.run("head -c 20M /dev/zero > /tmp/mine")).ok, "others have their own"


async def test_the_room_is_what_was_promised(bounded: NamespacesBackend) -> None:
    async with await bounded.open(SPEC) as sandbox:
        done = await sandbox.run("for i in 1 2; do head -c 32M /dev/zero > /tmp/$i || exit; done; echo all")
        assert done.output == "all\n"
        room = (await sandbox.run("stat -f -c '%b %S %c' /")).output.split()
        assert int(room[0]) * int(room[1]) <= 70 << 20
        assert int(room[2]) == FILES


async def test_files_can_be_written_and_read_from_outside(bounded: NamespacesBackend) -> None:
    async with await bounded.open(SPEC) as sandbox:
        await sandbox.write("/tmp/x", b"y" * (20 << 20))
        assert len(await sandbox.read("/tmp/x")) == 20 << 20
        with pytest.raises(OSError, match="No space left"):
            for number in range(5):
                await sandbox.write(f"/tmp/{number}", b"y" * (30 << 20))


@pytest.mark.parametrize("way", [*WAYS])
async def test_what_is_watched_is_ended(watched: NamespacesBackend, way: str) -> None:
    async with await watched.open(SPEC) as sandbox:
        await _has_python(sandbox)
        done = await sandbox.run_standalone("python3 -", stdin=(BEGIN + WAYS[way]).encode())
        assert "all of it" not in done.stdout
        assert "of disk" in done.output
        async with asyncio.timeout(60):  # its files are still there, so each look ends what runs at that moment
            while (served := await sandbox.run_standalone("exit 5")).exit_code != 5:
                assert "of disk" in served.output


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is told the size of what is mapped")
async def test_of_a_removed_file_all_counts_whatever_part_is_mapped(watched: NamespacesBackend) -> None:
    async with await watched.open(SPEC) as sandbox:
        await _has_python(sandbox)
        done = await sandbox.run_standalone("python3 -", stdin=(BEGIN + ONE_PAGE).encode())
        assert "all of it" not in done.stdout
        assert "of disk" in done.output


async def _nobody_looks(sandbox: LocalSandbox) -> None:
    async with asyncio.timeout(60):
        while sandbox.is_disk_watched:
            await asyncio.sleep(0.05)


async def _left_behind_is_ended(sandbox: LocalSandbox, code: str) -> None:
    """It writes when its command has long ended, and no other runs."""
    await _has_python(sandbox)
    await sandbox.write("hold.py", code.encode())
    assert (await sandbox.run("(setsid python3 hold.py > held 2>&1 &)")).ok
    await _nobody_looks(sandbox)
    assert await sandbox.read("held") == b"", "it came to no end of its own"
    assert sandbox.is_quiet()


async def test_what_a_command_leaves_behind_is_watched(watched: NamespacesBackend) -> None:
    async with await watched.open(SPEC) as sandbox:
        await _left_behind_is_ended(sandbox, BEGIN + NAMED)


async def test_what_a_command_leaves_behind_is_watched_without_isolation() -> None:
    backend = UnisolatedBackend()
    async with await backend.open(SPEC) as sandbox:
        await _left_behind_is_ended(sandbox, (BEGIN + REMOVED).replace('"/tmp/d"', '"d"'))
    await backend.close()


async def test_a_quiet_sandbox_is_not_looked_at(watched: NamespacesBackend) -> None:
    async with await watched.open(SPEC) as sandbox:
        await sandbox.run("sleep 0.4")
        await _nobody_looks(sandbox)
        assert (await sandbox.run("echo $?")).output == "0\n"


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PLENTY = DiskUse(1 << 40, 1 << 40)


def test_a_count_ends_at_the_limit(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).write_bytes(b"x" * 8192)
    whole = tree_use([str(tmp_path)], PLENTY)
    assert whole.files == 50
    assert whole.size >= 50 * 8192
    assert tree_use([str(tmp_path)], DiskUse(1 << 40, 10)).files == 11
    assert tree_use([str(tmp_path)], DiskUse(8192 * 10, 1 << 40)).exceeds(DiskUse(8192 * 10, 1 << 40))


def test_a_file_with_many_names_counts_once_and_names_without_end_are_too_many(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 65536)
    for number in range(100):
        os.link(tmp_path / "f", tmp_path / str(number))
    use = tree_use([str(tmp_path)], PLENTY)
    assert use.files == 1
    assert use.size < 2 * 65536
    few = DiskUse(1 << 40, 10)
    assert tree_use([str(tmp_path)], few).exceeds(few)


HOLD = """
import mmap, os, sys, time
path = sys.argv[1]
f = os.open(path, os.O_RDWR | os.O_CREAT); os.posix_fallocate(f, 0, 8 << 20); os.unlink(path)
memory = mmap.mmap(-1, 64 << 20); memory.write(bytes(64 << 20))
os.write(os.memfd_create("m"), bytes(64 << 20))
if os.fork() == 0:
    os.close(1)
else:
    print("held", flush=True)
time.sleep(60)
"""


def test_a_removed_file_counts_once_and_memory_never(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "f")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        both = processes_below(process.pid)
        use = held_use(both)
        for each in both:
            os.kill(each, signal.SIGKILL)
    assert len(both) == 2
    assert use.files == 1
    assert 8 << 20 <= use.size < 9 << 20


# ── what is left ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_setup_is_kept_from_a_disk(bounded: NamespacesBackend) -> None:
    """Everything that a layer can hold survives: what was removed, replaced and linked, owners, modes and times."""
    setup = (
        "mkdir -p /root/w && cd /root/w && echo a > a && ln a b && ln -s a c && mkfifo p && chmod 2750 /root/w",
        "touch -d '2001-02-03 04:05:06' a; chown 12:34 a; truncate -s 10M sparse",
        "rm -rf /usr/share/doc/bash /etc/hosts; rm -rf /usr/share/man; mkdir /usr/share/man; echo n > /usr/share/man/n",
    )
    look = (
        "pwd; stat -c '%n %F %a %u:%g' /root/w /root/w/*; readlink c; ls /usr/share/doc/bash /usr/share/man 2>&1; "
        "test -e /etc/hosts; echo $?; test a -ef b; echo $?; stat -c '%b %s' sparse; stat -c %Y a; cat a"
    )
    kept = NamespacesBackend(snapshots=SnapshotPolicy(slower_than=0.0))
    seen = []
    for backend in (bounded, kept, kept):
        async with await backend.open(SandboxSpec(setup=setup, limits=LIMITS)) as sandbox:
            seen.append((await sandbox.run(look)).output)
    assert kept._snapshots is not None
    assert kept._snapshots._kept
    await kept.close()
    assert "981173106" in seen[0]
    assert seen == [seen[0]] * 3


async def test_a_setup_that_cannot_be_kept_is_done_again(
    bounded: NamespacesBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(self: NamespacesBackend, sandbox: LocalSandbox) -> None:
        await sandbox.close()

    monkeypatch.setattr(NamespacesBackend, "_keep", lost)
    backend = NamespacesBackend(snapshots=SnapshotPolicy(slower_than=0.0))
    for _ in range(2):
        async with await backend.open(SandboxSpec(setup=("echo x > /root/x",), limits=LIMITS)) as sandbox:
            assert (await sandbox.run("cat /root/x")).output == "x\n"
    await backend.close()


async def test_loop_devices_are_free_when_supervisors_are_killed(bounded: NamespacesBackend) -> None:
    sandboxes = [await bounded.open(SPEC) for _ in range(3)]
    assert bounded.directory is not None
    name = bounded.directory.name
    assert loop_devices(name)
    for supervisor in bounded.supervisors:
        os.kill(supervisor, signal.SIGKILL)
    for sandbox in sandboxes:
        await sandbox.close()
    async with asyncio.timeout(60):
        while loop_devices(name):
            await asyncio.sleep(0.1)


async def test_disks_that_are_not_used_any_more_are_freed_while_others_are(bounded: NamespacesBackend) -> None:
    assert bounded.directory is not None
    async with await bounded.open(SPEC):
        for _ in range(30):
            async with await bounded.open(SPEC) as sandbox:
                assert (await sandbox.run("head -c 1M /dev/zero > /tmp/x")).ok
        async with asyncio.timeout(60):  # those that are open or ready for each supervisor are left
            while len(loop_devices(bounded.directory.name)) > 1 + 3 * len(bounded.supervisors):
                await asyncio.sleep(0.05)


async def test_the_probe_says_how_the_disk_is_bounded(bounded: NamespacesBackend) -> None:
    assert "disk bounded by a loop filesystem" in (await bounded.probe()).detail


async def test_the_probe_says_that_the_disk_is_watched(watched: NamespacesBackend) -> None:
    assert "disk watched" in (await watched.probe()).detail
