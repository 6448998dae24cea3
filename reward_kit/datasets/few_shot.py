# SPDX-License-Identifier: Apache-2.0
"""Few-shot rows: rows of a dataset, with their answers, that a template shows before each question.

They come through the same settings as the questions (mapping, preprocess, choices), so a template writes both alike.
They are drawn once, when the first question needs them.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import islice
from typing import Any

from reward_kit.config_models import DatasetConfig, FewShotConfig
from reward_kit.datasets.row_ids import content_id
from reward_kit.datasets.rows import BadRows, Columns, Row
from reward_kit.errors import DatasetError
from reward_kit.utils import exact_json

__all__ = ["FewShot", "source_of"]

_log = logging.getLogger(__name__)


def source_of(config: DatasetConfig, settings: FewShotConfig) -> DatasetConfig:
    """The dataset that the few-shot rows of `config` come from: its own, or another that goes through its settings."""
    if config.base_dataset is not None and settings.path_or_name is None:
        return config.model_copy(
            update={"base_dataset": source_of(config.base_dataset, settings), "few_shot": None, "prompt_template": None}
        )
    changed: dict[str, Any] = {
        "path_or_name": settings.path_or_name, "config_name": settings.config_name, "split": settings.split,
    }  # fmt: skip
    given = {name: value for name, value in changed.items() if value is not None}
    nothing: dict[str, Any] = {"few_shot": None, "prompt_template": None, "max_samples": None}
    if settings.path_or_name is not None:
        nothing |= {"source_type": None, "data_files": None, "revision": None, "base_dataset": None}
    return config.model_copy(update=nothing | given)


class FewShot:
    """The rows that are shown before each question of one dataset."""

    def __init__(
        self,
        settings: FewShotConfig,
        rows: Callable[[BadRows], Iterable[Row]],
        fingerprint: Callable[[], str | None],
    ) -> None:
        self._settings = settings
        self._rows = rows
        self._said = False
        self.fingerprint = fingerprint
        """Changes with the source of the rows."""

    def before(self, columns: Columns) -> list[Columns] | None:
        """The rows that are shown before this one. None where it is one of those that are shown: it is not judged."""
        if not self._settings.count:
            return []
        if _digest(columns) in self._shown:
            self._say_once()
            return None
        shown = self._drawn.get(self._group_of(columns), [])
        if len(shown) < self._settings.count:
            kind = f" with the same {self._settings.same!r}" if self._settings.same else ""
            raise DatasetError(
                f"`dataset.few_shot.count` is {self._settings.count}: so many other rows are shown before each "
                f"question. There are only {len(shown)} rows{kind} to show. Set "
                "`dataset.few_shot.count=0` to show none, or a smaller number; or take them from a larger split or "
                "file (`dataset.few_shot.split`, `dataset.few_shot.path_or_name`)."
            )
        return shown

    def _say_once(self) -> None:
        if not self._said:
            self._said = True
            _log.warning(
                "Rows that `dataset.few_shot` shows before the questions are in the dataset, too. They are not judged. "
                "To judge every row, take them from elsewhere: `dataset.few_shot.split`, or "
                "`dataset.few_shot.path_or_name`."
            )

    @cached_property
    def _shown(self) -> set[str]:
        """What tells the rows that are shown from others: no question is answered by a row that is judged."""
        return {_digest(row) for rows in self._drawn.values() for row in rows}

    @cached_property
    def _drawn(self) -> dict[bytes, list[Columns]]:
        """The rows that are shown to each group."""
        groups: dict[bytes, list[Columns]] = {}
        for row in islice(self._rows(BadRows(skip=True)), self._settings.pool):
            groups.setdefault(self._group_of(row.columns), []).append(row.columns)
        return {group: self._some(group, rows) for group, rows in groups.items()}

    def _some(self, group: bytes, rows: list[Columns]) -> list[Columns]:
        if self._settings.first:
            return rows[: self._settings.count]
        # One more is drawn than shown: which rows a seed draws depends on their number.
        drawn = random.Random(f"{self._settings.seed}\0{group.decode()}")
        return drawn.sample(rows, min(self._settings.count + 1, len(rows)))[: self._settings.count]

    def _group_of(self, columns: Columns) -> bytes:
        return b"" if self._settings.same is None else exact_json.dumps(columns.get(self._settings.same))


def _digest(columns: Columns) -> str:
    """Of what a row says, whatever it is called."""
    return content_id({name: value for name, value in columns.items() if name not in _NAMES})


_NAMES = ("id", "uuid", "query_id", "split")
"""Columns that a row of another file or split may have otherwise, although it says the same."""
