# SPDX-License-Identifier: Apache-2.0
"""Answers that were paid for: found again by key, kept in one file of JSON lines."""

from reward_kit.utils.lazy_names import lazy_names

TYPE_CHECKING = False
"""Type checkers take this to be true; `typing`, which has it too, is not imported for it."""

if TYPE_CHECKING:
    from reward_kit.generation.cache.responses import ResponseCache

__all__ = ["ResponseCache"]


if not TYPE_CHECKING:  # a type checker sees the import above, and no other
    __getattr__, __dir__ = lazy_names(globals(), {"ResponseCache": "reward_kit.generation.cache.responses"})
