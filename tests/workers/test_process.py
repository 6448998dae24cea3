# SPDX-License-Identifier: Apache-2.0
"""Worker processes among other processes: what they share, what they leave behind, and that they do not outlive us."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reward_kit.redaction import forget_all, remember
from reward_kit.workers import Died, Done, Raised, TimedOut, WorkerPool
from tests.workers.processes import children, is_alive, obedient, open_files, wait_until_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def make_pool(*, size: int = 2, timeout: float = 20.0, **options: Any) -> WorkerPool:
    return WorkerPool(obedient(), size=size, timeout=timeout, **options)


async def test_a_worker_is_kept_for_many_calls() -> None:
    async with make_pool(size=1) as pool:
        assert len({await pool.call("pid") for _ in range(20)}) == 1


async def test_nothing_is_left_open_or_running(tmp_path: Path) -> None:
    files, processes = open_files(), children()
    for _ in range(2):
        async with make_pool(timeout=0.3, log_path=tmp_path / "log") as pool:
            await asyncio.gather(*[pool.call("n", number) for number in range(200)])
            assert isinstance(await pool.call("sleep", 600), TimedOut)
            assert isinstance(await pool.call("exit", 1), Died)
            busy = pool.submit(("sleep", 600), {})
            await asyncio.sleep(0.05)
        assert busy.cancelled()
    assert open_files() == files
    assert children() == processes


async def test_a_worker_that_was_sent_more_than_it_has_read_is_dismissed_quietly() -> None:
    async with make_pool(size=1) as pool:
        assert await pool.call("n", 1) == Done(("n", 1))
        (worker,) = pool._workers
        worker._write([b"x" * 20_000_000])  # as with calls that another worker has done meanwhile
        worker.hang_up()
        await worker._lost.wait()


@pytest.mark.parametrize(("first", "started"), [(0, 1), (1, 1), (3, 3), (9, 3)])
async def test_the_first_workers_start_together(first: int, started: int) -> None:
    processes = children()
    async with make_pool(size=3, first=first) as pool:
        assert len(children() - processes) == started
        assert await pool.call("n", 1) == Done(("n", 1))


@pytest.mark.parametrize("first", [1, 2])
async def test_a_failed_start_leaves_nothing(first: int) -> None:
    files, processes = open_files(), children()
    with pytest.raises(ValueError, match="no"):

        def factory() -> Callable[[], None]:
            raise RuntimeError("no")

        await WorkerPool(factory, size=2, timeout=1, first=first).start()
    assert (open_files(), children()) == (files, processes)


async def test_a_cancelled_close_leaves_nothing() -> None:
    def factory() -> Callable[[], bool]:
        import atexit
        import time

        atexit.register(time.sleep, 600)
        return lambda: True

    files, processes = open_files(), children()
    pool = WorkerPool(factory, size=1, timeout=20)
    await pool.start()
    assert await pool.call() == Done(True)
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0.02)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await asyncio.sleep(0)
    assert (open_files(), children()) == (files, processes)


async def test_a_worker_that_will_not_end_is_killed_at_close() -> None:
    def factory() -> Callable[[], int]:
        import atexit
        import os
        import time

        atexit.register(time.sleep, 600)
        return os.getpid

    async with WorkerPool(factory, size=1, timeout=20) as pool:
        outcome = await pool.call()
    assert isinstance(outcome, Done)
    assert not is_alive(outcome.value)


@pytest.mark.parametrize("end", [(), ("sleep", 600), ("exit", 1)])
async def test_processes_a_call_leaves_behind_end_with_the_worker(end: tuple[Any, ...], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    async with make_pool(size=1, timeout=0.5) as pool:
        assert await pool.call("leave_child", str(note)) == Done(None)
        left = int(note.read_text())
        assert is_alive(left)
        if end:
            await pool.call(*end)
            assert wait_until_gone(left)
    assert wait_until_gone(left)


async def test_a_fork_that_returns_takes_no_part() -> None:
    async with make_pool(size=1) as pool:
        assert [await pool.call("fork") for _ in range(5)] == [Done("parent")] * 5
        assert await pool.call("n", 1) == Done(("n", 1))


async def test_user_code_may_close_and_print_what_it_likes(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "worker.log"

    def factory() -> Callable[[int], int]:
        import subprocess
        import sys

        def noisy(number: int) -> int:
            print("printed", number)
            print("complained", number, file=sys.stderr)
            os.write(1, b"written\n")
            subprocess.run(["echo", "echoed"], check=True)
            os.closerange(0, 100)
            return number

        return noisy

    async with WorkerPool(factory, size=1, timeout=20, log_path=log) as pool:
        assert await pool.call(1) == Done(1)
        assert isinstance(await pool.call(2), Raised)  # its standard output is gone, and the pool is not
        assert isinstance(await pool.call(3), Raised)
    assert log.read_text().split() == ["printed", "1", "complained", "1", "written", "echoed"]


async def test_without_a_log_user_code_prints_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    async with WorkerPool(lambda: print, size=1, timeout=20) as pool:
        assert await pool.call("hello from a worker") == Done(None)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "hello from a worker\n")


async def test_changing_directory_stays_in_that_worker(tmp_path: Path) -> None:
    here = os.getcwd()
    async with make_pool(size=1) as pool:
        assert await pool.call("chdir", str(tmp_path)) == Done(None)
        assert await pool.call("cwd") == Done(str(tmp_path))
        await pool.call("exit", 1)
        assert await pool.call("cwd") == Done(here)


async def test_a_worker_is_in_a_session_of_its_own_dumps_no_core_and_hides_its_channel() -> None:
    def factory() -> Callable[[], tuple[bool, tuple[int, int], str]]:
        import os
        import subprocess

        def look() -> tuple[bool, tuple[int, int], str]:
            listing = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, check=True).stdout
            return os.getsid(0) == os.getpid() == os.getpgid(0), resource.getrlimit(resource.RLIMIT_CORE), listing

        return look

    async with WorkerPool(factory, size=1, timeout=20) as pool:
        outcome = await pool.call()
    assert isinstance(outcome, Done)
    leads_its_session, core, listing = outcome.value
    assert leads_its_session
    assert core == (0, 0)
    assert "socket:" not in listing


async def test_rewards_that_disable_os_functions_do_not_disable_the_worker() -> None:
    def factory() -> Callable[[str], str]:
        import os

        def guarded(text: str) -> str:
            for name in ("read", "write", "close", "fork", "kill", "_exit", "getppid"):
                setattr(os, name, None)
            return text

        return guarded

    async with WorkerPool(factory, size=1, timeout=20) as pool:
        assert [await pool.call("x"), await pool.call("y")] == [Done("x"), Done("y")]


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent_even_in_the_middle_of_c_code(ending: signal.Signals, tmp_path: Path) -> None:
    notes = [tmp_path / "busy", tmp_path / "idle"]
    script = textwrap.dedent("""
        import asyncio, sys
        from pathlib import Path
        from reward_kit.workers import WorkerPool
        from tests.workers.processes import obedient

        async def main(busy, idle):
            async with WorkerPool(obedient(), size=2, timeout=600) as pool:
                Path(idle + ".new").write_text(str((await pool.call("pid")).value))
                Path(idle + ".new").rename(idle)
                await pool.call("pid_then_hang", busy)

        asyncio.run(main(*sys.argv[1:]))
    """)
    with subprocess.Popen(
        [sys.executable, "-c", script, *map(str, notes)], env={**os.environ, "PYTHONPATH": "."}
    ) as parent:
        pids = [_number_in(note) for note in notes]
        assert all(map(is_alive, pids))
        parent.send_signal(ending)
    assert all(map(wait_until_gone, pids))


def _number_in(note: Path) -> int:
    deadline = time.monotonic() + 100
    while not (note.exists() and note.read_text()):
        assert time.monotonic() < deadline, f"{note} was not written"
        time.sleep(0.01)
    return int(note.read_text())


async def test_what_user_code_prints_is_kept_without_known_credentials(tmp_path: Path) -> None:
    def factory() -> Callable[[str], None]:
        def say(text: str) -> None:
            import os
            import sys

            print("printed", text)
            sys.stderr.write(f"written {text}")
            os.write(1, f" and past Python {text}\n".encode())

        return say

    secret = "pl4nted-0815-in-print"
    remember(secret)
    try:
        async with WorkerPool(factory, size=1, timeout=20, log_path=tmp_path / "log") as pool:
            await pool.call(f"<{secret}>\n" * 3)
    finally:
        forget_all()
    said = (tmp_path / "log").read_text()
    assert secret not in said
    assert said.count("<***>") == 9
