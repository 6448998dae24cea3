"""These tests count what is left of their own, so what others keep running in this process is ended, or left out."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from reward_kit.sandbox.own import close_hosts
from reward_kit.sandbox.python.pool import PythonZygote
from tests.sandbox import zygote_parts


@pytest.fixture(autouse=True)
def only_what_the_test_starts() -> None:
    close_hosts()
    zygote_parts.BEFORE.clear()
    zygote_parts.BEFORE.update(zygote_parts.family())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def only_zygotes() -> AsyncIterator[PythonZygote]:
    """One zygote for all tests of a module."""
    async with zygote_parts.working_zygotes() as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def zygotes(only_zygotes: PythonZygote) -> AsyncIterator[PythonZygote]:
    """The same; after each test the next run works, in the same zygote, and nothing of the last is left."""
    assert (await only_zygotes.run("pass")).ok
    before = zygote_parts.descendants()
    yield only_zygotes
    assert (await only_zygotes.run("import os; print(os.listdir('/tmp'), os.getpid())")).stdout == "[] 2\n"
    assert zygote_parts.descendants() == before
