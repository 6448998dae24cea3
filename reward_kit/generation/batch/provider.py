# SPDX-License-Identifier: Apache-2.0
"""What every provider of batches must do, and the values that go between it and a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

__all__ = ["BatchEnd", "BatchLabel", "BatchLimits", "BatchProvider", "BatchState", "Found", "LineShape", "Sought"]

BatchEnd = Literal["completed", "expired", "cancelled", "failed", "declined"]
"""All lines were dealt with; the time was up; somebody cancelled it; the file or the model was refused; the provider
has no room for it now, and may have later. What was answered before counts in each case."""


class BatchLimits(NamedTuple):
    """What one file of requests may hold."""

    requests: int
    size: int
    """Bytes."""


class LineShape(NamedTuple):
    """How a line of requests is written around the body."""

    before_body: bytes
    """What stands between the custom id and the body."""
    names_model: bool
    """Whether each body names the model; else the batch does."""


class BatchLabel(NamedTuple):
    """Says whose a batch is, so that one whose id was never noted is found again."""

    run: str
    """The run directory's own id."""
    part: str
    """The file of requests: its digest, and which submission of it this is."""


class BatchState(NamedTuple):
    """What a provider says of a batch."""

    id: str
    end: BatchEnd | None = None
    """None while it is under way."""
    total: int = 0
    answered: int = 0
    failed: int = 0
    words: str = ""
    """The provider's own: its status, and why it failed."""
    outputs: tuple[str, ...] = ()
    """What to fetch, by the provider's names."""
    created: float = 0.0
    """When it was made, by the provider's clock: the first of two is the one that counts."""


class Sought(NamedTuple):
    """A batch that was, or may have been, submitted, and whose id was never heard."""

    label: BatchLabel
    files: tuple[str, ...]
    """The provider's names of its file of requests, which may have been handed over several times."""
    requests: int
    since: float
    """When it was about to be submitted, by the clock of whoever did."""
    known: frozenset[str]
    """Ids of batches that are known to be something else."""
    other_files: frozenset[str] = frozenset()
    """The provider's names of the files of this run's other batches."""


class Found(NamedTuple):
    """What a provider's books say of a batch that is sought."""

    ours: tuple[BatchState, ...] = ()
    """Those that carry the label, or answer the file: the oldest first. More than one where a request came late."""
    perhaps: tuple[BatchState, ...] = ()
    """Those of that time and size of which the provider does not say whose they are."""
    gap: str | None = None
    """Why the books do not tell all, where that is so."""


class BatchProvider(Protocol):
    """One provider's batches, for one model."""

    makes_each_once: bool
    """Whether a batch has an id of ours, so that the provider itself refuses to make it twice."""

    async def upload(self, path: Path, label: BatchLabel, requests: int) -> str:
        """Hand a file of requests over; its name there. May be done again: what is not submitted costs nothing."""
        ...

    async def find(self, sought: Sought) -> Found:
        """Look for a batch in the provider's books."""
        ...

    async def submit(self, file: str, label: BatchLabel) -> BatchState:
        """Have the file answered. Sent once: after a `ProviderError` nobody knows whether it was taken."""
        ...

    async def state(self, batch: str) -> BatchState:
        """How a batch is doing."""
        ...

    async def fetch(self, state: BatchState, output: str, write: Callable[[bytes], None]) -> None:
        """Read one of the outputs, piece by piece. Raises `ProviderError` where it was cut off."""
        ...

    async def cancel(self, batch: str) -> None:
        """Ask for an end. What was answered by then is paid, and can be fetched."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
