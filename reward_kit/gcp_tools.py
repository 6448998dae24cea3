# SPDX-License-Identifier: Apache-2.0
"""The steps of a deployment to Cloud Run one by one, under their inherited names. `reward-kit deploy` does them all,
remembers what exists, and can go on or take it away."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping
from pathlib import Path

from reward_kit.deploy.carry_out import MissingThing
from reward_kit.deploy.gcloud import NOT_FOUND, gcloud
from reward_kit.deploy.machine import run_command
from reward_kit.deploy.plan import Command, fact_at
from reward_kit.deploy.suspicious import is_credential_file, is_litter
from reward_kit.errors import DeployError
from reward_kit.redaction import mask_words, remember
from reward_kit.storage.files import write_whole

__all__ = [
    "build_and_push_docker_image",
    "deploy_to_cloud_run",
    "ensure_artifact_registry_repo_exists",
    "ensure_gcp_secret",
]

_log = logging.getLogger(__name__)


def _run_gcloud_command(command: list[str], dry_run: bool = False) -> tuple[bool, str, str]:
    """Whether it worked, what it printed, and what it complained of."""
    return _run(Command(argv=("gcloud", *command)), dry_run=dry_run)


def _run(command: Command, *, dry_run: bool) -> tuple[bool, str, str]:
    if dry_run:
        _log.info("Would run: %s", shlex.join(mask_words(command.argv)))
        return True, "", ""
    try:
        return True, run_command(command, lambda _: None), ""
    except DeployError as error:
        _log.error("%s", error)
        return False, "", str(error)


def _exists(command: Command) -> bool:
    try:
        run_command(command, lambda _: None)
    except MissingThing:
        return False
    return True


def build_and_push_docker_image(
    image_name_tag: str,
    dockerfile_content: str,
    build_context_dir: str,
    gcp_project_id: str | None = None,
    dry_run: bool = False,
) -> bool:
    """Have Cloud Build build the folder. The Dockerfile is in it only meanwhile; a file of credentials stops it."""
    context = Path(build_context_dir)
    names = [path.relative_to(context).as_posix() for path in context.rglob("*") if path.is_file()]
    if found := sorted(name for name in names if is_credential_file(name) and not is_litter(name)):
        _log.error("%r would be uploaded with the folder, and holds credentials. Move it elsewhere.", found[0])
        return False
    dockerfile = context / "Dockerfile"
    project = [f"--project={gcp_project_id}"] if gcp_project_id else []
    argv = ("gcloud", "builds", "submit", str(context), f"--tag={image_name_tag}", *project, "--quiet")
    if dry_run:
        return _run(Command(argv=argv), dry_run=True)[0]
    before = dockerfile.read_bytes() if dockerfile.exists() else None
    write_whole(dockerfile, dockerfile_content)
    try:
        return _run(Command(argv=argv), dry_run=False)[0]
    finally:
        if before is None:
            dockerfile.unlink(missing_ok=True)
        else:
            write_whole(dockerfile, before)


def ensure_artifact_registry_repo_exists(project_id: str, region: str, repo_name: str, dry_run: bool = False) -> bool:
    """Make the repository for images, unless it is there."""
    where = (repo_name, f"--location={region}")
    create = gcloud("artifacts", "repositories", "create", *where, "--repository-format=docker", project=project_id)
    if dry_run:
        return _run(create, dry_run=True)[0]
    try:
        if _exists(gcloud("artifacts", "repositories", "describe", *where, project=project_id, missing=NOT_FOUND)):
            return True
    except DeployError as error:
        _log.error("%s", error)
        return False
    return _run(create, dry_run=False)[0]


def ensure_gcp_secret(
    project_id: str,
    secret_id: str,
    secret_value: str,
    region: str | None = None,
    labels: dict[str, str] | None = None,
    dry_run: bool = False,
) -> str | None:
    """Keep a value in Secret Manager; the name of its version, or None where that failed. It goes by standard input."""
    remember(secret_value)
    policy = ["--replication-policy=automatic"]
    if region:
        policy = ["--replication-policy=user-managed", f"--locations={region}"]
    marks = [f"--labels={','.join(f'{key}={value}' for key, value in labels.items())}"] if labels else []
    create = gcloud("secrets", "create", secret_id, *policy, *marks, project=project_id)
    add = gcloud(
        "secrets", "versions", "add", secret_id, "--data-file=-", "--format=value(name)", project=project_id,
        stdin=secret_value,
    )  # fmt: skip
    if dry_run:
        _run(create, dry_run=True)
        _run(add, dry_run=True)
        return f"projects/{project_id}/secrets/{secret_id}/versions/latest"
    try:
        there = _exists(gcloud("secrets", "describe", secret_id, project=project_id, missing=NOT_FOUND))
    except DeployError as error:
        _log.error("%s", error)
        return None
    if not there and not _run(create, dry_run=False)[0]:
        return None
    done, out, _ = _run(add, dry_run=False)
    number = out.strip().rpartition("/")[2] or "latest"
    return f"projects/{project_id}/secrets/{secret_id}/versions/{number}" if done else None


def deploy_to_cloud_run(  # noqa: PLR0913, PLR0917 - the inherited signature
    service_name: str,
    image_name_tag: str,
    gcp_project_id: str,
    gcp_region: str,
    allow_unauthenticated: bool = True,
    env_vars: Mapping[str, str] | None = None,
    secrets_to_mount: Mapping[str, str] | None = None,
    service_port: int = 8080,
    dry_run: bool = False,
) -> str | None:
    """Deploy an image as a service; its address, or None where that failed. `secrets_to_mount`: variable → secret."""
    from reward_kit.deploy.targets.cloud_run import joined_pairs

    mounted = {
        name: secret if ":" in secret else f"{secret}:latest" for name, secret in (secrets_to_mount or {}).items()
    }
    words = [
        "run", "deploy", service_name, f"--image={image_name_tag}", f"--region={gcp_region}", f"--port={service_port}",
        "--allow-unauthenticated" if allow_unauthenticated else "--no-allow-unauthenticated", "--format=json",
    ]  # fmt: skip
    words += [f"--set-env-vars={joined_pairs(env_vars)}"] if env_vars else []
    words += [f"--set-secrets={joined_pairs(mounted)}"] if mounted else []
    done, out, _ = _run(gcloud(*words, project=gcp_project_id), dry_run=dry_run)
    if dry_run:
        return f"https://{service_name}-dry-run.a.run.app"
    return fact_at(out, "status.url") if done else None
