"""These tests count what is left of their own, so what others keep running in this process is ended, or left out."""

from __future__ import annotations

import pytest

from reward_kit.rewards._support.code.host import close_host
from tests.sandbox import zygote_parts


@pytest.fixture(autouse=True)
def only_what_the_test_starts() -> None:
    close_host()
    zygote_parts.BEFORE.clear()
    zygote_parts.BEFORE.update(zygote_parts.family())
