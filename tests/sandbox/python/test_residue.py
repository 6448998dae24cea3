# SPDX-License-Identifier: Apache-2.0
"""Nothing of a run is left for the next one, nor for those that run at the same time: asked from inside."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from reward_kit.sandbox.python.pool import PythonZygote
from tests.sandbox.python.residue_programs import SIMPLE, WAYS
from tests.sandbox.python.zygotes import descendants, working_zygotes

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform != "linux", reason="zygotes need Linux"),
]

KNOWN = ("/gconv-modules.cache", "/locale-archive")
"""What the C library maps for all to read, and nobody can write."""
SHARED = """
found, name = [], ""
for line in open("/proc/self/smaps"):
    if "-" in line.split()[0]:
        name = line.split(None, 5)[5:] or [line]
    elif line.startswith("VmFlags:") and "sh" in line.split():
        found.append((name[0].strip(), "mw" in line.split()))
print(found)
"""


async def shared_memory(zygotes: PythonZygote) -> list[tuple[str, bool]]:
    """Names of shared mappings in a program, and whether they can be made writable."""
    done = await zygotes.run(SHARED)
    assert done.ok, done
    return list(ast.literal_eval(done.stdout))


async def test_no_memory_is_shared(zygotes: PythonZygote) -> None:
    found = await shared_memory(zygotes)
    assert not [name for name, writable in found if writable or not name.endswith(KNOWN)], found


OWN = """
import mmap, os
from reward_kit.sandbox.linux import syscalls
shared, hidden = mmap.mmap(-1, 8192), mmap.mmap(-1, 4096, prot=mmap.PROT_EXEC)
shared[:4] = b"kept"
syscalls.own_shared_memory()
assert not syscalls.writable_together() and shared[:4] == b"kept"
if not os.fork():
    shared[:4] = b"left"
    os._exit(0)
os.wait()
assert shared[:4] == b"kept", "what one forked process writes is another's"
"""


async def test_memory_that_a_library_shares_becomes_its_own() -> None:
    """With what it held. In a process of its own: the memory of this one stays as it is."""
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", OWN], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


async def test_the_ways_are_tried_rightly(zygotes: PythonZygote) -> None:
    """One program that leaves something finds it again by each way that is its own to use."""
    extra = "import mmap\nkept = mmap.mmap(-1, 4096)\n"
    found = set[str]()
    for _ in range(50):  # the kernel clears sockets in flight away when it likes, which may be at once
        done = await zygotes.run(WAYS + extra + "leave(b'42'); print(sorted(look()))")
        assert done.ok, done
        found |= set(ast.literal_eval(done.stdout))
        if found >= set(SIMPLE):
            return
    raise AssertionError(f"never found again: {set(SIMPLE) - found}")


async def test_nothing_is_left_for_the_next(zygotes: PythonZygote) -> None:
    for _ in range(2):
        assert (await zygotes.run(WAYS + "leave(b'42')")).ok
        done = await zygotes.run(WAYS + "print(look())")
        assert done.stdout == "{}\n", done


async def test_nothing_is_told_to_the_tests_process(zygotes: PythonZygote) -> None:
    """Nor does the code under test reach the process that judges it, or the other way round."""
    leaving, looking = WAYS + "leave(b'42')\n", WAYS + "def f(): return look()\n"
    told = await zygotes.judge(leaving + looking, [WAYS + "from solution import f\nassert f() and not look()"])
    assert told.ok, told
    told = await zygotes.judge(looking, [leaving + "from solution import f\nassert look() and not f()"])
    assert told.ok, told


# ── what the kernel counts for a program ─────────────────────────────────────────────────────────────────────────────


async def test_the_network_begins_anew(zygotes: PythonZygote) -> None:
    code = """
import os, socket
server = socket.create_server(("127.0.0.1", 8765))
client = socket.create_connection(("127.0.0.1", 8765))
server.accept()[0].close(); client.recv(1); client.close(); server.close()
"""
    look = """
import os
for name in ("tcp", "udp", "unix", "raw", "packet", "netlink"):
    print(name, len(open("/proc/self/net/" + name).readlines()) - 1)
print("carried", sum(map(int, open("/proc/self/net/dev").read().split("lo:")[1].split())))
rows = open("/proc/self/net/snmp").read().split("Tcp: ")[2].split()
print("opened", rows[4], rows[5])
"""
    expected = (await zygotes.run(look)).stdout
    assert "carried 0" in expected and "opened 0 0" in expected and "tcp 0" in expected
    assert "opened 1 1" in (await zygotes.run(code + look)).stdout
    assert (await zygotes.run(look)).stdout == expected


async def test_what_the_machine_counts_is_not_shown(zygotes: PythonZygote) -> None:
    done = await zygotes.run("import os; print([n for n in os.listdir('/proc') if not n.isdigit()])")
    assert set(ast.literal_eval(done.stdout)) <= {"self", "thread-self"}
    assert (await zygotes.run("print({l.split(':')[2].strip() for l in open('/proc/self/cgroup')})")).stdout in (
        "{'/'}\n",
        "set()\n",
    )


async def test_processes_begin_anew(zygotes: PythonZygote) -> None:
    code = "import os\nfor _ in range(20):\n    pid = os.fork()\n    pid or os._exit(0)\n    os.wait()\nprint(pid)"
    first = (await zygotes.run(code)).stdout
    assert (await zygotes.run(code)).stdout == first == "22\n"


# ── those that run at the same time ──────────────────────────────────────────────────────────────────────────────────

LOCKED = [
    "/dev/null",
    "/dev/zero",
    "/etc/passwd",
    "/etc/ld.so.cache",
    "/usr/bin/env",
    "/proc/self/fd/0",
    sys.executable,
]
LOCK = f"""
import fcntl, os, struct, time
def places():
    for path in {LOCKED}:
        for mode in (os.O_RDWR, os.O_RDONLY):
            try: yield path, os.open(path, mode)
            except OSError: continue
            break
"""


TAKE = f"""{LOCK}
taken = 0
for path, fd in places():
    try: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError: pass  # two names of one device
    else: taken += 1
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 42, 1, 0))
"""
HOLD = f"{TAKE}\ntime.sleep(600)\n"
LOOK = f"""{LOCK}
for path, fd in places():
    try: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError: print("flock " + path)
    found = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 42, 1, 0))
    if struct.unpack("hhqqi4x", found)[0] != fcntl.F_UNLCK: print("fcntl " + path)
    os.close(fd)
"""


def locks_held() -> int:
    """How many locks the processes have that the test has started, as the machine sees it."""
    ours = descendants()
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return sum(row[1] == "FLOCK" and int(row[4]) in ours for row in rows)


_LONG = 600.0
"""Seconds a program may take. The one that looks is slow on a busy machine, and the locks must be held until then."""


async def _run(zygotes: PythonZygote, code: str, *, called: bool) -> object:
    """What a program prints, or what a function that does the same returns."""
    if not called:
        return (await zygotes.run(code, timeout=_LONG)).stdout
    lines = textwrap.indent(code, "    ").replace("print(", "found_all.append(")
    function = f"def f():\n    found_all = []\n{lines}\n    return str(found_all or '')"
    [outcome] = await zygotes.call(function, "f", [[]], timeout=_LONG)
    assert outcome.ok, outcome
    return outcome.value


@pytest.mark.parametrize("called", [False, True])
async def test_locks_are_not_seen_by_the_programs_of_another_zygote(*, called: bool) -> None:
    if os.geteuid():
        pytest.skip("an ordinary user's programs have the machine's own devices")
    async with working_zygotes(2) as zygotes:
        # Not all of them can be seen everywhere: an interpreter under /tmp has another name inside.
        can_be_taken = int(str(await _run(zygotes, f"{TAKE}\nprint(taken)\n", called=called)).strip("[]\n"))
        assert can_be_taken >= len(LOCKED) - 2
        holding = asyncio.ensure_future(_run(zygotes, HOLD, called=called))
        while locks_held() < can_be_taken:
            await asyncio.sleep(0.05)
            assert not holding.done(), holding.result()
        assert await _run(zygotes, LOOK, called=called) == ""
        assert not holding.done()
        holding.cancel()
        await asyncio.wait([holding])
