# SPDX-License-Identifier: Apache-2.0
"""An MCP server as an image: a module of the project, an environment of ours, or a Dockerfile that is there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reward_kit.deploy.bundle import Bundle, BundleSource, bundle_of
from reward_kit.deploy.bundle_layout import MANIFEST, PROJECT
from reward_kit.deploy.dockerfile import dockerfile
from reward_kit.errors import DeployError
from reward_kit.utils.project_imports import import_roots

__all__ = ["McpServer", "mcp_image"]

_OUR_SERVER = "reward_kit.agent.mcp.server"
_HEALTH = "import socket; socket.create_connection(('127.0.0.1', {port}), 4).close()"


@dataclass(frozen=True)
class McpServer:
    """What is served."""

    project: Path
    port: int
    module: str | None = None
    """Started as `python -m MODULE --host 0.0.0.0 --port PORT`."""
    environment: str | None = None
    """An environment of ours, as in `agent.environment`."""
    dockerfile: Path | None = None
    """Built as it is, with the project's files around it."""


def mcp_image(
    server: McpServer, base: str, requirements: Sequence[str], wheels: dict[str, bytes]
) -> tuple[Bundle, dict[str, bytes]]:
    """The bundle, and all files that the image is built from."""
    source = BundleSource({}, server.project, requirements=requirements)
    if server.dockerfile is not None:
        bundle = bundle_of([], BundleSource({}, server.project, requirements=requirements, include=["."]))
        inside = {
            name.removeprefix(f"{PROJECT}/"): content
            for name, content in bundle.files.items()
            if name.startswith(f"{PROJECT}/")
        }
        return bundle, {**inside, "Dockerfile": server.dockerfile.read_bytes()}
    entry, files, roots = _entry(server)
    bundle = bundle_of(files, source, roots=roots)
    text = dockerfile(
        base,
        title=f"the MCP server {server.module or server.environment}",
        copied={MANIFEST: "/srv/", PROJECT: f"/srv/{PROJECT}"},
        pythonpath=":".join(f"/srv/{root}" for root in bundle.import_roots),
        entry=entry,
        command=[],
        wheels=sorted(wheels),
        port=server.port,
        health=_HEALTH.format(port=server.port),
    )
    packed = {f"wheels/{name}": content for name, content in wheels.items()}
    return bundle, {f"{PROJECT}/.keep": b"", **bundle.files, **packed, "Dockerfile": text.encode()}


def _entry(server: McpServer) -> tuple[list[str], list[Path], list[Path]]:
    """The command, the files that it begins with, and where their modules are."""
    project = server.project.resolve()
    port = str(server.port)
    if server.environment is not None:
        reference, files, roots = _of_reference(server.environment, project)
        return ["python3", "-m", _OUR_SERVER, reference, "--host", "0.0.0.0", "--http", port], files, roots
    module = str(server.module)
    files = _module_file(module, project)
    if not files and not module.startswith("reward_kit."):
        raise DeployError(f"There is no module {module!r} in {str(project)!r}. Run the command in its folder.")
    return ["python3", "-m", module, "--host", "0.0.0.0", "--port", port], files, []


def _of_reference(reference: str, project: Path) -> tuple[str, list[Path], list[Path]]:
    target, _, attribute = reference.rpartition(":")
    if target.endswith(".py"):
        file = Path(target).resolve()
        if not file.is_file() or project not in file.parents:
            raise DeployError(f"There is no file {target!r} in {str(project)!r}. Correct the path.")
        return f"{file.relative_to(project).as_posix()}:{attribute}", [file], [file.parent]
    return reference, _module_file(target or reference.rpartition(".")[0], project), []


def _module_file(module: str, project: Path) -> list[Path]:
    for root in import_roots(project):
        place = root.joinpath(*module.split("."))
        for file in (place.with_name(f"{place.name}.py"), place / "__main__.py", place / "__init__.py"):
            if file.is_file():
                return [file]
    return []
