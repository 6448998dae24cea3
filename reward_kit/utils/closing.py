# SPDX-License-Identifier: Apache-2.0
"""What is closed at the end of an `async with`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

__all__ = ["ClosedAfterwards"]


class ClosedAfterwards(ABC):
    """A base for what has a `close`: `async with` gives it, and closes it however the block ends."""

    @abstractmethod
    async def close(self) -> None:
        """End everything in it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
