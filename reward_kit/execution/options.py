# SPDX-License-Identifier: Apache-2.0
"""What a run is told beside its config, as one value; and both together, as every part of a run reads them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reward_kit.config_models import EngineConfig, PipelineConfig, load_config, validated
from reward_kit.datasets import RolloutStream
from reward_kit.datasets.sources import Given
from reward_kit.errors import ConfigError
from reward_kit.execution.engine import Reporter
from reward_kit.execution.result import Phase
from reward_kit.execution.vocabulary import RUN, Vocabulary
from reward_kit.generation.client import ModelClient
from reward_kit.inherited_config import remark, take
from reward_kit.models import Rollout

__all__ = ["RunInputs", "RunOptions"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run is entered, and what stands in for parts of its config."""

    phase: Phase = "both"
    rescore: bool = False
    """Judge the rollouts that are there again, where the reward is another one."""
    retry_failed: bool = False
    """Try again what failed before."""
    keep_going: bool = False
    """Go on where the first answers could not be judged, all for the same reason."""
    overwrite: bool = False
    """Begin anew where another run is; that one is set aside, not deleted."""
    resume_from_mirror: bool = False
    """Go on with the run that `output.mirror` holds."""
    detach: bool = False
    """Submit batches and do not wait for them: the same run, entered again, fetches what is ready."""
    reward: Callable[..., Any] | None = None
    samples: Iterable[Given] | RolloutStream | None = None
    rollouts: Collection[Rollout] | None = None
    """Answers to judge, in hand."""
    client: ModelClient | None = None
    engine: EngineConfig | Mapping[str, Any] | str | None = None
    """`"ray"`, or the settings of the config's section `engine`."""
    reporter: Reporter | None = None
    """Shows progress."""
    vocabulary: Vocabulary = RUN
    """The words of the front door."""


@dataclass(frozen=True)
class RunInputs:
    """A config and the options it is run with."""

    config: PipelineConfig
    options: RunOptions

    @classmethod
    def of(cls, config: PipelineConfig | Mapping[str, Any], options: RunOptions) -> RunInputs:
        """The settings of one run; those of several runs are refused."""
        config = config if isinstance(config, PipelineConfig) else _read(config)
        if config.generation.models is not None:
            raise ConfigError(
                "`generation.models` is for `reward-kit run`, which makes a run of each. Here, set "
                "`generation.model_name`, and make a run for each model."
            )
        if (engine := options.engine) is not None:
            known = isinstance(engine, EngineConfig)
            engine = engine if known else validated(EngineConfig, engine, "The engine", section="engine")
            config = config.model_copy(update={"engine": engine})
        return cls(config, options)

    @property
    def phase(self) -> Phase:
        """The phase that is run: where rollouts were given, there is nothing to generate."""
        scores_alone = self.options.rescore or self.options.rollouts is not None or self.config.rollouts_file
        return "execution" if scores_alone else self.options.phase

    @property
    def path(self) -> Path:
        """The run directory."""
        return Path(self.config.output.output_dir)

    def others_rollouts(self, fetched: Path | None) -> Path | None:
        """The file of rollouts that are not this run's own, where there is one; `fetched` is its copy here."""
        if self.options.rollouts is not None:
            return Path(os.devnull)  # they are the caller's; nothing is to be read or kept here
        if self.config.rollouts_file is None:
            return None
        return fetched or Path(self.config.rollouts_file)


def _read(config: Mapping[str, Any]) -> PipelineConfig:
    """A config from a mapping, also one of OmegaConf's; keys of the older package are taken by our names."""
    taken = take(_plain(config))
    if taken.ignored:
        _log.warning("%s", remark(taken.ignored))
    return load_config(taken.values)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(held) for name, held in value.items()}
    return [*map(_plain, value)] if isinstance(value, Sequence) and not isinstance(value, str | bytes) else value
