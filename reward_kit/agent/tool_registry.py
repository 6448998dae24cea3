# SPDX-License-Identifier: Apache-2.0
"""ToolRegistry: functions as tools of an agent, each with a description and parameters that are written by hand.

    tools = ToolRegistry("bank")

    @tools.tool("Look up a balance.", {"account": {"type": "string"}})
    async def balance(account: str, resource: ForkableResource) -> float: ...

A tool is called with the world as `resource`, and with what the model gave. A module that a task names by
`tools_module_path` has such a registry under any name.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["ToolRegistry", "call_tool"]

_F = TypeVar("_F", bound=Callable[..., Any])


class ToolRegistry:
    """Tools by name."""

    def __init__(self, name: str) -> None:
        """A registry without tools."""
        self.name = name
        self.tools: dict[str, Callable[..., Any]] = {}
        self.descriptions: dict[str, str] = {}
        self.parameters: dict[str, dict[str, Any]] = {}

    def tool(self, description: str, parameters: dict[str, Any]) -> Callable[[_F], _F]:
        """Register the function below as a tool, and leave it as it is.

        `parameters` is a JSON schema of an object, or its `properties` alone, which are then all required, save those
        that the function has a default for.
        """

        def register(function: _F) -> _F:
            name = function.__name__
            if name in self.tools and self.tools[name] is not function:
                raise ValueError(f"the registry {self.name!r} has a tool {name!r} already; give one another name")
            self.tools[name] = function
            self.descriptions[name] = description
            self.parameters[name] = parameters
            return function

        return register

    def get_tool(self, tool_name: str) -> Callable[..., Any] | None:
        """The function of a tool, or None."""
        return self.tools.get(tool_name)

    def get_tools(self) -> dict[str, Callable[..., Any]]:
        """The functions by name."""
        return self.tools

    def get_openai_tools(self) -> list[dict[str, Any]]:
        """The tools as `{name, description, parameters}`; `parameters` is a JSON schema."""
        return [
            {"name": name, "description": self.descriptions[name], "parameters": self._schema(name)}
            for name in self.tools
        ]

    def create_fastapi_app(self) -> Any:
        """An app with one route per tool: POST `/tools/<name>` with its arguments, and GET `/tools` for their list.

        Needs fastapi, which reward-kit does not install. Tools that ask for `resource` are given None.
        """
        try:
            from fastapi import Body, FastAPI
        except ImportError as error:
            raise ImportError("create_fastapi_app() needs fastapi. Install it with: pip install fastapi") from error
        app = FastAPI(title=self.name)

        async def listed() -> list[dict[str, Any]]:
            return self.get_openai_tools()

        app.get("/tools")(listed)
        for name, function in self.tools.items():

            async def called(
                arguments: dict[str, Any] = Body(default={}),  # noqa: B008 - how fastapi is told
                function: Any = function,
            ) -> Any:
                return await call_tool(function, arguments, resource=None)

            app.post(f"/tools/{name}", name=name)(called)
        return app

    def _schema(self, name: str) -> dict[str, Any]:
        parameters = self.parameters[name]
        if parameters.get("type") == "object" and isinstance(parameters.get("properties"), dict):
            return parameters
        known = inspect.signature(self.tools[name]).parameters
        with_default = {one.name for one in known.values() if one.default is not inspect.Parameter.empty}
        needed = [one for one in parameters if one not in with_default]
        return {"type": "object", "properties": parameters, "required": needed}


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
