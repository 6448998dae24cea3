# SPDX-License-Identifier: Apache-2.0
"""`rewardkit.yaml`: what deployments of a project have in common, so that no command has to say it.

    default_deployment_target: gcp-cloud-run
    gcp_cloud_run: {project_id: my-project, region: europe-west1, default_auth_mode: iam}
    aws_lambda: {region: eu-central-1, secrets: {OPENAI_API_KEY: openai-key}}

It is looked for in the current directory and above. No key belongs into it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from reward_kit.config_models import StrictPart, as_config_error
from reward_kit.errors import ConfigError
from reward_kit.redaction import remember_settings
from reward_kit.utils.strict_yaml import load_yaml, read_yaml_text

__all__ = [
    "CONFIG_FILE_NAME",
    "AWSLambdaConfig",
    "GCPCloudRunConfig",
    "RewardKitConfig",
    "find_config_file",
    "get_config",
    "load_config",
]

CONFIG_FILE_NAME = "rewardkit.yaml"
AuthMode = Literal["open", "api-key", "iam", "mtls-client-auth"]


class GCPCloudRunConfig(StrictPart):
    """What deployments to Cloud Run have in common."""

    project_id: str | None = None
    """The project of Google Cloud."""
    region: str | None = None
    """Such as `europe-west1`."""
    artifact_registry_repository: str | None = None
    """Where images are kept."""
    service_name_template: str | None = "rewardeval-{evaluator_id}"
    """The name of a service; `{evaluator_id}` is the id of the deployment."""
    default_auth_mode: AuthMode | None = "api-key"
    """Who may call."""
    secrets: dict[str, str] | None = Field(default_factory=dict)
    """Environment variable → the name of a secret in Secret Manager."""


class AWSLambdaConfig(StrictPart):
    """What deployments to Lambda have in common."""

    region: str | None = None
    """Such as `eu-central-1`."""
    function_name_template: str | None = "rewardeval-{evaluator_id}"
    """The name of a function; `{evaluator_id}` is the id of the deployment."""
    default_auth_mode: AuthMode | None = "api-key"
    """Who may call."""
    secrets: dict[str, str] | None = Field(default_factory=dict)
    """Environment variable → the name of a secret in Secrets Manager."""


class RewardKitConfig(StrictPart):
    """The whole file."""

    default_deployment_target: (
        Literal["gcp-cloud-run", "aws-lambda", "docker", "fireworks", "local", "local-serve"] | None
    ) = "fireworks"
    """Where `reward-kit deploy` deploys to, unless it is told."""
    gcp_cloud_run: GCPCloudRunConfig | None = Field(default_factory=GCPCloudRunConfig)
    """Cloud Run."""
    aws_lambda: AWSLambdaConfig | None = Field(default_factory=AWSLambdaConfig)
    """Lambda."""
    evaluator_endpoint_keys: dict[str, str] | None = Field(default_factory=dict)
    """Read by earlier versions. Keys are kept in a store of secrets now; take them out of here."""


def find_config_file(start_path: str | None = None) -> str | None:
    """The file's path, from the given or the current directory upwards; None where there is none."""
    start = Path(start_path or ".").resolve()
    places = (folder / CONFIG_FILE_NAME for folder in (start, *start.parents))
    return next((str(path) for path in places if path.is_file()), None)


def load_config(config_path: str | None = None) -> RewardKitConfig:
    """What the file says, or the defaults where there is none. A file that cannot be used is a `ConfigError`."""
    path = config_path or find_config_file()
    if path is None:
        return RewardKitConfig()
    text = read_yaml_text(Path(path), f"The file {path!r}", "Name a file with the settings of deployments.")
    told = load_yaml(text, path) or {}
    if isinstance(told, dict):  # the rest names secrets and holds none
        remember_settings({"keys": told.get("evaluator_endpoint_keys")})
    try:
        return RewardKitConfig.model_validate(told)
    except ValidationError as error:
        raise ConfigError(f"{path!r} cannot be used. {as_config_error(error)}") from None


def get_config() -> RewardKitConfig:
    """What the file of this directory says. It is read each time, so that a change counts at once."""
    return load_config()
