# SPDX-License-Identifier: Apache-2.0
"""A reward as a Python grader for reinforcement fine-tuning on Azure (and OpenAI, where it is still offered).

    grader = python_grader(my_reward)      # {"type": "python", "name": ..., "source": ...}

The service runs the source alone, without a network and without our package. So a reward can be exported if its file
imports nothing but the standard library, reward_kit's names and what the service has; what the file defines is copied
whole, and small stand-ins take the place of reward_kit's names. Called as `grade(sample, item)`: the item's fields are
the columns, of which one says what is right (as in a dataset), its `messages` what was asked.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from reward_kit.datasets.ground_truths import CANDIDATES, EXPLICIT
from reward_kit.errors import ConfigError
from reward_kit.integrations.shim import literal
from reward_kit.reward_call import NOT_COLUMNS, RewardCall
from reward_kit.typed_interface import marks_of, name_of

__all__ = ["AVAILABLE", "python_grader"]

AVAILABLE = frozenset({"numpy", "scipy", "sympy", "pandas", "rapidfuzz", "sklearn", "rouge_score", "deepdiff",
                       "jsonschema", "pydantic", "yaml", "nltk", "sqlparse", "rdkit", "skbio"})  # fmt: skip
"""Packages that the service documents as installed; anything else beside the standard library is refused."""

_STAND_INS = """
class _Fields(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Message(_Fields):
    def __init__(self, **fields):
        super().__init__({"content": "", "name": None, "tool_calls": None, "tool_call_id": None, **fields})

    @property
    def text(self):
        content = self["content"]
        if isinstance(content, str):
            return content
        return "".join(part.get("text") or "" for part in content or [] if part.get("type") == "text")


class MetricResult(_Fields):
    def __init__(self, score, reason="", is_score_valid=True):
        super().__init__(score=score, reason=reason, is_score_valid=is_score_valid)


class EvaluateResult(_Fields):
    def __init__(self, score, is_score_valid=True, reason=None, metrics=None, step_outputs=None, error=None):
        super().__init__(score=score, is_score_valid=is_score_valid, reason=reason, metrics=metrics or {},
                         step_outputs=step_outputs, error=error)


def reward_function(function=None, **options):
    return function if function is not None else (lambda function: function)


class Operator:
    def __class_getitem__(cls, kind):
        return kind


class BelowFolder:
    def __init__(self, folder):
        self.folder = folder
"""

_GRADE = """
def truth_of(item):
    said = [item[name] for name in %(explicit)r if item.get(name) not in (None, "")]
    held = said[:1] or [item[name] for name in %(candidates)r if item.get(name) not in (None, "")]
    if any(value != held[0] for value in held):
        raise ValueError("several fields may hold the right answer; call one of them ground_truth")
    truth = held[0] if held else None
    if %(as_text)r and isinstance(truth, (int, float)):
        return str(truth).lower() if isinstance(truth, bool) else str(truth)
    return truth


def grade(sample, item):
    asked = item.get("messages") or []
    answer = {"role": "assistant", "content": sample.get("output_text") or "", "tool_calls": sample.get("output_tools")}
    messages = [Message(**turn) for turn in (*asked, answer)]
    columns = {name: value for name, value in item.items() if name not in %(withheld)r}
    facts = {name: value for name, value in {"response": messages[-1].text}.items() if name in %(facts)r}
    result = %(name)s(messages=messages, ground_truth=truth_of(item), **{**columns, **facts, **%(params)s})
    if isinstance(result, (int, float)):
        return float(result)
    if result.get("error") is not None or not result.get("is_score_valid", True):
        raise ValueError(result.get("error") or result.get("reason") or "no verdict")
    return float(result["score"])
"""


def python_grader(
    reward: Callable[..., Any] | str, *, name: str | None = None, params: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The grader of a synchronous pointwise reward; a `ConfigError` says what keeps it from standing alone."""
    call = RewardCall(reward, params)
    function = inspect.unwrap(call.func)
    if call.is_async or call.mode == "batch" or not inspect.isfunction(function):
        raise ConfigError(f"{call.name!r} cannot be exported: a grader is a plain function that judges one answer.")
    source = _standing_alone(function, call.name)
    marks = marks_of(call.func)
    filled = {
        "name": function.__name__, "params": literal(dict(params or {})), "explicit": EXPLICIT,
        "candidates": CANDIDATES, "withheld": sorted({*NOT_COLUMNS, *marks.operators, *marks.below}),
        "as_text": not call.takes_number_truth, "facts": [name for name in ("response",) if call.wants(name)],
    }  # fmt: skip
    grade = _GRADE % filled
    text = f"from __future__ import annotations\n{_STAND_INS}\n\n{source}\n\n{grade}"
    return {"type": "python", "name": name or name_of(call.func), "source": text}


def _standing_alone(function: Callable[..., Any], name: str) -> str:
    """The function's file without its imports of reward_kit, checked to import nothing that the service lacks."""
    try:
        tree = ast.parse(inspect.getsource(inspect.getmodule(function) or function))
    except (OSError, TypeError) as error:
        raise ConfigError(f"The source of {name!r} cannot be read. Define it in a file.") from error
    if not any(isinstance(node, ast.FunctionDef) and node.name == function.__name__ for node in tree.body):
        raise ConfigError(f"{name!r} is not defined at the top of its file; move it there to export it.")
    tree.body = [kept for node in tree.body if (kept := _kept(node, name)) is not None]
    return ast.unparse(tree)


def _kept(node: ast.stmt, name: str) -> ast.stmt | None:
    """The statement, unless it is an import that the stand-ins replace; one that cannot be had is refused."""
    if isinstance(node, ast.If) and ast.unparse(node.test) in {"__name__ == '__main__'", "TYPE_CHECKING"}:
        return None
    for module in _imported(node):
        top = module.split(".")[0]
        if top == "__future__":  # must stand first, and does
            return None
        if top == "reward_kit":
            _check_ours(node, name)
            return None
        if top not in sys.stdlib_module_names and top not in AVAILABLE:
            raise ConfigError(
                f"{name!r} cannot be exported: its file imports {module!r}, which graders do not have. "
                "Use the standard library, or deploy the reward as an endpoint."
            )
    return node


def _imported(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


_REPLACED = frozenset({"BelowFolder", "EvaluateResult", "Message", "MetricResult", "Operator", "reward_function"})


def _check_ours(node: ast.stmt, name: str) -> None:
    """Refuse an import from reward_kit that the stand-ins do not cover."""
    wanted = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else {"reward_kit"}
    renamed = [a for a in node.names if a.asname] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
    if renamed or not wanted <= _REPLACED:
        raise ConfigError(
            f"{name!r} cannot be exported: {ast.unparse(node)!r} needs reward_kit itself. A grader may use "
            f"{', '.join(sorted(_REPLACED))} by these names; deploy anything else as an endpoint."
        )
