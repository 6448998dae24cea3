"""Where a run's work comes from: samples to be answered, answers that came with the data, or rollouts on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
from reward_kit.models import Rollout, Sample

__all__ = ["Source", "open_source"]


@dataclass(frozen=True)
class Source:
    """Somewhere work comes from."""

    works: Callable[[Ledger], Iterator[Work]]
    """What is owed, sample by sample."""
    expected: Callable[[Ledger], int | None]
    """How many rollouts there will be in the end, where that is cheap to know."""
    skipped: Callable[[], int] = lambda: 0
    """How many rows could not be read and were skipped, as asked."""
    needs_model: bool = False
    """Whether answers still have to be generated."""
    blocking: bool = False
    """Whether reading may wait for the network."""
    fingerprint: str | None = None
    """Identifies the content, where that is cheap to know."""


def open_source(
    config: PipelineConfig,
    phase: Phase,
    samples: Iterable[Sample | Mapping[str, Any]] | None,
    rollouts: Collection[Rollout] | None = None,
) -> Source:
    """The source a run's config and phase call for. Nothing is read yet."""
    if phase == "execution":
        return _generated(rollouts)
    prompt, limit = config.system_prompt, config.sample_limit
    if isinstance(samples, SampleStream):
        return _asked(samples, config)
    if samples is not None:
        if config.generation.enabled:
            return _asked(samples_from_rows(samples, system_prompt=prompt, limit=limit), config)
        return _answered(rollouts_from_rows(samples, system_prompt=prompt, limit=limit), config)
    if config.dataset is None:
        raise ConfigError("No dataset is configured. Set `dataset.path_or_name` to a file or a Hugging Face name.")
    if config.generation.enabled:
        return _asked(load_samples(config.dataset, system_prompt=prompt, limit=limit), config)
    return _answered(load_rollouts(config.dataset, system_prompt=prompt, limit=limit), config)


def _generated(rollouts: Collection[Rollout] | None) -> Source:
    if rollouts is None:
        return Source(Ledger.from_rollouts, lambda ledger: len(ledger.rollouts))
    return Source(lambda ledger: ledger.from_given(rollouts), lambda _: len(rollouts))


def _asked(stream: SampleStream, config: PipelineConfig) -> Source:
    n = config.generation.n

    def expected(_: Ledger) -> int | None:
        rows = stream.size_hint()
        return None if rows is None else rows * n

    return Source(
        works=lambda ledger: ledger.from_samples(stream, n),
        expected=expected,
        skipped=lambda: stream.skipped,
        needs_model=True,
        blocking=_is_remote(config.dataset),
        fingerprint=stream.fingerprint(),
    )


def _answered(stream: RolloutStream, config: PipelineConfig) -> Source:
    return Source(
        works=lambda ledger: ledger.from_answers(stream),
        expected=lambda _: stream.size_hint(),
        skipped=lambda: stream.skipped,
        blocking=_is_remote(config.dataset),
        fingerprint=stream.fingerprint(),
    )


def _is_remote(dataset: DatasetConfig | None) -> bool:
    if dataset is None:
        return False
    return dataset.source_type == "huggingface" or _is_remote(dataset.base_dataset)
