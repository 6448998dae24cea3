# SPDX-License-Identifier: Apache-2.0
"""A best-of-N experiment as a person writes it down: the settings of a run, with short names for most of them.

    dataset: nvidia/Nemotron-Post-Training-Dataset-v1
    splits: math,code,tool_calling
    max_queries: 100
    model: gpt-6-luna
    num_candidates: 4
    generation.top_k: 20
    output: experiments/results/baseline_run.parquet

The short names are those of `doors.AT_BEST_OF_N`. Splits, verifiers, prices, notes and the table are what it has beside
a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, field_validator

from reward_kit.config_models import (
    JudgeConfig,
    ModelConfig,
    PipelineConfig,
    Price,
    RewardConfig,
    StrictPart,
    reward_without_unused,
    validated,
)
from reward_kit.datasets.ground_truths import KINDS
from reward_kit.datasets.splits import Split, SplitAnswers, SplitStream, is_local
from reward_kit.doors import AT_BEST_OF_N, leaves, nested
from reward_kit.errors import ConfigError
from reward_kit.redaction import without_secrets
from reward_kit.rewards.verifiers import Verifier, verifier_for
from reward_kit.storage.best_of_n_tables import Verification
from reward_kit.utils.strict_yaml import load_yaml, read_yaml_text

__all__ = ["ExperimentConfig", "load_experiment", "price_table", "read_experiment_file"]

Model = TypeVar("Model", bound=ModelConfig)

_NO_VERIFIER = "reward_kit.execution.split_rewards:unverified"
_OTHER_FORMATS = (".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".yaml", ".yml")
"""How the name of a Parquet file does not end."""
_OWN = {
    "dataset.split": "splits", "reward.by_split": "verifiers", "prices": "prices", "table": "output", "notes": "notes",
}  # fmt: skip
"""What is not handed to the run as it is, by place."""
_NOT_WRITTEN: Any = {
    "dataset": {"storage_options", "split"}, "output": {"storage_options"}, "reward": {"function_path", "by_split"},
}  # fmt: skip
"""What a table does not remember of the run: credentials, and what it remembers otherwise."""
_CACHE_DIR = "generation.cache.cache_dir"
_SAY_MORE = ("dataset.response_column", "sandbox.sos_url")
"""Settings that imply another one where they are given. They cannot be null in a run: here, that is left out."""


class ExperimentConfig(StrictPart):
    """What is asked of whom, how often, who verifies, and where the table goes."""

    run: PipelineConfig
    """The settings of the run that makes it, as they are given; rewards and directory follow from the rest."""
    splits: tuple[str, ...] = ()
    """The splits, in the order of the table: a list, or names separated by commas."""
    verifiers: dict[str, str | RewardConfig] = Field(default_factory=dict)
    """Split: math, code, tool_calling or the path of a reward. A split of one of these names has its verifier."""
    prices: dict[str, Price] | str = Field(default_factory=dict)
    """Money for a million tokens by model, beside the built-in table; or a YAML file of such."""
    output: str
    """The Parquet file. What it is made from is kept beside it, in a folder called like it, with .run at the end."""
    notes: str | None = None
    """What you test and what you expect; kept in the Parquet's metadata."""

    @field_validator("splits", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            return names
        named = [name.strip() for name in names if name.strip()]
        if twice := [name for name in named if named.count(name) > 1]:
            raise ValueError(f"split {twice[0]!r} is named twice")
        return tuple(named)

    # -- what follows from it

    @cached_property
    def verifier_of(self) -> dict[str, Verifier]:
        """The verifier of each split, by the split's name. A `ConfigError` where one is missing or not wanted."""
        if strangers := sorted(self.verifiers.keys() - set(self.splits)):
            raise ConfigError(
                f"There is a verifier for {strangers[0]!r}, which is not among the splits ({', '.join(self.splits)}). "
                "Correct its name, or add the split."
            )
        return {split: self._with_shared(verifier_for(split, self.verifiers)) for split in self.splits}

    def _with_shared(self, verifier: Verifier) -> Verifier:
        """The verifier with the settings of `reward` that were given for all of them, and that it has not itself."""
        shared = self.run.reward.model_dump(exclude_unset=True, exclude={"function_path", "by_split"})
        if not shared:
            return verifier
        own = verifier.reward.model_dump(exclude_unset=True)
        params = {**shared.get("params", {}), **own.get("params", {})}
        return verifier._replace(reward=RewardConfig(**{**shared, **own, "params": params}))

    @property
    def verification(self) -> dict[str, Verification]:
        """Name and threshold of each split's verifier."""
        return {
            split: Verification(verifier.name, verifier.reward.pass_threshold)
            for split, verifier in self.verifier_of.items()
        }

    @property
    def response_column(self) -> str | None:
        """The column with the answers, where the dataset has them; None where a model is asked."""
        return None if self.run.generation.enabled or self.run.dataset is None else self.run.dataset.response_column

    @property
    def max_queries(self) -> int | None:
        """At most so many queries of each split, the first ones."""
        return self.run.sample_limit

    @property
    def parquet(self) -> Path:
        """The path of the Parquet file that the experiment writes."""
        return Path(self.output)

    @property
    def run_directory(self) -> Path:
        """Where the answers and verdicts are kept."""
        if "output_dir" in self.run.output.model_fields_set:
            return Path(self.run.output.output_dir)
        path = self.parquet
        return path.with_name(f"{path.stem if path.suffix == '.parquet' else path.name}.run")

    def samples(self, splits: tuple[str, ...] | None = None) -> SplitStream | SplitAnswers:
        """The queries, or the answers that the dataset has; of these splits only where some are named."""
        kinds = [Split(split, self._kind(split)) for split in splits or self.splits]
        load = SplitStream if self.response_column is None else SplitAnswers
        config = self.pipeline_config()
        assert config.dataset is not None
        return load(config.dataset, kinds, each=self.max_queries, system_prompt=config.system_prompt, among=self.splits)

    def pipeline_config(self) -> PipelineConfig:
        """The run that makes the experiment. How much is taken is counted for each split, and not for the run."""
        run = self.run
        rewards = {split: verifier.reward for split, verifier in self.verifier_of.items()}
        return run.model_copy(
            update={
                "dataset": run.dataset and run.dataset.model_copy(update={"max_samples": None}),
                "generation": self._priced(run.generation),
                "judge": self._judge(),
                "evaluation_params": run.evaluation_params.model_copy(update={"limit_samples": None}),
                "reward": run.reward.model_copy(update={"by_split": rewards}),
                "output": run.output.model_copy(update={"output_dir": str(self.run_directory)}),
            }
        )

    def _priced(self, model: Model) -> Model:
        """The model, with the price that the experiment's own table has for it."""
        if model.price is not None or model.model_name is None:
            return model
        return model.model_copy(update={"price": price_table(self.prices).get(model.model_name)})

    def _judge(self) -> JudgeConfig:
        """The judge, with its price, and with the cache of the model unless it has one of its own."""
        judge = self._priced(self.run.judge)
        if judge.model_name is None or "cache" in judge.model_fields_set:
            return judge
        return judge.model_copy(update={"cache": self.run.generation.cache})

    def _kind(self, split: str) -> str:
        """What kind of problems a split holds: its verifier says, else its name."""
        name = self.verifier_of[split].name
        return name if name in KINDS else split

    def as_written(self) -> dict[str, Any]:
        """The experiment as its table remembers it: itself one, with all that has a short name, and without secrets."""
        own = self.model_dump(mode="json", exclude={"run"})
        own["verifiers"] = {
            split: reward_without_unused(who) if isinstance(who, dict) else who
            for split, who in own["verifiers"].items()
        }
        given = self._settings(exclude_unset=True)
        named = {
            key: value for place, value in self._settings(exclude_unset=False).items()
            if (key := _short(place)) is not None
            and (place in given or (value is not None and place not in _SAY_MORE))
        }  # fmt: skip
        others = {place: value for place, value in given.items() if _short(place) is None}
        behind_a_dot = {place: others[place] for place in others if place.partition(".")[0] in {**named, **own}}
        sections = nested({place: others[place] for place in others if place not in behind_a_dot})
        return {**named, **sections, **behind_a_dot, **own}

    def _settings(self, *, exclude_unset: bool) -> dict[str, Any]:
        """The settings of the run by place: those that were given, or all."""
        written = self.run.model_dump(mode="json", exclude_unset=exclude_unset, exclude=_NOT_WRITTEN)
        return dict(setting for name, part in without_secrets(written).items() for setting in leaves(name, part))


def _short(place: str) -> str | None:
    """The short name that a table remembers a setting by; the judge is remembered as a section."""
    key = AT_BEST_OF_N.key_of(place)
    return None if key == place or place.startswith("judge.") else key


def load_experiment(values: Mapping[str, Any], name: str = "The experiment") -> ExperimentConfig:
    """Validate plain values; problems become one `ConfigError` that names each key and what to do."""
    given = _as_in_a_run(AT_BEST_OF_N.settings(values, name))
    own = {key: given.pop(place) for place, key in _OWN.items() if place in given}
    _require(given, own)
    raw = nested(AT_BEST_OF_N.with_defaults(given) | {"reward.function_path": _NO_VERIFIER})
    run = validated(PipelineConfig, raw, name, spell=lambda place: repr(AT_BEST_OF_N.key_of(place)))
    return validated(ExperimentConfig, {**own, "run": run}, name)


def _as_in_a_run(given: dict[str, Any]) -> dict[str, Any]:
    """What an experiment says in fewer words than a run."""
    found = {place: value for place, value in given.items() if value is not None or place not in _SAY_MORE}
    if found.get(_CACHE_DIR, "") is None:
        del found[_CACHE_DIR]
        found.setdefault("generation.cache.enabled", False)
    if "sandbox.sos_url" in found:
        found.setdefault("sandbox.backend", "sos")
    if "dataset.response_column" in found:
        found.setdefault("generation.enabled", False)
    if isinstance(path := found.get("dataset.path_or_name"), str) and not is_local(path):
        found.setdefault("dataset.source_type", "huggingface")
    return found


def _require(given: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    needed = {
        "dataset": given.get("dataset.path_or_name"),
        "splits": own.get("splits"),
        "model": given.get("generation.model_name") or not given.get("generation.enabled", True),
        "output": own.get("output"),
    }
    for name, value in needed.items():
        if not value:
            raise ConfigError(f"The experiment has no `{name}`. Set it in the file, or with --{name}.")
    if str(own["output"]).lower().endswith(_OTHER_FORMATS):
        raise ConfigError(
            f"The experiment's `output` is {own['output']!r}, and Parquet is written. End it in .parquet."
        )


def read_experiment_file(path: Path) -> dict[str, Any]:
    """The values of an experiment's YAML file."""
    values = load_yaml(read_yaml_text(path, f"the experiment {str(path)!r}", "Check --config."), repr(str(path)))
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{str(path)!r} is not an experiment: expected keys with values, such as `model: …`.")
    return values


def price_table(prices: Mapping[str, Price] | str) -> Mapping[str, Price]:
    """Prices by model, as they are or from a YAML file."""
    if not isinstance(prices, str):
        return prices
    table = read_experiment_file(Path(prices))
    return {model: validated(Price, price or {}, f"The price of {model!r}") for model, price in table.items()}
