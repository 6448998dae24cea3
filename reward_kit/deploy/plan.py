# SPDX-License-Identifier: Apache-2.0
"""What a deployment will do, as data: it can be shown, done, written down, and undone later from what was written.

    Plan ── Step ── Action      a folder of files, a command, a request, or a first call of what was deployed

Texts inside of actions may stand for what is known only later: `${role.arn}` is a fact that an earlier step found out,
`${secret:api_key}` a value that is never shown and never written down.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from reward_kit.errors import DeployError
from reward_kit.redaction import MASK

__all__ = [
    "ACTION",
    "Action",
    "Command",
    "FirstCall",
    "ListTools",
    "Plan",
    "ReadFile",
    "RemoveFile",
    "Request",
    "Start",
    "Step",
    "Stop",
    "UnknownFactError",
    "WriteFiles",
    "WriteSecret",
    "fact_at",
    "filled",
    "shown",
]

_PLACE = re.compile(r"\$\{(?P<name>[a-z_]+(?:[.:][A-Za-z0-9_-]+)?)\}")
_SECRET = "secret:"


class UnknownFactError(DeployError):
    """Something that an action names is not known yet."""


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WriteFiles(_Plain):
    """Put files into a folder of their own."""

    kind: Literal["files"] = "files"
    folder: str
    names: tuple[str, ...]
    digest: str
    """Of names and contents; the contents themselves are held by whoever carries the plan out."""


class Command(_Plain):
    """Run a program."""

    kind: Literal["command"] = "command"
    argv: tuple[str, ...]
    stdin: str | None = None
    environment: dict[str, str] = {}
    """Variables for the program, beside those that are set. A secret goes here or into `stdin`, never into `argv`."""
    missing: str = ""
    """Where the program fails and says this (a pattern), what it was asked about is not there."""
    follow: bool = False
    """Whether its output goes straight to whoever asked, until it ends."""


class Request(_Plain):
    """Ask a service for something."""

    kind: Literal["request"] = "request"
    service: str
    operation: str
    parameters: dict[str, Any] = {}
    """`{"$file": NAME, "sha256": DIGEST}` stands for the bytes of a file that was built."""
    missing: str = ""
    """Where the service refuses with this code (a pattern), what it was asked about is not there."""
    fine: str = ""
    """Where it refuses with this code, it is as it should be already."""
    again: str = ""
    """Where it refuses and says this, it is asked again for a while: one part of it has not heard of another."""


class Start(_Plain):
    """Start a program that goes on running when the command is done."""

    kind: Literal["start"] = "start"
    argv: tuple[str, ...]
    folder: str
    log: str
    pid_file: str
    """Where the program writes its own number first, so that it is known even if nobody lives to hear of it."""
    ready: str = ""
    """What it writes to its log when it is ready. It is waited for; empty: nothing is."""
    environment: dict[str, str] = {}


class Stop(_Plain):
    """End a program that `Start` started, if it is still that one."""

    kind: Literal["stop"] = "stop"
    pid_file: str
    marker: str
    """A word of its command line that no other program has: its number may have been given to another since."""


class ReadFile(_Plain):
    """Read a small file of this machine."""

    kind: Literal["read"] = "read"
    path: str


class WriteSecret(_Plain):
    """Put a secret into a file that nobody else can read."""

    kind: Literal["secret"] = "secret"
    path: str
    value: str


class RemoveFile(_Plain):
    """Take a file away."""

    kind: Literal["remove"] = "remove"
    path: str


class FirstCall(_Plain):
    """Have the deployed reward judge one answer."""

    kind: Literal["call"] = "call"
    url: str
    auth: Literal["open", "api-key", "google", "aws"]
    key: Annotated[Command | Request | ReadFile, Field(discriminator="kind")] | None = None
    """For `api-key`: how the key is read."""
    region: str = ""
    """For `aws`."""
    patience: float = 60.0
    """Seconds for which it is tried again while nobody answers."""
    sample: dict[str, Any]
    is_own: bool = False
    """Whether somebody gave the sample, so that a reward that cannot judge it is a failure."""


class ListTools(_Plain):
    """Have a deployed MCP server say which tools it has."""

    kind: Literal["tools"] = "tools"
    url: str
    auth: Literal["open", "google"]
    patience: float = 60.0


Action = Annotated[
    WriteFiles | Command | Request | Start | Stop | ReadFile | WriteSecret | RemoveFile | FirstCall | ListTools,
    Field(discriminator="kind"),
]
ACTION: TypeAdapter[Action] = TypeAdapter(Action)


class Step(_Plain):
    """One thing that will exist."""

    name: str
    title: str
    """What it is, such as `the IAM role 'reward-x'`."""
    look: Action | None = None
    """Finds out whether it is there. Without one, it is made each time."""
    make: tuple[Action, ...] = ()
    change: tuple[Action, ...] = ()
    """Done instead of `make` where `look` found it."""
    facts: dict[str, str] = {}
    """What later steps need to know of it: name → where that is in an answer, such as `Role.Arn|Arn`."""
    replaces: bool = False
    """Whether what the step made before must be gone before it makes another."""
    absent: str = ""
    """What to say where `look` does not find it and nothing here makes it."""
    remove: tuple[Action, ...] = ()
    """What takes it away again. Without any, it stays: other deployments may need it."""

    def digest(self) -> str:
        """Changes whenever what the step does changes."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def actions(self) -> Iterator[Action]:
        """What the step may do when it is carried out."""
        yield from () if self.look is None else (self.look,)
        yield from self.make
        yield from self.change


class Plan(_Plain):
    """Everything that a deployment is."""

    target: str
    before: tuple[Command, ...] = ()
    """What was run on this machine to make the plan; shown, and not run again."""
    steps: tuple[Step, ...]
    url: str
    """Where the reward can be called."""
    auth: str
    """What a caller must bring, in a few words."""
    key: str = ""
    """How somebody can read the endpoint's key, where it has one."""
    key_from: Annotated[Command | Request | ReadFile, Field(discriminator="kind")] | None = None
    """The same, as an action; where it finds none, a key is made."""
    status: tuple[Action, ...] = ()
    logs: tuple[Action, ...] = ()
    remarks: tuple[str, ...] = ()

    def secrets(self) -> set[str]:
        """The names of the secrets that the plan needs."""
        found = _PLACE.finditer(self.model_dump_json())
        return {match["name"].removeprefix(_SECRET) for match in found if match["name"].startswith(_SECRET)}


# ── what is known only later ─────────────────────────────────────────────────────────────────────────────────────────

T = TypeVar("T", bound=_Plain)


def filled(action: T, facts: Mapping[str, str], secrets: Mapping[str, str] | None = None) -> T:
    """The action with facts in their places; and secrets too, where they are given."""

    def known(name: str) -> str:
        if name.startswith(_SECRET):
            return "${" + name + "}" if secrets is None else secrets[name.removeprefix(_SECRET)]
        if name not in facts:
            raise UnknownFactError(
                f"{name!r} is not known, and a step before should have found it out. Please report it."
            )
        return facts[name]

    return _replaced(action, known)


def shown(action: T, facts: Mapping[str, str]) -> T:
    """The action as it may be shown before it is done: without secrets, and saying what is not known yet."""

    def public(name: str) -> str:
        return MASK if name.startswith(_SECRET) else facts.get(name, f"<{name}>")

    return _replaced(action, public)


def _replaced(action: T, replace: Callable[[str], str]) -> T:
    plain = _walk(action.model_dump(), lambda text: _PLACE.sub(lambda match: replace(match["name"]), text))
    return type(action).model_validate(plain)


def _walk(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _walk(held, change) for key, held in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_walk(held, change) for held in value]
    return value


def fact_at(answer: Any, places: str) -> str | None:
    """What an answer holds at the first of the places, such as `Role.Arn|Arn`, that it has."""
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except ValueError:
            return answer.strip() if places == "" else None
    for place in places.split("|"):
        held = answer
        for part in place.split("."):
            held = held.get(part) if isinstance(held, Mapping) else None
        if held is not None:
            return str(held)
    return None
