# SPDX-License-Identifier: Apache-2.0
"""The public names and signatures: changing one is a decision, made here."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import Any

import pytest

import reward_kit

NAMES = {
    "AnswersFailedError",
    "AuthError",
    "BelowFolder",
    "Completion",
    "ConfigError",
    "DatasetError",
    "EndpointError",
    "EvaluateResult",
    "EvaluationPipeline",
    "Failure",
    "Message",
    "MetricResult",
    "MissingExtraError",
    "Operator",
    "PipelineConfig",
    "Record",
    "RewardFunction",
    "RewardKitError",
    "Rollout",
    "RunResult",
    "SameFailureError",
    "Sample",
    "SandboxUnavailableError",
    "StepOutput",
    "StorageError",
    "__version__",
    "answers_match",
    "chat",
    "chat_async",
    "create_llm_resource",
    "evaluate",
    "evaluate_async",
    "load_jsonl",
    "reward_fn_to_scorer",
    "reward_function",
    "scorer_to_reward_fn",
}

SIGNATURES = {
    "RewardFunction": "func func_path mode endpoint name model_id *request_timeout *remote **kwargs",
    "chat": "prompt model *tools *draw **settings",
    "chat_async": "prompt model *tools *draw **settings",
    "create_llm_resource": "llm_instance **generation",
    "evaluate": (
        "data reward *dataset *model *n *params *reward_settings *output_dir *progress *rescore *retry_failed "
        "*keep_going **settings"
    ),
    "evaluate_async": (
        "data reward *dataset *model *n *params *reward_settings *output_dir *progress *rescore *retry_failed "
        "*keep_going **settings"
    ),
    "load_jsonl": "file_path",
    "reward_fn_to_scorer": "reward_fn",
    "reward_function": "_func *mode *id *requirements *resources *concurrency *timeout",
    "scorer_to_reward_fn": "scorer *messages_to_input *ground_truth_to_expected",
}

FIELDS = {
    "Message": "role content name tool_call_id tool_calls function_call reasoning_content sent_back",
    "MetricResult": "score reason is_score_valid",
    "EvaluateResult": "score is_score_valid reason metrics step_outputs error",
    "StepOutput": "step_index base_reward metrics reason",
    "Sample": "id messages ground_truth ground_truth_text split columns tools position",
    "Completion": "message finish_reason usage retried latency_ms cached model tokens",
    "Rollout": "sample response_index turns model sampling finish_reason usage cost latency_ms cached generated_at "
    "tokens failure steps ended truncated facts branch opening",
    "Record": "rollout result failure",
    "Failure": "stage type message retryable traceback unread_replies invalid_score invalid_result spent paid_batches",
}


def run(code: str) -> Any:
    """What a fresh interpreter prints, as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


def test_the_names() -> None:
    assert set(reward_kit.__all__) == NAMES
    assert set(dir(reward_kit)) >= NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_is_there(name: str) -> None:
    assert getattr(reward_kit, name) is not None
    assert getattr(reward_kit, name) is getattr(reward_kit, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'no_such_name'"):
        reward_kit.no_such_name  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_the_signatures(name: str) -> None:
    def shown(parameter: inspect.Parameter) -> str:
        if parameter.kind is parameter.VAR_KEYWORD:
            return f"**{parameter.name}"
        return f"*{parameter.name}" if parameter.kind is parameter.KEYWORD_ONLY else parameter.name

    parameters = inspect.signature(getattr(reward_kit, name)).parameters.values()
    assert " ".join(map(shown, parameters)) == SIGNATURES[name]


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_fields(name: str) -> None:
    assert " ".join(getattr(reward_kit, name).model_fields) == FIELDS[name]


def test_importing_it_imports_no_other_package() -> None:
    loaded = run("import json, sys; import reward_kit; print(json.dumps(sorted(sys.modules)))")
    ours = [name for name in loaded if name.startswith("reward_kit")]
    assert ours == ["reward_kit", "reward_kit._version", "reward_kit.utils", "reward_kit.utils.lazy_names"]
    assert not {"pydantic", "asyncio", "typing", "aiohttp", "hydra"} & set(loaded) - set(_bare_interpreter())


def _bare_interpreter() -> list[str]:
    loaded: list[str] = run("import json, sys; print(json.dumps(sorted(sys.modules)))")
    return loaded


@pytest.mark.parametrize(
    "imports",
    [
        "from reward_kit import reward_function",
        "import reward_kit.reward_function; from reward_kit import reward_function",
        "from reward_kit import reward_function; import reward_kit.reward_function",
        "from reward_kit.reward_function import RewardFunction; from reward_kit import reward_function",
        "from reward_kit import *",
        "__import__('importlib').import_module('reward_kit.reward_function'); from reward_kit import reward_function",
        "from reward_kit.reward_function import reward_function",
    ],
)
def test_reward_function_is_always_the_decorator(imports: str) -> None:
    code = (
        f"import json, sys; {imports}\n"
        "import reward_kit.reward_function\n"
        "import reward_kit.typed_interface as home\n"
        "module = sys.modules['reward_kit.reward_function']\n"
        "print(json.dumps([reward_function is home.reward_function, reward_kit.reward_function is reward_function,\n"
        "                  module.reward_function is reward_function, type(module).__name__]))"
    )
    assert run(code) == [True, True, True, "module"]


def test_the_module_is_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "reward_kit", "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, "run" in done.stdout) == (0, True)
