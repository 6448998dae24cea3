# SPDX-License-Identifier: Apache-2.0
"""Commands that mean harm, against the namespaces backend. After each of them the next task works, and nothing is left.

Every test has been seen to fail with the guard it is about taken away.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Limits, Sandbox, SandboxBackend, SandboxSpec
from reward_kit.sandbox.linux.capabilities import CONTAINER_CAPABILITIES
from tests.sandbox.every_backend import measures_of, opened
from tests.sandbox.leftovers import leftovers
from tests.sandbox.small_root import small_root
from tests.sandbox.waiting import enough_to_begin, until

SMALL = Limits(memory_mb=96, processes=40, timeout=10, cpu_seconds=20, file_size_mb=32, disk_mb=64, output_bytes=10_000)


@pytest.fixture
async def backend() -> AsyncIterator[SandboxBackend]:
    async with opened("namespaces") as backend:
        yield backend
        async with await backend.open(SandboxSpec(setup=("cd /tmp",))) as following:
            assert (await following.run("echo next")).output == "next\n"
            assert (await following.run_standalone("pwd")).output == "/tmp\n"
        await backend.close()
    assert leftovers() == []


@pytest.fixture
async def sandbox(backend: SandboxBackend) -> AsyncIterator[Sandbox]:
    async with await backend.open(SandboxSpec(limits=SMALL)) as sandbox:
        yield sandbox


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("the host's own")
    path.chmod(0o644)
    for parent in list(path.parents)[:3]:
        parent.chmod(0o755)
    return path


async def still_serves(sandbox: Sandbox) -> None:
    """A process of its own can still be run and be trusted."""
    assert (await sandbox.run_standalone("exit 5")).exit_code == 5


# ── seeing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_hosts_files_are_not_seen(sandbox: Sandbox, secret: Path) -> None:
    ways = [
        f"cat {secret}",
        f"cat /proc/1/root{secret} /proc/self/root{secret} /proc/*/root{secret} /proc/*/cwd/../../../../../..{secret}",
        f"mkdir -p /tmp/jail && cd /tmp/jail && cat ../../../../../../../..{secret}",
        'python3 -c \'import os; os.chroot("/tmp"); [os.chdir("..") for _ in range(99)]; os.chroot("."); '
        f'print(open("{secret}").read())\'',
        "cat /etc/shadow /etc/gshadow /etc/sudoers /root/.* /home/*/.*",
        f"debugfs -R 'cat {secret}' $(mknod /tmp/disk b 254 0 && echo /tmp/disk)",
    ]
    for way in ways:
        for call in (sandbox.run, sandbox.run_standalone):
            done = await call(f"{way} 2>/dev/null")
            assert done.stdout == "", way


async def test_the_hosts_processes_and_environment_are_not_seen(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "tok-of-the-host")
    everything = "cat /proc/*/environ /proc/*/cmdline /proc/*/task/*/environ 2>/dev/null | tr '\\0' '\\n'; env"
    done = await sandbox.run(everything)
    assert "tok-of-the-host" not in done.stdout
    assert "pytest" not in done.stdout
    assert "supervisor" not in done.stdout
    count = await sandbox.run("set -- /proc/[0-9]*; echo $#")
    assert int(count.stdout) <= 3


async def test_no_descriptor_of_ours_is_open_inside(sandbox: Sandbox) -> None:
    for call in (sandbox.run, sandbox.run_standalone):
        done = await call("bash -c 'echo /proc/$$/fd/*'", stdin=b"x")
        assert [Path(path).name for path in done.output.split()] in (
            ["0", "1", "2"],
            ["0", "1", "2", "255"],
            ["0", "1", "2", "3"],
        )
    first = await sandbox.run("echo /proc/1/fd/*")
    assert [Path(path).name for path in first.output.split()] == ["0"]


async def test_the_hosts_devices_cannot_be_opened(sandbox: Sandbox) -> None:
    root = os.stat("/").st_dev
    make = f"mknod /tmp/disk b {os.major(root)} {os.minor(root)}; mknod /dev/disk b {os.major(root)} {os.minor(root)}; "
    done = await sandbox.run(
        f"{make} head -c 1 /tmp/disk; head -c 1 /dev/disk; mknod /tmp/mem c 1 1; head -c 1 /tmp/mem"
    )
    assert done.stdout == ""
    assert not done.ok


# ── touching ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_hosts_devices_cannot_be_changed(sandbox: Sandbox) -> None:
    def modes() -> list[tuple[int, int, int]]:
        return [(found.st_mode, found.st_uid, found.st_mtime_ns) for found in map(os.stat, ("/dev/full", "/dev/zero"))]

    before = modes()
    try:
        await sandbox.run("chmod 640 /dev/full; chown 1 /dev/zero; touch -d 2001-01-01 /dev/zero; rm -f /dev/full")
        assert modes() == before
    finally:
        for path, (mode, owner, _) in zip(("/dev/full", "/dev/zero"), before, strict=True):
            with contextlib.suppress(PermissionError):
                os.chmod(path, mode & 0o7777)
                os.chown(path, owner, -1)
    usable = "echo x > /dev/null && head -c 3 /dev/zero | wc -c && head -c 2 /dev/urandom | wc -c; echo x > /dev/full"
    done = await sandbox.run(usable)
    assert done.stdout == "3\n2\n"
    assert "No space left" in done.stderr
    pty = "import pty; pty.spawn(['echo', 'a terminal'])"
    if (await sandbox.run("command -v python3")).ok:
        assert "a terminal" in (await sandbox.run(f'python3 -c "{pty}"')).output


async def test_writing_changes_nothing_outside(sandbox: Sandbox, secret: Path) -> None:
    places = [
        "/usr/hostile",
        "/etc/hostile",
        "/hostile",
        "/bin/hostile",
        "/tmp/hostile-file",
        f"{secret.parent}/hostile",
    ]
    await sandbox.run(f"mkdir -p {secret.parent}; for f in {' '.join(places)}; do echo x > $f; done; ls -l {places[0]}")
    assert (await sandbox.run(f"cat {places[0]}")).output == "x\n"
    assert [place for place in places if os.path.lexists(place)] == []


async def test_deleting_everything_harms_only_the_sandbox(backend: SandboxBackend, tmp_path: Path) -> None:
    image = small_root(tmp_path / "root", "bash", "rm")
    before = sorted(path.name for path in image.rglob("*"))
    async with await backend.open(SandboxSpec(image=str(image))) as sandbox:
        done = await sandbox.run("rm -rf --no-preserve-root / 2>/dev/null; echo over")
        assert done.output == "over\n"
        assert (await sandbox.run_standalone("true")).exit_code == 127
        assert (await sandbox.run("echo /*; echo the shell goes on")).output == "/dev /proc\nthe shell goes on\n"
        assert sorted(path.name for path in image.rglob("*")) == before


@pytest.mark.parametrize(
    "path",
    ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger",
     "/proc/irq/default_smp_affinity", "/proc/mtrr", "/sys/kernel/uevent_helper", "/sys/power/state",
     "/proc/sys/net/ipv4/ip_forward"],
)  # fmt: skip
async def test_the_kernels_settings_cannot_be_written(sandbox: Sandbox, path: str) -> None:
    before = Path(path).read_text() if path.endswith(("pattern", "hostname", "forward")) else ""
    done = await sandbox.run(f"test -e {path} && echo h > {path}")
    assert not done.ok
    assert not before or Path(path).read_text() == before


@pytest.mark.parametrize("directory", ["/tmp", "/usr/local", "/dev/shm"])
async def test_a_node_that_was_made_opens_no_device(sandbox: Sandbox, directory: str) -> None:
    done = await sandbox.run(f"mknod {directory}/zero c 1 5 && head -c 1 {directory}/zero | wc -c")
    assert done.stdout in ("", "0\n")
    assert re.search("permi|denied", done.stderr), done.stderr


async def test_what_proc_tells_of_the_host_is_hidden(sandbox: Sandbox) -> None:
    for name in ("keys", "timer_list", "sched_debug", "latency_stats", "acpi", "scsi"):
        assert (await sandbox.run(f"cat /proc/{name}; ls -A /proc/{name}/")).stdout == "", name


async def test_no_name_of_the_host_is_told(sandbox: Sandbox) -> None:
    """Neither where its files are, nor what it or our control group is called, nor how its kernel was started."""
    told = await sandbox.run("cat /proc/self/mounts /proc/self/mountinfo /proc/1/mountinfo /proc/self/cgroup")
    assert "overlay" in told.output and "reward-kit" not in told.output, told.output
    assert str(Path.home() / ".cache") not in told.output and str(Path.cwd()) not in told.output
    names = await sandbox.run("uname -n; hostname; cat /etc/hostname /proc/sys/kernel/hostname")
    assert set(names.output.split()) == {"sandbox"}, names.output
    assert (await sandbox.run("cat /proc/cmdline 2> /dev/null")).output == ""


async def test_the_audit_log_cannot_be_reached(sandbox: Sandbox) -> None:
    """By netlink, as by `auditctl` or a login; other netlink is needed to look at the network."""
    code = "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, {})"
    refused = await sandbox.run(f"python3 -c '{code.format(9)}'")
    assert "Protocol not supported" in refused.stderr
    assert (await sandbox.run(f"python3 -c '{code.format(0)}'")).ok


async def test_nothing_can_be_mounted(sandbox: Sandbox) -> None:
    for way in (
        "mount -t tmpfs none /mnt",
        "mount -o remount,dev,suid /",
        "mount --bind / /mnt",
        "umount /proc/sys",
        "unshare -m true",
        "unshare -U true",
        "unshare -r mount -t tmpfs none /mnt",
        "nsenter -t 1 -m true",
        "swapon /dev/zero",
    ):
        done = await sandbox.run(way)
        assert not done.ok, way
        assert re.search("permi|denied|superuser", done.stderr), done.stderr  # and not merely a typing error


CALLS = {
    "ptrace": "libc.ptrace(16, 1, 0, 0)",
    "attach": "libc.ptrace(0, 0, 0, 0)",
    "keyctl": "libc.syscall(250, 0, -3, 0)",
    "add_key": "libc.syscall(248, b'user', b'k', b'v', 1, -3)",
    "bpf": "libc.syscall(321, 5, 0, 0)",
    "perf": "libc.syscall(298, 0, 0, -1, -1, 0)",
    "userfaultfd": "libc.syscall(323, 0)",
    "io_uring": "libc.syscall(425, 8, b'\\0' * 200)",
    "vsock": "libc.socket(40, 1, 0)",
    "alg": "libc.socket(38, 5, 0)",
    "new user namespace": "libc.syscall(56, 0x10000011, 0, 0, 0, 0)",
    "handles": "libc.syscall(304, -100, b'\\0' * 200, 0)",
    "module": "libc.syscall(175, b'', 0, b'')",
    "reboot": "libc.syscall(169, 0xfee1dead, 672274793, 0)",
    "clock": "libc.syscall(227, 0, b'\\0' * 16)",
    "memory of others": "libc.syscall(310, 1, 0, 0, 0, 0, 0)",
    "personality": "libc.personality(0x0400000)",
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
@pytest.mark.parametrize("name", CALLS)
async def test_calls_into_the_kernel_are_refused(sandbox: Sandbox, name: str) -> None:
    if not (await sandbox.run("command -v python3")).ok:
        pytest.skip("no python3 in /usr")
    code = f"import ctypes; libc = ctypes.CDLL(None, use_errno=True); print({CALLS[name]}, ctypes.get_errno())"
    done = await sandbox.run("python3 -", stdin=code.encode())
    assert done.stdout == "-1 1\n", done.output


# ── the network ──────────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def listening(
    kind: socket.SocketKind, family: socket.AddressFamily, address: object
) -> Iterator[tuple[socket.socket, list[bytes]]]:
    """A server on the host that keeps what it is sent."""
    heard: list[bytes] = []
    with socket.socket(family, kind) as server:
        server.bind(address)  # type: ignore[arg-type]
        server.settimeout(0.2)
        done = threading.Event()

        def serve() -> None:
            if kind == socket.SOCK_STREAM:
                server.listen()
            while not done.is_set():
                with contextlib.suppress(TimeoutError):
                    if kind == socket.SOCK_STREAM:
                        connection, _ = server.accept()
                        connection.close()
                        heard.append(b"connected")
                    else:
                        heard.append(server.recv(100))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server, heard
        finally:
            done.set()
            thread.join()


async def _has_heard(*heard: list[bytes]) -> bool:
    return all(heard)


async def test_tcp_udp_and_names_reach_nothing(sandbox: Sandbox) -> None:
    with (
        listening(socket.SOCK_STREAM, socket.AF_INET, ("0.0.0.0", 0)) as (tcp, connected),
        listening(socket.SOCK_DGRAM, socket.AF_INET, ("0.0.0.0", 0)) as (udp, received),
    ):
        assert not (await sandbox.run(f"echo x > /dev/tcp/127.0.0.1/{tcp.getsockname()[1]}")).ok
        await sandbox.run(f"echo x > /dev/udp/127.0.0.1/{udp.getsockname()[1]}")
        assert not (await sandbox.run("timeout 3 bash -c 'echo x > /dev/tcp/1.1.1.1/53'")).ok
        assert not (await sandbox.run("timeout 3 getent hosts example.com")).ok
        with (
            socket.create_connection(("127.0.0.1", tcp.getsockname()[1])),
            socket.socket(type=socket.SOCK_DGRAM) as own,
        ):
            own.sendto(b"our own", ("127.0.0.1", udp.getsockname()[1]))
        await until(lambda: _has_heard(connected, received))
        assert (connected, received) == ([b"connected"], [b"our own"]), "what is heard comes in order: only ours did"
    interfaces = await sandbox.run("tail -n +3 /proc/net/dev | cut -d: -f1")
    assert interfaces.stdout.split() == ["lo"]


async def test_abstract_sockets_reach_nothing(sandbox: Sandbox) -> None:
    if not (await sandbox.run("command -v python3")).ok:
        pytest.skip("no python3 in /usr")
    name = f"reward-kit-test-{os.getpid()}"
    with listening(socket.SOCK_STREAM, socket.AF_UNIX, f"\0{name}") as (_, connected):
        code = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}')"
        assert not (await sandbox.run("python3 -", stdin=code.encode())).ok
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(f"\0{name}")
        await until(lambda: _has_heard(connected))
        assert connected == [b"connected"], "only our own"


async def test_the_network_is_there_when_asked_for(backend: SandboxBackend) -> None:
    with listening(socket.SOCK_STREAM, socket.AF_INET, ("127.0.0.1", 0)) as (tcp, connected):
        async with await backend.open(SandboxSpec(network=True)) as sandbox:
            assert (await sandbox.run(f"echo x > /dev/tcp/127.0.0.1/{tcp.getsockname()[1]}")).ok
        await until(lambda: _has_heard(connected))


# ── using up ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_fork_bomb_stays_small(sandbox: Sandbox) -> None:
    done = await sandbox.run(":(){ :|:& };: ; sleep 20", timeout=2)
    assert done.timed_out
    await still_serves(sandbox)


async def test_processes_are_counted(sandbox: Sandbox) -> None:
    done = await sandbox.run("for i in $(seq 100); do sleep 30 & done; jobs -r | wc -l")
    assert "fork" in done.stderr or "Resource" in done.stderr
    await still_serves(sandbox)


@pytest.mark.parametrize("where", ["a process", "/dev/shm"])
async def test_a_memory_bomb_is_killed(sandbox: Sandbox, where: str) -> None:
    if where == "a process":
        done = await sandbox.run_standalone("x=$(head -c 300M /dev/zero | tr '\\0' x); echo ${#x}")
    else:
        done = await sandbox.run_standalone(
            "for i in $(seq 12); do head -c 25M /dev/zero > /dev/shm/$i || exit 1; done; echo 300"
        )
    assert "300" not in done.stdout
    assert done.oom_killed or where != "a process"
    assert (done.peak_memory_bytes is not None) == measures_of("namespaces").peak
    assert (done.peak_memory_bytes or 0) <= 100 << 20
    await still_serves(sandbox)


@pytest.mark.parametrize(
    "before", ["", "for i in 1 2; do head -c 22M /dev/zero > /dev/shm/$i; done;"], ids=["processes", "and files"]
)
async def test_a_memory_bomb_of_many_together_is_killed(sandbox: Sandbox, before: str) -> None:
    grow = "(x=$(head -c 15M /dev/zero | tr '\\0' x); sleep 600; :) &"
    many = f"for i in $(seq {4 if before else 8}); do {grow} done"
    done = await sandbox.run_standalone(f"{before} {many}; wait -n; kill $(jobs -p); true", timeout=60)
    assert done.oom_killed
    await still_serves(sandbox)


HELD = """
import os
held = []
for number in range(30):
    held.append(os.memfd_create("m"))
    os.write(held[-1], bytes(20 << 20))
print("done")
"""


async def test_memory_that_is_only_open_is_bounded(sandbox: Sandbox) -> None:
    if not (await sandbox.run("command -v python3")).ok:
        pytest.skip("no python3 in /usr")
    done = await sandbox.run_standalone("python3 -", stdin=HELD.encode())
    assert "done" not in done.stdout
    assert done.oom_killed
    await still_serves(sandbox)


SOCKETS = """
import array, socket, sys, time
held = []
def fill(a):
    a.setblocking(False)
    try:
        for _ in range(64):
            a.send(bytes(60_000))
    except BlockingIOError:
        pass
def large(a, b):
    for each in (a, b):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    fill(a)
    return a, b
def stream():
    return large(*socket.socketpair())
def datagram():
    return large(*socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
def flying():
    pair = stream()
    carrier = socket.socketpair()
    numbers = array.array("i", [each.fileno() for each in pair])
    carrier[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
    return carrier
server = socket.create_server(("127.0.0.1", 0))
def tcp():
    a = socket.create_connection(server.getsockname())
    b, _ = server.accept()
    return large(a, b)
def udp():
    a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    b.bind(("127.0.0.1", 0)); a.connect(b.getsockname())
    return large(a, b)
def memory(each):
    account = array.array("I", each.getsockopt(socket.SOL_SOCKET, 55, 36))  # SO_MEMINFO
    return account[0] + max(account[2], account[5])
for _ in range(300):
    held += vars(sys.modules["__main__"])[sys.argv[1]]()
    time.sleep(0.01)
print("all of it", sum(map(memory, held)) >> 20, flush=True)
"""


@pytest.mark.parametrize("kind", ["stream", "datagram", "flying", "tcp", "udp"])
async def test_a_memory_bomb_in_sockets_is_killed(sandbox: Sandbox, kind: str) -> None:
    if not (await sandbox.run("command -v python3")).ok:
        pytest.skip("no python3 in /usr")
    done = await sandbox.run_standalone(f"python3 - {kind}", stdin=SOCKETS.encode())
    assert not done.timed_out
    if kind in ("tcp", "udp") and "all of it" in done.stdout:  # version 1 of control groups has an account for them
        assert int(done.stdout.split()[-1]) <= 110
    else:
        assert done.oom_killed
    await still_serves(sandbox)


FIRST_THREAD_ENDED = """
import ctypes, os, threading, time
def work():
    time.sleep(0.1)
    print("begun", flush=True)
    held = []
    while True:
        held += [bytes(bytearray(1 << 20)) for _ in range(GROWTH)]
        time.sleep(0.02)
        if len(held) > 300:
            print("all of it", flush=True)
            os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""


async def test_a_memory_bomb_whose_first_thread_has_ended_is_killed(sandbox: Sandbox) -> None:
    if not (await sandbox.run("command -v python3")).ok:
        pytest.skip("no python3 in /usr")
    done = await sandbox.run_standalone("python3 -", stdin=FIRST_THREAD_ENDED.replace("GROWTH", "2").encode())
    assert done.stdout == "begun\n"
    assert done.oom_killed
    await still_serves(sandbox)


async def test_a_process_whose_first_thread_has_ended_is_ended_in_time(sandbox: Sandbox) -> None:
    if not (await sandbox.run("command -v python3")).ok:
        pytest.skip("no python3 in /usr")
    code = FIRST_THREAD_ENDED.replace("GROWTH", "0")
    done = await sandbox.run("(setsid python3 - & sleep 60); true", stdin=code.encode(), timeout=2)
    assert done.timed_out
    async with asyncio.timeout(60):  # it has been killed, and may take a moment to go
        while (await sandbox.run("cat /proc/[0-9]*/comm | grep -c python")).output != "0\n":
            pass


async def test_a_file_cannot_be_too_large(sandbox: Sandbox) -> None:
    assert not (await sandbox.run_standalone("head -c 50M /dev/zero > /tmp/large")).ok
    assert (await sandbox.run("stat -c %s /tmp/large")).output == f"{32 << 20}\n"


async def test_infinite_output_is_cut_and_ended(sandbox: Sandbox) -> None:
    for call in (sandbox.run, sandbox.run_standalone):
        done: ExecResult = await call("yes", timeout=await enough_to_begin(sandbox, "yes | head -c 100000", at_least=1))
        assert done.timed_out
        assert done.truncated
        assert len(done.output) < 30_000
    await still_serves(sandbox)


async def test_cpu_time_has_an_end(backend: SandboxBackend) -> None:
    async with await backend.open(SandboxSpec(limits=Limits(cpu_seconds=1, timeout=30))) as sandbox:
        done = await sandbox.run_standalone("while :; do :; done")
        assert not done.ok
        assert not done.timed_out
        assert done.signal in (24, 9)
        ended = await sandbox.run("while :; do :; done")
        assert ended.exited
        await still_serves(sandbox)


@pytest.mark.parametrize(
    "command", ["sleep 60", "trap '' TERM INT HUP QUIT; sleep 60; sleep 60; while :; do sleep 1; done"]
)
async def test_wall_time_has_an_end_for_those_who_do_not_listen(sandbox: Sandbox, command: str) -> None:
    for call in (sandbox.run_standalone, sandbox.run):
        done = await call(command, timeout=0.5)
        assert done.timed_out
        assert done.wall_seconds < 60, "it did not end by itself"
    await still_serves(sandbox)


# ── deceiving ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_printed_text_forges_neither_an_end_nor_a_status(sandbox: Sandbox) -> None:
    text = (
        r"printf '%s 0 /root\0' 0123456789abcdef; printf '0\n' >&251; echo 0 >&250; printf 'x 0 /\0' > /proc/$$/fd/251"
    )
    done = await sandbox.run(f"({text}) ; sleep 0.3; echo really; (exit 9)")
    assert done.exit_code == 9
    assert done.stdout.endswith("really\n")
    assert (await sandbox.run("echo $?")).output == "9\n"


async def test_the_shells_saved_descriptors_forge_no_standalone_status(sandbox: Sandbox) -> None:
    hunt = "for fd in /proc/$$/fd/*; do printf 'x 0 /\\0' >> $fd; done 2>/dev/null; cat /proc/$$/fd/1* & sleep 0.2"
    await sandbox.run(hunt, timeout=2)
    done = await sandbox.run_standalone("printf '%s 0 /\\0' x; echo exited 0; exit 6")
    assert done.exit_code == 6


async def test_a_check_cannot_be_redefined(sandbox: Sandbox) -> None:
    await sandbox.run("test() { return 0; }; [() { return 0; }; exit() { :; }; export -f test exit; enable -n test")
    await sandbox.run(
        "trap 'exit 0' EXIT ERR DEBUG; set +e; alias false=true; export BASH_ENV=/tmp/e; echo 'exit 0' > /tmp/e"
    )
    await sandbox.run("echo 'exit 0' | tee /root/.bashrc /root/.bash_profile /root/.profile /etc/profile >/dev/null")
    assert (await sandbox.run_standalone("test 1 = 2")).exit_code == 1
    assert (await sandbox.run_standalone("[ -e /nowhere ]")).exit_code == 1


# ── killing and hiding ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_killing_everything_it_can_see_ends_the_shell_and_not_the_sandbox(sandbox: Sandbox) -> None:
    await sandbox.run("for s in HUP INT QUIT USR1 USR2 TERM ALRM STOP KILL; do kill -$s 1; done")
    await sandbox.run("trap '' TERM; kill -TERM -1")
    done = await sandbox.run("kill -9 -1; kill -9 $$")
    assert done.exited
    assert done.signal == 9
    await still_serves(sandbox)
    assert (await sandbox.run_standalone("kill -9 -1; exit 4")).exit_code == 4
    await still_serves(sandbox)


async def test_a_stopped_shell_is_ended_in_time(sandbox: Sandbox) -> None:
    done = await sandbox.run("kill -STOP $$; echo never", timeout=0.5)
    assert done.timed_out
    assert done.exited
    await still_serves(sandbox)


UNDUMPABLE = """
import ctypes, os, time
if os.fork() == 0:
    os.setsid()
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    while True:
        time.sleep(1)
print("begun", flush=True)
time.sleep(600)
"""


async def test_an_undumpable_process_is_ended_in_time(sandbox: Sandbox) -> None:
    if not (await sandbox.run("command -v python3")).ok:
        pytest.skip("no python3 in /usr")
    timeout = await enough_to_begin(sandbox, "python3 -c 'import ctypes'", at_least=1)
    done = await sandbox.run_standalone("python3 -", stdin=UNDUMPABLE.encode(), timeout=timeout)
    assert done.timed_out
    assert done.stdout == "begun\n"
    async with asyncio.timeout(60):  # it has been killed, and may take a moment to go
        while (await sandbox.run("cat /proc/[0-9]*/comm | grep -c python")).output != "0\n":
            pass


async def test_daemons_die_with_the_sandbox(backend: SandboxBackend) -> None:
    async with await backend.open(SandboxSpec()) as sandbox:
        await sandbox.run("setsid nohup sleep 1234567 >/dev/null 2>&1 & disown; (setsid sleep 1234567 &)")
        await sandbox.run_standalone("(setsid nohup sleep 1234567 >/dev/null 2>&1 &)")
        count = "cat /proc/*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o 'sleep [1]234567' | wc -l"

        async def all_are_there() -> bool:
            return (await sandbox.run(count)).output == "3\n"

        await until(all_are_there)
    commands = [_command_of(path) for path in Path("/proc").glob("[0-9]*")]
    assert not [command for command in commands if b"1234567" in command]


def _command_of(process: Path) -> bytes:
    """Its command line; nothing, where it has just ended."""
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


async def test_orphans_are_buried(sandbox: Sandbox) -> None:
    for _ in range(5):
        await sandbox.run("for i in 1 2 3 4 5 6 7 8 9 10; do (true &) ; done")

    async def none_is_left() -> bool:
        return (await sandbox.run("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '")).stdout == "0\n"

    await until(none_is_left)


@pytest.mark.parametrize(
    "command",
    [
        "exec sleep 60",
        "exec 250<&- 251>&- 0<&- 1>&- 2>&-; sleep 60",
        'for f in {3..300}; do eval "exec $f>&-"; done; sleep 60',
    ],
)
async def test_a_shell_that_makes_itself_unreachable_is_ended_in_time(sandbox: Sandbox, command: str) -> None:
    done = await sandbox.run(command, timeout=0.5)
    assert done.timed_out or done.exited
    await still_serves(sandbox)


# ── rights ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_rights_are_those_of_a_container_and_none_can_be_gained(sandbox: Sandbox) -> None:
    allowed = sum(1 << number for number in CONTAINER_CAPABILITIES.values())
    ways = [(sandbox.run, "self", "CapBnd|"), (sandbox.run_standalone, "self", "CapBnd|")]
    for run, process, bound in (*ways, (sandbox.run, "1", "")):  # the first process executes nothing
        look = f"grep -E '^({bound}CapPrm|CapEff|NoNewPrivs|Seccomp):' /proc/{process}/status"
        rights = dict(line.split(":\t") for line in (await run(look)).output.splitlines())
        assert rights.pop("NoNewPrivs") == "1"
        assert rights.pop("Seccomp") == "2"
        assert rights and all(int(held, 16) & ~allowed == 0 for held in rights.values()), rights


async def test_no_namespace_is_the_hosts(sandbox: Sandbox) -> None:
    for run in (sandbox.run, sandbox.run_standalone):
        for name in ("ipc", "mnt", "net", "pid", "uts"):
            inside = (await run(f"readlink /proc/self/ns/{name}")).output.strip()
            assert inside.startswith(f"{name}:") and inside != os.readlink(f"/proc/self/ns/{name}")


# ── links ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_links_lead_nowhere_out(sandbox: Sandbox, secret: Path) -> None:
    await sandbox.run(f"ln -s {secret} leak; ln -s ../../../../../../..{secret} up; ln -s /proc/1/root{secret} proc")
    await sandbox.run(f"ln -s {secret.parent} dir; ln -s /proc/self/cwd/../../../..{secret} self; ln -s loop loop")
    for name in ("leak", "up", "proc", "dir/secret", "self", "loop"):
        with pytest.raises(OSError):
            await sandbox.read(name)
    for name in ("leak", "up", "dir/new"):
        with contextlib.suppress(OSError):
            await sandbox.write(name, b"from inside")
    assert secret.read_text() == "the host's own"
    assert os.listdir(secret.parent) == ["secret"]


async def test_files_without_an_end_are_refused(sandbox: Sandbox) -> None:
    await sandbox.run("ln -s /dev/zero zero; mkfifo fifo; mknod tty c 5 0; truncate -s 1T huge || truncate -s 30M huge")
    for name in ("zero", "fifo", "tty", "/proc/kmsg", "/dev/stdin"):
        async with asyncio.timeout(60):
            with pytest.raises(OSError):
                await sandbox.read(name)
