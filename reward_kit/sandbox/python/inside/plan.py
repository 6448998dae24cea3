# SPDX-License-Identifier: Apache-2.0
"""What a test program defines, read from its source before it runs: which tests, and where it checks anything.

    source ─▶ Plan: the tests by name, functions that nobody calls, whether pytest must run it
           └▶ the same program, which reports each test that is entered and each check that is reached

A test that is defined must be entered, and a test that holds checks must reach one: what a framework leaves out in
silence (a generator, a coroutine, a class it does not collect) is noticed here. Standard library only.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import NamedTuple, TypeAlias

from reward_kit.sandbox.python.inside.statements import Ordering

__all__ = [
    "RAN",
    "STAR",
    "TYPE",
    "ProgramPlan",
    "Ran",
    "TestFunction",
    "bound_names",
    "class_sources",
    "is_installed",
    "missing_pytest",
    "read_plan",
    "uses_code",
]

RAN = "__reward_kit_ran__"
"""What the program calls with the number of a test that is entered, or with `_CHECK` where it checks."""
STAR = "__reward_kit_star__"
"""What the program calls instead of `from … import *`; False where that is not from the code."""
TYPE = "__reward_kit_type__"
"""What the program calls instead of `type`: what stands for an object is not of the object's class."""
_CHECK = -1
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVING = frozenset({"exit", "quit", "_exit"})
_CHECKING = frozenset({"raises", "fail", "warns"})
_PYTESTS = frozenset({"setup_module", "teardown_module", "setup_function", "teardown_function", "setup_class",
    "teardown_class", "setup_method", "teardown_method"})  # fmt: skip
_HOOKS = _PYTESTS | {"setUpModule", "tearDownModule", "setUpClass", "tearDownClass", "setUp", "tearDown", "asyncSetUp",
    "asyncTearDown", "runTest", "load_tests"}  # fmt: skip
"""Functions that frameworks call by their names."""
_SKIPPING = ("skip", "xfail", "expectedFailure")
_KNOWN = frozenset(dir(builtins)) | sys.stdlib_module_names | {"pytest", "pytestmark"}


class TestFunction(NamedTuple):
    """A function or method that a framework would run."""

    name: str
    """As `TestClass.test_name`."""
    checks: bool
    """Whether checks are written in it that right code meets."""
    left_out: bool
    """Whether the test program itself skips it, or expects it to fail, whatever the code is."""
    generates: bool
    """Whether it is a generator, which no framework runs."""


@dataclass(frozen=True)
class ProgramPlan:
    """What a test program defines, as read from its source: its tests, and whether it needs pytest."""

    tests: dict[int, TestFunction]
    needs_pytest: bool
    forgotten: str | None
    """A function that holds checks and that nothing calls."""
    checks_at_once: bool
    """Whether such checks are made as the source runs, not in functions or classes."""
    can_object: bool
    """Whether it can say that something is wrong: by a check, by raising, or by leaving."""
    helpers: frozenset[str]
    """Functions that are called as tests are, and that the program calls itself."""
    deliberate: frozenset[int]
    """The lines on which something is raised in a `with` block, whatever the code is: `with it: raise ValueError`."""
    program: ast.Module
    """The source, reporting what is reached."""

    def numbers(self, function: str) -> set[int]:
        """The tests that go by this last name."""
        return {number for number, test in self.tests.items() if test.name.rpartition(".")[2] == function}


@dataclass
class Ran:
    """What a test program has reported: called by the program itself."""

    entered: set[int] = field(default_factory=set)
    checks: int = 0

    def __call__(self, number: int) -> None:
        """A test was entered, or a check reached."""
        if number == _CHECK:
            self.checks += 1
        else:
            self.entered.add(number)


def read_plan(tree: ast.Module, entry_point: str | None) -> ProgramPlan:
    """Read a source; its tree is changed into one that reports."""
    nodes = list(ast.walk(tree))
    uses_pytest = _needs_pytest(tree, nodes)
    loaded = _referenced(nodes)
    defined = list(_tests_in(tree, "", check=entry_point is not None))
    helpers = {node.name for _, node, _ in defined if not uses_pytest and _is_helper(node, loaded)}
    latest = {name: (name, node, owner) for name, node, owner in defined if name not in helpers}
    chosen = dict(enumerate(latest.values()))
    bindings = _bindings(tree)
    tests = {number: _test(*each, bindings) for number, each in chosen.items()}
    forgotten = _forgotten(tree, loaded, {id(node) for _, node, _ in chosen.values()}, entry_point)
    at_once = any(_must_be_reached(node) for node in _at_once(tree))
    can_object = any(_is_check(node) or isinstance(node, ast.Raise) or _leaves(node) for node in nodes)
    needs_pytest = uses_pytest or any(
        owner is None and _required(node) and not (entry_point and _takes_candidate(node))
        for _, node, owner in latest.values()
    )
    blocks = [node.body for node in nodes if isinstance(node, (ast.With, ast.AsyncWith))]
    deliberate = frozenset(each.lineno for block in blocks for each in block if _is_deliberate(each))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)} | _imported(nodes)
    _Reporting({id(node): number for number, (_, node, _) in chosen.items()}).visit(tree)
    Ordering(own).visit(tree)
    ast.fix_missing_locations(tree)
    return ProgramPlan(tests, needs_pytest, forgotten, at_once, can_object, frozenset(helpers), deliberate, tree)


def class_sources(trees: Iterable[ast.Module]) -> dict[str, str]:
    """The classes that tests define and check nothing in, each as a source of its own."""
    trees = list(trees)
    imports = [node for tree in trees for node in tree.body if _imports_pythons(node)]
    classes = {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}
    plain = {name: node for name, node in classes.items() if not any(map(_is_check, ast.walk(node)))}

    def needed(name: str, seen: frozenset[str] = frozenset()) -> list[ast.stmt]:
        if name not in plain or name in seen:
            return []
        bases = [each for base in plain[name].bases for used in _names(base) for each in needed(used, seen | {name})]
        return [*bases, plain[name]]

    return {name: "\n".join(map(ast.unparse, [*imports, *needed(name)])) for name in plain}


def _imports_pythons(node: ast.stmt) -> bool:
    match node:
        case ast.Import(names=aliases):
            return all(_is_pythons(alias.name) for alias in aliases)
        case ast.ImportFrom(module=str(module), level=0):
            return _is_pythons(module)
    return False


# ── which tests there are ────────────────────────────────────────────────────────────────────────────────────────────

_Found: TypeAlias = tuple[str, _Function, ast.ClassDef | None]


def _tests_in(scope: ast.Module | ast.ClassDef, prefix: str, *, check: bool = False) -> Iterator[_Found]:
    """Every test; with `check`, HumanEval's function of that name is one."""
    owner = scope if isinstance(scope, ast.ClassDef) else None
    for node in _statements(scope):
        if isinstance(node, _FUNCTIONS) and (node.name.startswith("test") or (check and node.name == "check")):
            yield prefix + node.name, node, owner
        elif isinstance(node, ast.ClassDef):
            yield from _tests_in(node, f"{prefix}{node.name}.")


def _statements(scope: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a module or a class, with those in its blocks and without those in its functions."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.expr)):
            yield from _statements(node)


def _is_helper(node: _Function, referenced: set[str]) -> bool:
    """Whether the program calls it itself, with arguments: it is not a test then, whatever it is called."""
    return node.name in referenced and _required(node) and not _in_class(node)


def _in_class(node: _Function) -> bool:
    return bool(node.args.args) and node.args.args[0].arg in ("self", "cls")


def _required(node: _Function) -> bool:
    arguments = node.args
    positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return positional > 0 or any(default is None for default in arguments.kw_defaults)


def _takes_candidate(node: _Function) -> bool:
    return node.name == "check" or [each.arg for each in node.args.args] == ["candidate"]


def _test(name: str, node: _Function, owner: ast.ClassDef | None, bindings: dict[str, bool]) -> TestFunction:
    decorators = [*node.decorator_list, *(owner.decorator_list if owner else [])]
    own = [each for each in decorators if any(word in ast.unparse(each) for word in _SKIPPING)]
    left_out = any(all(bindings.get(used, used in _KNOWN) for used in _names(each)) for each in own)
    checks = any(_must_be_reached(each) for each in ast.walk(node))
    generates = any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in _own_nodes(node))
    return TestFunction(name, checks, left_out, generates)


def _own_nodes(function: _Function) -> Iterator[ast.AST]:
    """What is in a function, and not in those it defines."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _names(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _bindings(tree: ast.Module) -> dict[str, bool]:
    """The names that a source binds at its top level, and whether they come from Python's own modules."""
    known: dict[str, bool] = {}
    for node in _statements(tree):
        match node:
            case ast.Import(names=aliases):
                known |= {each.asname or each.name.partition(".")[0]: _is_pythons(each.name) for each in aliases}
            case ast.ImportFrom(module=str(module), names=aliases):
                known |= {each.asname or each.name: _is_pythons(module) for each in aliases}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                known[name] = False
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.With():
                known |= dict.fromkeys(_stored(node), False)
    return known


def _stored(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))


def _is_pythons(module: str) -> bool:
    return module.partition(".")[0] in {*sys.stdlib_module_names, "pytest"}


def bound_names(tree: ast.Module) -> set[str]:
    """Every name that a source gives a meaning to for all of it: not those that only a function or a class has."""
    globals_of_functions = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    return globals_of_functions | _bound_by(_at_once(tree))


def _bound_by(nodes: Iterable[ast.AST]) -> set[str]:
    bound = set()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return bound


def _needs_pytest(tree: ast.Module, nodes: list[ast.AST]) -> bool:
    for node in nodes:
        if isinstance(node, ast.Import) and any(alias.name.startswith("pytest") for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pytest"):
            return True
        if isinstance(node, _FUNCTIONS) and node.name in _PYTESTS:
            return True
    plain = {"", "object", "ABC", "abc.ABC"}
    return any(
        isinstance(node, ast.ClassDef)
        and node.name.startswith("Test")
        and all(ast.unparse(base) in plain for base in node.bases)
        and any(True for _ in _tests_in(node, ""))
        for node in _statements(tree)
    )


def missing_pytest(tree: ast.Module) -> str | None:
    """A module of pytest that a source imports and that is not installed."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            if name.startswith("pytest") and not is_installed(name.partition(".")[0]):
                return name.partition(".")[0]
    return None


def is_installed(module: str) -> bool:
    """Whether there is such a module. Under a name that nothing has, tests find the code, which has no spec."""
    try:
        return find_spec(module) is not None
    except ValueError:
        return False


def uses_code(trees: Iterable[ast.Module], entry_point: str | None) -> bool:
    """Whether any of these sources turns to the code at all: by a name that nobody else gives a meaning to."""
    trees = list(trees)
    nodes = [node for tree in trees for node in ast.walk(tree)]
    if any(map(_loads_code, nodes)):
        return True
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    if entry_point is not None:
        tested = [node for node in nodes if isinstance(node, _FUNCTIONS) and _takes_what_is_tested(node)]
        parameters -= {each.arg for node in tested for each in node.args.args}
    own = _bound_by(nodes) - _bound_by(filter(_imports_code, nodes))
    own |= parameters | set(dir(builtins)) | {"pytest", "self", "cls"}
    own -= {entry_point} if entry_point and entry_point in dir(builtins) else set()
    return any(node.id not in own for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


def _takes_what_is_tested(node: _Function) -> bool:
    return node.name == "check" or node.name.startswith("test")


def _loads_code(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) in ("import_module", "__import__")


def _imports_code(node: ast.AST) -> bool:
    """Whether it gives names of the code a meaning; whether anything is done with them is another question."""
    match node:
        case ast.Import(names=aliases):
            names = [alias.name for alias in aliases]
        case ast.ImportFrom(module=module, level=level):
            names = [module or ""] if not level else [""]
        case _:
            return False
    return any(not _is_pythons(name) and not is_installed(name.partition(".")[0] or "solution") for name in names)


# ── what is never called ─────────────────────────────────────────────────────────────────────────────────────────────


def _referenced(nodes: list[ast.AST]) -> set[str]:
    """Every name, attribute, parameter and text in which a function could be meant."""
    found = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    found |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    found |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return found | {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _forgotten(tree: ast.Module, referenced: set[str], tests: set[int], entry_point: str | None) -> str | None:
    """The first function with checks that nothing can have called. One that needs arguments is only a helper."""
    for node in _definitions(tree):
        if node.name in referenced | _HOOKS or id(node) in tests or node.name.startswith(("__", "pytest_", "test")):
            continue
        if node.decorator_list or not any(_is_check(each) for each in ast.walk(node)):
            continue
        if isinstance(node, ast.ClassDef) or not _required_beside_self(node):
            return node.name
        if node.name == "check" and not entry_point:
            return node.name
    return None


def _definitions(tree: ast.Module) -> Iterator[_Function | ast.ClassDef]:
    for node in _statements(tree):
        if isinstance(node, _FUNCTIONS):
            yield node
        elif isinstance(node, ast.ClassDef):
            if not node.bases and not node.name.startswith("Test") and not any(_tests_in(node, "")):
                yield node
            yield from (each for each in _statements(node) if isinstance(each, _FUNCTIONS))


def _required_beside_self(node: _Function) -> bool:
    arguments = node.args
    needed = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults) - _in_class(node)
    return needed > 0 or any(default is None for default in arguments.kw_defaults)


# ── where it checks ──────────────────────────────────────────────────────────────────────────────────────────────────


def _is_check(node: ast.AST) -> bool:
    """Whether a statement checks something: an assert, or a call of `self.assert…`, `pytest.raises` and the like."""
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.Call):
        name = _last_name(node.func)
        return name.startswith("assert") or name in _CHECKING
    return False


def _must_be_reached(node: ast.AST) -> bool:
    """Whether a check is one that right code meets. `assert False` and `self.fail()` are for what must not happen."""
    match node:
        case ast.Assert(test=ast.Constant() | ast.UnaryOp(operand=ast.Constant())):
            return False
        case ast.Call(func=called) if _last_name(called) == "fail":
            return False
    return _is_check(node)


def _is_deliberate(node: ast.stmt) -> bool:
    """Whether a statement raises by itself, if it raises: `raise …`, or `1 / 0` without any name but Python's."""
    if isinstance(node, ast.Raise):
        return True
    return isinstance(node, ast.Expr) and all(hasattr(builtins, name) for name in _names(node))


def _leaves(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) in _LEAVING


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _at_once(tree: ast.Module) -> Iterator[ast.AST]:
    """Everything in a source that is not in a function or a class."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


class _Reporting(ast.NodeTransformer):
    """Makes a program report what is reached, and leave its names alone in `from … import *`."""

    def __init__(self, tests: dict[int, int]) -> None:
        """Of the numbers of tests."""
        self._tests = tests

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function that may be a test."""
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Treat an `async def` as a `def`: it is a function with checks in it."""
        return self._function(node)

    def _function(self, node: _Function) -> ast.AST:
        number = self._tests.get(id(node))
        self.generic_visit(node)
        if number is not None:
            first = node.body[0]
            documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            node.body.insert(int(documented), _report(number, first))
        return node

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        """A check by a statement."""
        self.generic_visit(node)
        return [_report(_CHECK, node), node]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A check by a call: `f(x)` becomes `(report(), f)[1](x)`, which reports before it is made."""
        checks = _is_check(node)
        self.generic_visit(node)
        if checks:
            pair = ast.Tuple([_report(_CHECK, node).value, node.func], ast.Load())
            node.func = ast.copy_location(ast.Subscript(pair, ast.Constant(1), ast.Load()), node)
        elif isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1 and not node.keywords:
            node.func = ast.copy_location(ast.Name(TYPE, ast.Load()), node.func)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """`from m import *` where `m` may be the code."""
        if node.level or node.names[0].name != "*":
            return node
        called = ast.Call(ast.Name(STAR, ast.Load()), [ast.Constant(node.module)], [])
        kept = ast.If(ast.UnaryOp(ast.Not(), called), [node], [])
        return ast.copy_location(kept, node)


def _imported(nodes: list[ast.AST]) -> set[str]:
    """What a program imports from Python's own modules, and these modules."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                found |= {alias.asname or alias.name.partition(".")[0] for alias in aliases if _is_given(alias.name)}
            case ast.ImportFrom(module=str(module), names=aliases) if _is_given(module):
                found |= {alias.asname or alias.name for alias in aliases}
    return found


def _is_given(module: str) -> bool:
    return _is_pythons(module) or is_installed(module.partition(".")[0])


def _report(number: int, near: ast.AST) -> ast.Expr:
    call = ast.Call(ast.Name(RAN, ast.Load()), [ast.Constant(number)], [])
    return ast.copy_location(ast.Expr(call), near)
