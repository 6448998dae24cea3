# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model: it knows the commands, and in its third answer to a task it only prints the command."""

import json
from collections.abc import Sequence
from pathlib import Path

from reward_kit.models import Message

_ROWS = map(json.loads, (Path(__file__).parent / "dataset.jsonl").read_text().splitlines())
_COMMANDS = {row["task"]: row["reference_command"] for row in _ROWS}


def answer(messages: Sequence[Message], draw: int) -> str:
    """The answer of this draw: the command alone, the command in a block, or one that does not do the work."""
    command = _COMMANDS.get(messages[-1].text, "true")
    return (command, f"This does it:\n```bash\n{command}\n```", f"echo {command}")[draw % 3]
