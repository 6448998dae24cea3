# SPDX-License-Identifier: Apache-2.0
"""A server made with the package `mcp`, of whichever version is installed. Run by an interpreter that has it.

python real_server.py              over stdin and stdout
python real_server.py PORT         over HTTP, at /mcp
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import os
import sys
from typing import Any

calls = itertools.count(1)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def weather(city: str) -> dict[str, Any]:
    """Say what the weather is like."""
    return {"city": city, "degrees": 20.5}


def bump() -> str:
    """Count the calls."""
    return str(next(calls))


def boom() -> str:
    """Raise."""
    raise ValueError("on purpose")


async def slow() -> str:
    """Wait for long."""
    await asyncio.sleep(3600)
    return "late"


def die() -> str:
    """End the process."""
    os._exit(3)


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    made: Any = getattr(importlib.import_module("mcp.server"), "MCPServer", None)
    options = {"port": port}
    if made is not None:
        server = made("real")
    else:
        server = importlib.import_module("mcp.server.fastmcp").FastMCP("real", **options)
        options = {}
    for tool in (add, weather, bump, boom, slow, die):
        server.tool()(tool)
    if port:
        server.run(transport="streamable-http", **options)
    else:
        server.run()


if __name__ == "__main__":
    main()
