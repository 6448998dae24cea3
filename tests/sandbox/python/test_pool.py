# SPDX-License-Identifier: Apache-2.0
"""The pool of zygotes: side by side, replaced when they die, and gone without a trace."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from reward_kit.errors import SandboxError
from reward_kit.sandbox.own import close_hosts
from reward_kit.sandbox.python import process as zygote_process
from reward_kit.sandbox.python.pool import PythonZygote
from tests.sandbox.python.zygotes import control_groups, descendants, working_zygotes
from tests.sandbox.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="zygotes need Linux")


@pytest.fixture(autouse=True)
def alone() -> None:
    """Without the zygotes that tests of rewards before have started in this process."""
    close_hosts()


async def test_runs_go_side_by_side_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(os.listdir("/proc/self/fd"))
    async with working_zygotes(size=2) as pool:
        results = await asyncio.gather(*[pool.run(f"print({n})") for n in range(12)])
        assert [result.stdout for result in results] == [f"{n}\n" for n in range(12)]
        assert len(control_groups()) in (0, 2)
    assert descendants() == {}
    assert control_groups() == set()
    assert set(os.listdir("/proc/self/fd")) == before
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("victim", ["the supervisor", "the zygote"])
async def test_a_zygote_that_dies_is_replaced(victim: str) -> None:
    async with working_zygotes() as pool:
        family = sorted(descendants())
        running = asyncio.create_task(pool.run("import time; time.sleep(60)"))
        while len(descendants()) < len(family) + 2:
            await asyncio.sleep(0.01)
        os.kill(family[0 if victim == "the supervisor" else 1], signal.SIGKILL)
        with pytest.raises(SandboxError) as caught:
            await running
        assert caught.value.retryable
        assert (await pool.run("print(1)")).ok

        async def is_as_before() -> bool:
            return len(descendants()) == len(family)

        await until(is_as_before)


async def test_a_zygote_that_died_idle_is_not_noticed() -> None:
    async with working_zygotes() as pool:
        os.kill(min(descendants()), signal.SIGKILL)
        while len(descendants()) > 0:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert (await pool.run("print(1)")).ok


async def test_a_cancelled_run_ends_at_once() -> None:
    async with working_zygotes() as pool:
        running = asyncio.create_task(pool.run("import time; time.sleep(60)"))
        await asyncio.sleep(0.2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert descendants() == {}
        assert (await pool.run("print(1)")).ok


async def test_closing_ends_what_runs_and_refuses_more() -> None:
    async with working_zygotes() as pool:
        running = asyncio.create_task(pool.run("import time; time.sleep(60)"))
        await asyncio.sleep(0.2)
        await pool.close()
        await pool.close()
        with pytest.raises(SandboxError):
            await running
        with pytest.raises(SandboxError, match="closed"):
            await pool.run("pass")
    assert descendants() == {}


async def test_modules_are_preloaded() -> None:
    look = "import sys; print('colorsys' in sys.modules, 'reward_kit' in sys.modules)"
    async with working_zygotes() as pool:
        assert (await pool.run(look)).stdout == "False False\n"
    async with PythonZygote(size=1, preload=["colorsys"]) as pool:
        assert (await pool.run(look)).stdout == "True False\n"


async def test_what_cannot_be_started_is_said() -> None:
    for pool, complaint in (
        (PythonZygote(size=1, preload=["no_such_module"]), "no_such_module.*installed"),
        (PythonZygote(size=1, python="/no/python"), "/no/python"),
        (PythonZygote(size=1, python="/bin/true"), "died"),
    ):
        with pytest.raises(SandboxError, match=complaint):
            await pool.start()
        probe = await pool.probe()
        assert not probe.works and probe.advice
    assert descendants() == {} and control_groups() == set()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
async def test_an_ordinary_user_has_zygotes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In user namespaces, without control groups; by a zygote that is started as nobody."""
    become = "setpriv --reuid 65534 --regid 65534 --clear-groups"
    if subprocess.run([*become.split(), "test", "-r", zygote_process.__file__], check=False).returncode:
        pytest.skip("the checkout is where another user cannot read it")
    launcher = tmp_path / "python"
    launcher.write_text(f'#!/bin/sh\nexec {become} /usr/bin/python3 "$@"\n')
    launcher.chmod(0o755)
    monkeypatch.setattr(zygote_process, "make_memory_group", lambda name: None)
    async with working_zygotes(python=str(launcher)) as pool:
        probe = await pool.probe()
        assert "user namespaces" in probe.detail
        look = "import os; print(os.getuid(), sorted(filter(str.isdigit, os.listdir('/proc'))), os.listdir('/tmp'))"
        assert (await pool.run(look)).stdout == "65534 ['1', '2'] []\n"
        for path in ("/x", "/etc/x", "/etc/passwd", "/dev/x", "/usr/x"):
            assert "[Errno" in (await pool.run(f"open({path!r}, 'w')")).stderr
        for look in ("os.listdir('/proc/1/fd')", "os.readlink('/proc/1/root')", "open('/proc/1/environ')"):
            assert "Permission denied" in (await pool.run(f"import os; {look}")).stderr
        assert (await pool.run("import os; os.kill(1, 9); os.kill(1, 15); os.kill(1, 2)")).ok
        bomb = await pool.run("x = bytearray(200 << 20)")
        assert "MemoryError" in bomb.stderr
        forks = "import os\nwhile os.fork(): pass\nimport time; time.sleep(60)"
        assert "BlockingIOError" in (await pool.run(forks)).stderr
        assert [outcome.value for outcome in await pool.call("def f(x): return -x", "f", [[1], [2]])] == [-1, -2]
