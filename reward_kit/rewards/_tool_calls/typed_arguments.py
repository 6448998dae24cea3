# SPDX-License-Identifier: Apache-2.0
"""Whether a call's arguments have the types they should, in the words of the inherited `match_function_call`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from reward_kit.models import MetricResult

__all__ = ["Strictness", "argument_report"]

Strictness = Literal["exact", "partial", "permissive", "flexible"]
"""What is allowed: nothing; missing arguments; further arguments (two names for one thing)."""

_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, (list, tuple)),
    "object": lambda value: isinstance(value, Mapping),
    "null": lambda value: value is None,
}


def argument_report(given: Mapping[str, Any], expected: Mapping[str, Any], strictness: Strictness) -> MetricResult:
    """1.0 if the arguments are those expected, each of its type; 0.0 if not. In `partial`, the share that is."""
    if strictness not in get_args(Strictness):
        raise ValueError(f"Invalid argument_match_strictness: {strictness!r}. Use one of {list(get_args(Strictness))}.")
    missing = [name for name in expected if name not in given]
    extra = [name for name in given if name not in expected]
    mistyped = [name for name in expected if name in given and not _has_type(given[name], expected[name])]
    wrong = {
        "exact": missing + extra + mistyped,
        "partial": extra + mistyped or ([] if given else missing),
    }.get(strictness, missing + mistyped)
    problems = [("missing", missing), ("not expected", extra), ("of another type", mistyped)]
    reason = "; ".join(f"{what}: {', '.join(names)}" for what, names in problems if names) or "all as expected"
    return MetricResult(score=float(not wrong), reason=reason, is_score_valid=not wrong)


def _has_type(value: Any, schema: Any) -> bool:
    declared = schema.get("type", "any") if isinstance(schema, Mapping) else schema
    fits = _CHECKS.get(declared) if isinstance(declared, str) else None
    return fits is None or fits(value)
