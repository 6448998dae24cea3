# SPDX-License-Identifier: Apache-2.0
"""What reward-kit can use and does not come with: the extras of the package, and programs of the machine.

`doctor` looks at all of them. An extra is tried by importing its packages in a process of their own: one that is
installed and broken is found, and cannot take the command down with it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

__all__ = ["EXTRAS", "TOOLS", "Extra", "Found", "Tool", "look_for_extras", "look_for_tools", "version_of"]

_IMPORT_SECONDS = 120.0
"""Packages such as torch take long on a busy machine."""
_TELL_SECONDS = 20.0
_SHOWN = 200


class Extra(NamedTuple):
    """An extra of the package."""

    purpose: str
    packages: dict[str, str]
    """The module that each package is imported as, by the package's name."""


class Tool(NamedTuple):
    """A program that may be on the machine."""

    purpose: str
    install: str
    arguments: tuple[str, ...] = ("--version",)
    """What makes it say its version."""


class Found(NamedTuple):
    """What was found of an extra or a program."""

    name: str
    works: bool
    detail: str
    advice: str
    purpose: str


EXTRAS = {
    "analysis": Extra("`reward-kit inspect`: rates, curves, comparisons", {"numpy": "numpy", "pyarrow": "pyarrow"}),
    "aws": Extra("data in S3; rewards deployed to AWS Lambda", {"boto3": "boto3", "fsspec": "fsspec", "s3fs": "s3fs"}),
    "docker": Extra("sandboxes in docker or podman containers", {"docker": "docker"}),
    "e2b": Extra("code that runs in sandboxes rented from E2B", {"e2b": "e2b"}),
    "gcp": Extra(
        "data in Google Cloud Storage; calling rewards on Cloud Run",
        {"fsspec": "fsspec", "gcsfs": "gcsfs", "google-auth": "google.auth"},
    ),
    "hf": Extra(
        "datasets and files of the Hugging Face Hub",
        {"datasets": "datasets", "fsspec": "fsspec", "huggingface-hub": "huggingface_hub"},
    ),
    "keyring": Extra("`reward-kit secrets` kept in the keyring of this system", {"keyring": "keyring"}),
    "language": Extra("rewards that tell languages apart", {"py3langid": "py3langid"}),
    "litellm": Extra("models of other providers, as litellm/PROVIDER/NAME", {"litellm": "litellm"}),
    "local": Extra("the model `local`, inside this process", {"xllamacpp": "xllamacpp"}),
    "math": Extra("integrals, sums and limits that our own comparison cannot decide", {"math-verify": "math_verify"}),
    "parquet": Extra("Parquet files; `best-of-n` writes one", {"pyarrow": "pyarrow"}),
    "plot": Extra(
        "pictures as .png; .svg and .html need only `analysis`",
        {"matplotlib": "matplotlib", "numpy": "numpy", "pyarrow": "pyarrow"},
    ),
    "ray": Extra("runs on a Ray cluster, with `engine=ray`", {"ray": "ray"}),
    "regex": Extra("regular expressions matched in linear time", {"google-re2": "re2"}),
    "schema": Extra("answers checked against a JSON Schema", {"jsonschema": "jsonschema"}),
    "serve": Extra(
        "`reward-kit serve`: a reward as an HTTP service",
        {
            "httptools": "httptools",
            "pyjwt": "jwt",
            "starlette": "starlette",
            "uvicorn": "uvicorn",
            "websockets": "websockets",
        },
    ),
    "text": Extra("ROUGE with word stems, and BLEU", {"rouge-score": "rouge_score", "sacrebleu": "sacrebleu"}),
    "train": Extra("training with TRL on this machine; not in `all`", {"torch": "torch", "trl": "trl"}),
    "view": Extra(
        "`reward-kit view`: runs in the browser",
        {
            "duckdb": "duckdb",
            "httptools": "httptools",
            "numpy": "numpy",
            "pyarrow": "pyarrow",
            "starlette": "starlette",
            "uvicorn": "uvicorn",
        },
    ),
}
"""Every extra of pyproject.toml but `all`, which is all of these except `train`."""

_PACKAGE_MANAGER = "Install {0} with the package manager of the system, such as: apt-get install {0}"
TOOLS = {
    "bwrap": Tool("the sandboxes of the backend `namespaces`", _PACKAGE_MANAGER.format("bubblewrap")),
    "docker": Tool("starting the daemon that the backend `docker` talks to", "Install Docker Engine."),
    "podman": Tool("starting the service that the backend `podman` talks to", _PACKAGE_MANAGER.format("podman")),
    "mkfs.ext4": Tool("sandboxes whose disk has a fixed size", _PACKAGE_MANAGER.format("e2fsprogs"), ("-V",)),
    "gcc": Tool("answers in C, in sandboxes without an image", _PACKAGE_MANAGER.format("gcc")),
    "g++": Tool("answers in C++, in sandboxes without an image", _PACKAGE_MANAGER.format("g++")),
    "node": Tool("answers in JavaScript, in sandboxes without an image", _PACKAGE_MANAGER.format("nodejs")),
    "lean": Tool("proofs in Lean 4, in sandboxes without an image", "Install Lean 4 with elan."),
    "gcloud": Tool("`reward-kit deploy` to Cloud Run", "Install the Google Cloud CLI."),
    "git": Tool("noting in a run's manifest which revision made it", _PACKAGE_MANAGER.format("git")),
}
"""Programs that some part of reward-kit starts, or needs to have been started."""


def look_for_extras() -> Iterator[Found]:
    """What is there of each extra. All are tried at the same time."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as several:
        yield from several.map(_look_for_extra, EXTRAS)


def look_for_tools() -> Iterator[Found]:
    """What is there of each program."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as several:
        yield from several.map(_look_for_tool, TOOLS)


def _look_for_extra(name: str) -> Found:
    purpose, packages = EXTRAS[name]
    install = f"pip install 'reward-kit[{name}]'"
    missing = [package for package, module in packages.items() if not _is_there(module)]
    if missing:
        return Found(name, False, f"not installed: {', '.join(missing)}", install, purpose)
    there = ", ".join(f"{package} {version_of(package)}" for package in packages)
    fault = _import_fault(list(packages.values()))
    if fault is None:
        return Found(name, True, there, "", purpose)
    again = f"Install it again: pip install --force-reinstall {' '.join(packages)}"
    return Found(name, False, f"{there}, which cannot be imported: {fault}", again, purpose)


def _is_there(module: str) -> bool:
    """Whether a module can be found; looking for `google.auth` imports `google`, which may be missing itself."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _import_fault(modules: list[str]) -> str | None:
    """What goes wrong when the modules are imported; None where nothing does."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"import {', '.join(modules)}"], capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=_IMPORT_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it takes longer than {_IMPORT_SECONDS:g} s"
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return said[-1][:_SHOWN] if said else f"the process ended with {done.returncode}"


def _look_for_tool(name: str) -> Found:
    purpose, install, arguments = TOOLS[name]
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    program = shutil.which(name, path=path)
    if program is None:
        return Found(name, False, "not on the PATH", install, purpose)
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
            timeout=_TELL_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Found(name, False, f"{program} cannot be run: {error}", install, purpose)
    said = next((line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()), program)
    if done.returncode != 0:
        return Found(name, False, f"{program} ends with {done.returncode}: {said[:_SHOWN]}", install, purpose)
    return Found(name, True, said[:_SHOWN], "", purpose)


def version_of(package: str) -> str:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"
