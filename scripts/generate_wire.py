# SPDX-License-Identifier: Apache-2.0
"""Writes web/src/wire.ts: the types of reward_kit/viewer/wire.py as the page's own language has them."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "reward_kit" / "viewer" / "wire.py"
TARGET = ROOT / "web" / "src" / "wire.ts"
HEAD = """// SPDX-License-Identifier: Apache-2.0
// Made by scripts/generate_wire.py from reward_kit/viewer/wire.py. Do not edit: `make web` makes it anew.
"""
PLAIN = {"str": "string", "float": "number", "int": "number", "bool": "boolean", "None": "null", "Any": "unknown"}


def typescript(source: str) -> str:
    """The types of a module of TypedDicts, as TypeScript."""
    body = ast.parse(source).body
    parts = [HEAD]
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef):
            parts.append(_interface(node))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            parts.append(f"{_comment(_text(after), '')}export type {node.target.id} = {_type(node.value)};\n")
    return "\n".join(parts)


def _interface(node: ast.ClassDef) -> str:
    lines = [f"{_comment(ast.get_docstring(node), '')}export interface {node.name} {{"]
    for field, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            lines.append(f"{_comment(_text(after), '  ')}  {field.target.id}: {_type(field.annotation)};")
    return "\n".join([*lines, "}\n"])


def _text(node: ast.stmt | None) -> str | None:
    """The text under a field, where it has one."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return " ".join(node.value.value.split())
    return None


def _comment(text: str | None, indent: str) -> str:
    return f"{indent}/** {text} */\n" if text else ""


def _type(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=None):
            return "null"
        case ast.Name(id=name):
            return PLAIN.get(name, name)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            # `str | float | int` names the same type of the other language twice.
            return " | ".join(dict.fromkeys([*_type(left).split(" | "), *_type(right).split(" | ")]))
        case ast.Subscript(value=ast.Name(id="Literal"), slice=given):
            return " | ".join(_literal(value) for value in (given.elts if isinstance(given, ast.Tuple) else [given]))
        case ast.Subscript(value=ast.Name(id="list"), slice=of):
            inner = _type(of)
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key, value])):
            return f"Record<{_type(key)}, {_type(value)}>"
    raise SystemExit(
        f"{SOURCE.name}: {ast.unparse(node)!r} has no counterpart yet. Add it to scripts/{Path(__file__).name}."
    )


def _literal(node: ast.expr) -> str:
    assert isinstance(node, ast.Constant) and isinstance(node.value, str)
    return f'"{node.value}"'


if __name__ == "__main__":
    TARGET.write_text(typescript(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
