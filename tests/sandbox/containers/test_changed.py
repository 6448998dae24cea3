# SPDX-License-Identifier: Apache-2.0
"""What an engine says was changed, and whether a check of a condition can be trusted after it."""

from __future__ import annotations

from typing import cast

import pytest

from reward_kit.sandbox.containers.changed import Changes
from reward_kit.sandbox.containers.engine import Change, Engine

IMAGE = (
    "/usr/bin/bash",
    "/usr/bin/grep",
    "/bin/grep",
    "/usr/bin/python3",
    "/usr/bin/env",
    "/lib/x86_64-linux-gnu/libc.so.6",
)
A, C, D = Change.ADDED, Change.CHANGED, Change.REMOVED


class Told:
    """An engine that says what it is told to."""

    def __init__(self) -> None:
        self.found: dict[str, Change] = {}

    async def changes(self, key: str) -> dict[str, Change]:
        return self.found

    async def digest(self, key: str, path: str) -> str:
        return "digest" if path in IMAGE or self.found.get(path) == A else ""


async def distrusted(condition: str, found: dict[str, Change], setup: dict[str, Change] | None = None) -> str:
    engine = Told()
    changes = Changes(cast(Engine, engine), "key")
    if setup is not None:
        engine.found = setup
        await changes.mark()
    engine.found = {**(setup or {}), **found}
    return (await changes.look(condition))[0]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("test -f a", {"/usr/bin/bash": C}),
        ("test -f a", {"/bin": C}),
        ("test -f a", {"/etc": C, "/etc/ld.so.preload": A}),
        ("test -f a", {"/etc/ld.so.cache": C}),
        ("test -f a", {"/usr/lib/x86_64-linux-gnu/libc.so.6": C}),
        ("test -f a", {"/usr/lib/x86_64-linux-gnu/glibc-hwcaps": A}),
        ("test -f a", {"/usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v2/libc.so.6": A}),
        ("test -f a", {"/usr/lib/x86_64-linux-gnu/libnss_evil.so.2": A}),
        ("test -f a", {"/usr/bin": D}),
        ("grep -q x out", {"/usr/bin/grep": C}),
        ("grep -q x out", {"/usr/bin/grep": D}),
        ("grep -q x out", {"/usr/local/sbin/grep": A}),
        ("awk 1 out", {"/etc/alternatives": C}),
        ("awk 1 out", {"/etc/alternatives/awk": C}),
        ("awk 1 out", {"/usr/bin/mawk": C}),
        ("python3 -c 'import json'", {"/usr/bin/python3.11": C}),
        ("python3 -c 'import json'", {"/usr/lib/python3.11/json/__init__.py": C}),
        ("python3 -c 'import json'", {"/usr/lib/python311.zip": A}),
        ("python3 -c 'import json'", {"/srv/work/json.py": A}),
        ("python3 check.py", {"/srv/work/json/__init__.py": A}),
        ("./check", {"/root/.local/lib/python3.11/site-packages/usercustomize.py": A}),
        ("jq .a f", {"/root/.jq": A}),
    ],
)  # fmt: skip
async def test_what_a_check_needs_and_the_command_changed_is_named(condition: str, found: dict[str, Change]) -> None:
    assert await distrusted(condition, found) == [*found][-1]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("test -f a", {"/srv/work/a": A, "/usr/bin/grep": C}),
        ("greet | grep -q hello", {"/usr/bin/greet": A, "/usr/local/bin": C}),
        ("grep -q x out", {"/usr/bin/who": D, "/etc/passwd": C, "/root/.bashrc": C}),
        ("test -f a", {"/usr/local/lib/libmine.so.1": A}),
        ("grep -q import json.py && python3 json.py", {"/srv/work/json.py": A}),
        ("python3 -c 'import helper'", {"/srv/work/helper.py": A, "/srv/work/pack/__init__.py": A}),
    ],
)
async def test_what_a_check_does_not_need_is_nobodys_cheating(condition: str, found: dict[str, Change]) -> None:
    assert await distrusted(condition, found) == ""


async def test_what_the_setup_wrote_is_what_the_task_is_about() -> None:
    job = {"/usr/local/bin/grep": A}
    assert await distrusted("grep -q x out", job, setup=job) == ""
