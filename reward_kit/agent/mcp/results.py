# SPDX-License-Identifier: Apache-2.0
"""What the result of an MCP tool call says to a model: its text. What is no text is named there, and not shown."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from reward_kit.agent.mcp.protocol import DONE_KEY, REWARD_KEY

__all__ = ["CallResult", "call_result"]

_MOST_PARTS = 1000


class CallResult(NamedTuple):
    """What came of a call."""

    text: str
    is_error: bool = False
    """Whether the tool says that it failed. Its text is for the model, which may do better."""
    structured: Any = None
    """The result as JSON, where the server gives it."""
    parts: list[dict[str, Any]] | None = None
    """Text and images as endpoints take them, where there is an image."""
    reward: float | None = None
    """What the call was worth, where the server says so in the result's `_meta`."""
    done: bool = False
    """Whether the server says there that the episode is over."""


def call_result(result: Mapping[str, Any]) -> CallResult:
    """Read a result of `tools/call`. What is not as the specification has it is passed over where that can be done."""
    content = result.get("content")
    parts = content[:_MOST_PARTS] if isinstance(content, list) else []
    texts = [_text_of(part) for part in parts if isinstance(part, dict)]
    if isinstance(content, list) and len(content) > _MOST_PARTS:
        texts.append(f"[{len(content) - _MOST_PARTS:,} further parts are left out]")
    structured = result.get("structuredContent")
    if not texts and structured is not None:
        texts = [json.dumps(structured, ensure_ascii=False)]
    text = "\n".join(texts).encode(errors="replace").decode()
    meta = result.get("_meta")
    said = meta if isinstance(meta, dict) else {}
    done = said.get(DONE_KEY) is True
    return CallResult(
        text, result.get("isError") is True, structured, _with_images(parts), _number(said.get(REWARD_KEY)), done
    )


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None  # type: ignore[arg-type]


def _with_images(parts: list[Any]) -> list[dict[str, Any]] | None:
    shown = [part for part in parts if isinstance(part, dict)]
    if not any(_is_image(part) for part in shown):
        return None
    return [_image(part) if _is_image(part) else {"type": "text", "text": _text_of(part)} for part in shown]


def _is_image(part: Mapping[str, Any]) -> bool:
    kind = part.get("mimeType")
    return part.get("type") == "image" and isinstance(part.get("data"), str) and str(kind).startswith("image/")


def _image(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{part['mimeType']};base64,{part['data']}"}}


def _text_of(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    if kind == "text":
        return str(part.get("text", ""))
    if kind in ("image", "audio"):
        return f"[{kind}: {part.get('mimeType', 'of unknown kind')}, {_size(part.get('data'))}, not shown]"
    if kind == "resource_link":
        return f"[resource: {part.get('name', '')} {part.get('uri', '')}]"
    if kind == "resource" and isinstance(resource := part.get("resource"), dict):
        if isinstance(text := resource.get("text"), str):
            return text
        return f"[resource: {resource.get('uri', '')}, {_size(resource.get('blob'))}, not shown]"
    return f"[a part of the unknown kind {str(kind)[:40]!r}, not shown]"


def _size(data: object) -> str:
    """How many bytes a text in Base64 stands for."""
    return f"{len(data.rstrip('=')) * 3 // 4:,} bytes" if isinstance(data, str) else "no data"
