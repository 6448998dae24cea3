# SPDX-License-Identifier: Apache-2.0
"""The options of `deploy`, and what they say as the settings of a deployment; `rewardkit.yaml` says the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reward_kit.cli_commands.options import PORT, NamedPath, completed_by, key_value_pairs

if TYPE_CHECKING:
    from reward_kit.config import RewardKitConfig
    from reward_kit.deploy.bundle import BundleSource
    from reward_kit.deploy.settings import DeploySettings

__all__ = ["ManyValues", "asked", "deploy_options", "env_pairs", "python_of"]

TARGETS = ("fireworks", "gcp-cloud-run", "aws-lambda", "docker", "local-serve")
_FOLDER = NamedPath(path_type=Path, exists=True, file_okay=False)
_FILE = NamedPath(path_type=Path, exists=True, dir_okay=False)
_FIREWORKS_ONLY = ("remote_url", "huggingface_dataset", "huggingface_key_map")
F = TypeVar("F", bound=Callable[..., Any])


class ManyValues(click.Command):
    """A command some of whose flags take several values at once, as in `-m a=folder b=folder`."""

    many: frozenset[str] = frozenset()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line, each further value as if its flag stood before it."""
        return super().parse_args(ctx, list(self._spread(args)))

    def _spread(self, args: Sequence[str]) -> list[str]:
        spread: list[str] = []
        flag, has_value = "", False
        for arg in args:
            if arg in self.many:
                flag, has_value = arg, False
            elif arg.startswith("-") or "=" not in arg:
                flag = ""
            elif flag and has_value:
                spread.append(flag)
            else:
                has_value = True
            spread.append(arg)
        return spread


_OPTIONS = [
    click.option("--id", "deployment_id", metavar="ID", help="The deployment's name. Required to deploy."),
    click.option(
        "--target", type=click.Choice(TARGETS), help="Where to. [default: that of rewardkit.yaml, else fireworks]"
    ),
    click.option(
        "--function-ref", metavar="REWARD", shell_complete=completed_by("complete_rewards"),
        help="The reward: file.py:name, package.module.name, or a name that `reward-kit rewards list` shows.",
    ),
    click.option(
        "--metrics-folders", "-m", multiple=True, metavar="NAME=FOLDER…",
        help="Folders with a main.py that defines `evaluate`, instead of --function-ref.",
    ),
    click.option("--params", "-p", multiple=True, metavar="KEY=VALUE", help="A param of the reward. Repeatable."),
    click.option("--project", type=_FOLDER, help="The folder that modules are imported from. [default: this one]"),
    click.option("--include", multiple=True, metavar="PATTERN", help="Further files of the project. Repeatable."),
    click.option(
        "--allow-file", multiple=True, metavar="FILE",
        help="A file that seems to hold a credential, but does not. It is deployed.",
    ),
    click.option("--requirement", "requirements", multiple=True, metavar="PACKAGE", help="A further package."),
    click.option("--wheelhouse", type=_FOLDER, help="A folder of wheels to install from, instead of an index."),
    click.option(
        "--env", multiple=True, metavar="NAME=VALUE",
        help="An environment variable; its value is not secret. Repeatable.",
    ),
    click.option(
        "--secret", multiple=True, metavar="NAME[=SECRET]",
        help="A variable whose value is a secret of the target's store; without SECRET, one of the same name. "
        "local-serve and docker then take it from the environment.",
    ),
    click.option(
        "--auth-mode", "--gcp-auth-mode", "auth_mode", type=click.Choice(["open", "api-key", "iam"]),
        help="Who may call. open: anybody. api-key: callers with the key. iam: callers that the platform knows. "
        "[default: api-key]",
    ),
    click.option("--rotate-key", is_flag=True, help="Make a new API key."),
    click.option("--allow-invoker", "invokers", multiple=True, metavar="WHO", help="Who may call, with iam."),
    click.option(
        "--sample", type=_FILE,
        help="A JSON file {messages, ground_truth, …} that the deployed reward judges as a test.",
    ),
    click.option("--no-verdict", is_flag=True, help="Do not test the deployed reward with a call."),
    click.option("--display-name", help="A name for people."),
    click.option("--description", help="A sentence for people."),
    click.option(
        "--force", "-f", is_flag=True,
        help="Use things that already exist under the same names, even if this command did not make them.",
    ),
    click.option(
        "--runtime", default=None, metavar="pythonXY", help="The version of Python. [default: this one's]"
    ),
    click.option("--entry-point", help="The reward's name, where --function-ref names a file or module only."),
    click.option(
        "--timeout", type=click.IntRange(1, 3600), default=300, show_default=True,
        help="The most seconds of one request.",
    ),
    click.option("--local-port", type=PORT, default=8001, show_default=True, help="local-serve, docker: the port."),
    click.option("--docker-program", default="docker", show_default=True, help="The engine's command, such as podman."),
    click.option("--docker-network", help="docker: the container's network, such as host."),
    click.option("--bind", default="127.0.0.1", show_default=True, help="docker: the address that opens the port."),
    click.option("--base-image", help="What to build on; pin it with @sha256:… [default: python:X.Y-slim-bookworm]"),
    click.option("--gcp-project", help="gcp-cloud-run: the project."),
    click.option("--gcp-region", help="gcp-cloud-run: the region."),
    click.option("--gcp-ar-repo", help="gcp-cloud-run: the repository for images. [default: reward-kit-evaluators]"),
    click.option("--image", help="gcp-cloud-run: an existing image to use, instead of building one."),
    click.option(
        "--service-account", help="gcp-cloud-run: run as this account. [default: a new one for this deployment]"
    ),
    click.option("--min-instances", type=click.IntRange(0), default=0, show_default=True, help="gcp-cloud-run."),
    click.option(
        "--max-instances", type=click.IntRange(1), help="gcp-cloud-run [default: 10]; aws-lambda [default: no limit]."
    ),
    click.option(
        "--concurrency", type=click.IntRange(1, 1000), default=16, show_default=True,
        help="gcp-cloud-run: requests per instance at a time.",
    ),
    click.option("--cpu", default="1", show_default=True, help="gcp-cloud-run."),
    click.option(
        "--memory", default="1Gi", show_default=True, metavar="SIZE", help="The memory of an instance: 512Mi, 2Gi …"
    ),
    click.option("--aws-region", help="aws-lambda: the region. [default: that of AWS's own settings]"),
    click.option(
        "--aws-role", metavar="ARN", help="aws-lambda: an existing role. [default: a new role for this deployment]"
    ),
    click.option(
        "--architecture", type=click.Choice(["x86_64", "arm64"]), default="x86_64", show_default=True,
        help="aws-lambda.",
    ),
    click.option("--remote-url", metavar="URL", help="fireworks: a reward that is served already."),
    click.option("--huggingface-dataset", "--hf", help="fireworks: a dataset of samples."),
    click.option("--huggingface-split", default="train", show_default=True, help="fireworks."),
    click.option("--huggingface-prompt-key", default="prompt", show_default=True, help="fireworks."),
    click.option("--huggingface-response-key", default="response", show_default=True, help="fireworks."),
    click.option("--huggingface-key-map", metavar="JSON", help="fireworks."),
]  # fmt: skip


def deploy_options(command: F) -> F:
    """All options of a deployment."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


# ── what they say ────────────────────────────────────────────────────────────────────────────────────────────────────


def asked(given: Mapping[str, Any]) -> tuple[DeploySettings, BundleSource]:
    """The settings, and what is to be deployed."""
    from reward_kit.cli_commands.reward_trial import read_params
    from reward_kit.config import get_config
    from reward_kit.deploy.bundle import BundleSource

    if not given["deployment_id"]:
        raise click.UsageError("Name the deployment with --id, such as --id math.")
    config = get_config()
    settings = _settings(given, config)
    if settings.target != "fireworks" and (wrong := [name for name in _FIREWORKS_ONLY if given[name]]):
        raise click.UsageError(f"--{wrong[0].replace('_', '-')} is for --target fireworks.")
    source = BundleSource(
        rewards=_rewards(given),
        project=given["project"] or Path.cwd(),
        params=read_params(given["params"]),
        include=given["include"],
        allow=given["allow_file"],
        requirements=given["requirements"],
    )
    return settings, source


def _rewards(given: Mapping[str, Any]) -> dict[str, str]:
    reference, folders = given["function_ref"], given["metrics_folders"]
    if given["remote_url"] and not reference and not folders:
        return {}
    if bool(reference) == bool(folders):
        raise click.UsageError("Say what to deploy: --function-ref REWARD, or --metrics-folders NAME=FOLDER.")
    if folders:
        named = key_value_pairs(folders, "--metrics-folders", "NAME=FOLDER")
        return {name: f"{Path(folder) / 'main.py'}:evaluate" for name, folder in named.items()}
    entry = given["entry_point"]
    if entry and (reference.endswith(".py") or ":" not in reference):
        reference = f"{reference}:{entry}"
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", re.split(r"[.:/]", reference)[-1])
    return {name or "reward": reference}


def _settings(given: Mapping[str, Any], config: RewardKitConfig) -> DeploySettings:
    from reward_kit.deploy.settings import DeploySettings

    target = given["target"] or _default_target(config)
    told: dict[str, Any] = {
        "id": given["deployment_id"],
        "target": target,
        "auth_mode": given["auth_mode"] or _default_auth(target, config),
        "display_name": given["display_name"],
        "description": given["description"],
        "force": given["force"],
        "rotate_key": given["rotate_key"],
        "verdict": not given["no_verdict"],
        "port": given["local_port"],
        "python": python_of(given["runtime"]),
        "request_seconds": given["timeout"],
        "wheelhouse": given["wheelhouse"],
        "environment": env_pairs(given["env"]),
        "secrets": _secrets(given["secret"], target, config),
        "sample": _sample(given["sample"]),
        "docker": {
            "program": given["docker_program"], "base_image": given["base_image"],
            "network": given["docker_network"], "bind": given["bind"],
        },
        "gcp": _gcp(given, config),
        "aws": _aws(given, config),
        "fireworks": _fireworks(given),
    }  # fmt: skip
    return DeploySettings.model_validate(told)


def _default_target(config: RewardKitConfig) -> str:
    named = config.default_deployment_target or "fireworks"
    return "local-serve" if named == "local" else named


def _default_auth(target: str, config: RewardKitConfig) -> str:
    parts = {"gcp-cloud-run": config.gcp_cloud_run, "aws-lambda": config.aws_lambda}
    part = parts.get(target)
    mode = (part.default_auth_mode if part is not None else None) or "api-key"
    if mode == "mtls-client-auth":
        raise click.UsageError(
            f"rewardkit.yaml asks for client certificates, and with {target} TLS ends at the platform, before the "
            "reward. Put a load balancer that checks them in front, and use --auth-mode iam or api-key."
        )
    return mode


def _gcp(given: Mapping[str, Any], config: RewardKitConfig) -> dict[str, Any]:
    from reward_kit.config import GCPCloudRunConfig

    common = config.gcp_cloud_run or GCPCloudRunConfig()
    told = {
        "project": given["gcp_project"] or common.project_id,
        "region": given["gcp_region"] or common.region,
        "repository": given["gcp_ar_repo"] or common.artifact_registry_repository,
        "image": given["image"],
        "service_account": given["service_account"],
        "invokers": given["invokers"],
        "min_instances": given["min_instances"],
        "max_instances": given["max_instances"],
        "concurrency": given["concurrency"],
        "cpu": given["cpu"],
        "memory": given["memory"],
        "service_name": common.service_name_template,
    }
    return {name: value for name, value in told.items() if value is not None}


def _aws(given: Mapping[str, Any], config: RewardKitConfig) -> dict[str, Any]:
    from reward_kit.config import AWSLambdaConfig

    common = config.aws_lambda or AWSLambdaConfig()
    told = {
        "region": given["aws_region"] or common.region,
        "architecture": given["architecture"],
        "memory_mb": _megabytes(given["memory"]),
        "invokers": given["invokers"],
        "role": given["aws_role"],
        "function_name": common.function_name_template,
        "reserved_concurrency": given["max_instances"],
    }
    return {name: value for name, value in told.items() if value is not None}


def _fireworks(given: Mapping[str, Any]) -> dict[str, Any]:
    told = given["huggingface_key_map"]
    try:
        key_map = json.loads(told) if told else {}
    except ValueError as error:
        raise click.UsageError(f"--huggingface-key-map is not JSON: {error}.") from None
    return {
        "remote_url": given["remote_url"], "dataset": given["huggingface_dataset"], "key_map": key_map,
        "split": given["huggingface_split"], "prompt_key": given["huggingface_prompt_key"],
        "response_key": given["huggingface_response_key"],
    }  # fmt: skip


def _megabytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([MG])i?", text)
    if found is None:
        raise click.UsageError(f"--memory is {text!r}; expected a size such as 512Mi or 2Gi.")
    return int(float(found[1]) * (1024 if found[2] == "G" else 1))


def python_of(runtime: str | None) -> str:
    """The version that `python311`, `python3.11` or `3.11` names; nothing where none is named."""
    if not runtime:
        return ""
    found = re.fullmatch(r"(?:python)?3\.?(\d{1,2})", runtime)
    if found is None:
        raise click.UsageError(f"--runtime is {runtime!r}; expected a version of Python such as python3.12.")
    return f"3.{found[1]}"


def env_pairs(given: tuple[str, ...], flag: str = "--env") -> dict[str, str]:
    """Variables that everybody may see; one that seems to be a secret is refused."""
    from reward_kit.redaction import is_secret_name, remember, secret_values

    pairs = key_value_pairs(given, flag, "NAME=VALUE")
    for name, value in pairs.items():
        if is_secret_name(name) or secret_values({"params": {name: value}}):
            remember(value)
            raise click.UsageError(
                f"{flag} {name} seems to be a secret, and everybody who sees the deployment sees it. Put it into a "
                f"store (`reward-kit secrets set {name}`) and give it as --secret {name}."
            )
        if "${" in value:
            raise click.UsageError(
                f"{flag} {name} holds '${{', which is read as the name of a variable here. Write the value itself."
            )
    return pairs


def _secrets(given: tuple[str, ...], target: str, config: RewardKitConfig) -> dict[str, str]:
    common = {"gcp-cloud-run": config.gcp_cloud_run, "aws-lambda": config.aws_lambda}.get(target)
    named = dict((common.secrets if common is not None else None) or {})
    for text in given:
        variable, equals, secret = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", variable) or (equals and not re.fullmatch(r"[\w/.-]{1,250}", secret)):
            raise click.UsageError(
                "--secret names a variable, and a secret in the target's store: NAME or NAME=SECRET."
            )
        named[variable] = secret or variable
    return named


def _sample(file: Path | None) -> dict[str, Any] | None:
    if file is None:
        return None
    try:
        sample = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise click.UsageError(f"--sample {str(file)!r} is not JSON: {error}. Write one object into it.") from None
    if not isinstance(sample, dict) or not isinstance(sample.get("messages"), list):
        raise click.UsageError(f"--sample {str(file)!r} has no messages. Write {{'messages': […], 'ground_truth': …}}.")
    return sample
