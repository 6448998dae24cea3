"""The request `call`: a function called with one set of arguments after another, each within its own limits.

    load ─▶ call ─▶ call ─▶ (time is over, or it died: a new process loads the code) ─▶ call …

Standard library only.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

from reward_kit.sandbox.python.cell import Cell, Forker, Part
from reward_kit.sandbox.python.conversation import Conversation, Outcome
from reward_kit.sandbox.python.messages import Message, lost, pack

__all__ = ["call"]


def _loading(forker: Forker, request: Message, calls: int) -> Conversation:
    """A process that will load the code."""
    header = request.header
    allowed: float = header["limits"]["cpu_seconds"]
    # The limit of a process is for all its calls, so in a shared one each call's own is watched from here.
    limits = header["limits"] | {"cpu_seconds": allowed * (1 if header["isolated"] else 1 + calls)}
    ours, theirs = socket.socketpair()
    with theirs, open("/dev/null", "r+b", buffering=0) as nowhere:
        streams = [*[nowhere.fileno()] * 3, theirs.fileno()]
        cell = Cell(forker, limits, Part(streams, pack(header, *request.blobs)))
    return Conversation(forker, cell, ours, header["answer_bytes"], (header["timeout"], allowed))


def call(forker: Forker, request: Message) -> bytes:
    """Make every call; the answer to send."""
    task = 1 + len(request.header["files"])
    calls = request.blobs[task:]
    outcomes = list(_outcomes(forker, Message(request.header, request.blobs[:task]), calls))
    rows = [outcome._asdict() | {"content": None} for outcome in outcomes]
    return pack({"outcomes": rows}, *[outcome.content for outcome in outcomes])


def _outcomes(forker: Forker, task: Message, calls: list[bytes]) -> Iterator[Outcome]:
    """One outcome a call; fewer when it was asked to stop at failures, or after some time."""
    solution: Conversation | None = None
    isolated: bool = task.header["isolated"]
    to_lose: float = task.header["most_lost"]
    began = time.monotonic()
    try:
        for number, arguments in enumerate(calls):
            fresh = solution is None or not solution.alive
            if solution is None or not solution.alive:
                solution = _loading(forker, task, len(calls))
                loaded = solution.begin()
                if loaded.kind != "loaded":
                    yield from [_while_loading(loaded)] * (len(calls) - number)
                    return
            outcome = solution.call(arguments, isolated=isolated)
            yield outcome._replace(fresh=fresh or isolated)
            failed = outcome.kind != "returned" and task.header["stop_early"]
            if outcome.kind == "timed_out":
                to_lose -= lost(task.header["timeout"], outcome.wall_seconds)
            if failed or to_lose <= 0 or time.monotonic() - began > task.header["look_after"]:
                return
    finally:
        if solution:
            solution.end()


def _while_loading(outcome: Outcome) -> Outcome:
    return outcome._replace(content=b"while the code was loaded: " + (outcome.content or b"its time was over"))
