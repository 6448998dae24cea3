# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write it elsewhere.

Four tasks in the form of tau2-bench, with the policy as the system prompt. They stand for the telecom tasks of that
benchmark (`sierra-research/tau2-bench`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PHONE = "555-0101"


def prepared(side: str, function: str, **arguments: Any) -> dict[str, Any]:
    return {"env_type": side, "func_name": function, "arguments": arguments}


def action(name: str, requestor: str = "assistant", **arguments: Any) -> dict[str, Any]:
    return {"action_id": name, "name": name, "requestor": requestor, "arguments": arguments}


def green() -> dict[str, Any]:
    return {**prepared("user", "light_is", colour="green"), "assert_value": True}


TASKS: list[dict[str, Any]] = [
    {
        "id": "line-down",
        "customer": {"phone": PHONE, "trouble": "My internet is gone since this morning."},
        "begins": [prepared("assistant", "set_line", phone=PHONE, state="down"), prepared("user", "set_home")],
        "asks": {
            "actions": [action("reset_line", phone=PHONE), action("restart", "user")],
            "env_assertions": [green()],
            "reward_basis": ["DB", "ENV_ASSERTION"],
        },
    },
    {
        "id": "unplugged",
        "customer": {"phone": PHONE, "trouble": "The router is dead after I cleaned the shelf."},
        "begins": [prepared("user", "set_home", plugged_in=False)],
        "asks": {
            "actions": [action("plug_in", "user")],
            "env_assertions": [green()],
            "reward_basis": ["DB", "ENV_ASSERTION"],
        },
    },
    {
        "id": "unpaid",
        "customer": {"phone": "555-0102", "trouble": "Nothing works, please reset my line."},
        "begins": [
            prepared("assistant", "set_line", phone="555-0102", state="suspended", due=42.5),
            prepared("user", "set_home", phone="555-0102"),
        ],
        "asks": {"actions": [], "communicate_info": ["42.50"], "reward_basis": ["DB", "COMMUNICATE"]},
    },
    {
        "id": "broken",
        "customer": {"phone": PHONE, "trouble": "The router blinks red all the time.", "day": "Friday"},
        "begins": [prepared("user", "set_home", broken=True)],
        "asks": {
            "actions": [action("book_visit", phone=PHONE, day="Friday")],
            "reward_basis": ["DB", "ACTION"],
        },
    },
]


def rows() -> list[dict[str, Any]]:
    """The rows of the dataset."""
    policy = (HERE / "policy.md").read_text(encoding="utf-8")
    return [
        {
            "id": task["id"],
            "messages": [{"role": "system", "content": policy}],
            "customer": task["customer"],
            "task": {
                "id": task["id"],
                "initial_state": {"initialization_actions": task["begins"]},
                "evaluation_criteria": task["asks"],
            },
        }
        for task in TASKS
    ]


def main(folder: Path) -> None:
    """Write the file."""
    made = rows()
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in made)
    (folder / "dataset.jsonl").write_text(text, encoding="utf-8")
    print(f"{len(made)} rows written to dataset.jsonl.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
