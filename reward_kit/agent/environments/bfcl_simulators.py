# SPDX-License-Identifier: Apache-2.0
"""BFCL's simulated APIs and what its multi-turn checker says of calls to them, without its `eval` and its globals.

    calls that a model wrote ─▶ decoded (`ls(a=True)`) ─▶ Simulators.run ─▶ the text that the model is shown
    all turns of an episode, and those of the gold answer ─▶ check ─▶ BfclVerdict

The package `bfcl-eval` keeps the objects of an episode in a module's globals, under the names of model and task, and
evaluates calls as Python, function names and argument names as the model wrote them. Here each episode has objects of
its own, and a call is read as a syntax tree: it can name a method of the simulators with literal arguments, and nothing
else runs. Every output is the one that the package gives, down to what its rewriting does to texts.
"""

from __future__ import annotations

import ast
import builtins
import copy
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

__all__ = [
    "MODULES",
    "MOST_STEPS",
    "BfclVerdict",
    "Checked",
    "Simulators",
    "UndecodableError",
    "check",
    "decoded",
    "needs_bfcl",
    "public_state",
    "simulator",
]

MODULES = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code."
"""Where the package has the simulated APIs."""
_APIS = (
    "GorillaFileSystem", "MathAPI", "MessageAPI", "TicketAPI", "TradingBot", "TravelAPI", "TwitterAPI",
    "VehicleControlAPI",
)  # fmt: skip
"""Those that a task may name, which hold all they know in memory. The package has others that search the web and write
files."""
MOST_STEPS = 20
"""After one more step with calls in one turn, the model is stopped and the episode ends."""

_CALL = re.compile(r"\b([a-zA-Z_]\w*)\s*(?=\()")
"""A name before a parenthesis, wherever it stands: BFCL rewrites texts that look like calls, too, without the blank."""
_FORBIDDEN = frozenset({"kill", "exit", "quit", "remove", "unlink", "popen", "Popen", "run"})
_PURE = frozenset({
    "abs", "all", "any", "ascii", "bin", "bool", "chr", "complex", "dict", "divmod", "float", "format", "frozenset",
    "hex", "int", "len", "list", "max", "min", "oct", "ord", "pow", "range", "repr", "round", "set", "sorted", "str",
    "sum", "tuple",
})  # fmt: skip
"""Functions of Python itself that a call may name: they read and change nothing but their arguments."""
_KEYWORDS_REFUSED = frozenset({"exec", "eval", "input"})
"""Functions that cannot begin without an argument by position, so that calling them with others only is an error."""
_MODULES = (copy, importlib, inspect, json, re)
"""What the module that evaluates calls has imported; a call of one of them fails as a call of a module does."""


@contextmanager
def needs_bfcl() -> Iterator[None]:
    """Say how to install the package where importing from it fails. Its own dependencies are not needed here."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"The environment of BFCL needs bfcl-eval ({error}). Install it with: "
            "pip install --no-deps bfcl-eval==2026.3.23 mpmath"
        ) from error


class UndecodableError(ValueError):
    """The calls of a step cannot be read, so BFCL runs none of them and goes on with the next turn."""


class BfclVerdict(NamedTuple):
    """What the checker says of an episode."""

    kind: str
    """`valid`, or the kind of the first error, such as `multi_turn:instance_state_mismatch`."""
    message: str = ""
    turn: int | None = None
    """The turn at which the error was seen, counted from 0."""

    @property
    def valid(self) -> bool:
        """Whether nothing was wrong."""
        return self.kind == "valid"


def decoded(calls: Sequence[tuple[str, str | Mapping[str, Any]]]) -> list[str]:
    """Function calls of one step, given by name and arguments (JSON text, or parsed), as Python calls.

    One that cannot be read makes the whole step unreadable.
    """
    return [f"{name}({','.join(f'{key}={value!r}' for key, value in _arguments(given))})" for name, given in calls]


def _arguments(given: str | Mapping[str, Any]) -> Any:
    try:
        return (json.loads(given) if isinstance(given, str) else given).items()
    except (ValueError, AttributeError, RecursionError) as error:
        raise UndecodableError(f"the arguments are not a JSON object: {error}") from error


# ── the simulators of one episode ────────────────────────────────────────────────────────────────────────────────────


class Simulators:
    """The simulated APIs of one episode, as objects that no other episode has.

    `name` begins the names of the objects, which show up in a text that looks like a call to one of them.
    """

    def __init__(
        self, classes: Sequence[str], config: Mapping[str, Any], *, long_context: bool = False, name: str = "model"
    ) -> None:
        """Make the objects of `classes` in the state that `config` gives."""
        self.instances: dict[str, Any] = {}
        """The objects by the names of their classes."""
        self._named: dict[str, Any] = {}
        self._owners: dict[str, str] = {}
        for class_name in classes:
            instance = simulator(class_name, config.get(class_name, {}), long_context=long_context)
            if long_context:  # some then hold pieces of their module's own tables, which a call may change
                instance = copy.deepcopy(instance)
            instance_name = re.sub(r"\W", "_", f"{name}_{class_name}_instance")
            self.instances[class_name] = self._named[instance_name] = instance
            self._owners.update(dict.fromkeys(_kind(class_name).methods, instance_name))

    def run(self, call: str) -> str:
        """The text that BFCL shows the model for one call, be it a result or an error."""
        call = _CALL.sub(self._addressed, call)
        try:
            name = call.split("(")[0]
            if "." in name:
                name = name.split(".")[1]
            if name in _FORBIDDEN:
                raise _RefusedError(f"Function call {name} is not allowed.")
            return _as_text(self._value(_parsed(call)))
        except Exception as error:  # noqa: BLE001 - a named boundary: whatever a simulator raises is shown to the model
            return f"Error during execution: {error}"

    def differs_from(self, gold: Simulators) -> str | None:
        """The first class of which a public attribute is not what it is in `gold`."""
        for class_name, expected in gold.instances.items():
            held = self.instances[class_name]
            for attribute, value in vars(expected).items():
                if not attribute.startswith("_") and getattr(held, attribute) != value:
                    return f"{class_name}.{attribute}"
        return None

    def state(self) -> dict[str, dict[str, Any]]:
        """The public attributes of each object as plain data."""
        return {name: public_state(instance) for name, instance in self.instances.items()}

    def _addressed(self, match: re.Match[str]) -> str:
        name = match[1]
        owner = self._owners.get(name)
        return name if owner is None else f"{owner}.{name}"

    # ── reading a call ───────────────────────────────────────────────────────────────────────────────────────────────

    def _value(self, node: ast.expr) -> Any:  # noqa: PLR0911 - one line for each kind of expression
        match node:
            case ast.Constant():
                return node.value
            case ast.Call():
                return self._called(node)
            case ast.Name():
                return self._lookup(node.id)
            case ast.List():
                return [self._value(item) for item in node.elts]
            case ast.Tuple():
                return tuple(self._value(item) for item in node.elts)
            case ast.Dict():
                return {self._key(key): self._value(value) for key, value in zip(node.keys, node.values, strict=True)}
            case ast.UnaryOp(op=ast.USub()):
                return -self._value(node.operand)
            case ast.Attribute():
                return self._attribute(node)
        raise _RefusedError(f"{type(node).__name__} is not allowed in a call.")

    def _key(self, node: ast.expr | None) -> Any:
        if node is None:
            raise _RefusedError("unpacking is not allowed in a call.")
        return self._value(node)

    def _called(self, node: ast.Call) -> Any:
        function = self._value(node.func)
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise _RefusedError("unpacking is not allowed in a call.")
        args = [self._value(argument) for argument in node.args]
        if function in _guarded() and args:
            raise _RefusedError(f"Function call {function.__name__} is not allowed.")
        return function(*args, **{self._keyword(word): self._value(word.value) for word in node.keywords})

    def _keyword(self, word: ast.keyword) -> str:
        if word.arg is None:
            raise _RefusedError("unpacking is not allowed in a call.")
        return word.arg

    def _attribute(self, node: ast.Attribute) -> Any:
        holder = self._value(node.value)
        if isinstance(node.value, ast.Name) and self._owners.get(node.attr) == node.value.id:
            return getattr(holder, node.attr)
        raise _RefusedError(f"{node.attr} is not allowed in a call.")

    def _lookup(self, name: str) -> Any:
        if name in self._named:
            return self._named[name]
        if name in _PURE or name in _KEYWORDS_REFUSED:
            return getattr(builtins, name)
        for module in _MODULES:
            if module.__name__ == name:
                return module
        if hasattr(builtins, name):
            raise _RefusedError(f"Function call {name} is not allowed.")
        raise NameError(f"name {name!r} is not defined")


class _RefusedError(Exception):
    """Why a call was not run."""


def _parsed(call: str) -> ast.expr:
    """The call as a tree, with the errors that Python's compiler has for it."""
    source = call.lstrip(" \t")
    tree = compile(source, "<string>", "eval", ast.PyCF_ONLY_AST)
    assert isinstance(tree, ast.Expression)
    if isinstance(tree.body, ast.Call) and len({word.arg for word in tree.body.keywords}) < len(tree.body.keywords):
        compile(source, "<string>", "eval")  # names the argument that is given twice
    return tree.body


@cache
def _guarded() -> tuple[Any, ...]:
    return tuple(getattr(builtins, name) for name in sorted(_KEYWORDS_REFUSED))


def _as_text(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) is dict:
        try:
            return json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            return str(value)
    return str(value)


def public_state(instance: Any) -> dict[str, Any]:
    """The public attributes of a simulated API as plain data, the same for equal states."""
    return {name: _plain(value) for name, value in sorted(vars(instance).items()) if not name.startswith("_")}


def _plain(value: Any) -> Any:
    """A value of a simulator as plain data; a file or a directory of its own as its type, name and contents."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(inner) for inner in value), key=repr)
    if type(value).__module__.startswith(MODULES):
        fields = {name: inner for name, inner in sorted(vars(value).items()) if name not in ("parent", "_parent")}
        return {
            "type": type(value).__name__.lower(),
            **{name.lstrip("_"): _plain(inner) for name, inner in fields.items()},
        }
    return type(value).__name__


def simulator(class_name: str, state: Mapping[str, Any], *, long_context: bool = False) -> Any:
    """A simulated API, in the state that a task gives."""
    kind = _kind(class_name)
    instance = kind.make()
    if kind.has_state:
        instance._load_scenario(copy.deepcopy(state), long_context=long_context)
    return instance


class _Kind(NamedTuple):
    """One simulated API."""

    make: Callable[[], Any]
    has_state: bool
    methods: tuple[str, ...]
    """Those that a call may name."""


@cache
def _kind(class_name: str) -> _Kind:
    if class_name not in _APIS:
        raise ValueError(f"There is no simulated API {class_name!r}. A task may name: {', '.join(_APIS)}.")
    with needs_bfcl():
        from bfcl_eval.constants.executable_backend_config import CLASS_FILE_PATH_MAPPING, STATELESS_CLASSES

        module = importlib.import_module(CLASS_FILE_PATH_MAPPING[class_name])
    kind = getattr(module, class_name)
    members = inspect.getmembers(kind(), predicate=inspect.ismethod)
    methods = tuple(name for name, _ in members if not name.startswith("_"))
    return _Kind(kind, class_name not in STATELESS_CLASSES, methods)


# ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Checked(NamedTuple):
    """A verdict, and every output that the model's calls gave on the way to it."""

    verdict: BfclVerdict
    seen: list[str]


def check(
    turns: Sequence[Sequence[Sequence[str]]], gold: Sequence[Sequence[str]], model: Simulators, ideal: Simulators
) -> Checked:
    """Run both sides turn by turn, in simulators fresh from the same task, and say what is wrong first.

    `turns` are the decoded calls of each step of each turn. After a turn for which the gold answer has calls, the
    model must have made some, its simulators must be in the state of the gold ones, and all outputs of the gold turn
    must be among those that the model has seen so far.
    """
    seen: list[str] = []
    if len(turns) != len(gold):
        told = f"{len(turns)} turns were played, and the task has {len(gold)}"
        return Checked(BfclVerdict("multi_turn:force_terminated", told), seen)
    for number, (steps, expected) in enumerate(zip(turns, gold, strict=True)):
        seen += [model.run(call) for step in steps for call in step]
        wanted = [ideal.run(call) for call in expected]
        if expected and (fault := _fault(bool(steps), wanted, seen, model, ideal)) is not None:
            return Checked(BfclVerdict(*fault, number), seen)
    return Checked(BfclVerdict("valid"), seen)


def _fault(
    has_calls: bool, wanted: Sequence[str], seen: Sequence[str], model: Simulators, ideal: Simulators
) -> tuple[str, str] | None:
    """The kind of what is wrong after a turn, and a sentence about it."""
    if not has_calls:
        return "multi_turn:empty_turn_model_response", "no calls were made"
    if (place := model.differs_from(ideal)) is not None:
        return "multi_turn:instance_state_mismatch", f"{place} is not as the gold answer leaves it"
    if (missing := _missing(wanted, seen)) is not None:
        return "multi_turn:execution_response_mismatch", f"no call gave {missing[:200]!r}"
    return None


def _missing(wanted: Sequence[str], seen: Sequence[str]) -> str | None:
    """The first of `wanted` that `seen` does not have, or not as often."""
    left = list(seen)
    for output in wanted:
        if output not in left:
            return output
        left.remove(output)
    return None
