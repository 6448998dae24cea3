# SPDX-License-Identifier: Apache-2.0
"""Packages as wheels: a folder of them to install from, and all of a bundle's, laid out for another platform."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import requires
from pathlib import Path

from reward_kit.deploy.archive import files_in
from reward_kit.deploy.pinned import canonical, own_requirement
from reward_kit.errors import DeployError
from reward_kit.redaction import mask

__all__ = ["Platform", "read_wheelhouse", "unpacked"]

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


def unpacked(
    requirements: Sequence[str], constraints: Sequence[str], platform: Platform, house: Path | None
) -> dict[str, bytes]:
    """The files of all packages, as they lie in `site-packages`: from wheels only, nothing is built or run."""
    with tempfile.TemporaryDirectory(prefix="reward-kit-packages-") as place:
        target, lists = Path(place) / "packages", Path(place)
        (lists / "own.txt").write_text(f"{_without_extras(requirements)}\n", encoding="utf-8")
        others = [*_own_dependencies(), *requirements[1:]]
        (lists / "others.txt").write_text("".join(f"{line}\n" for line in others), encoding="utf-8")
        (lists / "constraints.txt").write_text("".join(f"{line}\n" for line in constraints), encoding="utf-8")
        for arguments in (
            ["--no-deps", "--requirement", str(lists / "own.txt")],
            ["--requirement", str(lists / "others.txt"), "--constraint", str(lists / "constraints.txt")],
        ):
            _install([*arguments, "--target", str(target)], platform, house)
        files = files_in(target)
    return {name: content for name, content in files.items() if not _NEEDLESS.search(name)}


def _without_extras(requirements: Sequence[str]) -> str:
    assert requirements[0].startswith("reward-kit")
    return own_requirement()


def _own_dependencies() -> Iterator[str]:
    """What reward-kit itself needs to call a reward."""
    for line in requires("reward-kit") or ():
        name = canonical(re.split(r"[^\w.-]", line, maxsplit=1)[0])
        if "extra ==" not in line and name not in _COMMAND_LINE_ONLY:
            yield line


def _install(arguments: Sequence[str], platform: Platform, house: Path | None) -> None:
    offline = [] if house is None else ["--no-index", "--find-links", str(house)]
    done = subprocess.run(
        [*_installer(platform), *arguments, *offline], capture_output=True, text=True, errors="replace",
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise DeployError(
            f"The packages cannot be had as wheels for Python {platform.python} on {platform.tags()[0]}: "
            f"{mask(' '.join(said[-3:]))}. Choose another --runtime, fill a --wheelhouse, or deploy a container."
        )


def _installer(platform: Platform) -> list[str]:
    """pip, or uv where there is no pip; both are told the platform that they install for."""
    if importlib.util.find_spec("pip") is not None:
        tags = [part for tag in platform.tags() for part in ("--platform", tag)]
        return [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile",
            "--only-binary=:all:", "--implementation", "cp", "--python-version", platform.python, "--upgrade", *tags,
        ]  # fmt: skip
    if program := shutil.which("uv"):
        newest = platform.tags()[0]
        machine = newest.partition("_")[2].split("_", 2)[2]
        return [
            program, "pip", "install", "--quiet", "--only-binary", ":all:", "--python-version", platform.python,
            "--python-platform", f"{machine}-{newest.removesuffix('_' + machine)}",
        ]  # fmt: skip
    raise DeployError("Neither pip nor uv is here to fetch packages. Install one of them: python -m ensurepip")


def total_size(files: Mapping[str, bytes]) -> int:
    """Bytes of all files together."""
    return sum(map(len, files.values()))
