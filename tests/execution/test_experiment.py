# SPDX-License-Identifier: Apache-2.0
"""An experiment as it is written down, and the run it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import ConfigError
from reward_kit.execution.best_of_n.experiment import ExperimentConfig, load_experiment, read_experiment_file

BASIC = {"dataset": "data.jsonl", "splits": "math", "model": "mock", "output": "out/run.parquet"}


def experiment(**values: Any) -> ExperimentConfig:
    return load_experiment({**BASIC, **values})


@pytest.mark.parametrize("splits", ["math,code", " math , code ,", ["math", "code"]])
def test_splits_are_a_list_or_names_with_commas(splits: Any) -> None:
    assert experiment(splits=splits).splits == ("math", "code")


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"max_querys": 5}, "unknown key 'max_querys'; did you mean 'max_queries'"),
        ({"n": 5, "num_candidates": 5}, "'n' and 'num_candidates' are two names of one key"),
        ({"splits": "math,math"}, "split 'math' is named twice"),
        ({"splits": 7}, "'splits' is 7"),
        ({"num_candidates": 0}, "'num_candidates' is 0"),
        ({"max_queries": True}, "a number is expected, not true or false"),
        ({"temperature": -1}, "'temperature' is -1"),
        ({"verifiers": {"math": {"function_path": "a:b", "paramms": {}}}}, "paramms"),
        ({"prices": {"m": {"input": 1}}}, "output"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_file(values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match="The experiment has") as error:
        experiment(**values)
    assert complaint in str(error.value)


@pytest.mark.parametrize("missing", ["dataset", "splits", "model", "output"])
def test_what_is_missing_is_said_with_its_flag(missing: str) -> None:
    with pytest.raises(ConfigError, match=f"has no `{missing}`. Set it in the file, or with --{missing}"):
        experiment(**{missing: None if missing != "splits" else []}).pipeline_config()


def test_a_table_is_not_named_like_another_format() -> None:
    with pytest.raises(ConfigError, match=r"End it in \.parquet"):
        experiment(output="table.csv")


def test_it_becomes_the_config_of_a_run() -> None:
    config = experiment(
        num_candidates=8, temperature=None, max_tokens=10, concurrency=3, base_url="http://x/v1", max_cost=2.5,
        verifiers={"math": {"function_path": "a.py:b", "params": {"c": 1}, "pass_threshold": 0.5}}, seed=7,
        system_prompt="Think.", cache_dir=None, extra_body={"k": 1}, top_p=0.9,
    ).pipeline_config()  # fmt: skip
    generation = config.generation
    assert (generation.n, generation.temperature, generation.max_tokens, generation.seed) == (8, None, 10, 7)
    assert (generation.api_params.max_concurrent_requests, generation.api_base) == (3, "http://x/v1")
    assert (generation.top_p, generation.extra_body, generation.cache.enabled) == (0.9, {"k": 1}, False)
    assert (config.max_cost, config.system_prompt, config.output.output_dir) == (2.5, "Think.", "out/run.run")
    assert config.reward.by_split["math"].params == {"c": 1}


def test_the_run_stands_beside_the_table() -> None:
    assert str(experiment(output="a/b.parquet").run_directory) == "a/b.run"
    assert str(experiment(output="a/b.pq").run_directory) == "a/b.pq.run"


def test_a_verifier_must_belong_to_a_split_and_a_split_must_have_one() -> None:
    with pytest.raises(ConfigError, match="verifier for 'maths', which is not among the splits"):
        experiment(verifiers={"maths": "math"}).pipeline_config()
    with pytest.raises(ConfigError, match="Split 'stem' has no verifier"):
        experiment(splits="stem").pipeline_config()


def test_the_price_comes_from_the_file_or_a_table_of_its_own(tmp_path: Path) -> None:
    priced = experiment(model="mine", prices={"mine": {"input": 1, "output": 2}, "other": {"input": 9, "output": 9}})
    assert (price := priced.pipeline_config().generation.price) is not None and price.output == 2
    table = tmp_path / "prices.yaml"
    table.write_text("mine: {input: 3, output: 4}\n")
    assert (price := experiment(model="mine", prices=str(table)).pipeline_config().generation.price) is not None
    assert price.input == 3
    table.write_text("mine: {input: 3}\n")
    with pytest.raises(ConfigError, match="The price of 'mine' has a problem: 'output' is missing"):
        experiment(model="mine", prices=str(table)).pipeline_config()
    assert experiment(model="gpt-6-luna").pipeline_config().generation.price is None  # the built-in table knows it


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("a: [", "is not YAML"), ("- a", "is not an experiment"), ("", "is not an experiment"), ("1: 2", "expected keys")],
)
def test_a_file_that_is_no_experiment_is_said(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        read_experiment_file(tmp_path / "a.yaml")
    with pytest.raises(ConfigError, match=r"Cannot read.*--config"):
        read_experiment_file(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("other", "main", "value"),
    [("n", "num_candidates", 2), ("max_samples", "max_queries", 7), ("api_base", "base_url", "http://localhost:1/v1")],
)
def test_a_key_may_be_called_what_a_run_calls_it(other: str, main: str, value: Any) -> None:
    assert experiment(**{other: value}) == experiment(**{main: value})


def test_the_judge_takes_price_and_cache_from_the_experiment() -> None:
    made = experiment(judge={"model_name": "j"}, prices={"j": {"input": 1, "output": 2}}, cache_dir="c")
    judge = made.pipeline_config().judge
    assert (judge.price and judge.price.output, judge.cache.cache_dir) == (2, "c")


def test_the_address_of_a_server_chooses_it() -> None:
    assert experiment(sos_url="http://box:3000").pipeline_config().sandbox.backend == "sos"
    assert experiment(sos_url="http://box:3000", sandbox="none").pipeline_config().sandbox.backend == "none"
