# SPDX-License-Identifier: Apache-2.0
"""What every test stands on: no credentials of the person at the keyboard, and one worker for the embedded model."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from reward_kit.redaction import forget_all

pytest_plugins = ["tests.dead_workers"]

# Compiled once, for this process and the hundreds that tests start: nearly all that these do is import the package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A slow machine is not a failure. The same examples everywhere and each time: what fails in CI fails at home, and what
# passes at home passes in CI. Others are tried by `make test-search`, which chooses the second profile.
_SLOW = [HealthCheck.too_slow]
settings.register_profile("fixed", deadline=None, derandomize=True, suppress_health_check=_SLOW)
settings.register_profile("search", deadline=None, database=None, print_blob=False, suppress_health_check=_SLOW)
settings.load_profile("fixed")

CREDENTIALS = ("FIREWORKS_API_KEY", "FIREWORKS_ACCOUNT_ID", "FIREWORKS_API_BASE", "OPENAI_API_KEY", "HF_TOKEN")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("local_model"):
            item.add_marker(pytest.mark.xdist_group("local_model"))


@pytest.fixture(scope="session", autouse=True)
def a_stranger_at_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty home directory and no keys, in this process and those it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        for name in CREDENTIALS:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True)
def nothing_known_of_others() -> Iterator[None]:
    """A credential of one test is a plain word in the next."""
    forget_all()
    yield
    forget_all()


# ── what is skipped is said ──────────────────────────────────────────────────────────────────────────────────────────

PROMISED = tuple(filter(None, os.environ.get("REWARD_KIT_PROMISED", "").split(",")))
"""What a job of CI promises to have. A test that is skipped for want of it fails the job."""


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A table of what was skipped: how many tests, and why."""
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    if not reasons:
        return
    terminalreporter.section("skipped, and why")
    for reason, tests in reasons.most_common():
        terminalreporter.write_line(f"{tests:5}  {reason}")
    for reason in filter(_is_promised, reasons):
        terminalreporter.write_line(f"FAILED: this job promises to have {', '.join(PROMISED)}, and skipped: {reason}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where something was skipped that this job promises to run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.exitstatus:
        return
    if any(_is_promised(_reason(report)) for report in reporter.stats.get("skipped", [])):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(text.removeprefix("Skipped: ").split())[:200]


def _is_promised(reason: str) -> bool:
    return any(reason.startswith((f"{name} ", f"needs {name}", f"program `{name}`")) for name in PROMISED)
