# SPDX-License-Identifier: Apache-2.0
"""What somebody asks for when they deploy: the same for every target, and what each target wants to know beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["AuthMode", "AwsSettings", "DeploySettings", "DockerSettings", "FireworksSettings", "GcpSettings"]

AuthMode = Literal["open", "api-key", "iam"]

DEFAULT_SAMPLE: dict[str, Any] = {
    "messages": [{"role": "user", "content": "What is 2 + 2?"}, {"role": "assistant", "content": "4"}],
    "ground_truth": "4",
}


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DockerSettings(_Settings):
    """An image, and a container of it on this machine."""

    program: str = "docker"
    """The engine's command; `podman` takes the same arguments."""
    base_image: str | None = None
    network: str | None = None
    """The container's network; with `host` it listens on this machine itself."""
    bind: str = "127.0.0.1"
    """The address of this machine that the port is opened on."""


class GcpSettings(_Settings):
    """Cloud Run."""

    project: str | None = None
    region: str | None = None
    repository: str = "reward-kit-evaluators"
    """Of Artifact Registry, for the images that are built."""
    image: str | None = None
    """An image that is there already, instead of one that is built from the bundle."""
    service_account: str | None = None
    """The service runs as this account. Without one, an account of its own is made."""
    invokers: tuple[str, ...] = ()
    """Who may call it with `iam`, such as `serviceAccount:trainer@project.iam.gserviceaccount.com`."""
    min_instances: int = Field(default=0, ge=0)
    max_instances: int = Field(default=10, ge=1)
    concurrency: int = Field(default=16, ge=1, le=1000)
    cpu: str = "1"
    memory: str = "1Gi"
    service_name: str = "rewardeval-{evaluator_id}"


class AwsSettings(_Settings):
    """Lambda."""

    region: str | None = None
    architecture: Literal["x86_64", "arm64"] = "x86_64"
    memory_mb: int = Field(default=1024, ge=128, le=10_240)
    invokers: tuple[str, ...] = ()
    """Who may call it with `iam`: account ids, or ARNs of roles and users. Without any, this account."""
    role: str | None = None
    """The ARN of a role that is there already. Without one, a role of its own is made."""
    function_name: str = "rewardeval-{evaluator_id}"
    reserved_concurrency: int | None = Field(default=None, ge=0)
    """The most instances at a time."""


class FireworksSettings(_Settings):
    """An evaluator of Fireworks."""

    remote_url: str | None = None
    """A reward that is served already, instead of one that is sent."""
    dataset: str | None = None
    """A dataset of Hugging Face, for samples."""
    split: str = "train"
    prompt_key: str = "prompt"
    response_key: str = "response"
    key_map: dict[str, str] = {}
    """Column of the dataset → field of a message."""


class DeploySettings(_Settings):
    """One deployment, as it was asked for."""

    id: str
    target: str
    auth_mode: AuthMode = "api-key"
    display_name: str | None = None
    description: str | None = None
    force: bool = False
    """Take over things of the same names that this folder knows nothing of."""
    rotate_key: bool = False
    port: int = 8001
    """On this machine, for `local-serve` and `docker`."""
    image_port: int = 8080
    """Inside of an image."""
    python: str = ""
    """The version of Python, such as `3.12`; by default this one's."""
    request_seconds: int = Field(default=300, ge=1, le=3600)
    wheelhouse: Path | None = None
    """A folder of wheels to install from, instead of an index."""
    environment: dict[str, str] = {}
    """Variables that may be seen."""
    secrets: dict[str, str] = {}
    """Variables that may not: name → the secret's name in the target's store."""
    verdict: bool = True
    """Whether the deployed reward is called in the end."""
    sample: dict[str, Any] | None = None
    """What the deployed reward judges first."""
    docker: DockerSettings = DockerSettings()
    gcp: GcpSettings = GcpSettings()
    aws: AwsSettings = AwsSettings()
    fireworks: FireworksSettings = FireworksSettings()
