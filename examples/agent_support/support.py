# SPDX-License-Identifier: Apache-2.0
"""A support desk for home routers: an agent with tools, a customer with tools, and two databases.

The agent sees the provider's side: customers, lines, bills, visits. The customer stands beside the router and can look
at it, plug it in and restart it. What one side does shows on the other: a line that was reset lights up the router
after a restart. Whether a conversation went well is read from the databases, not from what was said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reward_kit.agent import tool
from reward_kit.agent.environments.two_sided import Domain, TwoSided
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message, Sample

POLICY = (Path(__file__).parent / "policy.md").read_text(encoding="utf-8")


# ── the provider's side ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Provider:
    """What the provider knows."""

    names: dict[str, str] = field(default_factory=lambda: {"555-0101": "Ada Berg", "555-0102": "Ben Cole"})
    lines: dict[str, str] = field(default_factory=lambda: {"555-0101": "ok", "555-0102": "ok"})
    bills: dict[str, float] = field(default_factory=dict)
    visits: dict[str, str] = field(default_factory=dict)


class Desk:
    """The agent's tools."""

    def __init__(self) -> None:
        self.db = Provider()

    @tool(reads=True, on_the_loop=True)
    def find_customer(self, phone: str) -> dict[str, Any]:
        """Look a customer up: the name, and what is due.

        Args:
            phone: the number of the line, such as 555-0101
        """
        return {"name": self._known(phone), "due": self.db.bills.get(phone, 0.0)}

    @tool(reads=True, on_the_loop=True)
    def line_status(self, phone: str) -> str:
        """Say whether a line is ok, down, or suspended.

        Args:
            phone: the number of the line
        """
        self._known(phone)
        return self.db.lines[phone]

    @tool(on_the_loop=True)
    def reset_line(self, phone: str) -> str:
        """Reset a line that is down. The router finds it after a restart.

        Args:
            phone: the number of the line
        """
        self._known(phone)
        self.db.lines[phone] = "ok"
        return "The line was reset."

    @tool(on_the_loop=True)
    def book_visit(self, phone: str, day: str) -> str:
        """Send a technician.

        Args:
            phone: the number of the line
            day: a day of the week
        """
        self._known(phone)
        self.db.visits[phone] = day
        return f"A technician comes on {day}."

    def set_line(self, phone: str, state: str, due: float = 0.0) -> None:
        """Prepare a task."""
        self.db.lines[phone] = state
        if due:
            self.db.bills[phone] = due

    def _known(self, phone: str) -> str:
        if phone not in self.db.names:
            raise ValueError(f"There is no customer with the number {phone}.")
        return self.db.names[phone]


# ── the customer's side ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Home:
    """What is at the customer's home."""

    phone: str = "555-0101"
    plugged_in: bool = True
    broken: bool = False
    light: str = "green"


class Router:
    """The customer's tools."""

    def __init__(self, desk: Desk) -> None:
        self.db = Home()
        self._desk = desk

    @tool(reads=True, on_the_loop=True)
    def look(self) -> str:
        """Look at the light."""
        return self.db.light

    @tool(on_the_loop=True)
    def plug_in(self) -> str:
        """Put the plug into the socket."""
        self.db.plugged_in = True
        return self.restart()

    @tool(on_the_loop=True)
    def restart(self) -> str:
        """Switch the router off and on again, and look at its light."""
        line_is_ok = self._desk.db.lines[self.db.phone] == "ok"
        if not self.db.plugged_in:
            self.db.light = "off"
        else:
            self.db.light = "green" if line_is_ok and not self.db.broken else "red"
        return self.db.light

    def set_home(self, **changes: Any) -> None:
        """Prepare a task."""
        for name, value in changes.items():
            setattr(self.db, name, value)
        self.restart()

    def light_is(self, colour: str) -> bool:
        """Whether the light has a colour: what a task may ask for in the end."""
        return self.db.light == colour


def desk() -> Domain:
    """The domain as it is before a task."""
    provider = Desk()
    return Domain(policy=POLICY, tools=provider, user_tools=Router(provider))


# ── the customer ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Customer:
    """A customer who does what the agent asks for, and knows what the task says. A model could play this part."""

    def __init__(self, sample: Sample) -> None:
        self._knows: dict[str, str] = sample.columns["customer"]

    def reply(self, conversation: Sequence[Message]) -> Message | str:
        """Answer what was said last: to a tool's result with its colour, to the agent by what it asks for."""
        if not conversation:
            return self._knows["trouble"]
        last = conversation[-1]
        if last.role == "tool":
            return "It is green now, thank you. ###STOP###" if last.text == "green" else f"The light is {last.text}."
        said = last.text.lower()
        if re.search(r"is booked|must be paid|cannot help", said):
            return "All right, thank you. ###STOP###"
        for asked, answer in (
            ("phone number", f"My number is {self._knows['phone']}."),
            ("which day", f"{self._knows.get('day', 'Monday')}, please."),
        ):
            if asked in said:
                return answer
        for asked, action in (("plug", "plug_in"), ("restart", "restart"), ("light", "look")):
            if asked in said:
                return _using(action, f"u{len(conversation)}")
        return "I do not understand."


class Support(TwoSided):
    """The world: the desk and its customer."""

    def __init__(self, sample: Sample) -> None:
        super().__init__(sample, domain=desk, user=Customer, max_steps=60)


def _using(name: str, step: str) -> Message:
    """A turn in which the customer uses a tool."""
    call = ChatCompletionMessageToolCall(id=step, function=FunctionCall(name=name, arguments="{}"))
    return Message(role="user", content=None, tool_calls=[call])
