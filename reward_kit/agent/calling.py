# SPDX-License-Identifier: Apache-2.0
"""Calling a tool that is a function: sync or async, with the world handed in where the function asks for it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["call_tool"]


async def call_tool(function: Callable[..., Any], arguments: dict[str, Any], *, resource: Any) -> Any:
    """What a tool returns for the model's `arguments`. A synchronous function runs in a thread.

    The model cannot choose the resource: an argument of that name is a TypeError.
    """
    if "resource" in arguments:
        raise TypeError("unexpected argument 'resource'")
    parameters = inspect.signature(function).parameters
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    given = {"resource": resource} if takes_any or "resource" in parameters else {}
    if inspect.iscoroutinefunction(function):
        return await function(**given, **arguments)
    done = await asyncio.to_thread(function, **given, **arguments)
    return await done if inspect.isawaitable(done) else done
