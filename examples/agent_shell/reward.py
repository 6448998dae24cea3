# SPDX-License-Identifier: Apache-2.0
"""Two rewards for work in a shell: one reads the files that were captured, one looks around in the world itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reward_kit import EvaluateResult, Message, reward_function
from reward_kit.agent import ToolError, World
from reward_kit.sandbox.from_settings import Sandboxes


@reward_function
def answered(
    messages: list[Message], facts: dict[str, Any], want: Mapping[str, str | None], **kwargs: Any
) -> EvaluateResult:
    """1.0 where each wanted file holds what it should, spaces around it aside.

    It reads what `agent.capture` kept of the sandbox. So it needs no sandbox.
    """
    return _verdict(_differences(want, facts["files"]))


@reward_function
async def left_in_order(
    messages: list[Message],
    world: World,
    sandbox: Sandboxes,
    files: Mapping[str, str | None],
    want: Mapping[str, str | None],
    again: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 where, beside that, the given files are as they were, and a script that was asked for works elsewhere, too.

    `world` is a fresh sandbox in which the commands of the episode were run again. What the model wrote owns that
    sandbox, so files are only read there; its script is run in another one.
    """
    expected = {**files, **want}
    found = {path: await _read(world, path) for path in expected}
    wrong = _differences(expected, found)
    if again is not None:
        wrong += await _ran_elsewhere(await _read(world, again["script"]), again, sandbox)
    return _verdict(wrong)


async def _read(world: World, path: str) -> str | None:
    """What a file of the world holds; None where there is none."""
    read_file = next(tool for tool in world.offered if tool.name == "read_file")
    try:
        return str(await read_file.call({"path": path}))
    except ToolError:
        return None


async def _ran_elsewhere(script: str | None, again: Mapping[str, Any], sandbox: Sandboxes) -> list[str]:
    name = again["script"]
    if script is None:
        return [f"There is no {name}."]
    given = {name: script.encode(), **{path: text.encode() for path, text in again["files"].items()}}
    async with sandbox(files=given) as box:
        done = await box.run_standalone(again["command"])
    right = done.exit_code == 0 and done.stdout.strip() == again["prints"]
    return [] if right else [f"{name} does not do its work on another file."]


def _differences(expected: Mapping[str, str | None], found: Mapping[str, str | None]) -> list[str]:
    """A sentence for each file that does not hold what it should."""
    wrong = []
    for path, text in expected.items():
        content = found.get(path)
        if text is not None and content is None:
            wrong.append(f"There is no {path}.")
        elif text is not None and content is not None and content.strip() != text.strip():
            wrong.append(f"{path} does not hold what it should.")
    return wrong


def _verdict(wrong: list[str]) -> EvaluateResult:
    return EvaluateResult(score=float(not wrong), reason=" ".join(wrong) or "Everything is as it should be.")
