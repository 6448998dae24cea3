# SPDX-License-Identifier: Apache-2.0
"""What the tests of the code rewards share."""

from __future__ import annotations

import functools
import sys
import textwrap

import pytest

from reward_kit.errors import SandboxError
from reward_kit.models import Message
from reward_kit.rewards._code.python import Options
from reward_kit.rewards._code.runner import execute


@functools.cache
def zygote_problem() -> str:
    """Why no zygote works here; empty where one does."""
    if sys.platform != "linux":
        return "zygotes need Linux"
    try:
        execute("pass", Options())
    except SandboxError as error:
        return str(error)
    return ""


def require_zygote() -> None:
    """Skip where the kernel does not permit zygotes; any other problem is one."""
    problem = zygote_problem()
    if "not permitted" in problem or "Linux" in problem:
        pytest.skip(problem)
    assert not problem


def answer(code: str, language: str = "python") -> list[Message]:
    """A conversation that ends with this code."""
    text = f"Here it is:\n\n```{language}\n{textwrap.dedent(code)}\n```\nDone."
    return [Message(role="user", content="Write it."), Message(role="assistant", content=text)]
