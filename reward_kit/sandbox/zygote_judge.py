"""What runs in the process of a test program: the tests, with the code they test reachable only by `Remote`s.

    the set-up's names ─▶ the names of the code that the tests use ─▶ run every test ─▶ what each said

A test is a piece of source: asserts, `check(candidate)`, functions called `test…`, unittest or pytest classes. Nothing
of the code under test is ever loaded here. Standard library only, and pytest where a test file asks for it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import json
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

from reward_kit.sandbox.zygote_frames import CHANNEL, Frames, described
from reward_kit.sandbox.zygote_names import (
    MODULES,
    Names,
    entry_name,
    known_names,
    obtained,
    offer_modules,
    tested_object,
)
from reward_kit.sandbox.zygote_program import new_module
from reward_kit.sandbox.zygote_remote import Link, UnjudgeableError
from reward_kit.sandbox.zygote_test_files import with_pytest, with_unittest
from reward_kit.sandbox.zygote_wire import WORK

__all__ = ["judge_program"]

_CODE = 4
"""The descriptor on which the code under test is asked."""
_FILE = "test_solution.py"
_SHOWN = 500

Verdict = tuple[str, str | None]
"""The name of a test, and what was wrong; None where nothing was."""


def judge_program(tests: bytes, setup: bytes, settings: Mapping[str, Any]) -> int:
    """Run every test of a JSON list against the code, and tell what each said."""
    frames = Frames(CHANNEL)
    nonce = frames.nonce()
    try:
        frames.send(nonce, b"L" + json.dumps(_verdicts(json.loads(tests), setup.decode(), settings)).encode())
    except UnjudgeableError as error:
        frames.send(nonce, b"U" + described(error))
    return 0


def _verdicts(tests: list[str], setup: str, settings: Mapping[str, Any]) -> list[Verdict]:
    trees = [_parsed(test) for test in tests]
    link = Link(_CODE, _mentioned(trees) - {entry_name(settings["entry_point"])})
    try:
        link.ask("load")
        names = known_names(link.ask("names")[0])
    except BaseException as error:  # noqa: BLE001 - whatever the code raises as it is loaded
        return [("loading", f"while the code was loaded: {_told(error)}")]
    scene = _Scene(link, names, settings)
    if problem := scene.set_up(setup):
        return [("loading", f"while the tests were set up: {problem}")]
    found: list[Verdict] = []
    for number, (source, tree) in enumerate(zip(tests, trees, strict=True)):
        for verdict in scene.run(source, tree, f"test {number + 1}"):
            found.append(verdict)
            if verdict[1] is not None and settings["stop_early"]:
                return found
    if not found:
        raise UnjudgeableError("there is no test in it")
    return found


def _parsed(test: str) -> ast.Module:
    try:
        return ast.parse(test)
    except (SyntaxError, ValueError) as error:
        raise UnjudgeableError(f"the test is not Python: {error}") from None


def _mentioned(trees: list[ast.Module]) -> set[str]:
    """Every name and attribute that the tests use."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    return names | imported | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


class _Scene:
    """Where tests run: the names they find, and the code behind them."""

    def __init__(self, link: Link, names: Names, settings: Mapping[str, Any]) -> None:
        self._link = link
        self._names = names
        self._entry_point: str | None = settings["entry_point"]
        offer_modules(link, names, settings["modules"])
        self._home = new_module("tests_of_solution", f"{WORK}/{_FILE}")
        for name, kind in names.items():
            if kind[:1] == ["exception"]:
                obtained(link, name, kind)

    def set_up(self, setup: str) -> str | None:
        """Run what comes before the tests; what was wrong with the code, where the set-up uses it."""
        used = self._link.used
        error = self._attempt(lambda: exec(compile(setup, "<set-up>", "exec", dont_inherit=True), vars(self._home)))
        if error is not None and self._link.used == used:
            raise UnjudgeableError(f"the set-up of the tests failed: {error}")
        return error

    def run(self, source: str, tree: ast.Module, name: str) -> Iterator[Verdict]:
        """Run one piece of source; a verdict for each test in it."""
        if error := self._attempt(lambda: self._provide(tree)):
            yield name, error
            return
        if _wants_pytest(tree):
            yield from with_pytest(source, _FILE)
            return
        before = dict(vars(self._home))
        error = self._attempt(lambda: exec(compile(tree, str(self._home.__file__), "exec"), vars(self._home)))
        new = {key: value for key, value in vars(self._home).items() if before.get(key, self) is not value}
        if error is not None:
            yield name, error
            return
        found = False
        for verdict in self._defined(new):
            found = True
            yield verdict
        if any(isinstance(node, ast.Assert) for node in _at_once(tree)) or (not found and _acts(tree)):
            yield name, None

    def _defined(self, new: Mapping[str, Any]) -> Iterator[Verdict]:
        """The tests that the source defined and did not run by itself."""
        check = new.get("check")
        if isinstance(check, FunctionType) and self._entry_point:
            entry_point = self._entry_point
            yield "check", self._attempt(lambda: check(tested_object(self._link, self._names, entry_point)))
        for key, value in list(new.items()):
            if key.startswith("test") and isinstance(value, FunctionType):
                yield key, self._attempt(value)
        yield from with_unittest(new)

    def _attempt(self, test: Any) -> str | None:
        """What was wrong with one test."""
        try:
            test()
        except BaseException as error:
            if isinstance(error, UnjudgeableError):
                raise
            return _told(error)
        return None

    def _provide(self, tree: ast.Module) -> None:
        """Let the test find what it uses and does not define: never a built-in, nor what the set-up has defined."""
        bound = _bound(tree)
        place = vars(self._home)
        for name in _mentioned([tree]) - bound:
            if hasattr(builtins, name):
                continue
            if name not in self._names:
                if self._entry_point and name == entry_name(self._entry_point):
                    place[name] = tested_object(self._link, self._names, self._entry_point)
            elif name in MODULES and name not in _called(tree):
                with contextlib.suppress(ImportError):  # a module that the test forgot to import, and nobody's own
                    place[name] = importlib.import_module(MODULES[name])
            elif name == self._entry_point or name not in place:
                place[name] = obtained(self._link, name, self._names[name])


def _called(tree: ast.Module) -> set[str]:
    """The names that a source calls."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {function.id for function in calls if isinstance(function, ast.Name)}


def _bound(tree: ast.Module) -> set[str]:
    """The names that a source gives a meaning to at its top level."""
    bound = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return bound


def _at_once(tree: ast.Module) -> Iterator[ast.AST]:
    """Everything in a source that is not in a function or a class."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _acts(tree: ast.Module) -> bool:
    """Whether a source calls anything: a test that raises where something is wrong."""
    return any(isinstance(node, ast.Call) for node in _at_once(tree))


def _wants_pytest(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name == "pytest" for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.module == "pytest":
            return True
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test") and _needs_arguments(node, tree):
            return True
    return any(isinstance(node, ast.ClassDef) and node.name.startswith("Test") and not node.bases for node in tree.body)


def _needs_arguments(node: ast.FunctionDef, tree: ast.Module) -> bool:
    return node in tree.body and len(node.args.args) > len(node.args.defaults)


def _told(error: BaseException) -> str:
    """An exception in one line, with the line of the test that it passed through last."""
    text = described(error).decode(errors="replace")
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(_FILE):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"line {line}: {text}"[:_SHOWN] if line else text[:_SHOWN]
