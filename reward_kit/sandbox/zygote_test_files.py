"""Tests that a framework finds and runs: unittest's classes, and files for pytest.

Standard library only, and pytest where it is installed for the interpreter and a file asks for it.
"""

from __future__ import annotations

import os
import unittest
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reward_kit.sandbox.zygote_remote import UnjudgeableError

__all__ = ["with_pytest", "with_unittest"]

_SHOWN = 500
_PYTEST = ("-q", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull, "--rootdir", ".")


def with_unittest(names: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Run every test of the test cases among these."""
    for kind in list(names.values()):
        if isinstance(kind, type) and issubclass(kind, unittest.TestCase):
            yield from _each(unittest.defaultTestLoader.loadTestsFromTestCase(kind))


def _each(suite: unittest.TestSuite) -> Iterator[tuple[str, str | None]]:
    for test in suite:
        result = unittest.TestResult()
        suite.__class__([test]).run(result)
        problems = [text for _, text in (*result.failures, *result.errors)]
        if result.unexpectedSuccesses:
            problems.append("it was expected to fail")
        if result.testsRun and not result.skipped:
            yield str(test), _last_line(problems[0]) if problems else None


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2][:_SHOWN]


class _Collector:
    """What pytest says of each test."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str | None]] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep what was wrong, or that a test ran and nothing was."""
        if report.failed:
            self.found.append((report.nodeid, _last_line(report.longreprtext)))
        elif report.when == "call" and report.passed:
            self.found.append((report.nodeid, None))

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot even be read is a test that fails."""
        if report.failed:
            self.found.append((str(report.nodeid), _last_line(report.longreprtext)))


def _is_there(name: str) -> bool:
    """Whether there is such a module. Under a name that nothing has, tests find the code, which has no spec."""
    try:
        return find_spec(name) is not None
    except ValueError:
        return False


def with_pytest(source: str, name: str) -> list[tuple[str, str | None]]:
    """Run a file by pytest."""
    if not _is_there("pytest"):
        raise UnjudgeableError("the tests need pytest, which this interpreter does not have. Install it there.")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    Path(name).write_text(source, encoding="utf-8")
    collector = _Collector()
    status = pytest.main([*_PYTEST, name], plugins=[collector])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and all(e is None for _, e in collector.found):
        raise UnjudgeableError(f"pytest could not run the tests: exit code {int(status)}")
    return collector.found
