# SPDX-License-Identifier: Apache-2.0
"""Hostile programs in zygotes: none gets out, none stays, and the next one works."""

from __future__ import annotations

import os
import socket
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from reward_kit.models import ExecResult
from reward_kit.sandbox.python.pool import PythonZygote
from tests.sandbox.python.zygotes import LIMITS, descendants, working_zygotes

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform != "linux", reason="zygotes need Linux"),
]

WHAT_A_ZYGOTE_HAS_MB = 50
"""A program shares the memory of its zygote: it counts as its own, but not against its limit."""


async def refused(zygotes: PythonZygote, code: str) -> ExecResult:
    """Run what must end in an `OSError`."""
    result = await zygotes.run(code)
    assert result.exit_code == 1 and "[Errno" in result.stderr, result
    return result


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(60)",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import signal, time\nfor n in {*range(1, 32)} - {9, 19}: signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)",
        "import os, time\nif os.fork(): time.sleep(60)\nos.setsid(); time.sleep(60)",
        "import threading; threading.Event().wait()",
    ],
)
async def test_time(zygotes: PythonZygote, code: str) -> None:
    result = await zygotes.run(code, timeout=0.5)
    assert result.timed_out and result.exit_code is None
    assert result.wall_seconds >= 0.5


async def test_no_time_at_all(zygotes: PythonZygote) -> None:
    assert (await zygotes.run("while True: pass", timeout=0.0)).timed_out


@pytest.mark.parametrize("before", ["", "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"])
async def test_cpu_time(zygotes: PythonZygote, before: str) -> None:
    result = await zygotes.run(before + "while True: pass", limits=replace(LIMITS, cpu_seconds=1.0, timeout=60))
    assert result.timed_out and result.cpu_seconds is not None and 0.5 <= result.cpu_seconds < 4


@pytest.mark.parametrize(
    "code",
    [
        "x = []\nwhile True: x.append(bytearray(1 << 20))",
        "import mmap\nx = mmap.mmap(-1, 1 << 30)\nfor n in range(0, 1 << 30, 4096): x[n] = 1",
        "import os\nf = [open(d + '/f' + str(n), 'wb') for d in ('/tmp', '.') for n in range(16)]\n"
        "while True:\n    for g in f: g.write(bytes(100000)); g.flush()",
    ],
    ids=["anonymous", "shared", "files"],
)
async def test_memory(zygotes: PythonZygote, code: str) -> None:
    result = await zygotes.run(code, timeout=15)
    assert not result.ok and not result.timed_out
    assert result.oom_killed or "Error" in result.stderr
    assert (result.peak_memory_bytes or 0) <= (LIMITS.memory_mb + WHAT_A_ZYGOTE_HAS_MB) << 20


async def test_memory_of_all_processes_together(zygotes: PythonZygote) -> None:
    code = """
import os, time
children = []
for _ in range(4):
    if not (pid := os.fork()):
        x = bytearray(60 << 20); time.sleep(1); os._exit(0)
    children.append(pid)
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children])
"""
    result = await zygotes.run(code)
    assert not result.ok or "-9" in result.stdout
    assert (result.peak_memory_bytes or 0) <= (LIMITS.memory_mb + WHAT_A_ZYGOTE_HAS_MB) << 20


async def test_memory_is_told_from_other_ends(zygotes: PythonZygote) -> None:
    killed = await zygotes.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert (killed.signal, killed.oom_killed, killed.timed_out) == (9, False, False)


async def test_processes(zygotes: PythonZygote) -> None:
    bomb = (
        "import os\nn = 0\ntry:\n    while os.fork(): n += 1\n    import time; time.sleep(60)\nexcept OSError: print(n)"
    )
    result = await zygotes.run(bomb)
    assert result.ok and int(result.stdout) < LIMITS.processes
    assert (
        await zygotes.run("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", timeout=1)
    ).timed_out


async def test_threads(zygotes: PythonZygote) -> None:
    code = "import threading\nfor _ in range(100): threading.Thread(target=threading.Event().wait, daemon=True).start()"
    assert "can't start new thread" in (await zygotes.run(code)).stderr


async def test_file_sizes(zygotes: PythonZygote) -> None:
    code = f"f = open('big', 'wb', 0); f.seek({LIMITS.file_size_mb << 20}); f.write(b'x')"
    assert "File too large" in (await refused(zygotes, code)).stderr


async def test_many_files(zygotes: PythonZygote) -> None:
    code = "n = 0\ntry:\n    while True: open(f'/tmp/{n}', 'w').close(); n += 1\nexcept OSError as e: print(e.strerror)"
    assert (await zygotes.run(code)).stdout in ("No space left on device\n", "")


async def test_open_files(zygotes: PythonZygote) -> None:
    code = "import os\nwhile True: os.open('/dev/null', 0)"
    assert "Too many open files" in (await refused(zygotes, code)).stderr


@pytest.mark.parametrize("stream", [1, 2])
async def test_endless_output(zygotes: PythonZygote, stream: int) -> None:
    result = await zygotes.run(
        f"import os\nos.write({stream}, b'begin')\nwhile True: os.write({stream}, b'x' * 65536)", timeout=1
    )
    kept = (result.stdout, result.stderr)[stream - 1]
    assert result.timed_out and result.truncated and kept.startswith("begin") and kept.endswith("xxx")
    assert len(kept) <= LIMITS.output_bytes + 100


async def test_output_that_is_not_text(zygotes: PythonZygote) -> None:
    result = await zygotes.run("import os; os.write(1, bytes(range(256)) + b'\\x1b[2J\\0')")
    assert result.ok and result.stdout.startswith("\0\x01") and result.stdout.endswith("\x1b[2J\0")


# ── what it can see and touch ────────────────────────────────────────────────────────────────────────────────────────


async def test_files_of_the_host(zygotes: PythonZygote, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("do not read")
    for path in (secret, Path(__file__), Path("/etc/shadow"), Path("/etc/hostname"), Path.home(), Path("/var/log")):
        await refused(zygotes, f"import os; os.stat({str(path)!r}); open({str(path)!r})")
    climb = "import os\nos.chdir('/')\nfor _ in range(9): os.chdir('..')\nprint(sorted(os.listdir()))"
    assert "var" not in (await zygotes.run(climb)).stdout and "home" not in (await zygotes.run(climb)).stdout


@pytest.mark.parametrize("path", ["/x", "/usr/x", "/etc/x", "/etc/passwd", "/dev/x", "/proc/sys/kernel/hostname"])
async def test_writing_outside(zygotes: PythonZygote, path: str) -> None:
    await refused(zygotes, f"open({path!r}, 'w')")


async def test_deleting_everything(zygotes: PythonZygote) -> None:
    places = ["/etc", "/dev", "/box", "/tmp", "/proc/sys", "/usr/lib/python3", f"{sys.base_prefix}/lib"]
    code = f"import shutil\nfor place in {places}: shutil.rmtree(place, ignore_errors=True)"
    await zygotes.run(code, timeout=2)
    assert (await zygotes.run("import wave; print(wave.__name__)")).stdout == "wave\n"


async def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "secret-of-the-host")
    code = "import os, pathlib\nprint(dict(os.environ))\n"
    code += "for p in pathlib.Path('/proc').glob('[0-9]*'):\n    try: print(p.joinpath('environ').read_bytes())\n"
    code += "    except OSError as e: print(e)"
    async with working_zygotes() as zygotes:
        result = await zygotes.run(code)
    assert result.ok and "secret-of-the-host" not in result.output and "API_KEY" not in result.output


async def test_processes_of_the_host(zygotes: PythonZygote) -> None:
    look = "import os; print(sorted(filter(str.isdigit, os.listdir('/proc'))), os.getppid())"
    assert (await zygotes.run(look)).stdout == "['1', '2'] 0\n"


async def test_killing_everything(zygotes: PythonZygote) -> None:
    code = "import os, signal\nfor pid in (1, -1, 0):\n    try: os.kill(pid, signal.SIGKILL)\n    except OSError: pass"
    assert (await zygotes.run(code)).signal == 9
    await zygotes.run("import os\nfor pid in range(3, 70000):\n    try: os.kill(pid, 9)\n    except OSError: pass")


async def test_network(zygotes: PythonZygote) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0.2)
        port = tcp.getsockname()[1]
        await refused(zygotes, f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
        await refused(zygotes, "import socket; socket.create_connection(('192.0.2.1', 80), 2)")
        await refused(zygotes, "import socket; socket.getaddrinfo('example.com', 80)")
        send = (
            f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp.getsockname()[1]}))"
        )
        await zygotes.run(send)
        with pytest.raises(TimeoutError):
            udp.recv(1)


async def test_abstract_sockets_of_the_host(zygotes: PythonZygote) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0reward-kit-test-{os.getpid()}")
        server.listen()
        name = f"'\\0reward-kit-test-{os.getpid()}'"
        await refused(zygotes, f"import socket; socket.socket(socket.AF_UNIX).connect({name})")


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket(40, socket.SOCK_STREAM)",
        "import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)",
        "import os; os.setuid(0)",
        "import os; os.chroot('/tmp')",
        "import os; os.mknod('/tmp/sda', 0o60666, os.makedev(8, 0))",
        "import socket; socket.sethostname('x')",
        "import time; time.clock_settime(time.CLOCK_REALTIME, 0)",
        "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (9999, 9999))\nopen('/no')",
        "open('/proc/1/mem')",
        "import os; os.listdir('/proc/1/fd')",
        "import os; os.readlink('/proc/1/root')",
        "open('/proc/self/oom_score_adj', 'w').write('-1000')",
        "open('/dev/mem')",
    ],
)
async def test_privileged_calls(zygotes: PythonZygote, code: str) -> None:
    result = await zygotes.run(code)
    assert result.exit_code == 1 and ("[Errno" in result.stderr or "not allowed to raise" in result.stderr), result


@pytest.mark.parametrize(
    "call",
    [
        "ptrace(16, 1, 0, 0)",
        "mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None)",
        "umount2(b'/proc', 2)",
        "unshare(0x10000000)",
        "setns(0, 0)",
        "syscall(321, 0, 0, 0)",
        "syscall(425, 1, 0)",
        "syscall(310, 1, 0, 0, 0, 0, 0)",
        "inotify_init()",
        "inotify_init1(0)",
    ],
)
async def test_calls_into_the_kernel(zygotes: PythonZygote, call: str) -> None:
    code = f"import ctypes, os; c = ctypes.CDLL(None, use_errno=True); print(c.{call}, os.strerror(ctypes.get_errno()))"
    assert (await zygotes.run(code)).stdout.startswith("-1 Operation not permitted")


async def test_what_is_in_memory_of_a_file_is_not_told(zygotes: PythonZygote) -> None:
    """Else one program could read some parts of large files, and another see which."""
    code = "import os; os.preadv(os.open('/usr/bin/env', 0), [bytearray(9)], 0, os.RWF_NOWAIT)"
    assert "[Errno 95]" in (await refused(zygotes, code)).stderr
    code = "import ctypes; print(ctypes.CDLL(None).syscall(451, 0, 0, 0, 0))"
    assert (await zygotes.run(code)).stdout == "-1\n"


async def test_names_of_the_host(zygotes: PythonZygote) -> None:
    mounts = await zygotes.run("print(open('/proc/self/mountinfo').read(), open('/proc/self/cgroup').read())")
    assert mounts.ok and "lowerdir=/usr" not in mounts.stdout and "reward-kit-zygote" not in mounts.stdout
    names = await zygotes.run("import os, socket; print(os.uname().nodename, socket.gethostname())")
    assert names.stdout == "sandbox sandbox\n"


async def test_the_audit_log(zygotes: PythonZygote) -> None:
    code = "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)"
    assert "[Errno 93]" in (await refused(zygotes, code)).stderr


async def test_set_user_id_programs(zygotes: PythonZygote) -> None:
    code = (
        "import subprocess; print(subprocess.run(['su', '-c', 'id'], capture_output=True, input=b'').returncode == 0)"
    )
    assert (await zygotes.run(code)).stdout in ("False\n", "")


async def test_only_its_own_descriptors_are_open(zygotes: PythonZygote) -> None:
    code = "import os\nprint([n for n in range(1000) if os.path.exists(f'/proc/self/fd/{n}')])"
    assert (await zygotes.run(code)).stdout == "[0, 1, 2]\n"


async def test_daemons_end_with_the_program(zygotes: PythonZygote) -> None:
    """And the output they hold open does not keep us waiting."""
    code = "import os, time\nif os.fork() == 0:\n    os.setsid(); os.fork(); time.sleep(600)\nprint('left')"
    result = await zygotes.run(code)
    assert result.stdout == "left\n" and result.wall_seconds < 600
    assert "sleep" not in str(descendants())


async def test_memory_holds_nothing_of_earlier_runs(zygotes: PythonZygote) -> None:
    mark = "-".join(["remember", "this"])
    await zygotes.run(
        f"print(input(), {mark!r}, open('f').read())", stdin=mark.encode() * 99, files={"f": mark.encode()}
    )
    search = """
found, mark = 0, b'-'.join([b'remember', b'this'])
memory = open('/proc/self/mem', 'rb', 0)
for line in open('/proc/self/maps'):
    begin, end = (int(part, 16) for part in line.split()[0].split('-'))
    if 'r' in line.split()[1] and '[v' not in line:
        memory.seek(begin)
        try: found += memory.read(end - begin).count(mark)
        except OSError: pass
print(found)
"""
    # Its own constant, and the copies the search makes of what it joins.
    assert int((await zygotes.run(search)).stdout) <= 4
    assert int((await zygotes.run("kept = 'remember-' + 'this'\n" * 1 + "x = [kept * 50]\n" + search)).stdout) > 4


async def test_signals_to_the_group_stay_inside(zygotes: PythonZygote) -> None:
    assert threading.active_count() >= 1
    result = await zygotes.run("import os, signal; os.killpg(0, signal.SIGTERM)")
    assert result.signal == 15
