# SPDX-License-Identifier: Apache-2.0
"""Two programs: one leaves a text wherever it can, the other looks for it everywhere.

Each way is tried by itself, so that one that is refused does not keep the others from being tried.
"""

from __future__ import annotations

WAYS = r"""
import ctypes, fcntl, glob, os, signal, socket, struct, sys

_libc = ctypes.CDLL(None, use_errno=True)
_KEY = 0x5EC2E7
_BEGIN, _END = b"<<answers:", b">>"
_SIZE = 4096


def _mappings():
    for line in open("/proc/self/maps"):
        place, permissions = line.split()[:2]
        begin, end = (int(part, 16) for part in place.split("-"))
        yield begin, end, permissions


def _shared_places():
    "Memory that others may have, the last bytes first: a stack grows down."
    return [(begin, end) for begin, end, permissions in _mappings() if permissions[3] == "s" and permissions[1] == "w"]


class memory:
    def leave(text):
        for begin, end in _shared_places():
            ctypes.memmove(begin, text, min(len(text), end - begin))

    def look():
        for begin, end in _shared_places():
            yield ctypes.string_at(begin, end - begin)


class files:
    places = ["/tmp", "/box", "/dev/shm", "/", "/usr", "/usr/lib", "/etc", "/dev", "/var/tmp", "/run", sys.prefix]

    def leave(text):
        for place in files.places:
            try:
                with open(place + "/residue", "wb") as file:
                    file.write(text)
            except OSError:
                pass

    def look():
        for place in files.places:
            for path in glob.glob(place + "/residue"):
                yield open(path, "rb").read()


class descriptors:
    def leave(text):
        for number in range(3, 64):
            try:
                os.pwrite(number, text, 0)
            except OSError:
                pass
        try:
            with open("/proc/self/fd/0", "wb") as file:
                file.write(text)
        except OSError:
            pass

    def look():
        for number in (0, *range(3, 64)):
            try:
                yield os.pread(number, _SIZE, 0)
            except OSError:
                pass


class segments:
    def leave(text):
        _libc.shmat.restype = ctypes.c_void_p
        place = _libc.shmat(_libc.shmget(_KEY, _SIZE, 0o1666), None, 0)
        ctypes.memmove(place, text, len(text))

    def look():
        _libc.shmat.restype = ctypes.c_void_p
        number = _libc.shmget(_KEY, 0, 0)
        if number >= 0:
            yield ctypes.string_at(_libc.shmat(number, None, 0), _SIZE)


class messages:
    def leave(text):
        data = ctypes.create_string_buffer(struct.pack("l", 1) + text)
        _libc.msgsnd(_libc.msgget(_KEY, 0o1666), data, len(text), 0o4000)

    def look():
        number, data = _libc.msgget(_KEY, 0), ctypes.create_string_buffer(_SIZE + 8)
        if number >= 0 and _libc.msgrcv(number, data, _SIZE, 0, 0o4000) > 0:
            yield data.raw[8:]


class semaphores:
    "One for each bit."

    def leave(text):
        bits = [int(bit) for byte in text for bit in f"{byte:08b}"]
        number = _libc.semget(_KEY, len(bits), 0o1666)
        for place, bit in enumerate(bits):
            _libc.semctl(number, place, 16, ctypes.c_long(bit))

    def look():
        for count in range(8 * 200, 8 * 8, -8):
            number = _libc.semget(_KEY, count, 0)
            if number >= 0:
                bits = "".join(str(_libc.semctl(number, place, 12)) for place in range(count))
                yield bytes(int(bits[place : place + 8], 2) for place in range(0, count, 8))
                return


class queues:
    def leave(text):
        rt = ctypes.CDLL("librt.so.1")
        attributes = (ctypes.c_long * 8)(0, 4, 1024)
        queue = rt.mq_open(b"/residue", os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666, attributes)
        rt.mq_send(queue, text[:1024], min(len(text), 1024), 0)

    def look():
        rt, data = ctypes.CDLL("librt.so.1"), ctypes.create_string_buffer(1024)
        queue = rt.mq_open(b"/residue", os.O_RDWR | os.O_NONBLOCK)
        if queue >= 0 and rt.mq_receive(queue, data, 1024, None) > 0:
            yield data.raw


class keys:
    def leave(text):
        for keyring in (-2, -3, -4, -5):
            _libc.syscall(248, b"user", b"residue", text, len(text), keyring)

    def look():
        for keyring in (-2, -3, -4, -5):
            found = _libc.syscall(250, 10, keyring, b"user", b"residue", 0)
            data = ctypes.create_string_buffer(_SIZE)
            if found >= 0 and _libc.syscall(250, 11, found, data, _SIZE) > 0:
                yield data.raw


class in_flight:
    "Sockets that nobody has but their own queues, with a name that stays until the kernel clears them away."

    def leave(text):
        for number, byte in enumerate(text):
            server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            server.bind(b"\0residue-%d-%d" % (number, byte))
            server.connect(b"\0residue-%d-%d" % (number, byte))
            socket.send_fds(server, [b"x"], [server.fileno()])

    def look():
        names = {}
        for path in ("/proc/net/unix", "/proc/self/net/unix"):
            try:
                for line in open(path):
                    if "@residue-" in line:
                        number, byte = line.split("@residue-")[1].split("-")
                        names[int(number)] = int(byte)
            except OSError:
                pass
        yield bytes(names[number] for number in sorted(names))


class connections:
    "Ports that wait after their connections were closed, one for each byte and its place."

    def leave(text):
        for number, byte in enumerate(text[:60]):
            server = socket.socket()
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", 10000 + number * 256 + byte))
            server.listen()
            client = socket.create_connection(server.getsockname())
            accepted, _ = server.accept()
            accepted.close()
            client.recv(1)
            client.close()
            server.close()

    def look():
        found = {}
        for path in ("/proc/net/tcp", "/proc/self/net/tcp"):
            try:
                rows = open(path).read().splitlines()[1:]
            except OSError:
                continue
            for row in rows:
                port = int(row.split()[1].split(":")[1], 16) - 10000
                if 0 <= port < 60 * 256 and int(row.split()[3], 16) == 6:
                    found[port // 256] = port % 256
        # What is too long for it was cut; its end is added here.
        yield bytes(found[number] for number in sorted(found)) + _END


class counters:
    "Bytes that the only network interface has carried, two more for each number."

    def leave(text):
        receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        receiver.bind(("127.0.0.1", 0))
        sender.sendto(b"x" * 1000, receiver.getsockname())

    def look():
        for path in ("/proc/net/dev", "/proc/self/net/dev"):
            try:
                words = open(path).read().split("lo:")[1].split()
            except OSError:
                continue
            if int(words[0]):
                yield _BEGIN + b"any" + _END


class names:
    def leave(text):
        try:
            socket.sethostname(text.decode()[:60])
        except OSError:
            pass
        for path in ("/proc/self/comm", "/proc/1/comm", "/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname"):
            try:
                open(path, "wb").write(text[:60])
            except OSError:
                pass
        for path in glob.glob("/usr/lib/*")[:50]:
            try:
                os.setxattr(path, "user.residue", text)
            except OSError:
                pass

    def look():
        yield os.uname().nodename.encode() + _END
        for path in ("/proc/self/comm", "/proc/1/comm"):
            try:
                yield open(path, "rb").read() + _END
            except OSError:
                pass
        for path in glob.glob("/usr/lib/*")[:50]:
            try:
                yield os.getxattr(path, "user.residue")
            except OSError:
                pass


class times:
    "Times of files that all can see."

    def leave(text):
        for path in ("/usr/bin/env", "/dev/null", "/etc/passwd", sys.executable, "/usr", "/"):
            try:
                os.utime(path, (1234567890, 1234567890))
            except OSError:
                pass

    def look():
        for path in ("/usr/bin/env", "/dev/null", "/etc/passwd", sys.executable, "/usr", "/"):
            found = os.stat(path)
            if 1234567890 in (int(found.st_mtime), int(found.st_atime)):
                yield _BEGIN + b"any" + _END


class first_process:
    "What can be set of the processes that stay when the program has gone."

    def leave(text):
        import resource
        for pid in (1, os.getppid()):
            for work in (
                lambda: os.setpriority(os.PRIO_PROCESS, pid, 7),
                lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),
                lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (77, 77)),
                lambda: open(f"/proc/{pid}/oom_score_adj", "w").write("777"),
                lambda: open(f"/proc/{pid}/mem", "r+b"),
                lambda: pid and os.kill(pid, signal.SIGSTOP),
            ):
                try:
                    work()
                except (OSError, ValueError):
                    pass

    def look():
        import resource
        if os.getpriority(os.PRIO_PROCESS, 0) == 7 or 77 in resource.getrlimit(resource.RLIMIT_NOFILE):
            yield _BEGIN + b"any" + _END
        if open("/proc/self/oom_score_adj").read().strip() == "777":
            yield _BEGIN + b"any" + _END


ALL = [memory, files, descriptors, segments, messages, semaphores, queues, keys, in_flight, connections, counters,
       names, times, first_process]


def leave(text):
    for way in ALL:
        try:
            way.leave(_BEGIN + text + _END)
        except Exception as error:
            print(way.__name__, repr(error), file=sys.stderr)


def look():
    "What was found, by the name of the way."
    found = {}
    for way in ALL:
        try:
            for seen in way.look():
                if _BEGIN in seen:
                    found[way.__name__] = seen.split(_BEGIN, 1)[1].split(_END)[0]
        except Exception as error:
            print(way.__name__, repr(error), file=sys.stderr)
    return found
"""
"""Source of both: `leave(bytes)` and `look()`, which is empty where nothing was left."""

SIMPLE = [
    "memory",
    *("files", "segments", "messages", "semaphores", "queues"),
    *("in_flight", "connections", "counters"),
]
"""The ways by which a program can tell itself something, so that a test can see that they are tried rightly."""
