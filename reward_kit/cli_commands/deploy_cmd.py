# SPDX-License-Identifier: Apache-2.0
"""`reward-kit deploy`: a reward brought to where others can call it; and status, logs and delete of what was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.deploy_options import ManyValues, asked, deploy_options
from reward_kit.cli_commands.options import completed_by
from reward_kit.cli_commands.output import Line, echo, echo_lines, print_json

if TYPE_CHECKING:
    from reward_kit.deploy.state import Deployment, Deployments

__all__ = ["deploy"]


class _DeployGroup(ManyValues, click.Group):
    """A group that deploys where no command is named."""

    many = frozenset({"--metrics-folders", "-m"})


@click.group(cls=_DeployGroup, invoke_without_command=True, subcommand_metavar="[status|logs|delete ID]")
@deploy_options
@click.option("--dry-run", is_flag=True, help="Print every file, command and request, secrets masked, and do nothing.")
@click.pass_context
def deploy(ctx: click.Context, /, dry_run: bool, **given: Any) -> None:
    """Deploy a reward, so that others can call it.

    --target says where: in a process on this machine, in a container, on Cloud Run, on Lambda or at Fireworks.

    What is deployed: the reward, the modules of the project that it imports, its `requirements`, and this version of
    reward-kit. The command stops at a file that seems to hold a credential. The same source always gives the same
    bytes. When all is deployed, the reward judges one answer as a test. If a step fails, run the same command again: it
    goes on from there.

    \b
    reward-kit deploy --id math --target local-serve --function-ref rewards.py:math
    reward-kit deploy --id math --target docker --function-ref rewards.py:math --dry-run
    reward-kit deploy --id math --target gcp-cloud-run --function-ref rewards.py:math \\
        --gcp-project P --gcp-region europe-west1 --auth-mode iam --allow-invoker user:me@example.org
    reward-kit deploy --id math --target aws-lambda --function-ref rewards.py:math --aws-region eu-central-1
    reward-kit deploy status math
    reward-kit deploy logs math
    reward-kit deploy delete math
    """
    if ctx.invoked_subcommand is not None:
        return
    from reward_kit.deploy.deployer import deploy as carry

    settings, source = asked(given)
    made = carry(settings, source, _kept(), echo, dry_run=dry_run)
    if made is not None:
        _tell_of(made)


def _kept() -> Deployments:
    from reward_kit.deploy.state import Deployments

    return Deployments()


def _tell_of(made: Deployment) -> None:
    lines = [Line("deployed", made.id, made.target), Line("url", made.url), Line("callers", made.auth)]
    if made.key:
        lines.append(Line("key", made.key, "(prints it)"))
    echo_lines(lines)


ID = click.argument("deployment_id", metavar="ID", shell_complete=completed_by("complete_deployments"))


@deploy.command()
@click.argument("deployment_id", metavar="[ID]", required=False, shell_complete=completed_by("complete_deployments"))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def status(deployment_id: str | None, as_json: bool) -> None:
    """Show the parts of a deployment, and their state at the target. Without an ID, list all deployments."""
    from reward_kit.deploy.deployer import status as ask

    kept = _kept()
    if deployment_id is None:
        known = [kept.get(one) for one in kept.ids()]
        if not known and not as_json:
            echo("Nothing was deployed from this folder.")
        if as_json:
            print_json([_plain(one) for one in known])
        else:
            echo_lines([Line(one.id, f"{one.target}, {one.status}", one.url) for one in known])
        return
    deployment = kept.get(deployment_id)
    now = ask(deployment, lambda _: None)
    if as_json:
        print_json({**_plain(deployment), "now": _shown(now)})
        return
    lines = [Line("target", deployment.target), Line("state", deployment.status), Line("url", deployment.url)]
    lines += [
        Line("callers", deployment.auth),
        Line("bundle", deployment.bundle[:12]),
        Line("changed", deployment.changed),
    ]
    lines += [Line(step.state, step.title) for step in deployment.steps]
    lines.append(Line("now", "there is nothing" if now is None else str(_shown(now)).strip()))
    echo_lines(lines)


def _plain(deployment: Deployment) -> dict[str, Any]:
    return deployment.model_dump(
        mode="json", include={"id", "target", "status", "url", "auth", "bundle", "changed", "steps"}
    )


def _shown(now: Any) -> Any:
    """What a target answered; of the long answers of AWS and Fireworks, what matters."""
    if not isinstance(now, dict):
        return now
    wanted = ("State", "LastUpdateStatus", "LastModified", "Runtime", "MemorySize", "Timeout", "state", "status")
    return {name: now[name] for name in wanted if name in now}


@deploy.command()
@ID
def logs(deployment_id: str) -> None:
    """Show the last lines of a deployment's log."""
    from reward_kit.deploy.deployer import logs as read

    read(_kept().get(deployment_id), lambda text: echo(text, err=True), echo)


@deploy.command()
@ID
def delete(deployment_id: str) -> None:
    """Remove everything that a deployment made, and nothing else.

    If something cannot be removed, the command says so and remembers it. Run the same command again later.
    """
    from reward_kit.deploy.deployer import delete as remove

    remove(deployment_id, _kept(), echo)
    echo(f"{deployment_id} is deleted")
