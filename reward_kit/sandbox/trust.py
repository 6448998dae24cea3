# SPDX-License-Identifier: Apache-2.0
"""What a check of a command must not trust where the command has changed it; the same for every backend.

Part of supervisors: standard library only.
"""

from __future__ import annotations

import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = [
    "LIBRARIES",
    "NEEDED",
    "SEARCHED",
    "THE_SAME_FOR_ALL",
    "TRUSTED_PROGRAMS",
    "USERS",
    "has_packages",
    "is_in",
    "is_library",
    "is_loaded_unasked",
    "is_loaders",
    "is_perl_module",
    "is_read_first",
    "is_shell",
    "is_started_with",
    "is_told",
    "logs_in",
    "may_be_read_first",
    "module_of",
    "names",
    "only_asked_for",
    "runs",
    "stands_in",
    "talks_to_a_process",
    "waits",
]

TRUSTED_PROGRAMS: Final = "/dev/trusted"
"""Where a sandbox of namespaces shows those programs of its root that were changed. It is there, and empty, in all."""
SEARCHED: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""Where programs are looked for that are called by their name."""
LIBRARIES: Final = (
    *("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/local/lib"),
    *("/usr/libexec", "/usr/share/perl", "/usr/share/perl5", "/usr/share/python3", "/usr/share/awk", "/etc/perl"),
)
"""What programs load: beside the libraries of the loader, those of interpreters."""
THE_SAME_FOR_ALL: Final = frozenset(
    {"/dev/null", "/dev/zero", "/dev/full", "/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/filesystems"}
)
"""What a link may lead to outside of the files: it says the same to everybody, and nothing of who reads it."""
NEEDED: Final = frozenset({"bash", "sh", "dash", "env", "busybox", "coreutils", "readlink", "ln"})
"""What runs every check."""
_LOADERS: Final = re.compile(r"/etc/ld(\.so\.(cache|preload)|-musl-\w+\.path)")
_LIBRARY: Final = re.compile(r"\.so(\.\d+)*$")
_LIBRARY_FOLDER: Final = re.compile(r"/(glibc-hwcaps|x86-64-v\d|tls|haswell|avx512_1|x86_64|atomics)$")
"""Where the loader looks before it looks beside."""
_PLUGIN: Final = re.compile(r"/libnss_\w+\.so[.\d]*$")
_PACKAGES: Final = ("/var/lib/dpkg/status", "/var/lib/rpm", "/usr/lib/sysimage/rpm", "/lib/apk/db/installed")
_FIRST: Final = {
    ".Rprofile": "R",
    ".cshrc": "csh",
    ".curlrc": "curl",
    ".gdbinit": "gdb",
    ".jq": "jq",
    ".magic": "file",
    ".my": "mysql",
    ".octaverc": "octave",
    ".psqlrc": "psql",
    ".sqliterc": "sqlite3",
    ".tcshrc": "tcsh",
    ".wgetrc": "wget",
    ".zshenv": "zsh",
    "sitecustomize": "python",
    "usercustomize": "python",
}
"""What programs read when they start, by its name without an ending, and which programs."""
_ALWAYS_FIRST: Final = re.compile(r"\.pth$|\._pth$|/python\d+\.zip$|^(/usr(/local)?)?(/bin)?/pyvenv\.cfg$")
"""What Python reads when it starts, wherever it is."""
_MODULE: Final = re.compile(r"\.(py|pyc|so)$")
_PERL_MODULE: Final = re.compile(r"\.(pm|pmc|pl)$")
_OF_INTERPRETERS: Final = re.compile(r"/(python|perl)(?![^/]*/(?:site|dist)-packages/)")
_PYTHON: Final = re.compile(r"\bpython[\d.]*\b|\.py\b|(^|\s)\.{0,2}/\S")
"""What may run Python, or a script of which nobody says what runs it."""
_COMMAND: Final = r"(?:^|[;&|(){{}}!`\n]|\b(?:then|do|else|if|while|until|exec|command|env|xargs))\s*['\"]?(?:{})\b"
_TALKS: Final = re.compile(
    r"(?:(?<![\w/.-])|(?<=bin/))"
    r"(curl|wget|nc|ncat|netcat|telnet|ssh|scp|sftp|rsync|socat|ping|psql|mysql|redis-cli|localhost|sleep|wait)(?![\w.-])"
    r"|\b(requests|urllib|http\.client|socket)\b|/dev/(tcp|udp)/|127\.0\.0\.1|\[?::1\b|\bkill\b(?!\s+-0)"
)

_ASKS: Final = re.compile(r"(?<![\w./-])(?:command\s+-[vV]|which(?:\s+-a)?|type(?:\s+-\w+)?|hash)((?:\s+[\w.+-]+)+)")
_SETTINGS_OF_PYTHON: Final = re.compile(r"/etc/python[\d.]*/")
"""Where the start-up files of a distribution's Python are."""
_LOGS_IN: Final = re.compile(r"(?<![\w.-])(su|runuser|login|sudo|ssh)(?![\w.-])")
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh", "fish", "tcsh", "csh", "nologin", "false", ""})
USERS: Final = "/etc/passwd"
"""Who has which shell."""
_SLEEP: Final = re.compile(r"(?<![\w/.-])sleep\s+(\d+\.?\d*|\.\d+)([smhd]?)(?![\w.])")
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_AGAIN: Final = re.compile(r"\b(for|while|until|watch)\b")


def is_in(path: str, places: tuple[str, ...]) -> bool:
    """Whether a path is one of these or below one."""
    return any(f"{path}/".startswith(f"{place}/") for place in places)


def is_library(path: str) -> bool:
    """Whether the loader may load it, by its name."""
    return _LIBRARY.search(path) is not None


def is_loaded_unasked(path: str) -> bool:
    """Whether the loader comes to a new file or folder of this name that no program asks for."""
    return _PLUGIN.search(path) is not None or _LIBRARY_FOLDER.search(path) is not None


def is_loaders(path: str) -> bool:
    """Whether the loader reads it for every program."""
    return _LOADERS.fullmatch(path) is not None


def has_packages(path: str) -> bool:
    """Whether it is what a package manager changes when it installs something."""
    return is_in(path, _PACKAGES)


def may_be_read_first(path: str) -> bool:
    """Whether some program may read a new file of this name before it does what it is told, or in place of its own."""
    name = path.rpartition("/")[2]
    return bool(
        _reader(path)
        or _ALWAYS_FIRST.search(path)
        or _MODULE.search(name)
        or _PERL_MODULE.search(name)
        or (_OF_INTERPRETERS.search(path) and is_in(path, LIBRARIES))
        or name in sys.stdlib_module_names
    )


def stands_in(path: str) -> bool:
    """Whether a new file is read by an interpreter in place of what is its own: a start-up file, or a module."""
    if _ALWAYS_FIRST.search(path) or _reader(path):
        return True
    if _OF_INTERPRETERS.search(path) and is_in(path, LIBRARIES) and not is_perl_module(path):
        return True
    return module_of(path) in sys.stdlib_module_names


def is_perl_module(path: str) -> bool:
    """Whether Perl may load it, by its name."""
    return _PERL_MODULE.search(path) is not None


def module_of(path: str) -> str:
    """The module of Python that a file, a package or a link would be, where Python looks into its directory."""
    directory, _, name = path.rpartition("/")
    stem = name.split(".")[0]
    if not _MODULE.search(name):
        return name  # a package, by a link to it
    return directory.rpartition("/")[2] if stem == "__init__" else stem


def is_read_first(path: str, condition: str) -> bool:
    """Whether a program that the condition may run reads this file when it starts, and so does what the file says."""
    if is_told(path, condition) or not stands_in(path):
        return False
    reader = _reader(path)
    if reader and reader != "python":
        return names(condition, reader, exactly=False)
    return _PYTHON.search(condition) is not None or "perl" in path


def is_told(path: str, condition: str) -> bool:
    """Whether the condition is about this very file."""
    return names(condition, path.rpartition("/")[2])


def _reader(path: str) -> str:
    parts = path.split("/")[-2:]
    return next((found for part in parts if (found := _FIRST.get(_stem(part), ""))), "")


def _stem(name: str) -> str:
    """A name without its endings, as `.curlrc` or `.my` of `.my.cnf`."""
    return name[:1] + name[1:].split(".", maxsplit=1)[0]


def names(condition: str, name: str, *, exactly: bool = True) -> bool:
    """Whether a condition names a program; `exactly`: and not one of which the name begins alike, as `python3`."""
    end = r"(?![\w-])" if exactly else ""
    return re.search(rf"(?<![\w.-]){re.escape(name)}{end}", condition) is not None


def only_asked_for(condition: str) -> frozenset[str]:
    """The programs that a condition names only to ask where they are found: that is as the command left it."""
    asked = {name for found in _ASKS.finditer(condition) for name in found[1].split()} - NEEDED
    rest = _ASKS.sub("", condition)
    return frozenset(name for name in asked if not re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w-])", rest))


def is_started_with(path: str) -> bool:
    """Whether Python reads it when it starts, outside of its libraries."""
    return _SETTINGS_OF_PYTHON.match(path) is not None


def runs(condition: str, path: str) -> bool:
    """Whether a path stands in a condition where a command does."""
    other = path.removeprefix("/usr")
    paths = "|".join(re.escape(one) for one in dict.fromkeys((path, other, f"/usr{other}")))
    return re.search(_COMMAND.format(paths), condition) is not None


def waits(condition: str) -> float:
    """How many seconds a condition only lets pass; 0 where it looks again and again, or does not wait."""
    if _AGAIN.search(condition):
        return 0.0
    return sum(float(found[1]) * _SECONDS[found[2]] for found in _SLEEP.finditer(condition))


def logs_in(condition: str) -> bool:
    """Whether a condition has a user's own shell run something."""
    return _LOGS_IN.search(condition) is not None


def is_shell(path: str) -> bool:
    """Whether a user's shell is one, or refuses everybody."""
    return path.rpartition("/")[2] in _SHELLS


def talks_to_a_process(condition: str) -> bool:
    """Whether a condition needs what runs in the sandbox to go on; else that stands still meanwhile."""
    return _TALKS.search(_SLEEP.sub("", condition) if waits(condition) else condition) is not None
