# SPDX-License-Identifier: Apache-2.0
"""What runs in the process of a test program: the tests, with the code they test reachable only by `Remote`s.

    the setup's names ─▶ the names of the code that the tests use ─▶ run every test ─▶ what each said

A test is a piece of source: asserts, `check(candidate)`, functions called `test…`, unittest or pytest classes. Which
tests it defines is read from it first; each of them must then have run and passed. Nothing of the code under test is
ever loaded here. Standard library only, and pytest where a test file asks for it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import inspect
import json
import re
import unittest
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from reward_kit.sandbox.python.inside.frameworks import (
    EndOfProgram,
    FrameworkReport,
    Watcher,
    prepare_pytest,
    run_coroutine,
    run_pytest,
    run_unittest,
    without_main,
)
from reward_kit.sandbox.python.inside.names import (
    MODULES,
    Names,
    entry_name,
    import_star,
    known_names,
    obtained,
    offer_modules,
    tested_object,
)
from reward_kit.sandbox.python.inside.plan import (
    RAN,
    STAR,
    TYPE,
    ProgramPlan,
    Ran,
    bound_names,
    class_sources,
    missing_pytest,
    read_plan,
    uses_code,
)
from reward_kit.sandbox.python.inside.program import new_module
from reward_kit.sandbox.python.inside.remote import CodesExit, Link, Remote, UnjudgeableError, type_of
from reward_kit.sandbox.python.messages import CHANNEL, WORK, Frames, described
from reward_kit.sandbox.python.plain import carry_arrays

__all__ = ["CODE", "judge_program", "judged"]

CODE = 4
"""The descriptor on which the code under test is asked."""
_GIVEN = {*dir(builtins), *MODULES}
"""Names that are not for the code to define."""
_FILE = "test_solution.py"
_SHOWN = 500

TestVerdict = tuple[str, str | None]
"""The name of a test, and what was wrong; None where nothing was."""


def judge_program(tests: bytes, setup: bytes, settings: Mapping[str, Any]) -> int:
    """Run every test of a JSON list against the code, and tell what each said."""
    frames = Frames(CHANNEL)
    nonce = frames.nonce()
    frames.send(nonce, judged(json.loads(tests), setup.decode(), settings))
    return 0


def judged(tests: list[str], setup: str, settings: Mapping[str, Any]) -> bytes:
    """What each test says of the code that answers on the descriptor `CODE`: "L" and JSON; "U" and why it cannot."""
    carry_arrays()
    try:
        return b"L" + json.dumps(_verdicts(tests, setup, settings)).encode()
    except UnjudgeableError as error:
        return b"U" + str(error).encode(errors="replace")
    except BaseException as error:  # noqa: BLE001 - whatever becomes of this process, it gives an answer
        return b"B" + described(error)


def _verdicts(tests: list[str], setup: str, settings: Mapping[str, Any]) -> list[TestVerdict]:
    trees = [_parsed(test) for test in tests]
    prelude = _parsed(setup)
    _refuse_without_pytest([prelude, *trees])
    about_code = uses_code([prelude, *trees], settings["entry_point"])
    familiar = _mentioned([prelude, *trees]) - {entry_name(settings["entry_point"])}
    link = Link(CODE, familiar, class_sources([prelude, *trees]))
    try:
        link.ask("load")
        names = known_names(link.ask("names"))
    except BaseException as error:  # noqa: BLE001 - whatever the code raises as it is loaded
        return [("loading", f"while the code was loaded: {_in_a_line(error)}")]
    scene = _Scene(link, names, settings)
    if problem := scene.run_setup(prelude):
        return [("loading", f"while the tests were set up: {problem}")]
    found: list[TestVerdict] = []
    for number, (source, tree) in enumerate(zip(tests, trees, strict=True)):
        found += scene.run(source, tree, f"test {number + 1}")
        if settings["stop_early"] and any(error is not None for _, error in found):
            return found
    if not about_code and not link.statement.called and all(error is None for _, error in found):
        raise UnjudgeableError("nothing in them uses the code. Call what it defines.")
    if found and not link.gone and (doubt := link.equal_to_all()):
        found.append(("equality", doubt))
    if not found:
        raise UnjudgeableError("nothing is checked in them. Give tests with asserts.")
    return found


def _refuse_without_pytest(trees: list[ast.Module]) -> None:
    """Tests that import what is not there, whatever the code is."""
    if missing := next(filter(None, map(missing_pytest, trees)), None):
        raise UnjudgeableError(f"the tests need {missing!r}, which this interpreter does not have. Install it there.")


def _parsed(test: str) -> ast.Module:
    try:
        return ast.parse(test)
    except (SyntaxError, ValueError) as error:
        raise UnjudgeableError(f"the test is not Python: {error}") from None


def _mentioned(trees: list[ast.Module]) -> set[str]:
    """Every name and attribute that the tests use, also in examples that they hold as text."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    examples = {word for text in texts if ">>> " in text for word in re.findall(r"[^\W\d]\w*", text)}
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    return names | imported | examples | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


class _Scene:
    """Where tests run: the names they find, and the code behind them."""

    def __init__(self, link: Link, names: Names, settings: Mapping[str, Any]) -> None:
        self._link = link
        self._names = names
        self._entry_point: str | None = settings["entry_point"]
        self._stop_early: bool = settings["stop_early"]
        offer_modules(link, names, settings["modules"])
        self._home = new_module("__main__", f"{WORK}/{_FILE}")
        without_main(unittest)
        for name, kind in names.items():
            if kind[:1] == ["exception"]:
                obtained(link, name, kind)

    def run_setup(self, setup: ast.Module) -> str | None:
        """Run what comes before the tests; what was wrong with the code, where the setup uses it."""
        used = self._link.used
        wanted = _mentioned([setup]) - bound_names(setup)
        self._report_to(Ran(), self._home, wanted)
        program = read_plan(setup, None).program
        error = self._attempt(lambda: self._provide(setup, wanted)) or self._attempt(
            lambda: exec(compile(program, "<setup>", "exec", dont_inherit=True), vars(self._home))
        )
        missing = error is not None and any(f"NameError: name {name!r} " in error for name in wanted - _GIVEN)
        if error is not None and self._link.used == used and not missing:
            raise UnjudgeableError(f"the setup of the tests failed: {error}")
        return error or self._link.gone

    def run(self, source: str, tree: ast.Module, name: str) -> list[TestVerdict]:
        """Run one piece of source; a verdict for each test in it."""
        wanted = _mentioned([tree]) - bound_names(tree)
        if error := self._attempt(lambda: self._provide(tree, wanted)):
            return [(name, error)]
        plan = read_plan(tree, self._entry_point)
        _refuse(plan)
        tally = _Tally(self._link, plan)
        self._link.raised_on_purpose = lambda error: _line_in_test(error) in plan.deliberate
        main = prepare_pytest() if plan.needs_pytest else None
        place = self._for_pytest() if main else self._home
        self._report_to(tally.ran, place, wanted)
        before = dict(vars(place))
        watcher = Watcher(tally.begin, tally.end)
        tally.begin()
        program = compile(plan.program, str(place.__file__), "exec", dont_inherit=True)
        error = self._attempt(lambda: exec(program, vars(place)))
        tally.loaded(name, error)
        if error is None and main:
            run_pytest(main, place, source, watcher, stop_early=self._stop_early)
        elif error is None:
            new = {key: value for key, value in vars(place).items() if before.get(key, self) is not value}
            self._run_functions(new, plan, watcher)
            tally.noted(name, self._attempt(lambda: run_unittest(new, watcher, stop_early=self._stop_early)))
        return tally.verdicts(stopped=self._stop_early)

    def _for_pytest(self) -> ModuleType:
        """A module that pytest will find under the name of a file, with what the setup defined."""
        place = new_module(_FILE.removesuffix(".py"), f"{WORK}/{_FILE}")
        defined = {key: value for key, value in vars(self._home).items() if not key.lower().startswith(("test", "__"))}
        vars(place).update(defined)
        return place

    def _report_to(self, ran: Ran, place: ModuleType, wanted: set[str]) -> None:
        """Let a program find what it reports to."""
        vars(builtins)[RAN] = ran
        vars(builtins)[TYPE] = type_of
        vars(builtins).update(self._link.statement.functions())
        vars(builtins)[STAR] = lambda module: import_star(module, vars(place), wanted)

    def _run_functions(self, new: Mapping[str, Any], plan: ProgramPlan, watcher: Watcher) -> None:
        """The tests that the source defined as functions, or as anything that is called like one."""
        for name, value in list(new.items()):
            is_check = name == "check" and self._entry_point is not None
            if (name in plan.helpers and not is_check) or not (is_check or name.startswith("test")):
                continue
            if callable(value) and not isinstance(value, (type, Remote)):
                watcher.begin()
                watcher.end(FrameworkReport(name, name, self._attempt(lambda value=value: self._call(value))))

    def _call(self, test: Callable[..., Any]) -> None:
        """Call a test; one that takes an argument is given what it tests."""
        try:
            wants = [each for each in inspect.signature(test).parameters.values() if each.default is each.empty]
        except (TypeError, ValueError):
            wants = []
        given = []
        if self._entry_point and any(each.kind is each.POSITIONAL_OR_KEYWORD for each in wants):
            given = [tested_object(self._link, self._names, self._entry_point)]
        result = test(*given)
        if inspect.iscoroutine(result):
            run_coroutine(result)

    def _attempt(self, test: Any) -> str | None:
        """What was wrong with one test."""
        try:
            test()
        except EndOfProgram:
            return None
        except SystemExit as leaving:
            if leaving.code or isinstance(leaving, CodesExit):
                return _in_a_line(leaving)
        except BaseException as error:
            if isinstance(error, UnjudgeableError):
                raise
            if type(error).__name__ in ("Skipped", "SkipTest") and not self._link.swayed:
                raise UnjudgeableError(f"the tests were skipped: {error}") from None
            return _in_a_line(error)
        return None

    def _provide(self, tree: ast.Module, wanted: set[str]) -> None:
        """Let the test find what it uses and does not define: never a built-in, nor what the setup has defined."""
        place = vars(self._home)
        entry = entry_name(self._entry_point)
        for name in wanted:
            if name == entry and self._entry_point and (name not in self._names or name != self._entry_point):
                place[name] = tested_object(self._link, self._names, self._entry_point)
            elif name not in self._names or (hasattr(builtins, name) and name != entry):
                continue
            elif name in MODULES and name not in _called(tree):
                with contextlib.suppress(ImportError):  # a module that the test forgot to import, and nobody's own
                    place[name] = importlib.import_module(MODULES[name])
            elif name == entry or name not in place:
                place[name] = obtained(self._link, name, self._names[name])


def _refuse(plan: ProgramPlan) -> None:
    """A test program of which a part can never run judges nothing."""
    if plan.forgotten:
        raise UnjudgeableError(f"nothing calls {plan.forgotten!r}, in which something is checked. Call it")
    if lazy := next((test.name for test in plan.tests.values() if test.generates), None):
        raise UnjudgeableError(f"{lazy!r} is a generator, which is never run. Take the 'yield' out of it")


class _Tally:
    """Which tests of a source were entered, what each reached, and what is to be said of it."""

    def __init__(self, link: Link, plan: ProgramPlan) -> None:
        self.ran = Ran()
        self._link = link
        self._plan = plan
        self._found: list[TestVerdict] = []
        self._entered: set[int] = set()
        self._swayed = link.swayed
        self._called = link.statement.called
        self._swayed_at_first = False
        self._failed_functions: set[str] = set()
        self._broken: str | None = None

    def begin(self) -> None:
        """Note that a test begins: what is reached from now on belongs to it."""
        self._entered |= self.ran.entered
        self.ran.entered = set()
        self.ran.checks = 0
        self._swayed, self._called = self._link.swayed, self._link.statement.called

    def loaded(self, name: str, error: str | None) -> None:
        """The source was run; what it checked by itself is a test too."""
        self._swayed_at_first = self._link.swayed > 0
        fault = self._fault()
        problem = error or fault
        checked = self.ran.checks > 0
        self._at_once = checked or (self._plan.can_object and self._link.statement.called > self._called)
        if problem is not None or checked:
            self._found.append((name, problem))
        elif self._plan.checks_at_once and not self._plan.needs_pytest:
            self._unsaid(name, "none of its checks was reached")
        self._name = name
        self._ends_here = error is not None

    def noted(self, name: str, problem: str | None) -> None:
        """Something else went wrong, or nothing."""
        if problem is not None:
            self._found.append((name, problem))

    def end(self, report: FrameworkReport) -> None:
        """Note that a test has ended, and decide whether it counts as passed."""
        self._judge(report)
        self._swayed = self._link.swayed

    def _judge(self, report: FrameworkReport) -> None:
        fault = self._fault()
        problem = report.problem or fault
        mine = self._plan.numbers(report.function)
        if problem is None and report.skipped is not None:
            if mine and all(self._plan.tests[number].left_out for number in mine):
                self._entered |= mine
                return
            self._entered |= mine
            self._unsaid(report.name, f"was not run: {report.skipped}")
            return
        if problem is None and mine and not mine & self.ran.entered and self._link.swayed > self._swayed:
            problem = "its body was not reached"
        if problem is None and not self.ran.checks and self._has_checks(self.ran.entered):
            self._unsaid(report.name, "none of its checks was reached")
            return
        if problem is not None:
            self._failed_functions.add(report.function)
        self._found.append((report.name, problem))

    def verdicts(self, *, stopped: bool) -> list[TestVerdict]:
        """All of them, and of those that the source defines and nobody ran."""
        self._entered |= self.ran.entered
        failed = any(error is not None for _, error in self._found)
        if not self._ends_here and not (stopped and failed):
            for number, test in self._plan.tests.items():
                if number not in self._entered and not test.left_out and not self._is_known(test.name):
                    self._unsaid(test.name, "is defined and was never run", at_first=True)
        if self._broken:
            raise UnjudgeableError(self._broken)
        if not self._found and self._at_once:
            self._found.append((self._name, None))
        return self._found

    def _is_known(self, name: str) -> bool:
        return name.rpartition(".")[2] in self._failed_functions

    def _has_checks(self, numbers: set[int]) -> bool:
        return any(self._plan.tests[number].checks for number in numbers)

    def _unsaid(self, name: str, what: str, *, at_first: bool = False) -> None:
        """A test that did not say anything: by the code's doing it failed, else the tests are broken."""
        if self._swayed_at_first or (not at_first and self._link.swayed > self._swayed):
            self._found.append((name, what))
        else:
            self._broken = self._broken or f"{name}: {what}"

    def _fault(self) -> str | None:
        """What is wrong with the code, whatever the test caught."""
        if self._link.unjudgeable:
            self._broken = self._broken or self._link.unjudgeable
        contradiction, self._link.contradiction = self._link.contradiction, None
        return self._link.gone or contradiction


def _called(tree: ast.Module) -> set[str]:
    """The names that a source calls."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {function.id for function in calls if isinstance(function, ast.Name)}


def _line_in_test(error: BaseException) -> int | None:
    """The line of the test on which an exception was raised; None where that was elsewhere."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_lineno if trace is not None and trace.tb_frame.f_code.co_filename.endswith(_FILE) else None


def _in_a_line(error: BaseException) -> str:
    """An exception in one line, with the line of the test that it passed through last."""
    text = described(error).decode(errors="replace")
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(_FILE):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"line {line}: {text}"[:_SHOWN] if line else text[:_SHOWN]
