# SPDX-License-Identifier: Apache-2.0
"""The verbs: deploy, and what can be done with what was deployed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from reward_kit.deploy.bundle import BundleSource, make_bundle
from reward_kit.deploy.carry_out import MissingThing, Run, Tell, carry_out, take_away
from reward_kit.deploy.hands import AllHands, SecretValues
from reward_kit.deploy.plan import Command, Request, UnknownFactError, filled
from reward_kit.deploy.secret_stores import local_secret
from reward_kit.deploy.settings import DeploySettings
from reward_kit.deploy.show import bundle_lines, plan_lines
from reward_kit.deploy.state import Deployment, Deployments, check_id
from reward_kit.deploy.target import Place, Prepared, Target
from reward_kit.errors import DeployError

__all__ = ["TARGETS", "delete", "deploy", "logs", "status"]

TARGETS = {
    "local-serve": "reward_kit.deploy.targets.local_serve:LocalServe",
    "docker": "reward_kit.deploy.targets.docker:Docker",
    "gcp-cloud-run": "reward_kit.deploy.targets.cloud_run:CloudRun",
    "aws-lambda": "reward_kit.deploy.targets.aws_lambda:AwsLambda",
    "fireworks": "reward_kit.deploy.targets.fireworks:Fireworks",
}
"""Where each target is, by its name. Only the one that is asked for is imported."""


def load_target(name: str) -> Target:
    """The target of this name."""
    module, _, attribute = TARGETS[name].partition(":")
    made: Target = getattr(import_module(module), attribute)()
    return made


def deploy(
    settings: DeploySettings, source: BundleSource, kept: Deployments, tell: Tell, *, dry_run: bool = False
) -> Deployment | None:
    """Deploy, or go on with what was begun. With `dry_run`, tell what would be done and do nothing."""
    _known(settings, kept)  # a wrong id is said before anything is packed
    target = load_target(settings.target)
    bundle = make_bundle(source, extras=target.extras)
    for line in bundle_lines(bundle) if bundle.rewards else ():  # none: somebody serves the reward already
        tell(line)

    def prepare(place: Place) -> Prepared:
        return target.prepare(settings, bundle, place, dry=dry_run)

    return deploy_prepared(settings, prepare, bundle.digest, kept, tell, dry_run=dry_run)


def deploy_prepared(
    settings: DeploySettings,
    prepare: Callable[[Place], Prepared],
    digest: str,
    kept: Deployments,
    tell: Tell,
    *,
    dry_run: bool = False,
) -> Deployment | None:
    """Carry out what `prepare` plans; `digest` is of what is deployed."""
    known = _known(settings, kept)
    place = Place(kept.place(settings.id))
    if dry_run:
        for line in plan_lines(prepare(place), known.facts if known is not None else {}):
            tell(line)
        return None
    prepared = prepare(place)  # what cannot work is said before anything is written
    with kept.alone(settings.id):
        deployment = known or Deployment(id=settings.id, target=settings.target)
        deployment.settings = settings.model_dump(mode="json", exclude_defaults=True, exclude={"sample"})
        deployment.bundle = digest
        services = load_target(settings.target).services
        hands = AllHands(
            tell, region=settings.aws.region, folders=prepared.folders, files=prepared.files, services=services
        )
        secrets = SecretValues(settings, prepared.plan, hands, local_secret)
        for remark in prepared.plan.remarks:
            tell(f"note: {remark}")
        return carry_out(prepared.plan, deployment, Run(kept, hands, secrets, tell, take_over=settings.force))


def _known(settings: DeploySettings, kept: Deployments) -> Deployment | None:
    """What is known of the deployment, if anything; an error where its id cannot be used for this target."""
    known = kept.read(check_id(settings.id))
    if known is None:
        return None
    if known.target != settings.target:
        raise DeployError(
            f"{settings.id!r} is deployed to {known.target!r}. Choose another --id, or delete it first: "
            f"reward-kit deploy delete {settings.id}"
        )
    if known.status == "deleting":
        raise DeployError(f"{settings.id!r} is half deleted. Finish that first: reward-kit deploy delete {settings.id}")
    return known


# ── what was deployed ────────────────────────────────────────────────────────────────────────────────────────────────


def _hands(deployment: Deployment, tell: Tell) -> AllHands:
    services = load_target(deployment.target).services
    return AllHands(tell, region=deployment.settings.get("aws", {}).get("region"), services=services)


def status(deployment: Deployment, tell: Tell) -> Any:
    """What the target says of it now; None where it says that there is nothing."""
    hands = _hands(deployment, tell)
    answers: list[Any] = []
    for action in deployment.inspect:
        try:
            answers.append(hands.do(filled(action, deployment.facts), {}))
        except (MissingThing, UnknownFactError):  # gone, or never made
            return None
    return answers[-1] if answers else None


def logs(deployment: Deployment, tell: Tell, show: Callable[[str], None]) -> None:
    """Show the last lines of its log."""
    hands = _hands(deployment, tell)
    for action in deployment.logs:
        answer = hands.do(filled(action, deployment.facts), {})
        if isinstance(action, Request):
            for event in answer.get("events", ()) if isinstance(answer, Mapping) else ():
                show(str(event.get("message", "")).rstrip("\n"))
        elif isinstance(action, Command) and not action.follow:
            show(str(answer))


def delete(deployment_id: str, kept: Deployments, tell: Tell) -> None:
    """Remove everything that the state file names. What cannot be removed is said, and stays known."""
    deployment = kept.get(deployment_id)
    with kept.alone(deployment_id):
        failed = take_away(deployment, kept, _hands(deployment, tell), tell)
    if failed:
        raise DeployError(
            f"Not everything of {deployment_id!r} could be removed: {'; '.join(failed)}. Solve this problem, then run "
            "the same command again."
        )
