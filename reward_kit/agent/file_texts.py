# SPDX-License-Identifier: Apache-2.0
"""What a model is shown of a file: its text, or that it has none."""

from __future__ import annotations

import codecs

from reward_kit.agent.tools import ToolError

__all__ = ["file_text"]


def file_text(path: str, content: bytes, most: int | None = None) -> str:
    """The text of a file, cut after `most` bytes; a `ToolError` with its size where it is binary, and no text."""
    kept = content[:most]
    try:
        if 0 not in kept:
            # A cut may go through a character, whose first bytes are left out then.
            return codecs.getincrementaldecoder("utf-8")().decode(kept, final=len(kept) == len(content))
    except UnicodeDecodeError:
        pass
    raise ToolError(f"{path!r} is a binary file of {len(content):,} bytes. It holds no UTF-8 text to show.", "not_text")
