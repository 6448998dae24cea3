# SPDX-License-Identifier: Apache-2.0
"""What the mock model answers to a shell task: a plausible command by a few plain rules, in the forms models answer in.

It lets `reward-kit shell --model mock` show the whole way without a model. It is right about simple tasks only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from reward_kit.models import Message

__all__ = ["answer"]

_QUOTED = re.compile(r"""['"`](/?[\w.~/-]+)['"`]|(?<![\w/])(/[\w./-]*\w)""")
_RULES: tuple[tuple[str, str], ...] = (
    (r"\b(delete|remove)\b[^']*\bdirector", "rm -r {0}"),
    (r"\b(delete|remove)\b", "rm {0}"),
    (r"\bcreate\b[^']*\bfile\b", "touch {0}"),
    (r"\b(create|make)\b.*\bdirector", "mkdir -p {0}"),
    (r"\b(count|how many)\b.*\blines?\b", "wc -l < {0} > {last}"),
    (r"\b(copy|copies)\b", "cp {0} {last}"),
    (r"\b(rename|move)\b", "mv {0} {last}"),
    (r"\bsort\b", "sort {0} > {last}"),
    (r"\bexecutable\b", "chmod +x {0}"),
)
_FORMS = ("{json}", "<think>\nLet me see.\n</think>\n{json}", "```bash\n{command}\n```", "$ {command}")
"""Draws differ in form, as a model's answers do."""


def answer(messages: Sequence[Message], draw: int) -> str:
    """A command for the task in the last message; the same task and draw get the same one."""
    task = messages[-1].text.partition("\n\n")[0]
    command = _command(task)
    form = _FORMS[draw % len(_FORMS)]
    return form.replace("{json}", json.dumps({"command": command})).replace("{command}", command)


def _command(task: str) -> str:
    names = [first or second for first, second in _QUOTED.findall(task)]
    for pattern, command in _RULES:
        if names and re.search(pattern, task, re.IGNORECASE):
            return command.format(names[0], last=names[-1])
    return "echo 'Task completed'"
