# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator

import pytest

from reward_kit.deploy.fireworks import polling
from reward_kit.deploy.fireworks.api import FireworksAPI
from reward_kit.http.retry import Timing
from tests.deploy.fireworks.fake import ACCOUNT, KEY, FakeFireworks, fake_fireworks


@pytest.fixture
def fireworks(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeFireworks]:
    """The fake service, with an environment that leads everything there."""
    with fake_fireworks() as fake:
        monkeypatch.setenv("FIREWORKS_API_KEY", KEY)
        monkeypatch.setenv("FIREWORKS_API_BASE", fake.url)
        monkeypatch.delenv("FIREWORKS_ACCOUNT_ID", raising=False)
        monkeypatch.setattr(polling, "_FIRST_PAUSE", 0.01)
        yield fake


@pytest.fixture
def api(fireworks: FakeFireworks) -> FireworksAPI:
    """A client that waits for nothing."""

    async def at_once(_: float) -> None:
        return

    return FireworksAPI(KEY, ACCOUNT, fireworks.url, timing=Timing(sleep=at_once))
