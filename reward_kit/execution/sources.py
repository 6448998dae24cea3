"""Where a run's work comes from: samples to be answered, answers that came with the data, or rollouts on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from reward_kit.config_models import DatasetConfig, PipelineConfig
from reward_kit.datasets import (
    RolloutStream,
    SampleStream,
    load_rollouts,
    load_samples,
    rollouts_from_rows,
    samples_from_rows,
)
from reward_kit.errors import ConfigError
from reward_kit.execution.owed import Ledger, Work
from reward_kit.execution.result import Phase
from reward_kit.models import Sample

__all__ = ["Source", "open_source"]


class Source(Protocol):
    """Somewhere work comes from."""

    needs_model: bool
    """Whether answers still have to be generated."""
    blocking: bool
    """Whether reading it may wait for the network."""
    fingerprint: str | None
    """Identifies the source's content, where that is cheap to know."""

    @property
    def skipped(self) -> int:
        """Rows that could not be read and were skipped, as asked."""
        ...

    def expected(self, ledger: Ledger) -> int | None:
        """How many rollouts there will be in the end, where that is cheap to know."""
        ...

    def works(self, ledger: Ledger) -> Iterator[Work]:
        """What is owed, sample by sample."""
        ...


class _Samples:
    """Samples that a model answers n times."""

    needs_model = True

    def __init__(self, stream: SampleStream, n: int, *, blocking: bool) -> None:
        self._stream, self._n, self.blocking = stream, n, blocking
        self.fingerprint = stream.fingerprint()

    @property
    def skipped(self) -> int:
        return self._stream.skipped

    def expected(self, ledger: Ledger) -> int | None:
        rows = self._stream.size_hint()
        return None if rows is None else rows * self._n

    def works(self, ledger: Ledger) -> Iterator[Work]:
        return ledger.from_samples(self._stream, self._n)


class _Answers:
    """Answers that came with the data."""

    needs_model = False

    def __init__(self, stream: RolloutStream, *, blocking: bool) -> None:
        self._stream, self.blocking = stream, blocking
        self.fingerprint = stream.fingerprint()

    @property
    def skipped(self) -> int:
        return self._stream.skipped

    def expected(self, ledger: Ledger) -> int | None:
        return self._stream.size_hint()

    def works(self, ledger: Ledger) -> Iterator[Work]:
        return ledger.from_answers(self._stream)


class _Rollouts:
    """Rollouts that an earlier phase left on disk."""

    needs_model = False
    blocking = False
    fingerprint = None
    skipped = 0

    def expected(self, ledger: Ledger) -> int | None:
        return len(ledger.rollouts)

    def works(self, ledger: Ledger) -> Iterator[Work]:
        return ledger.from_rollouts()


def open_source(
    config: PipelineConfig, phase: Phase, samples: Iterable[Sample | Mapping[str, Any]] | None
) -> Source:
    """The source a run's config and phase call for."""
    if phase == "execution":
        return _Rollouts()
    n, bounds = config.generation.n, {"system_prompt": config.system_prompt, "limit": config.sample_limit}
    if samples is not None:
        if config.generation.enabled:
            return _Samples(samples_from_rows(samples, **bounds), n, blocking=False)
        return _Answers(rollouts_from_rows(samples, **bounds), blocking=False)
    if config.dataset is None:
        raise ConfigError("No dataset is configured. Set dataset.path_or_name to a file or a Hugging Face name.")
    blocking = _is_remote(config.dataset)
    if config.generation.enabled:
        return _Samples(load_samples(config.dataset, **bounds), n, blocking=blocking)
    return _Answers(load_rollouts(config.dataset, **bounds), blocking=blocking)


def _is_remote(dataset: DatasetConfig) -> bool:
    if dataset.base_dataset is not None:
        return _is_remote(dataset.base_dataset)
    return dataset.source_type == "huggingface"
