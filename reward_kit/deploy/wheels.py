# SPDX-License-Identifier: Apache-2.0
"""Packages as wheels: a folder of them to install from, and all of a bundle's, laid out for another platform."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.metadata import requires
from pathlib import Path
from typing import NamedTuple

from reward_kit.deploy.archive import files_in
from reward_kit.deploy.pinned import canonical, extra_of, extras_in, own_requirement
from reward_kit.errors import DeployError
from reward_kit.redaction import mask

__all__ = ["Platform", "Wanted", "read_wheelhouse", "total_size", "unpacked"]

_COMMAND_LINE_ONLY = frozenset({"antlr4-python3-runtime", "hydra-core", "omegaconf", "rich"})
"""Dependencies of reward-kit that no reward needs; one of them has no wheel."""
_NEEDLESS = re.compile(r"(?:^|/)__pycache__/|^bin/|\.pyc$|\.dist-info/(?:RECORD|INSTALLER|REQUESTED|direct_url\.json)$")
"""Files that differ from machine to machine, or that nothing reads there."""


class Platform:
    """A machine that packages are fetched for: Linux of some age, on some processor, with some version of Python."""

    def __init__(self, architecture: str, python: str, glibc: int) -> None:
        """`glibc` is the minor version of the C library, such as 34 for 2.34: a wheel must not need a later one."""
        self.python = python
        self._machine = {"arm64": "aarch64"}.get(architecture, architecture)
        self._glibc = glibc

    def uv_name(self) -> str:
        """The same, as uv calls it, which knows fewer: the nearest that is not later."""
        known = max(minor for minor in (17, 28, 34) if minor <= self._glibc)
        return f"{self._machine}-manylinux_2_{known}"

    def tags(self) -> list[str]:
        """The names of platforms whose wheels run there."""
        old = [f"manylinux2014_{self._machine}"]
        return [*(f"manylinux_2_{minor}_{self._machine}" for minor in range(self._glibc, 16, -1)), *old]


def read_wheelhouse(folder: Path | None) -> dict[str, bytes]:
    """The wheels of a folder, by name."""
    if folder is None:
        return {}
    found = {path.name: path.read_bytes() for path in sorted(folder.glob("*.whl"))}
    if not found:
        raise DeployError(f"There is no wheel in {str(folder)!r}. Fill it with: pip wheel --wheel-dir {folder} …")
    return found


class Wanted(NamedTuple):
    """The packages of a function, and where they come from."""

    requirements: Sequence[str]
    constraints: Sequence[str]
    platform: Platform
    house: Path | None

    def commands(self, lists: str, target: str) -> list[list[str]]:
        """What fetches them: reward-kit without what only its command line needs, then all others."""
        installer = _installer(self.platform, self.house)
        return [
            [*installer, "--no-deps", "--requirement", f"{lists}/own.txt", "--target", target],
            [*installer, "--requirement", f"{lists}/others.txt", "--constraint", f"{lists}/constraints.txt",
             "--target", target],
        ]  # fmt: skip

    def lists(self) -> dict[str, Sequence[str]]:
        """The files that the commands read."""
        others = [*_own_dependencies(extras_in(self.requirements[0])), *self.requirements[1:]]
        return {"own.txt": [own_requirement()], "others.txt": others, "constraints.txt": self.constraints}


def unpacked(wanted: Wanted) -> dict[str, bytes]:
    """The files of all packages, as they lie in `site-packages`: from wheels only, nothing is built or run."""
    with tempfile.TemporaryDirectory(prefix="reward-kit-packages-") as place:
        for name, lines in wanted.lists().items():
            (Path(place) / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        for command in wanted.commands(place, f"{place}/packages"):
            _install(command, wanted.platform)
        files = files_in(Path(place) / "packages")
    return {name: content for name, content in files.items() if not _NEEDLESS.search(name)}


def _own_dependencies(extras: Collection[str]) -> Iterator[str]:
    """What reward-kit itself needs to call a reward, and what these extras add."""
    for line in requires("reward-kit") or ():
        name = canonical(re.split(r"[^\w.-]", line, maxsplit=1)[0])
        extra = extra_of(line)
        if extra is None and name not in _COMMAND_LINE_ONLY:
            yield line
        elif extra in extras:
            yield line.partition(";")[0].strip()


def _install(command: Sequence[str], platform: Platform) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode != 0:
        said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        words = " ".join(line for line in said if "https://" not in line)
        raise DeployError(
            f"The packages are not available as wheels for Python {platform.python} on {platform.tags()[0]}: "
            f"{mask(words[-600:])}. Choose another --runtime, fill a --wheelhouse, or deploy a container."
        )


def _installer(platform: Platform, house: Path | None) -> list[str]:
    """pip, or uv where there is no pip; both are told the platform that they install for."""
    offline = [] if house is None else ["--no-index", "--find-links", str(house)]
    if importlib.util.find_spec("pip") is not None:
        tags = [part for tag in platform.tags() for part in ("--platform", tag)]
        return [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile",
            "--only-binary=:all:", "--implementation", "cp", "--python-version", platform.python, "--upgrade", *tags,
            *offline, *([] if house is None else ["--isolated"]),
        ]  # fmt: skip
    if program := shutil.which("uv"):
        return [
            program, "pip", "install", "--quiet", "--only-binary", ":all:", "--python-version", platform.python,
            "--python-platform", platform.uv_name(), *offline,
        ]  # fmt: skip
    raise DeployError(
        "Neither pip nor uv is installed, so packages cannot be fetched. Install one of them: python -m ensurepip"
    )


def total_size(files: Mapping[str, bytes]) -> int:
    """Bytes of all files together."""
    return sum(map(len, files.values()))
