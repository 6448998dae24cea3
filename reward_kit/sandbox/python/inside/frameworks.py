# SPDX-License-Identifier: Apache-2.0
"""Tests that a framework finds and runs: unittest's classes, and files for pytest.

    what the framework collects ─▶ run by it ─▶ a `FrameworkReport` for each, also for those that it never came to

Standard library only, and pytest where it is installed for the interpreter and a file asks for it.
"""

from __future__ import annotations

import inspect
import os
import sys
import unittest
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from reward_kit.sandbox.python.inside.plan import is_installed
from reward_kit.sandbox.python.inside.remote import UnjudgeableError

__all__ = [
    "EndOfProgram",
    "FrameworkReport",
    "Watcher",
    "prepare_pytest",
    "run_coroutine",
    "run_pytest",
    "run_unittest",
    "without_main",
]

_SHOWN = 500
_PYTEST = ("-q", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull, "--rootdir", ".", "--assert=plain")


class FrameworkReport(NamedTuple):
    """What a framework said of one test."""

    name: str
    function: str
    """The name of the function or method."""
    problem: str | None = None
    skipped: str | None = None
    """Why it was not run, or was allowed to fail."""


class Watcher(NamedTuple):
    """Who is told of each test, so that it can look at what happened during it."""

    begin: Callable[[], None]
    end: Callable[[FrameworkReport], None]


class EndOfProgram(BaseException):
    """The program has handed over to its framework, which would run the tests and leave."""


def run_coroutine(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run a test that is an `async def` to its end."""
    import asyncio  # not before: every fork of the zygote would pay for it

    asyncio.run(coroutine)


def without_main(module: Any) -> None:
    """Have `unittest.main()` or `pytest.main()` only end the program: the tests are run from here."""

    def main(*_: Any, exit: bool = True, **__: Any) -> Any:
        if exit:
            raise EndOfProgram
        return SimpleNamespace(result=unittest.TestResult())

    module.main = main


# ── unittest ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_unittest(names: Mapping[str, Any], watcher: Watcher, *, stop_early: bool) -> None:
    """Run every test of the test cases among these, with what is set up for their classes and their module."""
    loader = unittest.TestLoader()
    kinds = {kind: None for kind in names.values() if isinstance(kind, type) and issubclass(kind, unittest.TestCase)}
    suite = unittest.TestSuite(loader.loadTestsFromTestCase(kind) for kind in kinds)
    if more := names.get("load_tests"):
        known = {test.id() for test in _flat(suite)}
        made = list(_flat(more(loader, unittest.TestSuite(_flat(suite)), None)))
        suite.addTests(test for test in made if test.id() not in known)
    tests = list(_flat(suite))
    for test in tests:
        _await_coroutine(test)
    result = _Result(watcher, stop_early)
    suite.run(result)
    if stop_early and result.failed:
        return
    for test in tests:
        if test.id() not in result.reported:
            problem, skipped = result.of_class(test)
            watcher.end(FrameworkReport(str(test), _method(test), problem, skipped))


def _flat(suite: Iterable[Any]) -> Iterator[Any]:
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from _flat(each)
        else:
            yield each


def _method(test: Any) -> str:
    return str(getattr(test, "_testMethodName", ""))


def _await_coroutine(test: unittest.TestCase) -> None:
    """Have an `async` test of a plain class run, which unittest would only make a coroutine of."""
    function = getattr(test, _method(test), None)
    if inspect.iscoroutinefunction(function) and not isinstance(test, unittest.IsolatedAsyncioTestCase):
        setattr(test, _method(test), lambda: run_coroutine(function()))


class _Result(unittest.TestResult):
    """Makes a report of each test, and keeps what was said of classes and modules."""

    def __init__(self, watcher: Watcher, stop_early: bool) -> None:
        super().__init__()
        self.failfast = stop_early
        self.failed = False
        self.reported: set[str] = set()
        self._watcher = watcher
        self._problem: str | None = None
        self._skipped: str | None = None
        self._current: Any = None
        self._of_others: list[FrameworkReport] = []

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self._current, self._problem, self._skipped = test, None, None
        self._watcher.begin()

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        self.reported.add(test.id())
        self._current = None
        self.failed = self.failed or self._problem is not None
        self._watcher.end(FrameworkReport(str(test), _method(test), self._problem, self._skipped))

    def of_class(self, test: Any) -> tuple[str | None, str | None]:
        """Why a test was never started: its class or its module could not be set up, or was skipped."""
        for report in self._of_others:
            if report.skipped is not None:
                return None, report.skipped
        first = self._of_others[0].problem if self._of_others else None
        return f"was not run: {first or 'unittest left it out'}", None

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._note(test, self.errors[-1][1])

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._note(test, self.failures[-1][1])

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, f"{err[0].__name__}: {err[1]}")

    def addUnexpectedSuccess(self, test: Any) -> None:
        super().addUnexpectedSuccess(test)
        self._note(test, "it was expected to fail")

    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        if self._current is None:
            self._of_others.append(FrameworkReport(str(test), "", None, reason))
        self._skipped = reason

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._skipped = "it is expected to fail"

    def _note(self, test: Any, text: str) -> None:
        if self._current is None:  # what sets up, or clears up after, a class or a module
            self.failed = True
            report = FrameworkReport(str(test), "", _last_line(text))
            self._of_others.append(report)
            self._watcher.begin()
            self._watcher.end(report)
        self._problem = self._problem or _last_line(text)


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2][:_SHOWN] or "failed"


# ── pytest ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Plugin:
    """Makes a report of each test that pytest collects."""

    def __init__(self, watcher: Watcher) -> None:
        self.failed = False
        self._watcher = watcher
        self._waiting: dict[str, str] = {}
        self._problem: str | None = None
        self._skipped: str | None = None
        self._called = False

    def pytest_collection_finish(self, session: Any) -> None:
        """Remember every test, so that none can be missing in the end."""
        self._waiting = {item.nodeid: getattr(item, "originalname", None) or item.name for item in session.items}

    def pytest_collectreport(self, report: Any) -> None:
        """A file or class that cannot be collected is a test that fails, or that was skipped."""
        if report.failed:
            self._end(FrameworkReport(str(report.nodeid), "", _last_line(report.longreprtext)))
        elif report.skipped:
            self._end(FrameworkReport(str(report.nodeid), "", None, "pytest collects nothing from it"))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Called by pytest before each test: forget what was noted of the last one."""
        self._problem, self._skipped, self._called = None, None, False
        self._watcher.begin()

    def pytest_pyfunc_call(self, pyfuncitem: Any) -> bool | None:
        """Await a test that is a coroutine."""
        if not inspect.iscoroutinefunction(pyfuncitem.obj) or "pytest_asyncio" in sys.modules:
            return None
        wanted = pyfuncitem._fixtureinfo.argnames
        run_coroutine(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep what was wrong, or that a test ran and nothing was."""
        if report.failed and _lacks_fixture(report):
            self._skipped = "pytest has no such fixture"
        elif report.failed:
            self._problem = self._problem or _last_line(report.longreprtext)
        elif report.skipped or hasattr(report, "wasxfail"):
            self._skipped = getattr(report, "wasxfail", None) or "it was skipped"
        elif report.when == "call":
            self._called = True

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Called by pytest after each test: make its report."""
        if not self._called and self._problem is None and self._skipped is None:
            self._problem = "was not run"
        self._end(FrameworkReport(nodeid, self._waiting.pop(nodeid, ""), self._problem, self._skipped))

    def unfinished(self) -> None:
        """Report what was collected and never run."""
        for nodeid, function in self._waiting.items():
            self._watcher.begin()
            self._end(FrameworkReport(nodeid, function, "was not run"))

    def _end(self, report: FrameworkReport) -> None:
        self.failed = self.failed or report.problem is not None
        self._watcher.end(report)


def _lacks_fixture(report: Any) -> bool:
    """Whether a test has an argument that nothing gives it."""
    return (
        report.when == "setup" and "not found" in report.longreprtext and "available fixtures:" in report.longreprtext
    )


def prepare_pytest() -> Callable[..., Any]:
    """Its `main`, which is out of a test file's reach from now on."""
    if not is_installed("pytest"):
        raise UnjudgeableError("the tests need pytest, which this interpreter does not have. Install it there.")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    main: Callable[..., Any] = vars(pytest).setdefault("_reward_kit_main", pytest.main)
    without_main(pytest)
    return main


def run_pytest(
    main: Callable[..., Any], module: ModuleType, source: str, watcher: Watcher, *, stop_early: bool
) -> None:
    """Run a file by pytest. Its module is loaded already, and pytest takes it as it is."""
    path = Path(str(module.__file__))
    path.write_text(source, encoding="utf-8")
    plugin = _Plugin(watcher)
    wanted = [*_PYTEST, *(["-x"] if stop_early else [])]
    if "pytest_asyncio" in sys.modules and find_spec("pytest_asyncio") is not None:
        wanted += ["-p", "pytest_asyncio", "-o", "asyncio_mode=auto"]
    status = main([*wanted, path.name], plugins=[plugin])
    if not plugin.failed:
        plugin.unfinished()
    if int(status) not in (0, 1, 5) and not plugin.failed:
        raise UnjudgeableError(f"pytest could not run the tests: exit code {int(status)}")
