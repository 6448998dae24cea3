# SPDX-License-Identifier: Apache-2.0
"""`reward-kit deploy-mcp`: an MCP server, such as an environment of an agent, on Cloud Run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.deploy_options import ManyValues, env_pairs, python_of
from reward_kit.cli_commands.options import PORT, NamedPath, completed_by
from reward_kit.cli_commands.output import Line, echo, echo_lines

if TYPE_CHECKING:
    from reward_kit.deploy.settings import DeploySettings

__all__ = ["deploy_mcp"]

_FILE = NamedPath(path_type=Path, exists=True, dir_okay=False)


class _DeployMcp(ManyValues):
    many = frozenset({"--env-vars"})


@click.command(cls=_DeployMcp)
@click.option("--id", "deployment_id", required=True, metavar="ID", help="The server's name.")
@click.option("--mcp-server-module", "module", metavar="MODULE", help="Run as: python -m MODULE --host H --port P.")
@click.option(
    "--environment", metavar="REF", shell_complete=completed_by("complete_paths"),
    help="An environment of reward-kit, such as game.py:Game, served at /mcp.",
)  # fmt: skip
@click.option("--dockerfile", type=_FILE, help="A Dockerfile to build, with the project's files as its context.")
@click.option("--gcp-project", help="The project. [default: that of rewardkit.yaml]")
@click.option("--gcp-region", help="The region. [default: that of rewardkit.yaml]")
@click.option("--gcp-ar-repo", default="reward-kit-mcp-servers", show_default=True, help="The repository for images.")
@click.option("--port", type=PORT, default=8000, show_default=True, help="The port that the server listens on.")
@click.option("--python-version", default="3.11", show_default=True, help="The version of Python in the image.")
@click.option("--requirements", help="A file of requirements, or packages with commas between them.")
@click.option(
    "--env-vars", multiple=True, metavar="NAME=VALUE…", help="Environment variables; their values are not secret."
)
@click.option(
    "--allow-unauthenticated", is_flag=True, help="Let anybody call. By default Google asks for an identity token."
)
@click.option("--allow-invoker", "invokers", multiple=True, metavar="WHO", help="Who may call. Repeatable.")
@click.option("--service-account", help="Run as this account. [default: a new one for this deployment]")
@click.option("--base-image", help="What to build on. [default: python:X.Y-slim-bookworm]")
@click.option(
    "--wheelhouse", type=NamedPath(path_type=Path, exists=True, file_okay=False), help="Wheels to install from."
)
@click.option(
    "--force",
    "-f",
    is_flag=True,
    help="Use things that already exist under the same names, even if this command did not make them.",
)
@click.option("--no-check", is_flag=True, help="Do not test the server by asking for its tools.")
@click.option("--dry-run", is_flag=True, help="Print every file, command and request, and do nothing.")
def deploy_mcp(dry_run: bool, **given: Any) -> None:
    """Deploy an MCP server, such as an agent's world, to Cloud Run.

    As a test, the deployed server is asked for its tools. `reward-kit deploy status|logs|delete ID` work with it too.

    \b
    reward-kit deploy-mcp --id game --environment game.py:Game --gcp-project P --gcp-region europe-west1
    reward-kit deploy-mcp --id shop --mcp-server-module shop.server --env-vars STAGE=test --dry-run
    """
    from reward_kit.deploy.deployer import deploy_prepared
    from reward_kit.deploy.dockerfile import default_base
    from reward_kit.deploy.mcp_image import McpServer, mcp_image
    from reward_kit.deploy.plan import ListTools, Step
    from reward_kit.deploy.show import bundle_lines
    from reward_kit.deploy.state import Deployments
    from reward_kit.deploy.target import Place, Prepared
    from reward_kit.deploy.targets.cloud_run import CloudRun
    from reward_kit.deploy.wheels import read_wheelhouse

    if sum(given[name] is not None for name in ("module", "environment", "dockerfile")) != 1:
        raise click.UsageError("Say what to serve: one of --mcp-server-module, --environment and --dockerfile.")
    settings = _settings(given)
    server = McpServer(Path.cwd(), given["port"], given["module"], given["environment"], given["dockerfile"])
    base = given["base_image"] or default_base(settings.python)
    bundle, files = mcp_image(server, base, _requirements(given["requirements"]), read_wheelhouse(given["wheelhouse"]))
    for line in bundle_lines(bundle):
        echo(line)
    url = "${service.url}/mcp"
    ask = ListTools(url=url, auth="open" if settings.auth_mode == "open" else "google")
    last = () if given["no_check"] else (Step(name="tools", title="a first look at its tools", make=(ask,)),)

    def prepare(place: Place) -> Prepared:
        return CloudRun().prepare_image(settings, files, place, url, last)

    made = deploy_prepared(settings, prepare, bundle.digest, Deployments(), echo, dry_run=dry_run)
    if made is not None:
        echo_lines([Line("deployed", made.id, made.target), Line("url", made.url), Line("callers", made.auth)])


def _settings(given: dict[str, Any]) -> DeploySettings:
    from reward_kit.config import GCPCloudRunConfig, get_config
    from reward_kit.deploy.settings import DeploySettings

    common = get_config().gcp_cloud_run or GCPCloudRunConfig()
    return DeploySettings.model_validate({
        "id": given["deployment_id"],
        "target": "gcp-cloud-run",
        "auth_mode": "open" if given["allow_unauthenticated"] else "iam",
        "force": given["force"],
        "image_port": given["port"],
        "python": python_of(given["python_version"]),
        "environment": env_pairs(given["env_vars"], "--env-vars"),
        "gcp": {
            "project": given["gcp_project"] or common.project_id,
            "region": given["gcp_region"] or common.region,
            "repository": given["gcp_ar_repo"],
            "service_account": given["service_account"],
            "invokers": given["invokers"],
            "service_name": "mcp-{evaluator_id}",
            # A world is kept in the memory of one instance, so there is one.
            "max_instances": 1,
        },
    })  # fmt: skip


def _requirements(given: str | None) -> list[str]:
    if not given:
        return []
    path = Path(given)
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else re.split(r"[,\s]+", given)
    return [line for line in (line.partition("#")[0].strip() for line in lines) if line]
