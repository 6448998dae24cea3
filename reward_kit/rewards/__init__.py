# SPDX-License-Identifier: Apache-2.0
"""The reward library: one subject a module, each function decorated with `@reward_function`.

A module's rewards are those it lists in `__all__`: that alone puts them into `reward-kit rewards list`, into
docs/rewards.md and among the names that a config may use. Each says in its docstring, in this order:

    what the score means, in one sentence

    what is read, what the parameters do, what is no verdict

    Metrics: the keys of its metrics.
    Needs: extra `NAME`; program `NAME`; sandbox.          (only where something beyond the core is needed)
    Cost: how it grows with the answer, and how much that is.
    Does not detect: what it cannot see, and what can fool it.

    >>> an example that runs

The names below are also importable from here, as users of the older package do; each is imported when it is first used.
A name that a module has, such as `bfcl_reward`, is that module.
"""

from reward_kit.utils.lazy_names import lazy_names

TYPE_CHECKING = False
"""Type checkers take this to be true; `typing`, which has it too, is not imported for it."""

if TYPE_CHECKING:
    from reward_kit.rewards.accuracy import accuracy_reward
    from reward_kit.rewards.accuracy_length import cosine_scaled_accuracy_length_reward
    from reward_kit.rewards.apps_coding_reward import evaluate_apps_solution
    from reward_kit.rewards.code_execution import (
        e2b_code_execution_reward,
        fractional_code_reward,
        local_code_execution_reward,
    )
    from reward_kit.rewards.cpp_code import binary_cpp_code_reward, ioi_cpp_code_reward
    from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
    from reward_kit.rewards.format import format_reward
    from reward_kit.rewards.function_calling import (
        composite_function_call_reward,
        exact_tool_match_reward,
        llm_judge_reward,
        schema_jaccard_reward,
    )
    from reward_kit.rewards.json_schema import json_schema_reward, json_schema_reward_with_llm_judge
    from reward_kit.rewards.language_consistency import language_consistency_reward
    from reward_kit.rewards.lean_prover import (
        deepseek_huggingface_prover_benchmark,
        deepseek_prover_v2_reward,
        lean_prover_reward,
    )
    from reward_kit.rewards.length import cosine_length_reward, length_reward
    from reward_kit.rewards.math import math_reward
    from reward_kit.rewards.reasoning_steps import reasoning_steps_reward, sequence_reward
    from reward_kit.rewards.repetition import diversity_reward, repetition_penalty_reward
    from reward_kit.rewards.tag_count import tag_count_reward

__all__ = [
    "accuracy_reward",
    "binary_cpp_code_reward",
    "composite_function_call_reward",
    "cosine_length_reward",
    "cosine_scaled_accuracy_length_reward",
    "deepcoder_code_reward",
    "deepseek_huggingface_prover_benchmark",
    "deepseek_prover_v2_reward",
    "diversity_reward",
    "e2b_code_execution_reward",
    "evaluate_apps_solution",
    "exact_tool_match_reward",
    "format_reward",
    "fractional_code_reward",
    "ioi_cpp_code_reward",
    "json_schema_reward",
    "json_schema_reward_with_llm_judge",
    "language_consistency_reward",
    "lean_prover_reward",
    "length_reward",
    "llm_judge_reward",
    "local_code_execution_reward",
    "math_reward",
    "reasoning_steps_reward",
    "repetition_penalty_reward",
    "schema_jaccard_reward",
    "sequence_reward",
    "tag_count_reward",
]

_HOMES = {
    "accuracy_reward": "reward_kit.rewards.accuracy",
    "binary_cpp_code_reward": "reward_kit.rewards.cpp_code",
    "composite_function_call_reward": "reward_kit.rewards.function_calling",
    "cosine_length_reward": "reward_kit.rewards.length",
    "cosine_scaled_accuracy_length_reward": "reward_kit.rewards.accuracy_length",
    "deepcoder_code_reward": "reward_kit.rewards.deepcoder_reward",
    "deepseek_huggingface_prover_benchmark": "reward_kit.rewards.lean_prover",
    "deepseek_prover_v2_reward": "reward_kit.rewards.lean_prover",
    "diversity_reward": "reward_kit.rewards.repetition",
    "e2b_code_execution_reward": "reward_kit.rewards.code_execution",
    "evaluate_apps_solution": "reward_kit.rewards.apps_coding_reward",
    "exact_tool_match_reward": "reward_kit.rewards.function_calling",
    "format_reward": "reward_kit.rewards.format",
    "fractional_code_reward": "reward_kit.rewards.code_execution",
    "ioi_cpp_code_reward": "reward_kit.rewards.cpp_code",
    "json_schema_reward": "reward_kit.rewards.json_schema",
    "json_schema_reward_with_llm_judge": "reward_kit.rewards.json_schema",
    "language_consistency_reward": "reward_kit.rewards.language_consistency",
    "lean_prover_reward": "reward_kit.rewards.lean_prover",
    "length_reward": "reward_kit.rewards.length",
    "llm_judge_reward": "reward_kit.rewards.function_calling",
    "local_code_execution_reward": "reward_kit.rewards.code_execution",
    "math_reward": "reward_kit.rewards.math",
    "reasoning_steps_reward": "reward_kit.rewards.reasoning_steps",
    "repetition_penalty_reward": "reward_kit.rewards.repetition",
    "schema_jaccard_reward": "reward_kit.rewards.function_calling",
    "sequence_reward": "reward_kit.rewards.reasoning_steps",
    "tag_count_reward": "reward_kit.rewards.tag_count",
}
"""Where each of them lives."""


if not TYPE_CHECKING:  # a type checker sees the imports above, and no others
    __getattr__, __dir__ = lazy_names(globals(), _HOMES)
