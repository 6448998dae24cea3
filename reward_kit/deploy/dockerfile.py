# SPDX-License-Identifier: Apache-2.0
"""The Dockerfile of a served reward.

Two stages on a small base: packages are installed in the first, and only they and the project are in the second. It
runs as a user without a name, in exec form, with a health check, and writes nowhere but in /tmp, so that its root can
be mounted read-only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reward_kit._version import __version__
from reward_kit.deploy.bundle import Bundle
from reward_kit.deploy.bundle_layout import MANIFEST, PROJECT, SERVE_FILE
from reward_kit.errors import DeployError

__all__ = ["IMAGE_PORT", "default_base", "dockerfile", "final_stage", "image_files", "serve_settings"]

IMAGE_PORT = 8080
_USER = "10001:10001"
_ROOT = "/srv"
_VENV = "/opt/venv"
_WHEELS = "wheels"
_PIP_WHEEL = re.compile(r"pip-[0-9][^-]*-py[^-]*-none-any\.whl")
_HEALTH = (
    "import os, urllib.request; "
    "urllib.request.urlopen('http://127.0.0.1:' + os.environ.get('PORT', '8080') + '/health', timeout=4)"
)


def default_base(python: str) -> str:
    """The official slim image of a version of Python."""
    return f"python:{python}-slim-bookworm"


def image_files(bundle: Bundle, base: str, wheels: Mapping[str, bytes], access: Mapping[str, Any]) -> dict[str, bytes]:
    """Everything that an image is built from: the bundle, the server's settings, the wheels and the Dockerfile."""
    served = serve_settings(bundle, {"host": "0.0.0.0", "port": IMAGE_PORT, "access": dict(access)})
    copied = {f"{MANIFEST} {SERVE_FILE}": f"{_ROOT}/", PROJECT: f"{_ROOT}/{PROJECT}"}
    text = dockerfile(
        base,
        title=", ".join(bundle.rewards.values()),
        copied=copied,
        pythonpath=":".join(f"{_ROOT}/{root}" for root in bundle.import_roots),
        entry=["reward-kit", "serve", "--config", f"{_ROOT}/{SERVE_FILE}"],
        command=["--port", str(IMAGE_PORT)],
        wheels=sorted(wheels),
    )
    return {
        f"{PROJECT}/.keep": b"",
        **bundle.files,
        **{f"{_WHEELS}/{name}": content for name, content in wheels.items()},
        SERVE_FILE: served,
        "Dockerfile": text.encode(),
        ".dockerignore": b"Dockerfile\n.dockerignore\n",
    }


def serve_settings(bundle: Bundle, settings: Mapping[str, Any]) -> bytes:
    """The settings of a server of the bundle's rewards, as the file that `reward-kit serve --config` reads."""
    params = {"params": dict(bundle.params)} if bundle.params else {}
    rewards = {name: {"function_path": reference, **params} for name, reference in bundle.rewards.items()}
    return json.dumps({"rewards": rewards, **settings}, indent=2, ensure_ascii=False).encode() + b"\n"


def dockerfile(  # noqa: PLR0913 - what differs between a reward's image and another's
    base: str,
    *,
    title: str,
    copied: Mapping[str, str],
    pythonpath: str,
    entry: Sequence[str],
    command: Sequence[str],
    wheels: Sequence[str] = (),
    port: int = IMAGE_PORT,
    health: str | None = _HEALTH,
) -> str:
    """The text of a Dockerfile; `copied` says which files of the context go where. `health` is a line of Python."""
    if not re.fullmatch(r"[A-Za-z0-9][\w./:@-]*", base):
        raise DeployError(f"{base!r} is not the name of an image. Write it as 'python:3.12-slim' or with @sha256:….")
    pip = [f"/build/{_WHEELS}/{name}/pip" for name in wheels if _PIP_WHEEL.fullmatch(name)]
    install = ["python3", *(pip[:1] or ["-m", "pip"]), "--python", f"{_VENV}/bin/python3", "install", "--no-cache-dir",
               "--requirement", "/build/requirements.txt", "--constraint", "/build/constraints.txt"]  # fmt: skip
    if wheels:
        install += ["--no-index", "--find-links", f"/build/{_WHEELS}"]
    lines = [
        f"# Made by reward-kit {__version__} for {_one_line(title)}. Deploying again makes it anew.",
        f"ARG BASE={base}",
        "FROM ${BASE} AS build",
        "COPY requirements.txt constraints.txt /build/",
        *([f"COPY {_WHEELS} /build/{_WHEELS}"] if wheels else []),
        f"RUN {_exec(['python3', '-m', 'venv', '--without-pip', _VENV])}",
        f"RUN {_exec(install)}",
        "",
        "FROM ${BASE}",
        f"COPY --from=build {_VENV} {_VENV}",
        *(f"COPY {source} {place}" for source, place in copied.items()),
        *final_stage(
            path=f"{_VENV}/bin:/usr/local/bin:/usr/bin:/bin",
            pythonpath=pythonpath,
            entry=entry,
            command=command,
            port=port,
            health=health,
        ),
    ]
    return "\n".join(lines) + "\n"


def final_stage(
    *,
    path: str,
    pythonpath: str,
    entry: Sequence[str],
    command: Sequence[str],
    port: int,
    health: str | None = _HEALTH,
) -> list[str]:
    """How an image runs: as whom, where, with which command, and how it says that it is well."""
    return [
        f"ENV PATH={path} PYTHONPATH={pythonpath} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp",
        f"WORKDIR {_ROOT}/{PROJECT}",
        f"USER {_USER}",
        f"EXPOSE {port}",
        *_health_check(health),
        f"ENTRYPOINT {_exec(entry)}",
        *([f"CMD {_exec(command)}"] if command else []),
    ]


def _health_check(code: str | None) -> Iterable[str]:
    if code is not None:
        times = "--interval=30s --timeout=5s --start-period=60s --retries=3"
        yield f"HEALTHCHECK {times} CMD {_exec(['python3', '-c', code])}"


def _exec(words: Sequence[str]) -> str:
    """A command in exec form: no shell reads it."""
    return json.dumps(list(words), ensure_ascii=False)


def _one_line(text: str) -> str:
    return " ".join(text.split())
