# SPDX-License-Identifier: Apache-2.0
"""The rows that a dataset config describes, reshaped and ready to be interpreted; derived datasets included."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import sources
from reward_kit.datasets.columns import Reshaper
from reward_kit.datasets.few_shot import FewShot, source_of
from reward_kit.datasets.ground_truths import EXPLICIT
from reward_kit.datasets.interpret import RowReader
from reward_kit.datasets.rows import BadRows, Row
from reward_kit.datasets.sources import Source
from reward_kit.errors import ConfigError

__all__ = ["Feed"]


class Feed:
    """A source, or the feed of a base dataset, with what one config does to its rows."""

    def __init__(self, config: DatasetConfig, open_source: Callable[[DatasetConfig], Source]) -> None:
        if config.base_dataset is not None and config.path_or_name is not None:
            raise ConfigError(
                f"The dataset has a base_dataset and a path_or_name ({config.path_or_name!r}). "
                "Keep one: a derived dataset takes its rows from its base."
            )
        self._config = config
        self._base = Feed(config.base_dataset, open_source) if config.base_dataset is not None else None
        self.source: Source = self._base.source if self._base is not None else open_source(config)
        """Where the rows come from in the end."""
        self._examples = self._few_shot(config, open_source)
        self._reshaper = Reshaper(config, None if self._examples is None else self._examples.before)

    @staticmethod
    def _few_shot(config: DatasetConfig, open_source: Callable[[DatasetConfig], Source]) -> FewShot | None:
        if config.few_shot is None:
            return None
        elsewhere = config.few_shot.path_or_name is not None
        feed = Feed(source_of(config, config.few_shot), sources.open_source if elsewhere else open_source)
        return FewShot(config.few_shot, feed.rows, feed.fingerprint)

    def fingerprint(self) -> str | None:
        """Changes when what is read changes, few-shot rows included. None: there is no telling."""
        own = self.source.fingerprint()
        shots = [feed._examples.fingerprint() for feed in self._feeds() if feed._examples is not None]
        if own is None or None in shots:
            return None
        return hashlib.sha256("\n".join([own, *map(str, shots)]).encode()).hexdigest()[:16] if shots else own

    def rows(self, bad: BadRows) -> Iterable[Row]:
        """The rows, reshaped by every config from the source to this one."""
        rows = self._base._rows_for(self._config, bad) if self._base is not None else self.source.rows(bad)
        return self._reshaper.reshape(rows, bad)

    def _rows_for(self, derived: DatasetConfig, bad: BadRows) -> Iterator[Row]:
        """This feed's rows, with id and answer under the names that a dataset derived from it looks for."""
        renames = [
            (self._config.id_column, derived.id_column),
            (self._config.response_column, derived.response_column),
        ]
        for row in islice(self.rows(bad), self._config.max_samples):
            for ours, theirs in renames:
                if ours in row.columns and theirs not in row.columns:
                    row.columns[theirs] = row.columns.pop(ours)
            yield row

    def interpreter(self, system_prompt: str | None) -> RowReader:
        """What turns these rows into samples: the settings of this config, else of its base, else the one given."""
        prompts = [config.system_prompt for config in self._configs()]
        formats = [config.format for config in self._configs() if config.format != "auto"]
        return RowReader(
            formats[0] if formats else "auto",
            id_column=self._config.id_column,
            response_column=self._config.response_column,
            system_prompt=next((prompt for prompt in prompts if prompt is not None), system_prompt),
            split=next((config.split for config in self._configs() if config.split is not None), None),
            truth_columns=self.truth_columns,
        )

    @property
    def truth_columns(self) -> frozenset[str]:
        """The columns that the configs name as those with the ground truth."""
        named = [config.column_mapping.get(name) for config in self._configs() for name in EXPLICIT]
        named += [config.choices.right for config in self._configs() if config.choices is not None]
        return frozenset(name for name in named if isinstance(name, str))

    @property
    def skips_bad_rows(self) -> bool:
        """Whether a bad row is skipped: if any of the configs says so."""
        return any(config.on_bad_row == "skip" for config in self._configs())

    @property
    def max_samples(self) -> int | None:
        """How many samples this config asks for at most; its base limits its own rows."""
        return self._config.max_samples

    def size_hint(self, limit: int | None) -> int | None:
        """About how many rows come out, at most; `limit` alone when a preprocess may drop or multiply them."""
        if any(config.preprocess for config in self._configs()):
            return limit
        bound = _least(limit, *(config.max_samples for config in self._configs()))
        return _least(bound, self.source.size_hint(bound))

    def _configs(self) -> Iterator[DatasetConfig]:
        return (feed._config for feed in self._feeds())

    def _feeds(self) -> Iterator[Feed]:
        yield self
        if self._base is not None:
            yield from self._base._feeds()


def _least(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)
