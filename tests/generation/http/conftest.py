# SPDX-License-Identifier: Apache-2.0
"""Both ways to exchange bytes with an endpoint: what holds for one holds for the other."""

from __future__ import annotations

import pytest

from reward_kit.http.transport import Transport


@pytest.fixture(params=["raw", "session"])
def each_exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients exchange bytes by hand, and in a second run of the test by sessions."""
    if request.param == "session":
        monkeypatch.setattr(Transport, "_raw_exchange", lambda _: None)
