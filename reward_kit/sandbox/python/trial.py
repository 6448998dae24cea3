"""The request `judge`: a test program and the code it tests, each in a process that the other cannot look into.

    supervisor ── begin ─▶ the test program ── calls, plain values ─▶ the code under test
               ◀─ verdict ─┘                ◀─ what it returned ────┘

Both end together. The code under test holds neither the tests nor what they expect, nor any way to the supervisor.
Standard library only.
"""

from __future__ import annotations

import socket

from reward_kit.sandbox.python.cell import Cell, Forker, Part
from reward_kit.sandbox.python.conversation import Conversation
from reward_kit.sandbox.python.messages import Message, pack

__all__ = ["judge"]


def judge(forker: Forker, request: Message) -> bytes:
    """Run a test program against code; the answer to send."""
    trial = _beginning(forker, request)
    try:
        verdict = trial.begin()
    finally:
        trial.end()
    return pack({"verdict": verdict._asdict() | {"content": None}}, verdict.content)


def _beginning(forker: Forker, request: Message) -> Conversation:
    header = request.header
    tests, setup, *code = request.blobs
    to_judge = {name: header[name] for name in ("do", "entry_point", "modules", "stop_early")}
    to_code = {"do": "serve", "source": header["source"], "files": header["files"]}
    ours, theirs = socket.socketpair()
    asking, answering = socket.socketpair()
    with theirs, asking, answering, open("/dev/null", "r+b", buffering=0) as nowhere:
        nothing = [nowhere.fileno()] * 3
        cell = Cell(
            forker,
            header["limits"],
            Part([*nothing, theirs.fileno(), asking.fileno()], pack(to_judge, tests, setup)),
            Part([*nothing, answering.fileno()], pack(to_code, *code)),
        )
    return Conversation(
        forker, cell, ours, header["limits"]["output_bytes"], (header["timeout"], header["limits"]["cpu_seconds"])
    )
