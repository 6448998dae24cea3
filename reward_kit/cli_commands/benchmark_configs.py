# SPDX-License-Identifier: Apache-2.0
"""Benchmarks by name: YAML files of the Hydra group `benchmark`, ours and those in a project's own `conf/benchmark`.

    reward-kit run +benchmark=gsm8k …  ─▶  conf/benchmark/gsm8k.yaml  ─▶  dataset, generation, reward …: an ordinary run
                                                                     └─▶  benchmark: what it is, for people to read

A benchmark is nothing but settings of a run. The section `benchmark` is taken out before the run begins, so that a
better note does not make it another run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from reward_kit.config_models import StrictPart, validated
from reward_kit.errors import ConfigError
from reward_kit.utils.near_names import did_you_mean

__all__ = ["Benchmark", "Notes", "as_plain_run", "benchmark_names", "load_benchmark"]

_GROUP = "benchmark"
_ANY_MODEL = "MODEL"


class Notes(StrictPart, defer_build=True):
    """What a benchmark says of itself, beside the settings of its run."""

    name: str
    """The name of its file, without .yaml. The run's directory is called after it."""
    title: str
    """Its name as people write it."""
    about: str
    """What it asks, in a sentence."""
    source: str
    """Where the data is described: a paper, or a page."""
    prompt: str
    """Who publishes the prompt template."""
    metrics: dict[str, str]
    """Figures of the summary by name (`mean_score`, `metrics.NAME`), and what each means here."""
    published: str
    """What published figures were made with."""
    differs: str
    """Where this run differs from that."""
    needs: list[str] = Field(default_factory=list)
    """What must be there beside the model: an extra, a package, a sandbox, a judge, access to the dataset."""


class Benchmark(NamedTuple):
    """A benchmark as it was found: its notes, and the settings of its run."""

    notes: Notes
    settings: dict[str, Any]


def benchmark_names() -> list[str]:
    """The benchmarks that can be named here: ours, and those of `conf/benchmark` in the current directory."""
    from reward_kit.cli_commands.hydra_config import PACKAGED

    folders = (PACKAGED / _GROUP, Path("conf") / _GROUP)
    return sorted({file.stem for folder in folders if folder.is_dir() for file in folder.glob("*.yaml")})


def load_benchmark(name: str) -> Benchmark:
    """One benchmark by name, composed as a run composes it."""
    from reward_kit.cli_commands.hydra_config import compose_jobs, find_config

    if name not in benchmark_names():
        known = benchmark_names()
        raise ConfigError(f"There is no benchmark {name!r}{did_you_mean(name, known)}. There are: {', '.join(known)}.")
    file, overrides = find_config(None, None, [f"+{_GROUP}={name}", f"generation.model_name={_ANY_MODEL}"])
    (job,) = compose_jobs(file, overrides, sweep=False)
    settings = dict(job.values)
    notes = _notes(settings.pop(_GROUP, None))
    settings["generation"].pop("model_name")
    return Benchmark(notes, settings)


def as_plain_run(values: Mapping[str, Any]) -> dict[str, Any]:
    """A composed config without the notes of its benchmark, and with a directory called after benchmark and model."""
    settings = dict(values)
    if _GROUP not in settings:
        return settings
    notes = _notes(settings.pop(_GROUP))
    output = settings.get("output") or {}
    if isinstance(output, Mapping) and "output_dir" not in output:
        generation = settings.get("generation")
        model = generation.get("model_name") if isinstance(generation, Mapping) else None
        directory = Path("outputs", notes.name)
        if isinstance(model, str):
            directory /= model.replace("/", "_").replace(":", "_")
        settings["output"] = {**output, "output_dir": str(directory)}
    return settings


def _notes(given: Any) -> Notes:
    return validated(Notes, given, "The section `benchmark`", section=_GROUP)
