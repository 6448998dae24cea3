# SPDX-License-Identifier: Apache-2.0
"""`generate_dockerfile_content`, under its inherited name. `reward-kit deploy --target docker` does more: it finds the
files that a reward needs, instead of taking the whole folder."""

from __future__ import annotations

import json
from pathlib import Path

from reward_kit.deploy.dockerfile import default_base, final_stage

__all__ = ["DEFAULT_PYTHON_VERSION", "generate_dockerfile_content"]

DEFAULT_PYTHON_VERSION = "3.11"
"""The lowest that reward-kit runs on."""


def generate_dockerfile_content(
    function_ref: str,
    python_version: str = DEFAULT_PYTHON_VERSION,
    reward_kit_install_source: str = "reward-kit",
    user_requirements_path: str | None = None,
    inline_requirements_content: str | None = None,
    service_port: int = 8080,
) -> str | None:
    """A Dockerfile that serves a reward; its context is the project's folder. None where the reference is no path.

    It asks for the API key in `RK_ENDPOINT_API_KEY`, runs as a user without a name, and has a health check. Put what
    must not go in, such as `.env`, into `.dockerignore`.
    """
    if "." not in function_ref and ":" not in function_ref:
        return None
    inline = inline_requirements_content or ""
    packages = [line.strip() for line in inline.splitlines() if line.strip() and not line.strip().startswith("#")]
    install = ["python3", "-m", "pip", "install", "--no-cache-dir"]
    own = "reward-kit[serve]" if reward_kit_install_source == "reward-kit" else reward_kit_install_source
    lines = [f"FROM {default_base(python_version)}"]
    if user_requirements_path:
        lines += [
            f"COPY {Path(user_requirements_path).as_posix()} /build/requirements.txt",
            f"RUN {json.dumps([*install, '--requirement', '/build/requirements.txt'])}",
        ]
    if own.startswith((".", "/")) or own.endswith(".whl"):
        lines += [f"COPY {own} /build/source/"]
        own = "/build/source/" + (Path(own).name if own.endswith(".whl") else "") + "[serve]"
    lines += [
        f"RUN {json.dumps([*install, own, *packages])}",
        "COPY . /srv/project",
        *final_stage(
            path="/usr/local/bin:/usr/bin:/bin",
            pythonpath="/srv/project",
            entry=["reward-kit", "serve", function_ref, "--host", "0.0.0.0"],
            command=["--port", str(service_port), "--api-key-env", "RK_ENDPOINT_API_KEY"],
            port=service_port,
        ),
    ]
    return "\n".join(lines) + "\n"
