# SPDX-License-Identifier: Apache-2.0
"""A plan as text: every file, command and request. No plan holds a secret; what stands for one is shown as `***`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from reward_kit.deploy.bundle import Bundle
from reward_kit.deploy.plan import (
    Action,
    Command,
    FirstCall,
    ListTools,
    Plan,
    ReadFile,
    RemoveFile,
    Request,
    Start,
    Step,
    Stop,
    WriteFiles,
    WriteSecret,
    shown,
)
from reward_kit.deploy.target import Prepared
from reward_kit.redaction import MASK, is_secret_name, mask

__all__ = ["bundle_lines", "plan_lines"]


def bundle_lines(bundle: Bundle) -> Iterator[str]:
    """What is in the bundle, what was left out, and what to look at."""
    yield f"bundle {bundle.digest[:12]}, {len(bundle.files)} files:"
    for name in sorted(bundle.files):
        yield f"  {name}  ({len(bundle.files[name]):,} bytes)"
    for left in bundle.left_out:
        yield f"  left out: {left.path}, because {left.why}"
    yield f"  requires: {', '.join(bundle.pinned.requirements)}"
    for remark in bundle.remarks:
        yield f"  note: {remark}"


def plan_lines(prepared: Prepared, facts: Mapping[str, str]) -> Iterator[str]:
    """Every step with what it does; `facts` are known from before."""
    plan: Plan = prepared.plan
    if plan.before:
        yield "before anything else, on this machine:"
    for command in plan.before:
        yield from _command(shown(command, facts))
    for number, step in enumerate(plan.steps, start=1):
        yield f"{number}. {step.title}"
        yield from _step(step, prepared, facts)
    yield f"then it can be called at {plan.url} ({plan.auth})"
    for remark in plan.remarks:
        yield f"note: {remark}"


def _step(step: Step, prepared: Prepared, facts: Mapping[str, str]) -> Iterator[str]:
    if step.look is not None:
        yield "   look whether it is there:"
        yield from _action(step.look, prepared, facts)
        yield "   if it is not:" if step.make else f"   if it is not, stop: {step.absent}"
    for action in step.make:
        yield from _action(action, prepared, facts)
    if step.change:
        yield "   if it is:"
        for action in step.change:
            yield from _action(action, prepared, facts)


def _action(action: Action, prepared: Prepared, facts: Mapping[str, str]) -> Iterator[str]:
    match told := shown(action, facts):
        case WriteFiles():
            yield from _files(told, prepared.folders.get(told.folder, {}))
        case Command():
            yield from _command(told)
        case Request():
            yield f"     request {told.service}.{told.operation}"
            yield from (f"       {name}: {_value(value)}" for name, value in told.parameters.items())
        case Start():
            yield f"     start {shlex.join(told.argv)}"
            yield f"       in {told.folder}, its output into {told.log}"
            yield from _environment(told.environment)
        case FirstCall():
            yield f"     POST {told.url} with {_AUTH[told.auth]}"
            yield f"       {mask(json.dumps(told.sample))}"
        case ListTools():
            yield f"     MCP {told.url}: initialize, tools/list"
        case _:
            yield f"     {_small(told)}"


def _files(files: WriteFiles, contents: Mapping[str, bytes]) -> Iterator[str]:
    for name in files.names:
        content = contents.get(name)
        size = "" if content is None else f"  ({len(content):,} bytes)"
        yield f"     file {files.folder}/{name}{size}"
        if name == "Dockerfile" and content is not None:
            yield from (f"       | {line}" for line in content.decode().splitlines())


def _small(action: ReadFile | WriteSecret | RemoveFile | Stop) -> str:
    match action:
        case ReadFile():
            return f"read {action.path}"
        case WriteSecret():
            return f"file {action.path}, for you alone, with {MASK}"
        case RemoveFile():
            return f"remove {action.path}"
        case Stop():
            return f"end the process whose number is in {action.pid_file}"


_AUTH = {
    "open": "no credential", "api-key": f"X-Api-Key: {MASK}", "google": f"Authorization: Bearer {MASK}",
    "aws": f"AWS's signature ({MASK})",
}  # fmt: skip


def _command(command: Command) -> Iterator[str]:
    yield f"     $ {shlex.join(command.argv)}"
    if command.stdin is not None:
        yield f"       standard input: {command.stdin if command.stdin == MASK else mask(command.stdin)}"
    yield from _environment(command.environment)


def _environment(variables: Mapping[str, str]) -> Iterator[str]:
    for name, value in variables.items():
        yield f"       {name}={MASK if value == MASK or is_secret_name(name) else mask(value)}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value if value == MASK else mask(value)
    return mask(json.dumps(value))
