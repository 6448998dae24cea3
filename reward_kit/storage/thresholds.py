# SPDX-License-Identifier: Apache-2.0
"""The score from which on an answer counts as verified: what a run says of itself, split by split."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.errors import StorageError
from reward_kit.storage.run_directory import check_config, read_document

__all__ = ["Thresholds", "thresholds_of", "thresholds_reported"]


class Thresholds(NamedTuple):
    """The scores that verify an answer."""

    whole: float = 1.0
    by_split: Mapping[str, float] = {}
    """Splits that have one of their own."""
    given: bool = False
    """Whether somebody chose it. A run's config holds every setting, so 1 there is taken for nobody's choice."""

    def of(self, split: str | None) -> float:
        """The one for answers to queries of `split`."""
        return self.by_split.get(split or "", self.whole)


def thresholds_of(directory: Path, given: float | None = None) -> Thresholds:
    """The one given, whatever the split; else what the config of the run in `directory` says, else its summary."""
    if given is not None:
        return Thresholds(given, given=True)
    if configured := _configured(directory / "config.yaml"):
        return _thresholds(configured)
    return thresholds_reported(read_document(directory / "summary.json") or {})


def thresholds_reported(summary: Mapping[str, Any]) -> Thresholds:
    """What the summary of a run says; that of a run merged of others is all there is, since it has no config."""
    return _thresholds({**summary, "by_split": summary.get("splits")})


def _thresholds(found: Mapping[str, Any]) -> Thresholds:
    whole = float(found.get("pass_threshold", Thresholds().whole))
    parts = found.get("by_split") or {}
    by_split = {split: float(part.get("pass_threshold", whole)) for split, part in parts.items()}
    return Thresholds(whole, by_split, given={whole, *by_split.values()} != {Thresholds().whole})


def _configured(config: Path) -> Mapping[str, Any]:
    import yaml  # here, because only this needs it

    try:
        text = config.read_bytes()
        if check_config(config) is False:
            raise StorageError(
                f"{str(config)!r} is damaged, and it holds the score from which an answer is verified. Run the command "
                "of the run again, which writes the file again, or give the score yourself."
            )
        values = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # the same, ten times as fast
    except (OSError, yaml.YAMLError):
        return {}
    reward = values.get("reward") if isinstance(values, dict) else None
    return reward if isinstance(reward, dict) else {}
