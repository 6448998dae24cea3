# SPDX-License-Identifier: Apache-2.0
"""These tests count what is left of their own, so what others keep running in this process is ended, or left out."""

from __future__ import annotations

import pytest

from reward_kit.sandbox.own import close_hosts
from tests.sandbox.python import zygotes


@pytest.fixture(autouse=True)
def only_what_the_test_starts() -> None:
    close_hosts()
    zygotes.BEFORE.clear()
    zygotes.BEFORE.update(zygotes.family())
