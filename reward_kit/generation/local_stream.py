"""The streamed choices of one request to the embedded model, put together again into a reply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["Choices"]


class Choices:
    """Collects the chunks of `count` choices as they arrive, interleaved."""

    def __init__(self, count: int) -> None:
        self.error: dict[str, Any] | None = None
        """What went wrong, if it did."""
        self._choices: list[dict[str, Any]] = [
            {"message": {"content": ""}, "finish_reason": None} for _ in range(count)
        ]
        self._usages: list[dict[str, Any]] = []

    @property
    def finished(self) -> bool:
        """Whether every choice came to its end."""
        return all(choice["finish_reason"] for choice in self._choices)

    def add(self, chunk: dict[str, Any]) -> None:
        """Take one chunk in."""
        if "error" in chunk:
            self.error = chunk["error"]
            return
        if chunk.get("usage"):
            self._usages.append(chunk["usage"])
        for part in chunk.get("choices", ()):
            choice = self._choices[part["index"]]
            choice["finish_reason"] = part.get("finish_reason") or choice["finish_reason"]
            _extend(choice["message"], part.get("delta") or {})

    def reply(self) -> dict[str, Any]:
        """The whole, as an endpoint would have sent it unstreamed, with the tokens of all choices."""
        return {"choices": self._choices, "usage": self._usage()}

    def _usage(self) -> dict[str, Any]:
        # Each choice tells its own tokens, and each the prompt that they share.
        cached = [(usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0) for usage in self._usages]
        return {
            "prompt_tokens": max(self._counts("prompt_tokens"), default=0),
            "completion_tokens": sum(self._counts("completion_tokens")),
            "prompt_tokens_details": {"cached_tokens": max(cached, default=0)},
        }

    def _counts(self, name: str) -> Iterator[int]:
        return (usage.get(name, 0) for usage in self._usages)


def _extend(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name in ("content", "reasoning_content"):
        if delta.get(name):
            message[name] = message.get(name, "") + delta[name]
    for part in delta.get("tool_calls") or ():
        calls: list[dict[str, Any]] = message.setdefault("tool_calls", [])
        while len(calls) <= part["index"]:
            calls.append({"id": "", "function": {"name": "", "arguments": ""}})
        call, function = calls[part["index"]], part.get("function") or {}
        call["id"] = part.get("id") or call["id"]
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""
