"""What the source of test programs says before it is run: which modules and which names of the code it uses."""

from __future__ import annotations

import ast
import builtins
import functools
import sys
from collections.abc import Iterator, Sequence

from reward_kit.answers.code import parses

__all__ = ["built_in_tested", "modules_in", "names_tested"]

_GIVEN = frozenset(dir(builtins)) | {"candidate", "check", "pytest", "unittest", "np", "pd", "self"}
"""What tests call that is not the code's."""

_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_KINDS = frozenset(name for name in dir(builtins) if isinstance(getattr(builtins, name), type))


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
