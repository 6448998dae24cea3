# SPDX-License-Identifier: Apache-2.0
"""What is the backend's own that does not isolate: it leaves neither directories nor processes."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from reward_kit.sandbox.contract import SandboxSpec
from reward_kit.sandbox.local import unisolated
from reward_kit.sandbox.local.channel import start_program


async def test_a_sandbox_that_is_given_up_while_it_starts_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting, may_start = threading.Event(), threading.Event()
    started: list[subprocess.Popen[bytes]] = []

    def start(*given: Any) -> subprocess.Popen[bytes]:
        starting.set()
        assert may_start.wait(60)
        started.append(start_program(*given))
        return started[-1]

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(unisolated, "start_program", start)
    task = asyncio.create_task(unisolated.UnisolatedBackend().open(SandboxSpec()))
    assert await asyncio.to_thread(starting.wait, 60)
    task.cancel()
    may_start.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [process.returncode for process in started] == [0]
    assert list(tmp_path.iterdir()) == []
