"""Tokens with a position: what a parser looks at, takes and insists on."""

from __future__ import annotations

from typing import Final

from reward_kit.mathematics.tokens import END, Token, Unreadable

__all__ = ["MAX_DEPTH", "TokenStream"]

MAX_DEPTH: Final = 60
"""Deeper nesting is not read."""


class TokenStream:
    """A list of tokens, read from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def _peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else END

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _is(self, text: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token.text == text and token.kind in ("mark", "command")

    def _accept(self, text: str) -> bool:
        if self._is(text):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise Unreadable(f"expected {text!r} and found {self._peek().text!r}")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")
