"""What every test stands on: no credentials of the person at the keyboard, and one worker for the embedded model."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from reward_kit.redaction import forget_all

# A slow machine is not a failure, and what fails in CI must fail again at home.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

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
