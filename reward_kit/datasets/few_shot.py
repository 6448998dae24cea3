# SPDX-License-Identifier: Apache-2.0
"""Few-shot rows: rows of a dataset, with their answers, that a template shows before each question.

They come through the same settings as the questions (mapping, preprocess, choices), so a template writes both alike.
They are drawn once, when the first question needs them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import islice
from typing import Any

from reward_kit.config_models import DatasetConfig, FewShotConfig
from reward_kit.datasets.rows import BadRows, Columns, Row
from reward_kit.errors import DatasetError
from reward_kit.utils import exact_json

__all__ = ["FewShot", "source_of"]


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
        self.fingerprint = fingerprint
        """Changes with the source of the rows."""

    def before(self, columns: Columns) -> list[Columns]:
        """The rows that are shown before this one, which is not among them."""
        if not self._settings.count:
            return []
        group = self._group_of(columns)
        shown = [row for row in self._drawn.get(group, []) if row != columns][: self._settings.count]
        if len(shown) < self._settings.count:
            kind = f" with the same {self._settings.same!r}" if self._settings.same else ""
            raise DatasetError(
                f"`dataset.few_shot.count` is {self._settings.count}: so many other rows are shown before each "
                f"question. Beside the question itself, there are only {len(shown)} rows{kind}. Set "
                "`dataset.few_shot.count=0` to show none, or a smaller number; or take them from a larger split or "
                "file (`dataset.few_shot.split`, `dataset.few_shot.path_or_name`)."
            )
        return shown

    @cached_property
    def _drawn(self) -> dict[bytes, list[Columns]]:
        """The rows of each group; one more than asked for, since a row is not shown before itself."""
        groups: dict[bytes, list[Columns]] = {}
        for row in islice(self._rows(BadRows(skip=True)), self._settings.pool):
            groups.setdefault(self._group_of(row.columns), []).append(row.columns)
        return {group: self._some(group, rows) for group, rows in groups.items()}

    def _some(self, group: bytes, rows: list[Columns]) -> list[Columns]:
        most = min(self._settings.count + 1, len(rows))
        if self._settings.first:
            return rows[:most]
        return random.Random(f"{self._settings.seed}\0{group.decode()}").sample(rows, most)

    def _group_of(self, columns: Columns) -> bytes:
        return b"" if self._settings.same is None else exact_json.dumps(columns.get(self._settings.same))
