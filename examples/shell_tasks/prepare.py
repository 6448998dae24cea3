# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl` and `answers.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write them elsewhere.

The tasks stand for NL2Bash (`jiacheng-ye/nl2bash`, some 9,000 sentences with a command each). That set has no success
conditions. Here a condition says whether a command did its work, so any command that does counts as right.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent


class Task(NamedTuple):
    """What is asked, what prepares the sandbox, the condition of success, and a command that does the work."""

    id: str
    task: str
    setup_commands: list[str]
    success_condition: str
    difficulty_level: int
    reference_command: str


TASKS = [
    Task(
        "empty-file",
        "Create an empty file called 'notes.txt' in the current directory.",
        ["mkdir -p work", "cd work"],
        "test -f notes.txt",
        1,
        "touch notes.txt",
    ),
    Task(
        "directories",
        "Create the directory 'reports/2024' inside the current directory, with every directory above it.",
        ["mkdir -p project", "cd project"],
        "test -d reports/2024",
        1,
        "mkdir -p reports/2024",
    ),
    Task(
        "delete",
        "Delete the file 'old.log'.",
        ["mkdir -p logs", "cd logs", "touch old.log new.log"],
        "test ! -e old.log && test -e new.log",
        1,
        "rm old.log",
    ),
    Task(
        "copy",
        "Copy 'report.txt' to 'backup.txt', keeping the original.",
        ["mkdir -p docs", "cd docs", "echo figures > report.txt"],
        "cmp report.txt backup.txt",
        1,
        "cp report.txt backup.txt",
    ),
    Task(
        "sort",
        "Sort the lines of 'names.txt' alphabetically and write them to 'sorted.txt'.",
        ["mkdir -p lists", "cd lists", r"printf 'mia\nada\nzoe\n' > names.txt"],
        r"""test "$(tr '\n' ' ' < sorted.txt)" = 'ada mia zoe '""",
        2,
        "sort names.txt > sorted.txt",
    ),
    Task(
        "count",
        "Count the lines of 'access.log' and write the number alone to 'count.txt'.",
        ["mkdir -p www", "cd www", "seq 42 > access.log"],
        'test "$(cat count.txt)" = 42',
        2,
        "wc -l < access.log > count.txt",
    ),
    Task(
        "executable",
        "Make the script 'deploy.sh' executable for its owner.",
        ["mkdir -p bin", "cd bin", r"printf '#!/bin/sh\necho ok\n' > deploy.sh", "chmod 644 deploy.sh"],
        "test -x deploy.sh",
        1,
        "chmod u+x deploy.sh",
    ),
    Task(
        "todos",
        "Find every file below 'src' that contains the word TODO, and write their paths, sorted, to 'todo.txt'.",
        [
            "mkdir -p src/a src/b",
            "echo TODO > src/a/x.py",
            "echo done > src/a/y.py",
            "echo '# TODO later' > src/b/z.py",
        ],
        'test "$(cat todo.txt)" = "$(printf \'src/a/x.py\\nsrc/b/z.py\')"',
        3,
        "grep -rl TODO src | sort > todo.txt",
    ),
]


def answered_rows(task: Task, right: bool) -> list[dict[str, Any]]:
    """A task with two answers: one that only prints the command, and one that may be right."""
    row = task._asdict()
    question = {"role": "user", "content": row.pop("task")}
    texts = [f"echo {task.reference_command}", task.reference_command if right else "I cannot do that."]
    return [{**row, "messages": [question, {"role": "assistant", "content": text}]} for text in texts]


def main(folder: Path) -> None:
    """Write both files."""
    stored = [row for number, task in enumerate(TASKS) for row in answered_rows(task, right=number % 4 != 3)]
    for name, lines in (("dataset.jsonl", [task._asdict() for task in TASKS]), ("answers.jsonl", stored)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{len(lines)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
