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
    "HARMLESS_DEVICES",
    "LIBRARIES",
    "SEARCHED",
    "TRUSTED_PROGRAMS",
    "has_packages",
    "is_in",
    "is_library",
    "is_loaders",
    "is_read_first",
    "may_be_read_first",
    "names",
    "runs",
    "talks_to_a_process",
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
HARMLESS_DEVICES: Final = frozenset({"/dev/null", "/dev/zero", "/dev/full"})
"""What a link may lead to outside of the files: it says the same to everybody."""
_LOADERS: Final = re.compile(r"/etc/ld(\.so\.(cache|preload)|-musl-\w+\.path)")
_LIBRARY: Final = re.compile(r"\.so(\.\d+)*$")
_PACKAGES: Final = ("/var/lib/dpkg/status", "/var/lib/rpm", "/usr/lib/sysimage/rpm", "/lib/apk/db/installed")
_FIRST: Final = {
    "sitecustomize": "python",
    "usercustomize": "python",
    ".jq": "jq",
    ".curlrc": "curl",
    ".wgetrc": "wget",
    ".sqliterc": "sqlite3",
}
"""What programs read when they start, by its name without an ending, and which programs."""
_OWN_PYTHON: Final = re.compile(r"python[\d.]*\s+(-\w+\s+)*-[cm]\b|python[\d.]*\s+-?\s*<")
_COMMAND: Final = r"(?:^|[;&|(){{}}!`\n]|\b(?:then|do|else|if|while|until|exec|command|env|xargs))\s*['\"]?(?:{})\b"
_TALKS: Final = re.compile(
    r"\b(curl|wget|nc|ncat|netcat|telnet|ssh|scp|socat|ping|psql|mysql|redis-cli|localhost|requests|urllib|socket)\b"
    r"|\b(sleep|wait)\b|/dev/(tcp|udp)/|127\.0\.0\.1|\[::1\]|\bkill\b(?!\s+-0)"
)


def is_in(path: str, places: tuple[str, ...]) -> bool:
    """Whether a path is one of these or below one."""
    return any(f"{path}/".startswith(f"{place}/") for place in places)


def is_library(path: str) -> bool:
    """Whether the loader may load it, by its name."""
    return _LIBRARY.search(path) is not None


def is_loaders(path: str) -> bool:
    """Whether the loader reads it for every program."""
    return _LOADERS.fullmatch(path) is not None


def has_packages(path: str) -> bool:
    """Whether it is what a package manager changes when it installs something."""
    return is_in(path, _PACKAGES)


def may_be_read_first(path: str) -> bool:
    """Whether some program may read this file when it starts."""
    return bool(_reader(path)) or _is_python_module(path)


def is_read_first(path: str, condition: str) -> bool:
    """Whether a program that the condition runs reads this file when it starts, and so does what the file says."""
    reader = _reader(path)
    if reader and names(condition, reader, exactly=False):
        return True
    is_told = names(condition, path.rpartition("/")[2])
    return _is_python_module(path) and not is_told and _OWN_PYTHON.search(condition) is not None


def _reader(path: str) -> str:
    if path.endswith(".pth"):
        return "python" if "-packages/" in path else ""
    parts = path.split("/")[-2:]
    return next((found for part in parts if (found := _FIRST.get(part.split(".")[0] or part, ""))), "")


def _is_python_module(path: str) -> bool:
    """Whether it stands in for a module of Python's own where Python looks into its directory first."""
    name = path.rpartition("/")[2]
    return name.endswith(".py") and name[:-3] in sys.stdlib_module_names


def names(condition: str, name: str, *, exactly: bool = True) -> bool:
    """Whether a condition names a program; `exactly`: and not one of which the name begins alike, as `python3`."""
    end = r"(?![\w-])" if exactly else ""
    return re.search(rf"(?<![\w.-]){re.escape(name)}{end}", condition) is not None


def runs(condition: str, path: str) -> bool:
    """Whether a path stands in a condition where a command does."""
    other = path.removeprefix("/usr")
    paths = "|".join(re.escape(one) for one in dict.fromkeys((path, other, f"/usr{other}")))
    return re.search(_COMMAND.format(paths), condition) is not None


def talks_to_a_process(condition: str) -> bool:
    """Whether a condition needs what runs in the sandbox to go on; else that stands still meanwhile."""
    return _TALKS.search(condition) is not None
