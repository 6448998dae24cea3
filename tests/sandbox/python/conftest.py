# SPDX-License-Identifier: Apache-2.0
"""One zygote for all tests of a module, which each of them must leave as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from reward_kit.sandbox.python.pool import PythonZygote
from tests.sandbox.python.zygotes import descendants, working_zygotes


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def only_zygotes() -> AsyncIterator[PythonZygote]:
    """One zygote for all tests of a module."""
    async with working_zygotes() as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def zygotes(only_zygotes: PythonZygote) -> AsyncIterator[PythonZygote]:
    """The same; after each test the next run works, in the same zygote, and nothing of the last is left."""
    assert (await only_zygotes.run("pass")).ok
    before = descendants()
    yield only_zygotes
    assert (await only_zygotes.run("import os; print(os.listdir('/tmp'), os.getpid())")).stdout == "[] 2\n"
    assert descendants() == before
