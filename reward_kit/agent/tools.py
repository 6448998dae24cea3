# SPDX-License-Identifier: Apache-2.0
"""Tools: what a model may call, and how a Python function becomes one.

    @tool
    def add(amount: int, state: Hidden[dict]) -> str:
        '''Add to the number.

        Args:
            amount: how much to add
        '''

The name, the description and the JSON schema come from the function itself: its name, its docstring, its annotations.
A parameter marked `Hidden` is not shown to the model; the world fills it in.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from reward_kit.agent.blocking import in_a_thread as run_in_a_thread
from reward_kit.errors import ConfigError

__all__ = ["Hidden", "Tool", "ToolError", "tool", "tool_of", "tools_of", "tools_of_class"]

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

_HIDDEN = object()
Hidden = Annotated[T, _HIDDEN]
"""Marks a parameter that the world fills in and the model does not see: `state: Hidden[dict]`."""

SECONDS = 60.0
"""How long one call of a tool may take, unless the tool says otherwise."""
CHARACTERS = 16_384
"""How much of a tool's output a model is shown, unless the tool says otherwise."""

_PROBLEMS = 5
"""Wrong arguments of one call that the model is told of, one by one."""
_SETTINGS = "_reward_kit_tool"


class ToolError(Exception):
    """A tool failed, and the model is told the message of this error. Messages of other exceptions are told to it,
    too."""

    def __init__(self, message: str, kind: str = "exception") -> None:
        """Say what went wrong; `kind` is the word that records and figures use for it."""
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a world: what the model is told of it, and what calling it does."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON schema of the arguments, an object."""
    call: Callable[[dict[str, Any]], Awaitable[Any]]
    """Called with the arguments. Text is shown as it is, nothing as empty text, other values as JSON."""
    reads: bool = False
    """Whether it changes nothing. When recorded steps are played again, its recorded output is taken instead."""
    parallel: bool = False
    """Whether it may run at the same time as other such calls of one turn."""
    timeout: float | None = SECONDS
    """The seconds one call may take; None: as long as it likes."""
    max_output: int = CHARACTERS
    """The characters of output that are shown. Of longer output the middle is cut out."""
    same_again: bool = True
    """Whether the same call gives the same output when recorded steps are played again. Where it does not (a shell:
    times, process numbers), the call is run for what it changes, and its recorded output stands."""
    check: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Returns the arguments as the function wants them, or raises a `ToolError` that says what is wrong with them."""
    spec: dict[str, Any] = field(default_factory=dict)
    """The tool as an endpoint is told of it."""

    def __post_init__(self) -> None:
        if not self.spec:
            object.__setattr__(self, "spec", _spec(self.name, self.description, self.parameters))


def _spec(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": description, "parameters": dict(parameters)}
    return {"type": "function", "function": function}


# ── from functions ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Settings:
    """What an author says of a tool beside the function itself."""

    name: str | None = None
    description: str | None = None
    reads: bool = False
    parallel: bool = False
    timeout: float | None = SECONDS
    max_output: int = CHARACTERS
    same_again: bool = True
    on_the_loop: bool = False


@overload
def tool(function: Function, /) -> Function: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, reads: bool = False, parallel: bool = False,
    timeout: float | None = SECONDS, max_output: int = CHARACTERS, same_again: bool = True, on_the_loop: bool = False,
) -> Callable[[Function], Function]: ...  # fmt: skip
def tool(function: Function | None = None, /, **settings: Any) -> Any:
    """Mark a function, or a method of a world, as a tool. Bare, or with settings: `@tool(reads=True, timeout=5)`.

    A plain `def` runs in a thread, so that other episodes do not wait for it. If it is quick, `on_the_loop` saves the
    thread. An `async def` always runs on the event loop.
    """

    def mark(function: Function) -> Function:
        setattr(function, _SETTINGS, _Settings(**settings))
        return function

    return mark if function is None else mark(function)


def tool_of(function: Callable[..., Any], hidden: Mapping[str, Any] | None = None) -> Tool:
    """A function as a tool, marked or not. `hidden` holds the values of its hidden parameters, by name."""
    return _template(function).bound(function, {} if hidden is None else hidden)


def tools_of(world: object, hidden: Mapping[str, Any] | None = None) -> list[Tool]:
    """The methods of an object that are marked as tools, in the order in which its class has them."""
    given = {} if hidden is None else hidden
    kind: Any = type(world)
    return [template.bound(getattr(world, name), given) for name, template in _templates(kind)]


def tools_of_class(kind: type) -> list[Tool]:
    """The tools that every object of a class will have, to be told of before there is one. They cannot be called."""

    async def nobody(_: dict[str, Any]) -> Any:
        raise ToolError("There is no world yet in which the tool could be called.")

    named: Any = kind
    found = [template for _, template in _templates(named)]
    return [Tool(each.name, each.description, each.parameters, nobody, spec=each.spec) for each in found]


@functools.cache
def _templates(kind: Any) -> list[tuple[str, _Template]]:
    names = dict.fromkeys(name for base in reversed(kind.__mro__) for name in vars(base))
    methods = [(name, inspect.getattr_static(kind, name)) for name in names if not name.startswith("__")]
    return [(name, _template(method, skip_self=True)) for name, method in methods if hasattr(method, _SETTINGS)]


@dataclass(frozen=True, slots=True)
class _Template:
    """All of a tool that does not depend on the world it belongs to. Made once per function."""

    settings: _Settings
    name: str
    description: str
    parameters: dict[str, Any]
    arguments: type[BaseModel]
    hidden: tuple[str, ...]
    optional: frozenset[str]
    """Hidden parameters that have a default."""
    is_async: bool
    spec: dict[str, Any]

    def bound(self, function: Callable[..., Any], hidden: Mapping[str, Any]) -> Tool:
        if missing := [name for name in self.hidden if name not in hidden and name not in self.optional]:
            raise ConfigError(
                f"The tool {self.name!r} has a hidden parameter {missing[0]!r}, and there is nothing of that name: "
                f"there are {sorted(hidden) or 'none'}. Rename the parameter, or give it in `agent.params`."
            )
        settings = self.settings
        return Tool(
            self.name, self.description, self.parameters, self._caller(function, hidden), settings.reads,
            settings.parallel, settings.timeout, settings.max_output, settings.same_again, self.checked, self.spec,
        )  # fmt: skip

    def _caller(
        self, function: Callable[..., Any], hidden: Mapping[str, Any]
    ) -> Callable[[dict[str, Any]], Awaitable[Any]]:
        given = {name: hidden[name] for name in self.hidden if name in hidden}
        if self.is_async:
            return lambda arguments: function(**arguments, **given)

        async def here(arguments: dict[str, Any]) -> Any:
            return function(**arguments, **given)

        async def in_a_thread(arguments: dict[str, Any]) -> Any:
            return await run_in_a_thread(function, **arguments, **given)

        return here if self.settings.on_the_loop else in_a_thread

    def checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the types that the function asks for; a `ToolError` names what is wrong."""
        try:
            made = self.arguments.model_validate(arguments)
        except ValidationError as error:
            raise ToolError(_explained(error), "schema") from None
        return {name: getattr(made, name) for name in self.arguments.model_fields if name in made.model_fields_set}


def _explained(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False)
    told = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems[:_PROBLEMS]]
    more = [f"{len(problems) - _PROBLEMS} more problems"] if len(problems) > _PROBLEMS else []
    return "; ".join([*told, *more])


def _template(function: Callable[..., Any], *, skip_self: bool = False) -> _Template:
    inner = inspect.unwrap(getattr(function, "__func__", function))
    return _made(inner, skip_self and not isinstance(function, staticmethod))


@functools.cache
def _made(function: Callable[..., Any], skip_self: bool) -> _Template:
    settings: _Settings = getattr(function, _SETTINGS, _Settings())
    name: str = settings.name or str(getattr(function, "__name__", type(function).__name__))
    summary, described = _docstring(inspect.getdoc(function) or "")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(
            f"The annotations of the tool {name!r} cannot be read ({error}). Import what they name at the module's top."
        ) from error
    parameters = list(inspect.signature(function).parameters.values())[1 if skip_self else 0 :]
    shown: dict[str, Any] = {}
    hidden: list[str] = []
    optional: list[str] = []
    for parameter in parameters:
        if parameter.kind in {parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY}:
            raise ConfigError(
                f"The tool {name!r} has the parameter {str(parameter)!r}, which a model cannot fill by name. "
                "Give each parameter a name of its own."
            )
        annotation = hints.get(parameter.name, Any)
        if _HIDDEN in getattr(annotation, "__metadata__", ()):
            hidden.append(parameter.name)
            optional += [] if parameter.default is parameter.empty else [parameter.name]
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        shown[parameter.name] = (annotation, Field(default=default, description=described.get(parameter.name)))
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=())
    arguments = create_model(name, __config__=config, **shown)
    schema = _without_titles(arguments.model_json_schema())
    description = settings.description or summary
    is_async = inspect.iscoroutinefunction(function)
    spec = _spec(name, description, schema)
    return _Template(
        settings, name, description, schema, arguments, tuple(hidden), frozenset(optional), is_async, spec
    )  # fmt: skip


def _without_titles(schema: Any) -> Any:
    """The schema without the titles that pydantic makes of names: they cost tokens and say nothing new."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name != "title" or not isinstance(value, str)}
    kept.pop("additionalProperties", None) if kept.get("additionalProperties") is False else None
    return {
        name: {key: _without_titles(inner) for key, inner in value.items()}
        if name in {"properties", "$defs"} and isinstance(value, dict)
        else _without_titles(value)
        for name, value in kept.items()
    }


_SECTION = re.compile(r"^(args|arguments|parameters|params|returns?|yields?|raises|examples?|notes?):\s*$", re.I)
_GOOGLE = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s+(.+)$")
_SPHINX = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+):\s*(.+)$")


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """What a docstring says of the function, and of each parameter (as Google or Sphinx write them)."""
    summary: list[str] = []
    described: dict[str, str] = {}
    section, last = "", ""
    for line in text.splitlines():
        if heading := _SECTION.match(line.strip()):
            section = heading[1].lower()
        elif found := _SPHINX.match(line.strip()):
            described[last := found[1]] = found[2].strip()
        elif section.startswith(("arg", "param")):
            if found := _GOOGLE.match(line):
                described[last := found[1]] = found[2].strip()
            elif line.strip() and last:
                described[last] += f" {line.strip()}"
        elif not section and not line.strip().startswith(":"):
            summary.append(line)
    return "\n".join(summary).strip(), described
