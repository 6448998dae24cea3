# SPDX-License-Identifier: Apache-2.0
"""What is the namespaces backend's own: images, faults of its processes, and that nothing is left, ever."""

from __future__ import annotations

import asyncio
import copy
import io
import os
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import SandboxError
from reward_kit.sandbox.contract import Limits, SandboxSpec
from reward_kit.sandbox.local.channel import start_program
from reward_kit.sandbox.namespaces import supervisor_client
from reward_kit.sandbox.namespaces.backend import NamespacesBackend
from tests.sandbox.every_backend import opened
from tests.sandbox.leftovers import control_groups, leftovers
from tests.sandbox.small_root import small_root
from tests.sandbox.waiting import until


@pytest.fixture
async def backend() -> AsyncIterator[NamespacesBackend]:
    async with opened("namespaces") as backend:
        assert isinstance(backend, NamespacesBackend)
        yield backend
    assert leftovers() == []


def children(of: int | None = None, *, deep: bool = True) -> list[int]:
    """Processes that this one (or `of`) has started, and theirs; without the `ps` that lists them."""
    with subprocess.Popen(["ps", "-eo", "pid=,ppid="], stdout=subprocess.PIPE, text=True) as ps:
        listed, _ = ps.communicate()
    assert ps.returncode == 0
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in listed.splitlines())}
    parents.pop(ps.pid, None)
    found, new = set[int](), {of or os.getpid()}
    if not deep:
        return sorted(pid for pid, parent in parents.items() if parent in new)
    while new := {pid for pid, parent in parents.items() if parent in new} - found:
        found |= new
    return sorted(found)


# ── images ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_directory_or_an_archive_is_a_root(backend: NamespacesBackend, tmp_path: Path) -> None:
    root = small_root(tmp_path / "root: with, odd\\name", "bash", "ls", "cat")
    (root / "etc" / "mine").write_text("of the image")
    archive = tmp_path / "root.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(root, arcname=".")
    for image in (str(root), str(archive)):
        async with await backend.open(SandboxSpec(image=image)) as sandbox:
            assert (await sandbox.run("cat /etc/mine; echo x > /etc/mine; echo /bin/*")).output == (
                "of the image/bin/bash /bin/cat /bin/ls\n"
            )
    assert (root / "etc" / "mine").read_text() == "of the image"


@pytest.mark.parametrize(("image", "said"), [("/no/such/root", "debootstrap"), ("/usr/share", "bash")])
async def test_what_is_no_root_is_told(backend: NamespacesBackend, image: str, said: str) -> None:
    with pytest.raises(SandboxError, match=said) as refused:
        await backend.open(SandboxSpec(image=image))
    assert not refused.value.retryable


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, target, size
    return member


@pytest.mark.parametrize(
    "members",
    [
        [_member("../" * 20 + "tmp/reward-kit-evil", size=1)],
        [_member("a/b/../../../x", size=1)],
        [_member("out", tarfile.SYMTYPE, "/OUTSIDE"), _member("out/x", size=1)],
        [_member("out", tarfile.SYMTYPE, "/OUTSIDE/x"), _member("out", size=1)],
        [_member("out", tarfile.SYMTYPE, "../" * 20 + "OUTSIDE"), _member("out/x", tarfile.DIRTYPE)],
        [_member("x", tarfile.LNKTYPE, "../" * 20 + "etc/passwd")],
    ],
    ids=["above", "up and down", "link", "dangling link", "relative link", "hard link"],
)
async def test_an_archive_cannot_write_beside_its_root(
    backend: NamespacesBackend, tmp_path: Path, members: list[tarfile.TarInfo]
) -> None:
    archive = tmp_path / "evil.tar"
    (tmp_path / "outside").mkdir()
    outside = tmp_path / "outside"
    with tarfile.open(archive, "w") as tar:
        for planned in members:
            member = copy.copy(planned)
            member.linkname = planned.linkname.replace("OUTSIDE", str(outside).lstrip("/"))
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    with pytest.raises(SandboxError, match="unpacked"):
        await backend.open(SandboxSpec(image=str(archive)))
    assert list(outside.iterdir()) == []
    assert not Path("/tmp/reward-kit-evil").exists()


async def test_an_archive_is_taken_for_what_it_shows(backend: NamespacesBackend, tmp_path: Path) -> None:
    root = small_root(tmp_path / "root", "bash", "cat", "stat")
    (root / "tmp").chmod(0o1777)
    archive = tmp_path / "root.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(root, arcname=".")
        for member in (
            _member("/etc/absolute", size=1),
            _member("etc/linked", tarfile.LNKTYPE, "/etc/absolute"),
            _member("dev/null", tarfile.CHRTYPE),
            _member("etc/there", tarfile.SYMTYPE, "/etc/absolute"),
        ):
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    async with await backend.open(SandboxSpec(image=str(archive))) as sandbox:
        seen = await sandbox.run("cat /etc/absolute /etc/linked /etc/there; stat -c %a /tmp")
        assert seen.output == "xxx1777\n"


async def test_what_bwrap_complains_of_is_told_and_the_next_one_works(
    backend: NamespacesBackend, tmp_path: Path
) -> None:
    root = small_root(tmp_path / "root", "bash")
    (root / "proc").rmdir()
    (root / "proc").write_text("no place for it")
    for _ in range(3):
        with pytest.raises(SandboxError, match=r"bwrap: .*/proc"):
            await backend.open(SandboxSpec(image=str(root)))
    async with await backend.open(SandboxSpec()) as sandbox:
        assert (await sandbox.run("true")).ok


# ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def of_a_backend(backend: NamespacesBackend, victim: str) -> list[int]:
    """The processes of a backend that has one supervisor, by what they do."""
    (supervisor,) = backend.supervisors
    below = children(supervisor, deep=False)
    bwraps = {process for process in below if Path(f"/proc/{process}/comm").read_text() == "bwrap\n"}
    (nursery,) = set(below) - bwraps
    return {
        "supervisor": [supervisor],
        "nursery": [nursery],
        "porter": children(nursery, deep=False),
        "bwrap": sorted(bwraps),
    }[victim]


@pytest.mark.parametrize("victim", ["supervisor", "nursery", "porter", "bwrap"])
@pytest.mark.parametrize("standalone", [False, True])
async def test_a_backend_that_dies_in_mid_task_is_a_retryable_failure(
    backend: NamespacesBackend, victim: str, standalone: bool
) -> None:
    sandbox = await backend.open(SandboxSpec())
    await sandbox.run("true")
    task = asyncio.create_task((sandbox.run_standalone if standalone else sandbox.run)("sleep 60"))
    await asyncio.sleep(0.3)
    for process in of_a_backend(backend, victim):
        with suppress(ProcessLookupError):  # it has gone with another one
            os.kill(process, signal.SIGKILL)
    with pytest.raises(SandboxError) as failed:
        async with asyncio.timeout(60):
            await task
    assert failed.value.retryable
    await sandbox.close()
    async with await backend.open(SandboxSpec()) as following:
        assert (await following.run("echo next")).output == "next\n"


async def test_a_sandbox_survives_its_first_process_being_shot_at_from_inside(backend: NamespacesBackend) -> None:
    async with await backend.open(SandboxSpec()) as sandbox:
        for number in range(1, 64):
            await sandbox.run(f"kill -{number} 1")
        assert (await sandbox.run_standalone("exit 5")).exit_code == 5


async def test_what_a_killed_process_leaves_is_swept_by_the_next(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, signal\n"
        "from reward_kit.sandbox.namespaces.backend import NamespacesBackend\n"
        "from reward_kit.sandbox.contract import SandboxSpec\n"
        "async def main():\n"
        f"    backend = NamespacesBackend(state={str(tmp_path)!r})\n"
        "    sandbox = await backend.open(SandboxSpec(setup=('sleep 7654321 &',)))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    async with opened("namespaces"):
        pass
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script], check=False, cwd=os.getcwd())
    assert done.returncode == -signal.SIGKILL
    for _ in range(600):
        listed = subprocess.run(["pgrep", "-f", "sleep 765432[1]"], capture_output=True, text=True, check=False).stdout
        if not listed:
            break
        await asyncio.sleep(0.1)
    assert listed == ""
    assert len(list(tmp_path.glob("reward-kit-*"))) == 1
    backend = NamespacesBackend(state=str(tmp_path))
    assert (await backend.probe()).works
    assert len(list(tmp_path.glob("reward-kit-*"))) == 1
    await backend.close()
    assert list(tmp_path.glob("reward-kit-*")) == []


@pytest.mark.parametrize("seconds", [0, 0.01, 0.05, 0.1, 0.3, 1])
async def test_a_sandbox_that_is_given_up_leaves_nothing(backend: NamespacesBackend, seconds: float) -> None:
    """Whether the machine is being looked at, a supervisor started, the sandbox opened or set up."""
    task = asyncio.create_task(backend.open(SandboxSpec(setup=("sleep 60",))))
    await asyncio.sleep(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_supervisor_that_is_being_started_for_nobody_is_the_next_ones(
    backend: NamespacesBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting, may_start = threading.Event(), threading.Event()
    started: list[subprocess.Popen[bytes]] = []

    def start(*given: Any) -> subprocess.Popen[bytes]:
        starting.set()
        assert may_start.wait(60)
        started.append(start_program(*given))
        return started[-1]

    monkeypatch.setattr(supervisor_client, "start_program", start)
    task = asyncio.create_task(backend.open(SandboxSpec()))
    assert await asyncio.to_thread(starting.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_start.set()
    async with await backend.open(SandboxSpec()) as sandbox:
        assert (await sandbox.run("echo open")).output == "open\n"
    assert len(started) == 1


# ── and nothing is left ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_closing_one_removes_its_groups_and_files_while_others_are_open(backend: NamespacesBackend) -> None:
    async with await backend.open(SandboxSpec()):
        sandbox = await backend.open(SandboxSpec(setup=("echo x > f; mkdir -p /usr/local/d; chmod 0 /usr/local/d",)))
        status = backend.sandboxes[sandbox]
        homes = [] if status.is_bounded else [Path(status.home)]  # a disk of its own has no name
        left = [*homes, *(map(Path, control_groups(status.group)) if status.group else ())]
        assert all(path.is_dir() for path in left)
        await sandbox.close()
        await none_is_there(left)


async def none_is_there(paths: list[Path]) -> None:
    """It may take a moment. That nobody removes them is seen by its never ending."""
    async with asyncio.timeout(60):
        while any(path.exists() for path in paths):
            await asyncio.sleep(0.02)


async def test_a_sandbox_that_was_put_together_for_nobody_leaves_nothing() -> None:
    usual, other = SandboxSpec(), SandboxSpec(limits=Limits(memory_mb=64))
    backend = NamespacesBackend(supervisors=1)
    try:
        for spec in (usual, usual, usual, other, usual, usual, other):
            async with await backend.open(spec) as sandbox:
                assert (await sandbox.run("echo fresh; ls /tmp /root")).output == "fresh\n/root:\n\n/tmp:\n"
                assert (await sandbox.run("touch /tmp/x /root/x")).ok
        assert backend.directory is not None
        left = [path for path in backend.directory.iterdir() if path.is_dir()]
        await none_is_there([path for path in left if not path.name.endswith("-mounts")])
    finally:
        await backend.close()
    assert leftovers() == []


async def test_many_at_once_start_no_more_supervisors_than_asked_for() -> None:
    backend = NamespacesBackend(supervisors=2)
    try:
        sandboxes = [await backend.open(SandboxSpec())]
        sandboxes += await asyncio.gather(*(backend.open(SandboxSpec()) for _ in range(6)))
        async with asyncio.timeout(60):
            while len(backend.supervisors) < 2:
                await asyncio.sleep(0.02)
        sandboxes += await asyncio.gather(*(backend.open(SandboxSpec()) for _ in range(6)))
        assert len(backend.supervisors) == 2
        await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))
    finally:
        await backend.close()
    assert leftovers() == []


@pytest.mark.slow
async def test_hundreds_leave_nothing_behind(backend: NamespacesBackend) -> None:
    async def one(number: int) -> None:
        spec = SandboxSpec(setup=("mkdir -p a/b && cd a/b && chmod 0 . && touch x; sleep 60 &",), setup_join=";")
        sandbox = await backend.open(spec if number % 3 else SandboxSpec(limits=Limits(memory_mb=64)))
        await sandbox.run("echo x > f" if number % 2 else "exit 1")
        await sandbox.close()

    earlier = set(children())  # of other tests in this process: worker pools, isolated Python
    for _ in range(5):
        await asyncio.gather(*map(one, range(4)))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        await asyncio.gather(*map(one, range(6)))

    async def is_no_more() -> bool:
        # A supervisor, its nursery, the porters it keeps ready, and one sandbox that nobody has asked for yet.
        most = (os.cpu_count() or 1) * (1 + 1 + 6 + 3)
        return len(os.listdir("/proc/self/fd")) <= before and len(set(children()) - earlier) <= most

    await until(is_no_more)
    await backend.close()
    assert leftovers() == []


async def test_a_deep_and_forbidding_tree_is_removed(backend: NamespacesBackend) -> None:
    async with await backend.open(SandboxSpec()) as sandbox:
        deep = "for i in $(seq 400); do mkdir -m 700 d; cd d; touch f; done; cd; chmod -R 0 /root/d"
        assert (await sandbox.run(deep)).exit_code is not None
