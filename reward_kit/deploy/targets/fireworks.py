# SPDX-License-Identifier: Apache-2.0
"""`fireworks`: the reward as an evaluator that Fireworks builds and calls in its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reward_kit.deploy.bundle import Bundle
from reward_kit.deploy.carry_out import MakeHands, MissingThing, Tell
from reward_kit.deploy.fireworks.api import FireworksAPI
from reward_kit.deploy.fireworks.evaluator_source import source_of_bundle, source_of_url
from reward_kit.deploy.fireworks.evaluators import (
    EvaluatorSource,
    archive_of,
    build_log,
    request_body,
    wait_until_built,
)
from reward_kit.deploy.fireworks.uploads import upload
from reward_kit.deploy.plan import Action, Plan, Request, Step
from reward_kit.deploy.settings import DeploySettings
from reward_kit.deploy.target import Place, Prepared

__all__ = ["Fireworks", "FireworksHands", "evaluator_plan"]

SERVICE = "fireworks"


class Fireworks:
    """An evaluator in the account that the key belongs to."""

    name = "fireworks"
    extras: tuple[str, ...] = ()

    @property
    def services(self) -> Mapping[str, MakeHands]:
        """Fireworks does its requests."""
        return {SERVICE: FireworksHands}

    def prepare(self, settings: DeploySettings, bundle: Bundle, place: Place, *, dry: bool) -> Prepared:
        """Create the evaluator, send its files, wait until it is built."""
        url = settings.fireworks.remote_url
        return evaluator_plan(settings, source_of_bundle(bundle) if url is None else source_of_url(url))


def evaluator_plan(settings: DeploySettings, source: EvaluatorSource) -> Prepared:
    """What there is to do for an evaluator made of these files."""
    archive = f"{settings.id}.tar.gz"
    name = f"evaluators/{settings.id}"
    body = request_body(settings.id, source, settings.display_name, settings.description)
    make = (
        Request(service=SERVICE, operation="create", parameters={"name": name, **body}),
        Request(
            service=SERVICE, operation="upload",
            parameters={"name": name, "filename": archive, "content": {"$file": archive}},
        ),
        Request(service=SERVICE, operation="wait_until_built", parameters={"name": name}),
    )  # fmt: skip
    remove = Request(service=SERVICE, operation="delete", parameters={"name": name})
    step = Step(
        name="evaluator",
        title=f"the evaluator {settings.id!r} at Fireworks",
        look=Request(service=SERVICE, operation="get", parameters={"name": name}),
        make=make,
        change=(remove, *make),
        facts={"name": "name"},
        remove=(remove,),
    )
    plan = Plan(
        target="fireworks",
        steps=(step,),
        url="${evaluator.name}",
        auth="jobs of the account, such as: reward-kit jobs rl start",
        status=(Request(service=SERVICE, operation="get", parameters={"name": name}),),
        logs=(Request(service=SERVICE, operation="build_log", parameters={"name": name}),),
        remarks=_remarks(settings),
    )
    return Prepared(plan, files={archive: archive_of(source.files)})


def _remarks(settings: DeploySettings) -> tuple[str, ...]:
    remarks = []
    if settings.secrets:
        names = ", ".join(settings.secrets)
        remarks.append(
            f"Fireworks gives evaluators all secrets of the account: keep {names} with `reward-kit secrets set`."
        )
    if settings.fireworks.dataset is not None:
        remarks.append(
            "An evaluator has no data of its own, so the dataset is not used. Bring data there with "
            "`reward-kit export --to fireworks --upload`."
        )
    return tuple(remarks)


class FireworksHands:
    """Does requests whose service is Fireworks."""

    def __init__(self, files: Mapping[str, bytes], tell: Tell) -> None:
        """`files` holds the bytes of what a request names as `$file`."""
        self._files, self._tell = files, tell
        self._api: FireworksAPI | None = None

    def do(self, action: Action, _: Mapping[str, str]) -> Any:
        """Ask Fireworks; see `Hands`."""
        assert isinstance(action, Request)
        if self._api is None:
            self._api = FireworksAPI()
        given = dict(action.parameters)
        name = self._api.name(*str(given.pop("name")).split("/", 1))
        match action.operation:
            case "get":
                found = self._api.find(name)
                if found is None:
                    raise MissingThing(f"There is no {name!r}.")
                return found
            case "create":
                return self._api.create(f"accounts/{self._api.account}/evaluatorsV2", given, made=name)
            case "upload":
                upload(self._api, name, given["filename"], self._files[given["content"]["$file"]], self._sent)
                return {"name": name}
            case "wait_until_built":
                return wait_until_built(self._api, name, tell=lambda said: self._tell(f"    {said}"))
            case "build_log":
                return {"events": [{"message": line} for line in build_log(self._api, name).splitlines()]}
            case "delete":
                if not self._api.delete(name):
                    raise MissingThing(f"There is no {name!r}.")
                return {}
        raise AssertionError(f"no such operation: {action.operation}")

    def _sent(self, sent: int, total: int) -> None:
        if sent == total:
            self._tell(f"    sent {total:,} bytes")
