# SPDX-License-Identifier: Apache-2.0
"""`expected_query_result_transform` of a task: a small `lambda` that says whether a value is the wanted one.

The text comes from a task's file. It is read as a syntax tree and computed here: comparisons, arithmetic, `and`, `or`,
`not`, `in`, subscripts and a few functions; nothing else of Python is reached.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from reward_kit.errors import ConfigError

__all__ = ["read_transform"]

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs, "all": all, "any": any, "bool": bool, "float": float, "int": int, "len": len, "max": max, "min": min,
    "round": round, "set": set, "sorted": sorted, "str": str, "sum": sum,
}  # fmt: skip
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda one, other: one in other, ast.NotIn: lambda one, other: one not in other,
    ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_LONGEST = 2000


def read_transform(text: str) -> Callable[[Any], Any]:
    """The function that `text`, such as `lambda x: x >= 3`, describes; a `ConfigError` where it asks for more."""
    try:
        tree = ast.parse(text[: _LONGEST + 1].strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"The transform {text[:200]!r} is not a Python expression: {error}. Correct it.") from None
    if len(text) > _LONGEST or not isinstance(tree, ast.Lambda) or len(tree.args.args) != 1:
        raise ConfigError(f"The transform {text[:200]!r} is not 'lambda x: …' with one parameter. Write it so.")
    name, body = tree.args.args[0].arg, tree.body
    _check(body, name, text)
    return lambda value: _value(body, {name: value})


def _check(node: ast.expr, name: str, text: str) -> None:
    """Refuse what `_value` does not know, before anything runs."""
    for part in ast.walk(node):
        known = isinstance(
            part,
            ast.BoolOp | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Call | ast.Constant | ast.Name | ast.Subscript
            | ast.List | ast.Tuple | ast.IfExp | ast.expr_context | ast.operator | ast.unaryop | ast.cmpop | ast.boolop,
        )  # fmt: skip
        if isinstance(part, ast.BinOp):
            known = type(part.op) in _BINARY
        elif isinstance(part, ast.UnaryOp):
            known = type(part.op) in _UNARY
        elif isinstance(part, ast.Name):
            known = part.id == name or part.id in _FUNCTIONS
        elif isinstance(part, ast.Call):
            known = isinstance(part.func, ast.Name) and part.func.id in _FUNCTIONS and not part.keywords
        if not known:
            raise ConfigError(
                f"The transform {text[:200]!r} uses {ast.unparse(part)[:80]!r}, which is not computed here. Use "
                f"comparisons, arithmetic and {', '.join(_FUNCTIONS)}; or judge in the reward function."
            )


def _value(node: ast.expr, names: dict[str, Any]) -> Any:  # noqa: C901, PLR0911, PLR0912 - one branch for each kind of node
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name] if name in names else _FUNCTIONS[name]
        case ast.BoolOp(op=op, values=values):
            found: Any = None
            for each in values:
                found = _value(each, names)
                if bool(found) is isinstance(op, ast.Or):
                    return found
            return found
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left, names), _value(right, names))
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_value(operand, names))
        case ast.Compare(left=left, ops=ops, comparators=others):
            one = _value(left, names)
            for how, right in zip(ops, others, strict=True):
                other = _value(right, names)
                if not _COMPARE[type(how)](one, other):
                    return False
                one = other
            return True
        case ast.Call(func=func, args=args):
            return _value(func, names)(*(_value(each, names) for each in args))
        case ast.Subscript(value=value, slice=place):
            return _value(value, names)[_value(place, names)]
        case ast.IfExp(test=test, body=body, orelse=other):
            return _value(body if _value(test, names) else other, names)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_value(each, names) for each in parts]
    raise AssertionError(f"unchecked: {node!r}")
