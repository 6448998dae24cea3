# SPDX-License-Identifier: Apache-2.0
"""Names, calls and results that users of the older package have in their code."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
from omegaconf import OmegaConf

from reward_kit import EvaluateResult, EvaluationPipeline, Message, RewardFunction, load_jsonl, reward_function
from reward_kit.adapters.braintrust import scorer_to_reward_fn
from reward_kit.adapters.trl import create_trl_adapter
from reward_kit.cli import cli
from reward_kit.datasets.loader import load_and_process_dataset, load_derived_dataset
from reward_kit.errors import ConfigError, DatasetError, EndpointError, RewardError
from reward_kit.generation.cache import ResponseCache
from reward_kit.generation.clients import FireworksModelClient, GenerationResult
from reward_kit.models import Completion
from reward_kit.rewards.accuracy import compare_math_expressions, extract_math_expression, normalize_text
from reward_kit.rewards.cpp_code import add_c_includes, add_cpp_includes, extract_code_blocks
from reward_kit.rewards.math import extract_numbers
from reward_kit.testing import MockServer
from reward_kit.typed_interface import EvaluationMode
from reward_kit.utils.batch_evaluation import run_batch_evaluation
from reward_kit.utils.batch_transformation import (
    create_batch_evaluation_dataset,
    transform_n_variant_jsonl_to_batch_format,
)
from reward_kit.utils.dataset_helpers import load_jsonl_to_hf_dataset
from tests.loopback.runs import config, write_rows

# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_name_of_the_package_of_rewards_can_be_imported_from_it() -> None:
    rewards = importlib.import_module("reward_kit.rewards")
    for name in rewards.__all__:
        assert callable(getattr(rewards, name)), name
        assert "messages" in inspect.signature(getattr(rewards, name)).parameters, name
    assert {"math_reward", "deepcoder_code_reward", "exact_tool_match_reward"} <= set(dir(rewards))
    with pytest.raises(AttributeError, match="no attribute 'maths_reward'"):
        rewards.maths_reward  # noqa: B018


def test_adapters_are_the_integrations() -> None:
    assert (
        scorer_to_reward_fn(lambda input, output, expected: float(output == expected))(
            messages=[{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}], ground_truth="4"
        ).score
        == 1.0
    )
    for name in ("braintrust", "trl", "openeval", "deepeval"):
        old, new = (importlib.import_module(f"reward_kit.{room}.{name}") for room in ("adapters", "integrations"))
        assert all(getattr(old, each) is getattr(new, each) for each in old.__all__)


def test_the_mode_of_a_reward_has_its_old_name() -> None:
    assert set(EvaluationMode.__args__) == {"pointwise", "batch"}  # type: ignore[attr-defined]  # a Literal has them


def test_helpers_of_the_accuracy_reward() -> None:
    assert normalize_text("  It is\n Paris! ") == "it is paris"
    assert extract_math_expression(r"so \boxed{\frac{1}{2}}") == r"\frac{1}{2}"
    assert extract_math_expression("The capital is Paris, not London. The answer is Rome.") == "Rome"
    assert (compare_math_expressions("0.5", "1/2"), compare_math_expressions("20", "25")) == (1.0, 0.0)


def test_helpers_of_the_cpp_rewards() -> None:
    assert "#include <bits/stdc++.h>" in add_cpp_includes("int main() {}")
    assert "#include <stdio.h>" in add_c_includes("int main() {}")
    assert add_cpp_includes("#include <cstdio>\nint main() {}") == "#include <cstdio>\nint main() {}"
    assert extract_code_blocks("```cpp\nint x;\n```", "cpp") == [{"code": "int x;", "language": "cpp"}]


FLAGS = {
    "preview": "--metrics-folders -m --samples -s --max-samples --huggingface-dataset --hf --huggingface-split "
    "--huggingface-prompt-key --huggingface-response-key --huggingface-key-map --remote-url",
    "deploy": "--id --metrics-folders -m --display-name --description --force -f --huggingface-dataset --remote-url "
    "--target --function-ref --local-port --gcp-project --gcp-region --gcp-ar-repo --service-account --entry-point "
    "--runtime --gcp-auth-mode",
    "deploy-mcp": "--id --mcp-server-module --dockerfile --gcp-project --gcp-region --gcp-ar-repo --port "
    "--python-version --requirements --env-vars",
    "agent-eval": "--task-def --parallel --max-concurrency --filter --output-dir --model --num-rollouts",
    "run": "--config-path --config-name -m --multirun",
}


@pytest.mark.parametrize("command", FLAGS)
def test_the_flags_of_a_command_are_there(command: str) -> None:
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    known = {name for parameter in found.params for name in parameter.opts}
    assert [flag for flag in FLAGS[command].split() if flag not in known] == []


# ── data ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_lines_by_the_old_keyword(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", [{"a": 1}])
    assert load_jsonl(file_path=str(tmp_path / "rows.jsonl")) == load_jsonl(tmp_path / "rows.jsonl") == [{"a": 1}]


def test_a_dataset_is_loaded_as_configs_name_it(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "q.jsonl", [{"question": f"{i}?", "answer": str(i), "extra": i} for i in range(3)])
    settings: dict[str, Any] = {
        "source_type": "jsonl", "path_or_name": str(file), "split": "train", "max_samples": 2,
        "column_mapping": {"query": "question", "ground_truth": "answer", "solution": None},
        "preprocessing_steps": [], "hf_extra_load_params": {}, "description": "d",
    }  # fmt: skip
    loaded = load_and_process_dataset(**settings)
    assert len(loaded) == 2
    assert loaded[1]["query"] == "1?" and loaded[1]["ground_truth"] == "1" and loaded[1]["extra"] == 1
    derived = load_derived_dataset(settings, system_prompt="Count.", derived_max_samples=1)
    assert len(derived) == 1
    assert {name: derived[0][name] for name in ("user_query", "ground_truth_for_eval", "system_prompt")} == {
        "user_query": "0?", "ground_truth_for_eval": "0", "system_prompt": "Count.",
    }  # fmt: skip


def test_lines_as_a_hugging_face_dataset(tmp_path: Path) -> None:
    file = str(write_rows(tmp_path / "q.jsonl", [{"q": "a", "n": 1}, {"q": "b", "n": 2}, {"q": "c", "n": 3}]))

    def transform(row: dict[str, Any]) -> dict[str, Any] | None:
        return {"prompt": row["q"], "n": row["n"]} if row["n"] != 1 else None

    kept = load_jsonl_to_hf_dataset(file, transform, dataset_filter_fn=lambda row: row["n"] < 3)
    assert kept.to_list() == [{"prompt": "b", "n": 2}]
    with pytest.raises(DatasetError, match="no column 'prompt'"):
        load_jsonl_to_hf_dataset(file)
    with pytest.raises(DatasetError, match=r"Row 2 of .* has no column 'level'"):
        load_jsonl_to_hf_dataset(file, transform, required_columns=["level"])


LONGEST = """
from typing import Any, List
from reward_kit import EvaluateResult, reward_function

@reward_function(mode="batch")
def longest(rollouts_messages: List[List[Any]], **kwargs: Any) -> List[EvaluateResult]:
    lengths = [len(turns[-1]["content"]) for turns in rollouts_messages]
    return [EvaluateResult(score=float(n == max(lengths)), reason=kwargs["unit"]) for n in lengths]
"""


def test_variants_become_batches_and_are_judged_together(tmp_path: Path) -> None:
    (tmp_path / "longest.py").write_text(LONGEST)
    said = [("a", 1, "four"), ("a", 0, "two"), ("b", 0, "x")]
    rows: list[dict[str, Any]] = [
        {
            "id": f"{id}_v{k}",
            "request_id": id,
            "response_id": k,
            "user_query": "?",
            "assistant_response": text,
            "unit": "m",
        }
        for id, k, text in said
    ]
    file = write_rows(tmp_path / "variants.jsonl", [*rows, {"id": "c", "error": "lost", "evaluation_score": 0.0}])
    batches = transform_n_variant_jsonl_to_batch_format(str(file), str(tmp_path / "batches.jsonl"))
    assert [(batch["request_id"], batch["num_variants"], batch["response_ids"]) for batch in batches] == [
        ("a", 2, [0, 1]), ("b", 1, [0]),
    ]  # fmt: skip
    assert load_jsonl(tmp_path / "batches.jsonl") == batches
    judged = run_batch_evaluation(tmp_path / "batches.jsonl", f"{tmp_path}/longest.py:longest", tmp_path / "out.jsonl")
    assert [(row["request_id"], row["response_id"], row["evaluation_score"]) for row in judged] == [
        ("a", 0, 0.0), ("a", 1, 1.0), ("b", 0, 1.0),
    ]  # fmt: skip
    assert judged[0]["evaluation_reason"] == "m" and load_jsonl(tmp_path / "out.jsonl") == judged


async def test_the_results_of_a_run_become_batches_too(tmp_path: Path) -> None:
    result = EvaluationPipeline(config(tmp_path, generation__n=2)).run()
    made = create_batch_evaluation_dataset(str(result.results_path), str(tmp_path / "batches.jsonl"))
    batches = load_jsonl(made)
    assert [batch["response_ids"] for batch in batches] == [[0, 1]] * 4
    assert all(turns[-1]["role"] == "assistant" for batch in batches for turns in batch["rollouts_messages"])
    assert [batch["level"] for batch in batches] == [0, 1, 2, 0], "a column of the dataset reaches the reward"


def test_the_conversation_and_the_ids_may_be_in_other_columns(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
    rows = [{"prompt": "a", "try": k, "talk": turns, "topic": "t", "mood": k} for k in (1, 0)]
    file = write_rows(tmp_path / "variants.jsonl", rows)
    (batch,) = transform_n_variant_jsonl_to_batch_format(file, None, "prompt", "try", "none", ["talk"])
    assert batch == {
        "request_id": "a", "rollouts_messages": [turns, turns], "num_variants": 2, "response_ids": [0, 1], "topic": "t",
    }, "`mood` differs between the answers, so it is none of the prompt's"  # fmt: skip
    with pytest.raises(DatasetError, match=r"Row 1 of .* name the right columns"):
        transform_n_variant_jsonl_to_batch_format(file)


def test_a_batch_reward_must_give_one_result_per_answer(tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text("async def short(rollouts_messages, **kwargs):\n    return kwargs['given']\n")
    answers = [[{"role": "assistant", "content": text}] for text in "ab"]
    file = write_rows(tmp_path / "batches.jsonl", [{"request_id": "a", "rollouts_messages": answers}])
    out = tmp_path / "out.jsonl"
    reward = f"{tmp_path}/short.py:short"
    judged = run_batch_evaluation(file, reward, out, {"given": [0.5, {"score": 1}]})
    assert [(row["response_id"], row["evaluation_score"]) for row in judged] == [(0, 0.5), (1, 1.0)]
    out.unlink()
    with pytest.raises(RewardError, match="1 results for 2 rollouts"):
        run_batch_evaluation(file, reward, out, {"given": [0.5]})
    assert not out.exists()


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_batches_are_judged_where_a_loop_runs_already(tmp_path: Path) -> None:
    (tmp_path / "halves.py").write_text("async def halves(rollouts_messages, **kwargs):\n    return [0.5]\n")
    rows = [{"request_id": "a", "rollouts_messages": [[{"role": "assistant", "content": "x"}]]}]
    file = write_rows(tmp_path / "batches.jsonl", rows)
    judged = run_batch_evaluation(file, f"{tmp_path}/halves.py:halves", tmp_path / "out.jsonl")
    assert [row["evaluation_score"] for row in judged] == [0.5]


async def test_a_client_is_made_of_a_config_and_a_key() -> None:
    call = {"name": "add", "arguments": {"x": 1}}
    script: dict[str, Any] = {
        "rules": [{"pattern": "tool", "response": {"tool_calls": [call]}}, {"pattern": "2", "response": " 4 "}]
    }
    with MockServer(script) as server:
        told = {
            "model_name": "m",
            "temperature": 0.1,
            "max_tokens": 7,
            "api_base": server.url,
            "api_params": {"max_retries": 1},
        }
        client = FireworksModelClient(OmegaConf.create(told), "key")
        answer = await client.generate([{"role": "user", "content": "2+2?"}], session=None)
        called = await client.generate([{"role": "user", "content": "use the tool"}], None, [])
        with pytest.raises(EndpointError):
            await FireworksModelClient({**told, "api_base": server.url + "/nowhere"}, "key").generate(
                [{"role": "user", "content": "2"}]
            )
        with pytest.raises(ConfigError, match="no `model_name`"):
            FireworksModelClient({"api_base": server.url}, "key")
    assert answer == GenerationResult(content=" 4 ")
    assert called.content is None and called.tool_calls is not None and called.tool_calls[0].function.name == "add"
    assert (server.requests[0].body["max_tokens"], server.requests[0].body["temperature"]) == (7, 0.1)


def test_a_cache_takes_any_key(tmp_path: Path) -> None:
    with ResponseCache(tmp_path) as cache:
        for number, key in enumerate(("sample-1", "ü\ud800", "", "a" * 64, "A" * 64, "x" * 1000)):
            answer = Completion(message=Message(role="assistant", content=str(number)))
            assert cache.get(key) is None
            cache.put(key, answer)
            cache.flush()
            found = cache.get(key)
            assert found is not None and found.message.text == str(number)


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_may_be_awaited_and_read_row_by_row(tmp_path: Path) -> None:
    pipeline = EvaluationPipeline(OmegaConf.create({**config(tmp_path), "seed": 3, "verbose": True}))
    result: Any = pipeline.run()
    assert await result is result
    rows = list(result)
    assert len(rows) == 4 and rows[0]["evaluation_score"] is not None
    assert pipeline.config.generation.seed == 1, "the config has one of its own, which counts"


async def test_what_is_left_out_is_said_from_python_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    EvaluationPipeline({**config(tmp_path), "verbose": True, "logging_params": {}, "hydra_output_dir": "x"})
    (said,) = [record.getMessage() for record in caplog.records if "Left out" in record.getMessage()]
    assert "`logging_params`, `verbose`, `hydra_output_dir`" in said


# ── numbers and metrics ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("The answer is 42.", [("42", 42.0)]),
        ("#### 72.", [("#### 72", 72.0)]),
        ("#### 18$", [("#### 18", 18.0)]),
        ("It is $72$.", [("72", 72.0)]),
        ("It costs $72.", [("$72", 72.0)]),
        ("42 km, 3.14 kg, -5 °C, 60 km/h", [("42 km", 42.0), ("3.14 kg", 3.14), ("-5 °C", -5.0), ("60 km/h", 60.0)]),
        ("#### 12 and #### 15", [("#### 12", 12.0), ("#### 15", 15.0)]),
        (r"\boxed{1} or \boxed{2}", [(r"\boxed{1}", 1.0), (r"\boxed{2}", 2.0)]),
        ("2x + 3 = 7", [("3", 3.0), ("7", 7.0)]),
        (r"3\pi, 4(x + 1), 2xy, 5", [("1", 1.0), ("5", 5.0)]),
        ("5 in a row, 12 apples", [("5", 5.0), ("12", 12.0)]),
    ],
)
def test_numbers_are_found_as_callers_expect(text: str, numbers: list[tuple[str, float]]) -> None:
    assert extract_numbers(text) == numbers


METRICS = {
    "accuracy.accuracy_reward": "accuracy",
    "accuracy_length.cosine_scaled_accuracy_length_reward": "combined_reward",
    "apps_coding_reward.evaluate_apps_solution": "pass_rate",
    "bfcl_reward.bfcl_reward": "function_call_match",
    "code_execution.fractional_code_reward": "pass_rate",
    "code_execution.local_code_execution_reward": "execution_result",
    "cpp_code.ioi_cpp_code_reward": "pass_rate",
    "deepcoder_reward.deepcoder_code_reward": "overall_status",
    "format.format_reward": "format_check",
    "json_schema.json_schema_reward": "schema_similarity",
    "language_consistency.language_consistency_reward": "language_consistency",
    "length.cosine_length_reward": "cosine_length",
    "length.length_reward": "length",
    "list_comparison_math_reward.list_comparison_math_reward": "list_comparison",
    "math.math_reward": "answer_comparison",
    "multiple_choice_math_reward.multiple_choice_math_reward": "mcq_comparison",
    "reasoning_steps.reasoning_steps_reward": "reasoning_steps",
    "reasoning_steps.sequence_reward": "sequence_reasoning",
    "repetition.diversity_reward": "diversity",
    "repetition.repetition_penalty_reward": "repetition",
    "tag_count.tag_count_reward": "overall",
}


@pytest.mark.parametrize("path", METRICS)
@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": "2+2?"}]], ids=["none", "no answer"])
def test_without_an_answer_the_metrics_are_there(path: str, messages: list[dict[str, str]]) -> None:
    module, _, name = path.partition(".")
    reward = getattr(importlib.import_module(f"reward_kit.rewards.{module}"), name)
    result = reward(messages=messages, ground_truth="4", required_tags=["a"], expected_schema={"type": "object"})
    assert (result.score, result.metrics[METRICS[path]].score, result.metrics["error"].score) == (0.0, 0.0, 0.0)


# ── rewards in the old style ─────────────────────────────────────────────────────────────────────────────────────────


def unannotated(messages, ground_truth=None, **kwargs):  # type: ignore[no-untyped-def]  # as its users write it
    return {"score": float(messages[-1]["content"] == ground_truth), "reason": messages[-1].get("role")}


@reward_function
def typed_with_any(messages: list[Any], ground_truth: Any, **kwargs: Any) -> EvaluateResult:
    return EvaluateResult(score=float(messages[-1]["content"] == ground_truth), reason="compared")


def marks_wrong_ones(messages, ground_truth=None, **kwargs):  # type: ignore[no-untyped-def]
    right = messages[-1]["content"] == ground_truth
    return EvaluateResult(score=float(right), reason="compared", is_score_valid=right)


def a_number(messages: list[dict[str, Any]], ground_truth: str | None = None, **kwargs: Any) -> float:
    return float(messages[-1]["content"] == ground_truth)


OLD: list[Callable[..., Any]] = [unannotated, typed_with_any, marks_wrong_ones, a_number]
ROWS = [
    {"id": "right", "user_query": "2+2?", "assistant_response": "4", "ground_truth_for_eval": "4"},
    {"id": "wrong", "user_query": "2+3?", "assistant_response": "6", "ground_truth_for_eval": "5"},
]


@pytest.mark.parametrize("reward", OLD, ids=lambda reward: reward.__name__)
def test_an_old_reward_in_a_run(reward: Callable[..., Any], tmp_path: Path) -> None:
    path = f"{Path(__file__)}:{reward.__name__}"
    told = config(tmp_path, rows=ROWS, generation__enabled=False, reward__function_path=path, reward__invalid="score")
    result = EvaluationPipeline(told).run()
    assert [row["evaluation_score"] for row in result.rows()] == [1.0, 0.0]
    assert orjson.loads((tmp_path / "run" / "summary.json").read_bytes())["mean_score"]["value"] == 0.5


@pytest.mark.parametrize("reward", OLD, ids=lambda reward: reward.__name__)
def test_an_old_reward_behind_reward_function(reward: Callable[..., Any]) -> None:
    behind = RewardFunction(func=reward)
    messages = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    assert behind(messages=messages, ground_truth="4").score == 1.0
    assert behind(messages=messages, ground_truth="5").score == 0.0


@pytest.mark.parametrize("reward", OLD, ids=lambda reward: reward.__name__)
def test_an_old_reward_in_trl(reward: Callable[..., Any]) -> None:
    columns = {"prompts": ["2+2?", "2+3?"], "completions": ["4", "6"], "answer": ["4", "5"]}
    adapter = create_trl_adapter(reward, {"answer": "ground_truth"}, on_invalid="score")
    assert adapter(**columns) == [1.0, 0.0]
    of_class = RewardFunction(func=reward).get_trl_adapter()
    scores = of_class(prompts=columns["prompts"], completions=columns["completions"], solution=columns["answer"])
    assert scores == [1.0, None if reward is marks_wrong_ones else 0.0]
