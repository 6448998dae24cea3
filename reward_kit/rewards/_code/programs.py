# SPDX-License-Identifier: Apache-2.0
"""Test programs as source: which names of the code they use, and those that are only asserts, taken apart.

    assert candidate([1, 2]) == 3   ─▶   call with ([1, 2],), then check: <what came back> == 3

Most of HumanEval and MBPP is of this kind. The calls are then made like any others, in one process, and the checks are
worked out here on plain data, which costs half of a test program in a process of its own and means the same. Only a few
operations on small values are known here; whatever else a test does, it is run as the program it is.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from reward_kit.answers.code import parses

__all__ = [
    "AssertCheck",
    "UndecidedError",
    "built_in_tested",
    "ends_itself",
    "modules_in",
    "names_tested",
    "stand_alone",
    "take_apart",
]

_GIVEN = frozenset(dir(builtins)) | {"candidate", "check", "pytest", "unittest", "np", "pd", "self"}
"""What tests call that is not the code's."""

_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_KINDS = frozenset(name for name in dir(builtins) if isinstance(getattr(builtins, name), type))
_ENDING = frozenset({"_exit", "abort", "execv", "execve", "kill", "killpg", "raise_signal"})
_SIZE = 10_000
_BITS = 4096
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_BUILTINS: Mapping[str, Callable[..., Any]] = {
    "abs": abs, "len": len, "sorted": sorted, "list": list, "tuple": tuple, "set": set, "str": str, "int": int,
    "float": float, "round": round, "sum": sum, "min": min, "max": max, "bool": bool,
}  # fmt: skip
_MATH: Mapping[str, Callable[..., Any]] = {"math.isclose": math.isclose, "math.fabs": math.fabs, "math.sqrt": math.sqrt}
_CONTAINERS: Mapping[type[ast.expr], Callable[..., Any]] = {ast.List: list, ast.Tuple: tuple, ast.Set: set}
_SINGLETONS = (None, True, False)
_ERRORS = (TypeError, ValueError, KeyError, IndexError, ArithmeticError, RecursionError)


# ── which names they use ────────────────────────────────────────────────────────────────────────────────────────────


def modules_in(tests: Sequence[str]) -> list[str]:
    """Every module that tests import. Those that are not there when they run are the code."""
    nodes = list(_nodes(tuple(tests)))
    named = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return sorted(named | {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names})


@functools.lru_cache(maxsize=256)
def names_tested(tests: tuple[str, ...]) -> tuple[str, ...]:
    """What tests call, or import from a module that is not Python's own, and do not define themselves."""
    called: set[str] = set()
    bound: set[str] = set()
    for node in _nodes(tests):
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
                called.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.Import(names=aliases):
                bound |= {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
            case ast.ImportFrom(module=str(module), names=aliases) if _is_pythons(module):
                bound |= {alias.asname or alias.name for alias in aliases}
            case ast.ImportFrom(names=aliases):
                called |= {alias.name for alias in aliases}
    return tuple(sorted(called - bound - _GIVEN))


@functools.lru_cache(maxsize=256)
def stand_alone(tests: tuple[str, ...]) -> bool:
    """Whether each test is nothing but asserts, so that none needs what another has made."""
    return all(parses(test) and all(isinstance(node, ast.Assert) for node in ast.parse(test).body) for test in tests)


def ends_itself(tests: tuple[str, ...]) -> bool:
    """Whether tests have a way to end their process that no exception has."""
    for node in _nodes(tests):
        match node:
            case ast.Attribute(value=ast.Name(id="os" | "signal"), attr=name) if name in _ENDING:
                return True
            case ast.ImportFrom(module="os" | "signal", names=names) if any(each.name in _ENDING for each in names):
                return True
    return False


@functools.lru_cache(maxsize=256)
def built_in_tested(tests: tuple[str, ...]) -> str | None:
    """The function that tests call by the name of a built-in (`sum`, `abs`), where they test nothing else.

    Only what tests say decides: code that defines an `abs` of its own does not change what `abs(f(x) - 1)` means.
    """
    trees = [ast.parse(test) for test in tests if parses(test)]
    if names_tested(tests) or any(isinstance(node, _DEFINING) for tree in trees for node in ast.walk(tree)):
        return None
    found = [_innermost(node.test) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    common = set.intersection(*found) if found else set()
    return common.pop() if len(common) == 1 else None


def _innermost(test: ast.expr) -> set[str]:
    """The built-ins that are called with nothing that is called itself; kinds of values are not what is tested."""
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    names = {call.func.id for call in calls if isinstance(call.func, ast.Name) and not _calls_within(call)}
    return {name for name in names if callable(getattr(builtins, name, None)) and name not in _KINDS}


def _calls_within(call: ast.Call) -> bool:
    return any(isinstance(node, ast.Call) for argument in call.args for node in ast.walk(argument))


def _nodes(tests: tuple[str, ...]) -> Iterator[ast.AST]:
    return (node for test in tests if parses(test) for node in ast.walk(ast.parse(test)))


def _is_pythons(module: str) -> bool:
    return module.partition(".")[0] in {*sys.stdlib_module_names, "pytest", "numpy", "pandas", "hypothesis"}


# ── asserts, taken apart ────────────────────────────────────────────────────────────────────────────────────────────


class UndecidedError(Exception):
    """This is not for here: the test must be run as a program."""


class AssertCheck(NamedTuple):
    """One assert: the calls it makes, in their order, and what must hold of their results."""

    name: str
    calls: tuple[tuple[Any, ...], ...]
    test: ast.expr
    function: str

    def holds(self, results: Sequence[Any]) -> bool:
        """Whether the assert holds for these results. What Python would raise is a no."""
        given = iter(results)
        try:
            return bool(_Values(self.function, lambda _: next(given)).of(self.test))
        except _ERRORS:
            return False


@functools.lru_cache(maxsize=256)
def take_apart(tests: tuple[str, ...], entry_point: str | None) -> tuple[str, list[AssertCheck]] | None:
    """The function that is tested and the checks, or None where there is more to a test than that.

    Remembered, because the same tests judge all answers to a prompt.
    """
    try:
        statements = [each for test in tests for each in _asserts(test, entry_point)]
        functions = {function for _, function, _ in statements} or {""}
        if len(functions) > 1:
            return None
        function = functions.pop()
        checks = [_check(f"line {node.lineno} of test {number}", node, name) for number, name, node in statements]
    except (UndecidedError, SyntaxError, MemoryError, *_ERRORS):
        return None
    return (entry_point or function, checks) if any(check.calls for check in checks) else None


def _asserts(source: str, entry_point: str | None) -> Iterator[tuple[int, str, ast.Assert]]:
    """Every assert of a test, with what it calls the function; nothing else of consequence is in it."""
    checked = False
    for number, node in enumerate(ast.parse(source).body):
        match node:
            case ast.Assert():
                yield number, entry_point or _only_function(node), node
            case ast.FunctionDef(name="check", args=ast.arguments(args=[ast.arg(arg=name)])) if entry_point:
                checked = True
                yield from ((number, name, each) for each in _body(node))
            case ast.Expr(value=ast.Call(func=ast.Name(id="check"), args=[ast.Name(id=name)], keywords=[])):
                if not checked or name != entry_point:
                    raise UndecidedError
            case ast.Assign(targets=[ast.Name(id="METADATA")]) | ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Import(names=[ast.alias(name="math", asname=None)]):
                pass
            case _:
                raise UndecidedError


def _body(function: ast.FunctionDef) -> Iterator[ast.Assert]:
    for node in function.body:
        match node:
            case ast.Assert():
                yield node
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Import(names=[ast.alias(name="math", asname=None)]):
                pass
            case _:
                raise UndecidedError
    if function.args.defaults or function.decorator_list:
        raise UndecidedError


def _only_function(node: ast.Assert) -> str:
    called = {
        each.func.id
        for each in ast.walk(node.test)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id not in _BUILTINS
    }
    if len(called) != 1:
        raise UndecidedError
    return called.pop()


def _check(name: str, node: ast.Assert, function: str) -> AssertCheck:
    calls: list[tuple[Any, ...]] = []
    for each in _in_order(node.test):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == function:
            if each.keywords:
                raise UndecidedError
            calls.append(tuple(_Values(function, _no_call).of(argument) for argument in each.args))
    _Shape(function).check(node.test)
    return AssertCheck(name, tuple(calls), node.test, function)


def _no_call(node: ast.Call) -> Any:
    raise UndecidedError


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, in the order in which they are worked out."""
    for below in ast.iter_child_nodes(node):
        yield from _in_order(below)
    yield node


class _Shape:
    """Whether an expression is one that can be worked out here, whatever the results."""

    def __init__(self, function: str) -> None:
        self._function = function

    def check(self, node: ast.AST) -> None:
        match node:
            case ast.Constant() | ast.Tuple() | ast.List() | ast.Dict() | ast.Set() | ast.BinOp() | ast.UnaryOp():
                pass
            case ast.Name(id="math") | ast.Attribute(value=ast.Name(id="math"), attr="pi" | "e" | "inf"):
                pass
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name == self._function or name in _BUILTINS:
                pass
            case ast.Call(func=ast.Attribute()) if ast.unparse(node.func) in _MATH:
                pass
            case ast.Compare(ops=ops) if all(self._known(op, node) for op in ops):
                pass
            case ast.expr_context() | ast.operator() | ast.unaryop() | ast.cmpop() | ast.keyword():
                pass
            case ast.Name() | ast.Attribute() if self._is_function_name(node):
                pass
            case _:
                raise UndecidedError
        for below in ast.iter_child_nodes(node):
            self.check(below)

    def _is_function_name(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id == self._function or node.id in _BUILTINS
        return isinstance(node, ast.Attribute) and ast.unparse(node) in _MATH

    @staticmethod
    def _known(op: ast.cmpop, node: ast.AST) -> bool:
        if isinstance(op, (ast.Is, ast.IsNot)):
            right = node.comparators[-1] if isinstance(node, ast.Compare) else None
            return isinstance(right, ast.Constant) and any(right.value is each for each in _SINGLETONS)
        return type(op) in _COMPARE


class _Values:
    """Works out an expression; a call of the function under test is answered by `called`."""

    def __init__(self, function: str, called: Callable[[ast.Call], Any]) -> None:
        self._function = function
        self._called = called

    def of(self, node: ast.expr) -> Any:  # noqa: PLR0911 - one for each kind of expression
        match node:
            case ast.Constant(value=value):
                return value
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return _CONTAINERS[type(node)](self.of(item) for item in items)
            case ast.Dict(keys=keys, values=values):
                return {self.of(_there(key)): self.of(value) for key, value in zip(keys, values, strict=True)}
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return _UNARY[type(op)](self.of(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return _calculated(type(op), self.of(left), self.of(right))
            case ast.Compare():
                return self._compared(node)
            case ast.Attribute(value=ast.Name(id="math"), attr="pi" | "e" | "inf" as name):
                return getattr(math, name)
            case ast.Call():
                return self._call(node)
        raise UndecidedError

    def _compared(self, node: ast.Compare) -> Any:
        left = self.of(node.left)
        result: Any = True
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.of(comparator)
            if isinstance(op, ast.Is):
                result = left is right
            elif isinstance(op, ast.IsNot):
                result = left is not right
            else:
                result = _COMPARE[type(op)](left, right)
            if not result:
                return result
            left = right
        return result

    def _call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == self._function:
            return self._called(node)
        name = ast.unparse(node.func)
        known = _BUILTINS.get(name) or _MATH.get(name)
        if known is None or any(keyword.arg is None for keyword in node.keywords):
            raise UndecidedError
        arguments = [_small(self.of(argument)) for argument in node.args]
        return known(*arguments, **{str(keyword.arg): self.of(keyword.value) for keyword in node.keywords})


def _there(key: ast.expr | None) -> ast.expr:
    if key is None:
        raise UndecidedError
    return key


def _small(value: Any) -> Any:
    """A value that nothing known here takes long with."""
    if isinstance(value, (str, bytes, list, tuple, dict, set, frozenset)) and len(value) > _SIZE:
        raise UndecidedError
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise UndecidedError
    return value


def _calculated(op: type[ast.operator], left: Any, right: Any) -> Any:
    for value in (_small(left), _small(right)):
        if op is ast.Mult and isinstance(value, int) and abs(value) > _SIZE and not _numbers(left, right):
            raise UndecidedError
    if op is ast.Pow and not (_numbers(left, right) and abs(right) <= _BITS):
        raise UndecidedError
    if op is ast.Mod and isinstance(left, (str, bytes)):
        raise UndecidedError
    return _small(_ARITHMETIC[op](left, right))


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, (int, float)) for value in values)
