# SPDX-License-Identifier: Apache-2.0
"""The viewer's page in a real browser, over runs that the product made. Run by `make test-browser`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.large import make_large
from tests.browser.look import Look, chromium
from tests.browser.runs import make_hostile, make_samples
from tests.browser.serve import Served, serve

if os.environ.get("REWARD_KIT_TEST_BROWSER") != "1":
    collect_ignore_glob = ["test_*.py"]

PAGE = Path(__file__).resolve().parents[2] / "reward_kit" / "viewer" / "static" / "index.html"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A loaded machine takes its time; what the browser's driver leaves open is not ours to mend."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))
            item.add_marker(pytest.mark.timeout(180))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium of the system."""
    if not PAGE.is_file():
        pytest.skip("the viewer's page has not been built (make web)")
    program = chromium()
    if program is None:
        pytest.skip(
            "there is no chromium, chromium-browser or google-chrome here (scripts/system-packages.sh chromium)"
        )
    with sync_playwright() as driver:
        # Without --no-sandbox it does not start as root, which containers often are.
        started = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every kind."""
    return make_samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="session")
def served(samples: Path) -> Iterator[Served]:
    """A server over the sample runs."""
    # Where the runs were made: their configs name rewards by paths from there.
    with serve(samples, "--allow-run", "--reviewer", "Ada", where=samples / ".made_of") as server:
        yield server


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over two runs in which every text tries to be more than text."""
    with serve(make_hostile(tmp_path_factory.mktemp("hostile"))) as server:
        yield server


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over a million records."""
    with serve(make_large(tmp_path_factory.mktemp("large"))) as server:
        yield server


@pytest.fixture
def look(browser: Browser, served: Served) -> Iterator[Look]:
    """A window on the sample runs. In the end, nothing has gone wrong in it that a test did not look at."""
    with Look.open(browser, served) as window:
        yield window
        window.assert_clean()
