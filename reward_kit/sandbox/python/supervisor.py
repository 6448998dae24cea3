# SPDX-License-Identifier: Apache-2.0
"""A zygote's supervisor: starts it, and runs in its sandboxes what reward-kit asks for, one thing at a time.

    reward-kit ─▶ supervisor ─▶ zygote, the first of its own process namespace ─▶ run ─▶ run ─▶ …

Started by `process`, in any interpreter: standard library only. When reward-kit or the supervisor goes, the
zygote goes, and the kernel ends whatever was in its process namespace.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reward_kit.sandbox.linux import syscalls
from reward_kit.sandbox.linux.cgroups import MemoryMeter, memory_group
from reward_kit.sandbox.output import Captured, CommandOutput
from reward_kit.sandbox.python.cell import (
    Cell,
    CellProgram,
    Forker,
    OwnerGoneError,
    Patience,
    ProgramEnd,
    StarvedError,
    Watch,
    file_of,
)
from reward_kit.sandbox.python.conversation import Conversation, FrameChannel, RequestOutcome
from reward_kit.sandbox.python.forker import fork_runs, settle
from reward_kit.sandbox.python.messages import Frame, lost, pack, receive

__all__ = ["main"]

_FIRST_UID = 1_600_000_000
_FEW_UIDS = range(20_000, 60_000)
_READY = b"ready"
_COMPLAINT_BYTES = 4096


def main(control: int) -> None:
    """Serve the reward-kit at the other end of this socket, until it goes."""
    owner = socket.socket(fileno=control)
    settings = receive(owner)
    if settings is None:
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    uid = _free_uid(os.getpid())
    try:
        privileged = _leave_processes()
        group = memory_group(settings.header["group"]) if settings.header["group"] else None
        meter = MemoryMeter(group) if group else None
    except OSError as error:
        owner.sendall(pack({"error": str(error)}))
        return
    zygote = os.fork()
    if not zygote:
        owner.close()
        ours.close()
        _zygote(theirs, settings.header, uid if privileged else os.getuid(), privileged)
    theirs.close()
    signal.signal(signal.SIGTERM, lambda *_: _end(zygote))
    _serve(Forker(ours, meter, owner), privileged)
    ours.close()
    os.waitpid(zygote, 0)
    if group:
        group.remove()  # reward-kit may have been killed, and does it only where it was not


def _end(zygote: int) -> None:
    os.kill(zygote, signal.SIGKILL)
    os.waitpid(zygote, 0)
    os._exit(1)


def _free_uid(number: int) -> int:
    """A user nobody else is, nor the next, because the kernel counts a user's processes all together."""
    with open("/proc/self/uid_map", encoding="ascii") as rows:
        most = sum(int(row.split()[2]) for row in rows)
    if most > _FIRST_UID * 2:
        return _FIRST_UID + 2 * number
    return _FEW_UIDS[2 * number % len(_FEW_UIDS)]


def _leave_processes() -> bool:
    """Have the next fork begin a process namespace. As an ordinary user, in a user namespace: False."""
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        with contextlib.suppress(PermissionError):
            syscalls.unshare(syscalls.CLONE_NEWPID)
            return True
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWPID)
    for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(content)
    return False


def _zygote(supervisor: socket.socket, settings: Mapping[str, Any], uid: int, privileged: bool) -> None:
    """Be the zygote, and never return."""
    try:
        slot = settle(settings, uid, privileged)
    except BaseException as error:  # noqa: BLE001 - a module of `preload` may raise anything; reward-kit is told
        supervisor.send(f"{type(error).__name__}: {error}".encode()[:_COMPLAINT_BYTES])
        os._exit(1)
    supervisor.send(_READY)
    fork_runs(slot, supervisor)
    os._exit(0)


def _serve(forker: Forker, privileged: bool) -> None:
    """Answer requests. What the kernel refused once is not tried again here: a new zygote takes over."""
    owner = forker.owner
    word = forker.connection.recv(_COMPLAINT_BYTES)
    if word != _READY:
        owner.sendall(pack({"error": word.decode(errors="replace") or "it died as it was starting"}))
        return
    owner.sendall(pack({"privileged": privileged, "memory": forker.meter is not None}))
    with contextlib.suppress(OwnerGoneError, BrokenPipeError, ConnectionResetError):
        while request := receive(owner):
            try:
                answer = _REQUESTS[request.header["do"]](forker, request)
            except OSError as error:
                owner.sendall(pack({"error": str(error)}))
                return
            owner.sendall(answer)


# ── the request `run` ─────────────────────────────────────────────────────────────────────────────────────────────────
#
# A program with its input and files in, its output and how it ended out.

_CHUNK = 1 << 16


class _Pipes:
    """The two output streams of a program."""

    def __init__(self, most: int) -> None:
        self._output = CommandOutput(most)
        (out, out_writer), (err, err_writer) = os.pipe(), os.pipe()
        self.writers = [out_writer, err_writer]
        self._take = {out: self._output.from_stdout, err: self._output.from_stderr}

    @property
    def readers(self) -> list[int]:
        return list(self._take)

    def read(self, reader: int) -> bool:
        """Read once; False at the end of the stream."""
        data = os.read(reader, _CHUNK)
        self._take[reader](data)
        return bool(data)

    def finish(self) -> Captured:
        """Read what is left, now that nobody can write any more."""
        for reader in self.readers:
            while self.read(reader):
                pass
            os.close(reader)
        return self._output.captured()


def _run(forker: Forker, request: Frame) -> bytes:
    """Run one program; the answer to send."""
    header = request.header
    stdin, *task = request.blobs
    pipes = _Pipes(header["limits"]["output_bytes"])
    source = file_of(stdin)
    try:
        cell = Cell(forker, header["limits"], CellProgram([source, *pipes.writers], pack(header, *task)))
    finally:
        for descriptor in (source, *pipes.writers):
            os.close(descriptor)
    in_time = _watch(cell, forker, pipes, Patience(cell, header["timeout"]))
    ending = cell.end()
    captured = pipes.finish()
    both = captured.output if captured.stdout and captured.stderr else ""  # else it is one of the two
    texts = [text.encode() for text in (captured.stdout, captured.stderr, both)]
    return pack({**_ending(ending, in_time), "truncated": captured.truncated}, *texts)


def _watch(cell: Cell, forker: Forker, pipes: _Pipes, patience: Patience) -> bool:
    """Until the program ends, keep its pipes empty; False when its time is over."""
    watch = Watch(forker, cell)
    for reader in pipes.readers:
        watch.also(reader)
    try:
        while (ready := watch.wait(patience.deadline)) or not patience.is_over():
            for reader in pipes.readers:
                if reader in ready and not pipes.read(reader):
                    watch.no_more(reader)
            if watch.ended(ready):
                return True
    except (OwnerGoneError, StarvedError):
        cell.end()
        raise
    return False


def _ending(ending: ProgramEnd, in_time: bool) -> dict[str, Any]:
    """An ending, as it is sent. What was ended for its time did not end by itself."""
    timed_out = not in_time or ending.signal == signal.SIGXCPU
    return {
        "exit_code": None if timed_out else ending.exit_code,
        "signal": ending.signal,
        "timed_out": timed_out,
        "oom_killed": ending.oom_killed and in_time,
        "wall_seconds": ending.wall_seconds,
        "cpu_seconds": ending.cpu_seconds,
        "peak_memory_bytes": ending.peak_memory_bytes,
    }


# ── the request `call` ────────────────────────────────────────────────────────────────────────────────────────────────
#
# A function called with one set of arguments after another, each within its own limits.
#
#     load ─▶ call ─▶ call ─▶ (time is over, or it died: a new process loads the code) ─▶ call …


def _loading(forker: Forker, request: Frame, calls: int) -> Conversation:
    """A process that will load the code."""
    header = request.header
    allowed: float = header["limits"]["cpu_seconds"]
    # The limit of a process is for all its calls, so in a shared one each call's own is watched from here.
    limits = header["limits"] | {"cpu_seconds": allowed * (1 if header["isolated"] else 1 + calls)}
    (answers, answering), (requests, asked) = socket.socketpair(), socket.socketpair()
    with answering, asked, open("/dev/null", "r+b", buffering=0) as nowhere:
        streams = [*[nowhere.fileno()] * 3, answering.fileno(), asked.fileno()]
        cell = Cell(forker, limits, CellProgram(streams, pack(header, *request.blobs)))
    channel = FrameChannel(answers, header["answer_bytes"], requests)
    return Conversation(forker, cell, channel, (header["timeout"], allowed))


def _call(forker: Forker, request: Frame) -> bytes:
    """Make every call; the answer to send."""
    task = 1 + len(request.header["files"])
    calls = request.blobs[task:]
    outcomes = list(_outcomes(forker, Frame(request.header, request.blobs[:task]), calls))
    rows = [outcome._asdict() | {"content": None} for outcome in outcomes]
    return pack({"outcomes": rows}, *[outcome.content for outcome in outcomes])


def _outcomes(forker: Forker, task: Frame, calls: list[bytes]) -> Iterator[RequestOutcome]:
    """One outcome a call; fewer when it was asked to stop at failures, or after some time."""
    solution: Conversation | None = None
    isolated: bool = task.header["isolated"]
    to_lose: float = task.header["most_lost"]
    began = time.monotonic()
    try:
        for number, arguments in enumerate(calls):
            if solution is None or not solution.alive:
                solution = _loading(forker, task, len(calls))
                loaded = solution.begin()
                if loaded.kind != "loaded":
                    yield from [_while_loading(loaded)] * (len(calls) - number)
                    return
            outcome = solution.call(arguments, isolated=isolated)
            yield outcome
            failed = outcome.kind != "returned" and task.header["stop_early"]
            if outcome.kind == "timed_out":
                to_lose -= lost(task.header["timeout"], outcome.wall_seconds)
            if failed or to_lose <= 0 or time.monotonic() - began > task.header["look_after"]:
                return
    finally:
        if solution:
            solution.end()


def _while_loading(outcome: RequestOutcome) -> RequestOutcome:
    return outcome._replace(content=b"while the code was loaded: " + (outcome.content or b"its time was over"))


# ── the request `judge` ───────────────────────────────────────────────────────────────────────────────────────────────
#
# A test program and the code it tests, each in a process that the other cannot look into.
#
#     supervisor ── begin ─▶ the test program ── calls, plain values ─▶ the code under test
#                ◀─ verdict ─┘                ◀─ what it returned ────┘
#
# Both end together. The code under test holds neither the tests nor what they expect, nor any way to the supervisor.


def _judge(forker: Forker, request: Frame) -> bytes:
    """Run a test program against code; the answer to send."""
    trial = _beginning(forker, request)
    try:
        verdict = trial.begin()
    finally:
        trial.end()
    return pack({"verdict": verdict._asdict() | {"content": None}}, verdict.content)


def _beginning(forker: Forker, request: Frame) -> Conversation:
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
            CellProgram([*nothing, theirs.fileno(), asking.fileno()], pack(to_judge, tests, setup)),
            CellProgram([*nothing, answering.fileno()], pack(to_code, *code)),
        )
    channel = FrameChannel(ours, header["limits"]["output_bytes"])
    return Conversation(forker, cell, channel, (header["timeout"], header["limits"]["cpu_seconds"]))


_REQUESTS: Mapping[str, Callable[[Forker, Frame], bytes]] = {"run": _run, "call": _call, "judge": _judge}
