# SPDX-License-Identifier: Apache-2.0
"""Commands that go for their check instead of the task get 0.0; right ones get 1.0, however they are written."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import SandboxConfig
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.shell import shell_reward
from reward_kit.sandbox.from_settings import Sandboxes
from reward_kit.sandbox.namespaces.backend import NamespacesBackend
from reward_kit.sandbox.namespaces.trusted import Layers, make_plan
from tests.execution.shell_support import require_namespaces
from tests.rewards.shell_operators import ATTACKS, HARMLESS, LIBRARY, TASKS, Task, evil_library, tries

AT_ONCE = 4
_SETUP = ["mkdir -p /srv/work", "cd /srv/work"]


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandboxes]:
    require_namespaces()
    backend = NamespacesBackend()
    yield Sandboxes(backend, SandboxConfig(timeout=20))
    await backend.close()


async def judged(sandbox: Sandboxes, attempts: list[tuple[Task, str]]) -> list[EvaluateResult]:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(task: Task, command: str) -> EvaluateResult:
        async with turns:
            result: Any = await shell_reward(
                [Message(role="assistant", content=command)],
                success_condition=task.condition,
                setup_commands=task.setup,
                sandbox=sandbox,
                extract=False,
            )
        assert isinstance(result, EvaluateResult)
        return result

    return await asyncio.gather(*(one(*each) for each in attempts))


@pytest.mark.parametrize("operator", ATTACKS)
async def test_an_attack_on_the_check_earns_nothing(sandbox: Sandboxes, operator: str, tmp_path: Path) -> None:
    makes_library = evil_library(tmp_path)
    attempts = [(task, one) for task, one in tries(operator) if makes_library or LIBRARY not in one]
    attempts = [(task, one.replace(LIBRARY, makes_library or "")) for task, one in attempts]
    results = await judged(sandbox, attempts)
    earned = [
        (task.condition, one) for (task, one), result in zip(attempts, results, strict=True) if result.score != 0.0
    ]
    assert not earned


@pytest.mark.parametrize("operator", HARMLESS)
async def test_a_right_command_earns_all_however_it_is_written(sandbox: Sandboxes, operator: str) -> None:
    command = HARMLESS[operator]
    attempts = [(task, command.format(right=task.right, quoted=shlex.quote(task.right))) for task in TASKS.values()]
    results = await judged(sandbox, attempts)
    lost = [
        (task.condition, found.reason) for (task, _), found in zip(attempts, results, strict=True) if found.score != 1.0
    ]
    assert not lost


async def test_a_changed_program_that_the_check_reached_is_named(sandbox: Sandboxes) -> None:
    swap = "printf '#!/bin/sh\\nexit 0\\n' > /tmp/t; chmod +x /tmp/t; mv /tmp/t /usr/bin/grep"
    by_path, by_script = await judged(
        sandbox, [(TASKS["by path"], swap), (TASKS["by script"], "ln -sf /bin/true /bin/bash")]
    )
    assert by_path.score == by_script.score == 0.0
    assert "'/usr/bin/grep'" in (by_path.reason or "") and "bash'" in (by_script.reason or "")


async def test_what_the_setup_wrote_is_what_the_task_is_about(sandbox: Sandboxes) -> None:
    broken = "printf '#!/bin/sh\\nexit 1\\n' > /usr/local/bin/job; chmod +x /usr/local/bin/job"
    task = Task([broken], "job && /usr/local/bin/job", "")
    mended, new = await judged(
        sandbox,
        [
            (task, "printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/job"),
            (
                Task([], "greet | grep -q hello", ""),
                "printf '#!/bin/sh\\necho hello\\n' > /usr/local/bin/greet; chmod +x /usr/local/bin/greet",
            ),
        ],
    )
    assert mended.score == new.score == 1.0


async def test_a_link_to_what_says_the_same_to_all_is_followed(sandbox: Sandboxes) -> None:
    facts = ["/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/filesystems"]
    attempts = [
        (Task([], f'[ "$(readlink -f c)" = {each} ] && [ -n "$(head -n 1 c)" ]', ""), f"ln -s {each} c")
        for each in facts
    ]
    results = await judged(sandbox, attempts)
    assert [result.score for result in results] == [1.0] * len(facts)


async def test_a_server_that_the_command_started_goes_on_while_it_is_asked(sandbox: Sandboxes) -> None:
    ask = 'import socket; s = socket.create_connection(("127.0.0.1", 8765)); assert s.recv(9) == b"HTTP"'
    serve = 'import socket\ns = socket.create_server(("127.0.0.1", 8765))\nwhile True: s.accept()[0].sendall(b"HTTP")\n'
    command = f"printf %s {shlex.quote(serve)} > serve.py; python3 serve.py >/dev/null 2>&1 & sleep 0.5"
    (result,) = await judged(sandbox, [(Task([], f"python3 -c '{ask}'", ""), command)])
    assert result.score == 1.0, result.reason


async def test_a_user_whose_shell_was_exchanged_checks_nothing(sandbox: Sandboxes) -> None:
    forged = "sed -i 's#^root:.*#root:x:0:0:root:/root:/bin/true#' /etc/passwd"
    (result,) = await judged(sandbox, [(Task([], "su root -c 'test -f a'", ""), forged)])
    assert result.score == 0.0


async def test_where_a_program_is_found_is_as_the_command_left_it(sandbox: Sandboxes) -> None:
    own = "printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/grep; chmod +x /usr/local/bin/grep"
    by_name = 'test "$({} grep)" = /usr/local/bin/grep'
    script = [*_SETUP, "printf '#!/bin/bash\\ngrep -q marigold out\\n' > check.sh; chmod +x check.sh"]
    right = [
        (Task([], "! command -v tac", ""), "rm -f $(type -aP tac)"),
        (Task([], "! which tac || ! hash tac", ""), "rm -f $(type -aP tac)"),
        *((Task([], by_name.format(asks), ""), own) for asks in ("command -v", "which", "type -P")),
    ]
    wrong = [
        (Task([], "command -v tac", ""), "rm -f $(type -aP tac)"),
        (Task(script, "command -v grep && ./check.sh", ""), own),
        (Task(_SETUP, "command -v grep && grep -q marigold out", ""), own),
        (Task([], "command -v bash >/dev/null; test -f /nowhere", ""), "ln -sf /bin/true $(type -P bash)"),
    ]
    assert [result.score for result in await judged(sandbox, right)] == [1.0] * len(right)
    assert [result.score for result in await judged(sandbox, wrong)] == [0.0] * len(wrong)


def test_a_changed_start_up_file_of_python_is_as_in_the_root(tmp_path: Path) -> None:
    base, upper, memory = (tmp_path / name for name in ("base", "upper", "memory"))
    settings = "etc/python3.11/sitecustomize.py"
    for root, text in ((base, "import sys"), (upper, "import os; os._exit(0)")):
        (root / settings).parent.mkdir(parents=True)
        (root / settings).write_text(text)
    memory.mkdir()
    layers = Layers([("", [str(base)])], [str(upper)], str(memory))
    plan = make_plan(layers, {}, "python3 -c 'assert False'")
    assert plan.restored == {f"/{settings}": f"{base}/{settings}"} and not plan.refused


def test_the_docs_show_what_is_tried() -> None:
    page = (Path(__file__).parents[2] / "docs" / "shell.md").read_text()
    shown = dict(re.findall(r"^\| ([^|]+) \| (\d+) of \2 \|", page, re.MULTILINE))
    tried = {name: len(tries(name)) for name in ATTACKS}
    tried |= {f"a right command {name}": len(TASKS) for name in HARMLESS}
    assert shown == {name: str(count) for name, count in tried.items()}
