# SPDX-License-Identifier: Apache-2.0
"""Shell tasks: does the command do what was asked? Judged by running it, and then a success condition, in a sandbox.

    fresh sandbox ─▶ setup, in its shell ─▶ the command, in the same shell ─▶ the condition, a process of its own

The condition's verdict is its exit status, in the directory where the setup left the shell: a command cannot redefine
`test`, change directory or print its way to success. A sandbox that breaks is a failure of the item, never a zero.
"""

from __future__ import annotations

import asyncio
import functools
import re
import secrets
import shlex
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from reward_kit.answers.command import extract_command
from reward_kit.errors import SandboxError
from reward_kit.models import EvaluateResult, ExecResult, Message, MetricResult, StepOutput
from reward_kit.rewards._support.verdicts import reply_of
from reward_kit.sandbox.contract import Sandbox, check_in, mark_in
from reward_kit.sandbox.own import own_host
from reward_kit.typed_interface import reward_function
from reward_kit.utils.clock import now_to_the_millisecond

__all__ = ["shell_reward"]

TIMED_OUT = 124
"""The exit code told for a command that ran out of time, as timeout(1) does."""
_KILLED = 128
"""Added to the signal that ended a command, as shells do."""


@reward_function(timeout=600)
async def shell_reward(
    messages: list[Message],
    *,
    success_condition: str,
    sandbox: Callable[..., AbstractAsyncContextManager[Sandbox]] | None = None,
    setup_commands: list[str] | str | None = None,
    extract: bool = True,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 if the command in the last message succeeds and the success condition holds afterwards, else 0.0.

    `setup_commands`, a list or one text, make the sandbox ready; `success_condition` is a shell command that exits
    with 0 where the task is done. The command is taken from the message's code block or text; without `extract` the
    whole message is the command. If the sandbox or the setup fails, there is no verdict. `sandbox` opens sandboxes as
    the run's settings say. A caller that gives none, such as a trainer, gets the sandboxes of this process.

    The condition trusts the programs and libraries of the sandbox's root and none that the command put in their place.

    Metrics: `command_success`, `test_passed`.
    Needs: sandbox.
    Cost: a sandbox and two commands, some 20 ms beside what they take themselves; linear in the answer.
    Does not detect: what the success condition does not look at, such as files the command destroyed on its way.

    >>> from reward_kit.evaluation import evaluate
    >>> row = {"user_query": "Make a directory.", "assistant_response": "mkdir it", "success_condition": "test -d it"}
    >>> evaluate([row], shell_reward).mean_score
    1.0
    """
    setup = [setup_commands] if isinstance(setup_commands, str) else list(setup_commands or ())
    reply = reply_of(messages)
    command = extract_command(reply.text) if extract else reply.text.strip("\n")
    if command is None or not command.strip():
        return _no_command()
    if sandbox is not None:
        return await _in_a_sandbox(sandbox, command, setup, success_condition)
    host = own_host()
    work = _in_a_sandbox(host.sandbox, command, setup, success_condition)
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, host.loop))


async def _in_a_sandbox(
    sandbox: Callable[..., AbstractAsyncContextManager[Sandbox]], command: str, setup: list[str], condition: str
) -> EvaluateResult:
    async with sandbox(setup=setup) as box:
        place = await _made_ready(box)
        if setup:
            await mark_in(box)
        return await _judged(box, place, command, condition)


async def _judged(box: Sandbox, place: str, command: str, condition: str) -> EvaluateResult:
    steps = [await _step("command", command, box.run, command)]
    check = f"cd -- {shlex.quote(place)} 2>/dev/null || cd /\n{condition}"
    steps.append(await _step("check", condition, functools.partial(check_in, box), check))
    ran, held = (step.base_reward == 1.0 for step in steps)
    says = f"the success condition {'holds' if held else 'does not hold'}"
    if changed := steps[1].metrics.get("distrusted"):
        says = f"the success condition cannot be trusted, for the command has changed {changed!r}, which it needs"
    return EvaluateResult(
        score=float(ran and held),
        reason=f"the command {_ending(steps[0])}; {says}",
        metrics={
            "command_success": MetricResult(score=float(ran), is_score_valid=ran, reason=f"it {_ending(steps[0])}"),
            "test_passed": MetricResult(score=float(held), is_score_valid=held, reason=f"it {_ending(steps[1])}"),
        },
        step_outputs=steps,
    )


async def _made_ready(box: Sandbox) -> str:
    """Where the setup left the shell, which from now on also fails where a part of a pipeline does."""
    mark = secrets.token_hex(8)  # what a job of the setup prints meanwhile is not the answer
    shown = await box.run(f"set -o pipefail; builtin printf '\\n%s' {mark}; builtin pwd -P")
    found = re.search(rf"{mark}(/.*)", shown.stdout)
    if found is None:
        raise SandboxError(
            f"The sandbox cannot tell its directory: {shown.output.strip()!r}. Run it again.", retryable=True
        )
    return found[1]


async def _step(name: str, shown: str, run: Callable[[str], Any], command: str) -> StepOutput:
    started = now_to_the_millisecond()
    done: ExecResult = await run(command)
    facts = {
        "command": shown,
        "output": done.output,
        "exit_code": exit_code_of(done),
        "started": started,
        "ended": now_to_the_millisecond(),
        "wall_seconds": round(done.wall_seconds, 6),
    }
    flags = {
        "timed_out": done.timed_out, "oom_killed": done.oom_killed, "truncated": done.truncated, "exited": done.exited
    }  # fmt: skip
    facts |= {flag: True for flag, value in flags.items() if value}
    if done.distrusted is not None:
        facts["distrusted"] = done.distrusted
    return StepOutput(step_index=name, base_reward=float(done.ok), metrics=facts)


def exit_code_of(done: ExecResult) -> int | None:
    """The exit code as a shell would tell it: also for a command that was killed or ran out of time."""
    if done.timed_out:
        return TIMED_OUT
    return _KILLED + done.signal if done.exit_code is None and done.signal is not None else done.exit_code


def _ending(step: StepOutput) -> str:
    return "ran out of time" if step.metrics.get("timed_out") else f"exited with {step.metrics['exit_code']}"


def _no_command() -> EvaluateResult:
    reason = "the answer holds no command"
    failed = MetricResult(score=0.0, is_score_valid=False, reason=reason)
    return EvaluateResult(score=0.0, reason=reason, metrics={"command_success": failed, "test_passed": failed})
