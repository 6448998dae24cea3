# SPDX-License-Identifier: Apache-2.0
"""reward-kit: write a reward, run it over a dataset with n answers per prompt, and use it wherever models are trained.

The names below are the public ones. Each is imported when it is first used, so that `import reward_kit` costs nothing.
"""

import sys
from types import ModuleType

from reward_kit._version import __version__
from reward_kit.utils.lazy_names import lazy_names

TYPE_CHECKING = False
"""Type checkers take this to be true; `typing`, which has it too, is not imported for it."""

if TYPE_CHECKING:
    from reward_kit.common_utils import load_jsonl
    from reward_kit.config_models import PipelineConfig
    from reward_kit.errors import (
        AnswersFailedError,
        AuthError,
        ConfigError,
        DatasetError,
        EndpointError,
        MissingExtraError,
        RewardKitError,
        SameFailureError,
        SandboxUnavailableError,
        StorageError,
    )
    from reward_kit.evaluation import evaluate, evaluate_async
    from reward_kit.execution.pipeline import EvaluationPipeline
    from reward_kit.execution.result import RunResult
    from reward_kit.generation.chat import chat, chat_async
    from reward_kit.integrations.braintrust import reward_fn_to_scorer, scorer_to_reward_fn
    from reward_kit.models import (
        Completion,
        EvaluateResult,
        Failure,
        Message,
        MetricResult,
        Record,
        Rollout,
        Sample,
        StepOutput,
    )
    from reward_kit.resources import create_llm_resource
    from reward_kit.reward_function import RewardFunction, reward_function
    from reward_kit.rewards.math import answers_match
    from reward_kit.typed_interface import BelowFolder, Operator

__all__ = [
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
]

_HOMES = {
    "AnswersFailedError": "reward_kit.errors",
    "AuthError": "reward_kit.errors",
    "BelowFolder": "reward_kit.typed_interface",
    "Completion": "reward_kit.models",
    "ConfigError": "reward_kit.errors",
    "DatasetError": "reward_kit.errors",
    "EndpointError": "reward_kit.errors",
    "EvaluateResult": "reward_kit.models",
    "EvaluationPipeline": "reward_kit.execution.pipeline",
    "Failure": "reward_kit.models",
    "Message": "reward_kit.models",
    "MetricResult": "reward_kit.models",
    "MissingExtraError": "reward_kit.errors",
    "Operator": "reward_kit.typed_interface",
    "PipelineConfig": "reward_kit.config_models",
    "Record": "reward_kit.models",
    "RewardFunction": "reward_kit.reward_function",
    "RewardKitError": "reward_kit.errors",
    "Rollout": "reward_kit.models",
    "RunResult": "reward_kit.execution.result",
    "SameFailureError": "reward_kit.errors",
    "Sample": "reward_kit.models",
    "SandboxUnavailableError": "reward_kit.errors",
    "StepOutput": "reward_kit.models",
    "StorageError": "reward_kit.errors",
    "answers_match": "reward_kit.rewards.math",
    "chat": "reward_kit.generation.chat",
    "chat_async": "reward_kit.generation.chat",
    "create_llm_resource": "reward_kit.resources",
    "evaluate": "reward_kit.evaluation",
    "evaluate_async": "reward_kit.evaluation",
    "load_jsonl": "reward_kit.common_utils",
    "reward_fn_to_scorer": "reward_kit.integrations.braintrust",
    "scorer_to_reward_fn": "reward_kit.integrations.braintrust",
}
"""Where each public name lives."""


if not TYPE_CHECKING:  # a type checker sees the imports above, and no others
    __getattr__, __dir__ = lazy_names(globals(), _HOMES)


class _Package(ModuleType):
    """This package, in which `reward_function` is always the decorator.

    Importing the submodule of that name makes Python set the attribute to the module; that is ignored.
    """

    @property
    def reward_function(self) -> object:
        from reward_kit.typed_interface import reward_function as decorator

        return decorator

    @reward_function.setter
    def reward_function(self, module: ModuleType) -> None:
        """Leave the submodule where it belongs, in `sys.modules`."""


sys.modules[__name__].__class__ = _Package
