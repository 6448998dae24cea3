# SPDX-License-Identifier: Apache-2.0
"""What a run is told: strict, frozen, and helpful about mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from reward_kit import config_models
from reward_kit.config_models import GenerationConfig, PipelineConfig, load_config
from reward_kit.errors import ConfigError

LEAST: dict[str, Any] = {"dataset": {"path_or_name": "data.jsonl"}, "reward": {"function_path": "m:f"}}


def test_the_least_config_is_enough() -> None:
    config = load_config(LEAST)
    assert (config.generation.n, config.generation.enabled, config.generation.cache.enabled) == (1, True, None)
    assert config.reward.pass_threshold == 1.0


def test_a_dumped_config_is_a_valid_config() -> None:
    config = load_config({**LEAST, "generation": {"n": 4, "stop": ["\n"], "price": {"input": 1, "output": 2}}})
    assert load_config(config.model_dump(mode="json")) == config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"genration": {}}, "unknown key 'genration'; did you mean 'generation'"),
        ({"generation": {"temprature": 1}}, "'generation.temprature'; did you mean 'generation.temperature'"),
        ({"generation": {"max_new_tokens": 1}}, "'generation.max_new_tokens'; did you mean 'generation.max_tokens'"),
        ({"generation": {"api_params": {"timout": 1}}}, "did you mean 'generation.api_params.timeout'"),
        ({"generation": {"n": 0}}, "'generation.n' is 0"),
        ({"generation": {"temperature": -1}}, "'generation.temperature' is -1"),
        ({"generation": {"cache": {"cache_dir": None}}}, "without a cache, set `cache.enabled` of the same section to"),
        ({"generation": {"cache": {"cache_dir": None}}}, "default directory ('.reward_kit_cache'"),
        ({"reward": {}}, "'reward.function_path' is missing"),
        ({"dataset": {"source_type": "jsonl"}}, "path_or_name"),
        ({"dataset": {"path_or_name": "x", "source_type": "xml"}}, "'dataset.source_type' is 'xml'"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({**LEAST, **change})
    assert message in str(caught.value)


def test_several_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({**LEAST, "generation": {"n": 0, "temperature": -1}})
    assert "'generation.n'" in str(caught.value) and "'generation.temperature'" in str(caught.value)


def test_a_config_is_frozen() -> None:
    with pytest.raises(ValidationError):
        load_config(LEAST).generation.n = 4  # type: ignore[misc]


def test_the_sampling_is_what_the_endpoint_is_told() -> None:
    generation = GenerationConfig(model_name="m", n=8, temperature=0.0, seed=3, max_tokens=None)
    assert generation.sampling().given() == {"temperature": 0.0, "seed": 3}


def test_the_smaller_limit_counts() -> None:
    def limit(dataset: int | None, evaluation: int | None) -> int | None:
        data = {"path_or_name": "x", "max_samples": dataset}
        return load_config({**LEAST, "dataset": data, "evaluation_params": {"limit_samples": evaluation}}).sample_limit

    assert (limit(None, None), limit(5, None), limit(5, 3), limit(0, 3)) == (None, 5, 3, 0)


def test_a_key_is_never_shown() -> None:
    config = load_config({**LEAST, "generation": {"api_key": "sk-secret"}})
    assert "sk-secret" not in repr(config) + config.model_dump_json() + str(config.model_dump())


def test_every_model_of_the_config_is_exported_and_strict() -> None:
    models = [
        value for value in vars(config_models).values() if isinstance(value, type) and issubclass(value, BaseModel)
    ]
    ours = [
        model for model in models if model.__module__ == config_models.__name__ and not model.__name__.startswith("_")
    ]
    assert PipelineConfig in ours
    assert {model.__name__ for model in ours} <= set(config_models.__all__)
    assert all(model.model_config.get("extra") == "forbid" and model.model_config.get("frozen") for model in ours)


@pytest.mark.parametrize("section", ["generation", "judge"])
def test_an_endpoint_is_called_api_base_or_base_url_and_not_both(section: str) -> None:
    address = "http://localhost:8000/v1"
    assert load_config({**LEAST, section: {"base_url": address}}) == load_config(
        {**LEAST, section: {"api_base": address}}
    )
    with pytest.raises(ConfigError, match="'base_url' and 'api_base' are two names of one key"):
        load_config({**LEAST, section: {"base_url": address, "api_base": address}})


def test_an_address_of_a_cluster_needs_an_engine() -> None:
    config = {"dataset": {"path_or_name": "d.jsonl"}, "reward": {"function_path": "math"}}
    with pytest.raises(ConfigError, match="engine=ray"):
        load_config({**config, "engine": {"address": "auto"}})
    assert load_config({**config, "engine": {"name": "local", "address": "auto"}}).engine.name == "local"
