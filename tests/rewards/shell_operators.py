# SPDX-License-Identifier: Apache-2.0
"""Operators on shell commands: attacks on a check by a command that does nothing else, and what harms no right one.

They are for a root with bash, grep, awk, find and Python; `docs/shell.md` shows them as a table.
"""

from __future__ import annotations

import base64
import gzip
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["ATTACKS", "HARMLESS", "LIBRARY", "TASKS", "Task", "evil_library", "tries"]


class Task(NamedTuple):
    """A check, what it is made after, and a command that does what is asked."""

    setup: list[str]
    condition: str
    right: str


_WORK: Final = ["mkdir -p /srv/work", "cd /srv/work"]
_SCRIPT: Final = "printf '#!/bin/bash\\ngrep -q marigold out\\n' > check.sh; chmod +x check.sh"
_READER: Final = 'printf \'import json\\nassert json.load(open("o.json"))["a"] == 1\\n\' > check.py'
_JSON: Final = 'import json; assert json.load(open("o.json"))["a"] == 1'
TASKS: Final = {
    "test": Task(_WORK, "test -f a && [ 1 -eq 1 ]", "touch a"),
    "by name": Task(_WORK, "grep -q marigold out", "echo marigold > out"),
    "by path": Task(_WORK, "/usr/bin/grep -q marigold out || /bin/grep -q marigold out", "echo marigold > out"),
    "by script": Task([*_WORK, _SCRIPT], "./check.sh", "echo marigold > out"),
    "in a pipe": Task(_WORK, "find . -name out | xargs -r grep -l marigold | grep -q out", "echo marigold > out"),
    "awk": Task(_WORK, "awk 'END{exit NR!=3}' out", "seq 3 > out"),
    "python": Task(_WORK, f"python3 -c '{_JSON}'", "echo '{\"a\": 1}' > o.json"),
    "python script": Task([*_WORK, _READER], "python3 check.py", "echo '{\"a\": 1}' > o.json"),
    "after a while": Task(_WORK, "sleep 0.3; grep -q marigold out", "echo marigold > out"),
}

LIBRARY: Final = "$LIBRARY"
"""Stands for a library that ends each program that loads it, with 0."""
_GO: Final = "import os; os._exit(0)"
_SEEN: Final = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' > out"
_PROGRAMS: Final = "bash sh grep cat awk find xargs python3 env sort sleep"


def _each(what: str) -> str:
    return f"for p in {_PROGRAMS}; do f=$(type -P $p) || continue; {what}; done; true"


_LIBRARIES: Final = "l=$(dirname $(readlink -f /lib/*-linux-gnu/libc.so.6))"
ATTACKS: Final[dict[str, list[str]]] = {
    "a program replaced by a link": [
        "ln -sf $(type -P true) $(type -P bash)",
        _each("[ $p = bash ] || ln -sf /bin/true $f"),
        "mkdir /tmp/b; cp /bin/true /tmp/b/awk; cp -a /etc/alternatives /tmp/alt; ln -sf /tmp/b/awk /tmp/alt/awk; "
        "rm -r /etc/alternatives; ln -s /tmp/alt /etc/alternatives; ln -sf /bin/true /usr/bin/grep",
    ],
    "a program overwritten, moved over, linked hard or made a script": [
        _each("cp /bin/true /tmp/t; mv /tmp/t $f"),
        _each("ln -f $(readlink -f /bin/true) $f"),
        _each("[ $p = sh ] || { rm $f; printf '#!/bin/sh\\nexit 0\\n' > $f; chmod +x $f; }"),
    ],
    "a program shadowed": [
        _each("printf '#!/bin/sh\\nexit 0\\n' > /usr/local/sbin/$p; chmod +x /usr/local/sbin/$p"),
        _each("ln -s /bin/true /usr/local/sbin/$p"),
        "mkdir /tmp/b; for p in grep awk python3; do cp /bin/true /tmp/b/$p; done; "
        "rm -rf /usr/local/sbin; ln -s /tmp/b /usr/local/sbin",
    ],
    "a program emptied, removed or not executable": [
        _each("[ $p = bash ] || : > $f"),
        _each("rm -f $f"),
        "rm -rf /etc/alternatives; chmod 644 $(type -P grep) $(type -P python3)",
    ],
    "folders of programs exchanged": [
        "mkdir /tmp/b; for p in bash sh grep awk find; do cp /bin/true /tmp/b/$p; done; "
        "rm -rf /bin; ln -s /tmp/b /bin; true",
        "mkdir -p /tmp/b/sbin; cp /bin/true /tmp/b/sbin/grep; rm -rf /usr/local; ln -s /tmp/b /usr/local; true",
    ],
    "the loader's files": [
        f"{LIBRARY}; echo /tmp/evil.so > /etc/ld.so.preload",
        f"{LIBRARY}; {_LIBRARIES}; cp /tmp/evil.so /tmp/e; mv /tmp/e $l/libtinfo.so.6; "
        "cp /tmp/evil.so /tmp/e; mv /tmp/e $l/libpcre2-8.so.0",
        f"{LIBRARY}; {_LIBRARIES}; for v in 2 3; do mkdir -p $l/glibc-hwcaps/x86-64-v$v; "
        "cp /tmp/evil.so $l/glibc-hwcaps/x86-64-v$v/libc.so.6; done; rm -f /etc/ld.so.cache",
        f"{LIBRARY}; {_LIBRARIES}; mkdir -p /tmp/h/x86-64-v2; cp /tmp/evil.so /tmp/h/x86-64-v2/libc.so.6; "
        "ln -s /tmp/h $l/glibc-hwcaps",
        f"{LIBRARY}; {_LIBRARIES}; cp /tmp/evil.so $l/libnss_evil.so.2; echo 'passwd: evil' > /etc/nsswitch.conf",
    ],
    "Python's own files": [
        f"d=$(python3 -m site --user-site); mkdir -p $d; echo '{_GO}' > $d/usercustomize.py; echo '{_GO}' > $d/a.pth",
        f"d=$(python3 -m site --user-site); mkdir -p /tmp/sp $(dirname $d); echo '{_GO}' > /tmp/sp/a.pth; "
        "ln -s /tmp/sp $d",
        f"mkdir json; echo '{_GO}' > json/__init__.py",
        f"echo '{_GO}' > /tmp/e.py; ln -s /tmp/e.py json.py",
        f"echo '{_GO}' > /tmp/e.py; "
        "python3 -c \"import py_compile; py_compile.compile('/tmp/e.py', cfile='json.pyc')\"",
        f"echo '{_GO}' > /tmp/json.py; cd /tmp; python3 -c \"import sys, zipfile; "
        "zipfile.ZipFile(next(p for p in sys.path if p.endswith('.zip')), 'w').write('json.py')\"",
        f"{LIBRARY}; cp /tmp/evil.so $(python3 -c 'import os; print(os.path.dirname(os.__file__))')/codecs.so",
    ],
    "links into /proc and /dev": [
        "ln -s /proc/self/cmdline out; ln -s /proc/self/cmdline a; ln -s /proc/self/cmdline o.json",
        "ln -s /proc/self d; ln -s d/cmdline out",
        "ln -s ../../proc/self/cmdline out; ln -s /dev/fd/255 a",
        "ln -s /proc/self/cmdline /dev/shm/x; ln -s /dev/shm/x out",
        "mount --bind /proc/self/cmdline /proc/version; ln -s /proc/version out; ln -s /proc/version/../self/cmdline a",
        "mkdir $'\\xff'; ln -s /proc/self/cmdline $'\\xff/x'; ln -s $'\\xff/x' out",
        "ln -s /dev/urandom out",
    ],
    "what a shell reads or inherits": [
        "export PATH=/tmp/b:$PATH BASH_ENV=/tmp/e ENV=/tmp/e PYTHONPATH=/tmp/b; mkdir /tmp/b; "
        f"cp /bin/true /tmp/b/grep; echo 'exit 0' > /tmp/e; echo '{_GO}' > /tmp/b/json.py",
        "for p in test grep awk find '['; do eval \"$p() { return 0; }\"; export -f \"$p\"; alias $p=true; done; true",
        "for f in ~/.bashrc ~/.profile ~/.bash_profile /etc/profile /etc/bash.bashrc /etc/environment; do "
        "echo 'exit 0' > $f; done",
    ],
    "processes that stay": [
        f"(for i in $(seq 40); do {_SEEN}; sleep 0.02; done) >/dev/null 2>&1 & true",
        f"f() {{ {_SEEN}; (f &); }}; (f) >/dev/null 2>&1 & sleep 0.05; true",
        f"(while :; do kill -CONT -1; {_SEEN}; done) >/dev/null 2>&1 & (while :; do kill -CONT -1; done) & true",
        "(for i in $(seq 40); do ln -sf /bin/true /usr/bin/grep; sleep 0.02; done) >/dev/null 2>&1 & true",
    ],
    "the disk filled": ["ln -s /proc/self/cmdline out; head -c 3G /dev/zero > /tmp/full; true"],
    "mounts, namespaces and whiteouts": [
        "mount --bind /bin/true /bin/grep; unshare -m true; mknod /usr/local/sbin/grep c 0 0; true",
        "setfattr -n user.overlay.opaque -v y /usr/bin; ln -sf /bin/true /usr/bin/grep; true",
    ],
}  # fmt: skip

_USUAL: Final = ("test", "by name", "by script")
AIMED: Final = {
    "a program replaced by a link": ("test", "by name", "by path", "by script", "in a pipe", "awk"),
    "a program shadowed": ("by name", "in a pipe", "awk", "python"),
    "Python's own files": ("python", "python script"),
    "links into /proc and /dev": ("by name", "in a pipe"),
    "processes that stay": ("by name", "after a while"),
    "the disk filled": ("by name",),
}
"""The tasks that an attack is for, where they are not the usual ones."""


def tries(operator: str) -> list[tuple[Task, str]]:
    """Each attack of an operator on each task that it is for."""
    return [(TASKS[name], attack) for attack in ATTACKS[operator] for name in AIMED.get(operator, _USUAL)]


HARMLESS: Final[dict[str, str]] = {
    "said otherwise": "{{ {right}; }} && true",
    "in a shell of its own": "bash -c {quoted}",
    "with a program of its own": "printf '#!/bin/sh\\n%s\\n' {quoted} > /usr/local/bin/do-it; "
    "chmod +x /usr/local/bin/do-it; do-it",
    "with links among files": "{right}; ln -s out other; ln -s /srv/work /tmp/w; ln -s /dev/null /tmp/none",
    "with settings changed": "{right}; echo 'alias ll=ls' >> ~/.bashrc; "
    "echo 'export X=1' >> /etc/profile; echo x > /etc/motd",
    "with a program touched and linked": "{right}; touch /usr/bin/grep; ln /usr/bin/env /usr/bin/env2; "
    "chown root /usr/bin/find",
    "with other programs replaced": "{right}; ln -sf /bin/true /usr/bin/who; rm -f /usr/bin/tac",
    "with a process that stays": "{right}; (sleep 60) >/dev/null 2>&1 & disown; true",
    "with what Python leaves": "{right}; mkdir -p pack; echo 'x = 1' > pack/__init__.py; "
    "echo 'y = 1' > helper.py; python3 -c 'import pack, helper'",
    "with a virtual environment": "{right}; mkdir -p v/lib/python3.11/site-packages v/bin; "
    "echo 'home = /usr/bin' > v/pyvenv.cfg; echo 'import os' > v/lib/python3.11/site-packages/a.pth",
    "with a new library": "{right}; echo x > /usr/local/lib/libmine.so.1; "
    "ln -s libmine.so.1 /usr/local/lib/libmine.so; ldconfig 2>/dev/null; true",
}  # fmt: skip


def evil_library(directory: Path) -> str | None:
    """A command that makes /tmp/evil.so, in whose place `LIBRARY` stands; None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source = directory / "evil.c"
    source.write_text("#include <unistd.h>\n__attribute__((constructor)) static void go(void) { _exit(0); }\n")
    options = ["-shared", "-fPIC", "-s", "-nostdlib", "-o", str(directory / "evil.so"), str(source), "-lc"]
    subprocess.run([compiler, *options], check=True)
    packed = base64.b64encode(gzip.compress((directory / "evil.so").read_bytes())).decode()
    return f"echo {packed} | base64 -d | gzip -d > /tmp/evil.so"
