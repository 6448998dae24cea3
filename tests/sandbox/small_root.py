# SPDX-License-Identifier: Apache-2.0
"""A root filesystem of a few programs and the libraries they need, copied from this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path


def small_root(directory: Path, *programs: str) -> Path:
    """Make it in `directory`, with these programs in /bin."""
    for name in ("bin", "proc", "dev", "root", "tmp", "etc"):
        (directory / name).mkdir(parents=True)
    for program in programs:
        path = shutil.which(program)
        assert path is not None, program
        shutil.copy(path, directory / "bin" / program)
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+)", listed):
            target = directory / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                shutil.copy(library, target)
    return directory
