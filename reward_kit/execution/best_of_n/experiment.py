# SPDX-License-Identifier: Apache-2.0
"""A best-of-N experiment as a person writes it down: a flat YAML file, every key of which is also a flag.

    dataset: nvidia/Nemotron-Post-Training-Dataset-v1
    splits: math,code,tool_calling
    max_queries: 100
    model: gpt-6-luna
    num_candidates: 4
    output: experiments/results/baseline_run.parquet

It is translated into the config of a run: `ExperimentConfig.pipeline_config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from reward_kit.config_models import (
    ApiParamsConfig,
    BatchConfig,
    CacheConfig,
    DatasetConfig,
    DatasetFormat,
    EngineConfig,
    GenerationConfig,
    JudgeConfig,
    MockConfig,
    OutputConfig,
    PipelineConfig,
    Price,
    RewardConfig,
    SandboxConfig,
    StrictPart,
    by_main_names,
    validated,
)
from reward_kit.datasets.ground_truths import KINDS
from reward_kit.datasets.splits import Split, SplitAnswers, SplitStream, is_local, load_split_answers, load_splits
from reward_kit.errors import ConfigError
from reward_kit.rewards.verifiers import Verifier, verifier_for
from reward_kit.sandbox_backends import AUTO, BackendChoice
from reward_kit.storage.best_of_n_tables import Verification
from reward_kit.utils.strict_yaml import load_yaml, read_yaml_text

__all__ = ["ALSO_CALLED", "ExperimentConfig", "load_experiment", "price_table", "read_experiment_file"]

_NO_VERIFIER = "reward_kit.execution.split_rewards:unverified"


_OTHER_FORMATS = (".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".yaml", ".yml")
"""How the name of a Parquet file does not end."""


ALSO_CALLED = {
    "api_base": "base_url",
    "max_samples": "max_queries",
    "n": "num_candidates",
    "request_timeout": "timeout",
}
"""What a run's config or a flag calls a key, and the key's own name here."""


class ExperimentConfig(StrictPart):
    """What is asked of whom, how often, who verifies, and where the table goes."""

    dataset: str | None = None
    """A Hugging Face dataset, a file, a folder with one file per split, or a path with {split} in it."""
    config_name: str | None = None
    """The configuration (subset) of a Hugging Face dataset."""
    splits: tuple[str, ...] = ()
    """The splits, in the order of the table: a list, or names separated by commas."""
    streaming: bool = True
    """Stream a Hugging Face dataset instead of downloading it first."""
    max_queries: int | None = Field(default=None, ge=1)
    """Take at most this many queries of each split, the first ones. Also called `max_samples`."""
    format: DatasetFormat = "auto"
    """The shape of the rows. `auto` tells it by the columns."""
    column_mapping: dict[str, str] = Field(default_factory=dict)
    """New column name: old column name, as in the dataset settings of a run."""
    preprocess: list[str] = Field(default_factory=list)
    """Import paths of functions that take a row and return a row, a list of rows, or None to drop it."""
    prompt_template: str | None = None
    """A Jinja template over the row's columns that makes the user turn."""
    id_column: str = "id"
    """The column that names a row."""
    response_column: str | None = None
    """The column that holds the answers, where the dataset has them: they are verified, and no model is asked."""
    on_bad_row: Literal["skip", "error"] = "skip"
    """Leave out rows without a prompt or a ground truth, and count them; or stop at the first."""
    verifiers: dict[str, str | RewardConfig] = Field(default_factory=dict)
    """Split: math, code, tool_calling or the path of a reward. A split of one of these names has its verifier."""
    system_prompt: str | None = None
    """The system prompt of every query that has none of its own."""
    model: str | None = None
    """A model the endpoint knows; `local` for a small model inside this process; `mock`."""
    base_url: str | None = None
    """An OpenAI-compatible endpoint. Default: Fireworks for `accounts/…`, else OpenAI. Also called `api_base`."""
    api_key_env: str | None = None
    """The environment variable that holds the endpoint's key."""
    num_candidates: int = Field(default=4, ge=1, le=1_000_000)
    """Answers per query. Raising it later pays only for the new ones. Also called `n`."""
    temperature: float | None = Field(default=0.7, ge=0)
    """How freely tokens are drawn. null: the endpoint's default."""
    max_tokens: int | None = Field(default=2048, ge=1)
    """The most tokens of one answer."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Draw from the likeliest tokens that together have this probability."""
    reasoning_effort: str | None = None
    """For models that think first: how hard, in the endpoint's own words."""
    seed: int | None = None
    """Each candidate of each query gets a seed of its own, derived from this one."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request body, sent as they are."""
    concurrency: int = Field(default=64, ge=1, le=100_000)
    """Requests at a time."""
    transport: Literal["online", "batch"] = "online"
    """Ask now; or by files of requests, answered within a day at half the price."""
    batch: BatchConfig = BatchConfig()
    """How a batch endpoint is used: the keys of `generation.batch` in the config of a run."""
    timeout: float = Field(default=300.0, gt=0)
    """Seconds one request may take. Also called `request_timeout`."""
    sandbox: BackendChoice = AUTO
    """Where verifiers run code, for those that run any."""
    sandbox_image: str | None = None
    """A container image (docker, podman, sos), or the directory of a root filesystem (namespaces)."""
    sos_url: str | None = None
    """Where an SoS server answers. Without a `sandbox`, it is `sos` then."""
    judge: JudgeConfig = JudgeConfig()
    """The model that judges, for verifiers that ask one: `model_name`, `api_base` and the other keys of `judge` in the
    config of a run."""
    max_cost: float | None = Field(default=None, ge=0)
    """Stop, cleanly and resumably, before the experiment, its judge included, has cost more than this."""
    engine: EngineConfig = EngineConfig()
    """Where it runs: `local` or `ray`, or a section with `name`, `address` and the other keys of `engine` in the config
    of a run."""
    prices: dict[str, Price] | str = Field(default_factory=dict)
    """Money for a million tokens by model, beside the built-in table; or a YAML file of such."""
    cache_dir: str | None = ".reward_kit_cache"
    """Answers that were paid for are kept here for every experiment and run. null: no cache."""
    mock: str | None = None
    """For the model `mock`: the path of a function (messages, draw) that says what it answers."""
    output: str | None = None
    """The Parquet file. What it is made from is kept beside it, in a folder called like it, with .run at the end."""
    mirror: str | None = None
    """An address such as `s3://bucket/baseline`: what the experiment writes is copied there while it goes on, so that
    another machine can go on with it (`--resume-from-mirror`)."""
    storage_options: dict[str, Any] = Field(default_factory=dict)
    """For data and mirrors in an object store: handed to its fsspec filesystem. Never written down."""
    notes: str | None = None
    """What you test and what you expect; kept in the Parquet's metadata."""

    @model_validator(mode="before")
    @classmethod
    def _main_names(cls, given: object) -> object:
        return by_main_names(given, ALSO_CALLED) if isinstance(given, Mapping) else given

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
        self._require()
        if strangers := sorted(self.verifiers.keys() - set(self.splits)):
            raise ConfigError(
                f"There is a verifier for {strangers[0]!r}, which is not among the splits ({', '.join(self.splits)}). "
                "Correct its name, or add the split."
            )
        return {split: verifier_for(split, self.verifiers) for split in self.splits}

    @property
    def verification(self) -> dict[str, Verification]:
        """Name and threshold of each split's verifier."""
        return {
            split: Verification(verifier.name, verifier.reward.pass_threshold)
            for split, verifier in self.verifier_of.items()
        }

    @property
    def parquet(self) -> Path:
        """The path of the Parquet file that the experiment writes."""
        self._require()
        return Path(self.output or "")

    @property
    def run_directory(self) -> Path:
        """Where the answers and verdicts are kept."""
        path = self.parquet
        return path.with_name(f"{path.stem if path.suffix == '.parquet' else path.name}.run")

    def samples(self, splits: tuple[str, ...] | None = None) -> SplitStream | SplitAnswers:
        """The queries, or the answers that the dataset has; of these splits only where some are named."""
        kinds = [Split(split, self._kind(split)) for split in splits or self.splits]
        load = load_splits if self.response_column is None else load_split_answers
        return load(self._dataset(), kinds, each=self.max_queries, system_prompt=self.system_prompt, among=self.splits)

    def pipeline_config(self) -> PipelineConfig:
        """The run that makes the experiment."""
        rewards = {split: verifier.reward for split, verifier in self.verifier_of.items()}
        return PipelineConfig(
            dataset=self._dataset(),
            generation=self._generation(),
            reward=RewardConfig(function_path=_NO_VERIFIER, by_split=rewards),
            sandbox=self._sandbox(),
            judge=self._judge(),
            system_prompt=self.system_prompt,
            output=OutputConfig(
                output_dir=str(self.run_directory), mirror=self.mirror, storage_options=self.storage_options
            ),
            max_cost=self.max_cost,
            engine=self.engine,
        )

    def _kind(self, split: str) -> str:
        """What kind of problems a split holds: its verifier says, else its name."""
        name = self.verifier_of[split].name
        return name if name in KINDS else split

    def _dataset(self) -> DatasetConfig:
        local = is_local(self.dataset or "")
        return DatasetConfig(
            source_type=None if local else "huggingface",
            path_or_name=self.dataset,
            config_name=self.config_name,
            streaming=self.streaming,
            format=self.format,
            column_mapping=self.column_mapping,
            preprocess=self.preprocess,
            prompt_template=self.prompt_template,
            id_column=self.id_column,
            on_bad_row=self.on_bad_row,
            storage_options=self.storage_options,
            **({} if self.response_column is None else {"response_column": self.response_column}),
        )

    def _sandbox(self) -> SandboxConfig:
        if self.sos_url is None:
            return SandboxConfig(backend=self.sandbox, image=self.sandbox_image)
        backend = self.sandbox if "sandbox" in self.model_fields_set else "sos"
        return SandboxConfig(backend=backend, image=self.sandbox_image, sos_url=self.sos_url)

    def _judge(self) -> JudgeConfig:
        """The judge, with the price that the table has for it and the cache that the experiment names."""
        if self.judge.model_name is None:
            return self.judge
        given = self.judge.model_fields_set
        found: dict[str, Any] = {}
        if "price" not in given:
            found["price"] = price_table(self.prices).get(self.judge.model_name or "")
        if "cache" not in given:
            found["cache"] = self._cache()
        return self.judge.model_copy(update=found)

    def _cache(self) -> CacheConfig:
        return CacheConfig(enabled=False) if self.cache_dir is None else CacheConfig(cache_dir=self.cache_dir)

    def _generation(self) -> GenerationConfig:
        return GenerationConfig(
            enabled=self.response_column is None,
            model_name=self.model,
            n=self.num_candidates,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            top_p=self.top_p,
            reasoning_effort=self.reasoning_effort,
            seed=self.seed,
            extra_body=self.extra_body,
            api_base=self.base_url,
            api_key_env=self.api_key_env,
            api_params=ApiParamsConfig(max_concurrent_requests=self.concurrency, timeout=self.timeout),
            cache=self._cache(),
            transport=self.transport,
            batch=self.batch,
            mock=MockConfig(function_path=self.mock),
            price=price_table(self.prices).get(self.model or ""),
        )

    def _require(self) -> None:
        needed = ["dataset", "splits", "model", "output"]
        if self.response_column is not None:
            needed.remove("model")
        for name in needed:
            if not self.__dict__[name]:
                raise ConfigError(f"The experiment has no `{name}`. Set it in the file, or with --{name}.")
        if self.output and self.output.lower().endswith(_OTHER_FORMATS):
            raise ConfigError(
                f"The experiment's `output` is {self.output!r}, and Parquet is written. End it in .parquet."
            )


def main_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a file, each by its key's main name, so that a flag takes the place of either name."""
    try:
        return by_main_names(values, ALSO_CALLED)
    except ValueError as error:
        raise ConfigError(f"The experiment names a key twice: {error}.") from None


def load_experiment(values: Mapping[str, Any], name: str = "The experiment") -> ExperimentConfig:
    """Validate plain values; problems become one `ConfigError` that names each key and what to do."""
    return validated(ExperimentConfig, values, name)


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
