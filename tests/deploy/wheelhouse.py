# SPDX-License-Identifier: Apache-2.0
"""A folder of wheels made of what is installed here, so that installing needs no network: each package is packed again
from the files that its RECORD lists. Our own wheel is built from this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def make_wheelhouse(folder: Path, packages: Iterable[str]) -> Path:
    """Fill the folder with the wheels of these packages, and with our own."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True,
        capture_output=True, env={**os.environ, "REWARD_KIT_WITHOUT_PAGE": "1"},
    )  # fmt: skip
    for name in packages:
        pack(name, folder)
    return folder


def pack(name: str, folder: Path) -> Path:
    """The installed package as a wheel, under the tags that it was installed with."""
    found = distribution(name)
    facts = Parser().parsestr(found.read_text("WHEEL") or "")
    tags = [tag.split("-") for tag in facts.get_all("Tag") or []]
    joined = "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))
    spelled = found.metadata["Name"].replace("-", "_").replace(".", "_")
    path = folder / f"{spelled}-{found.version}-{joined}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as wheel:
        for file in found.files or ():
            inside = str(file)
            if not inside.startswith("..") and "__pycache__" not in inside and Path(str(file.locate())).is_file():
                wheel.write(str(file.locate()), inside)
    return path
