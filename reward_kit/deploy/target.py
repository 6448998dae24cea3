# SPDX-License-Identifier: Apache-2.0
"""What a target is: a small object that turns a bundle into a plan."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from reward_kit.deploy.bundle import Bundle
from reward_kit.deploy.carry_out import MakeHands
from reward_kit.deploy.plan import FirstCall, Plan, Step
from reward_kit.deploy.settings import DEFAULT_SAMPLE, DeploySettings

__all__ = ["Place", "Prepared", "Target", "name_within", "python_version", "verdict_step"]


@dataclass(frozen=True)
class Place:
    """Where on this machine a deployment may put files."""

    folder: Path

    @property
    def context(self) -> str:
        """The folder that is built or served from."""
        return str(self.folder / "files")

    @property
    def key(self) -> str:
        """The file of the endpoint's key, where no store of secrets holds it."""
        return str(self.folder / "api-key")

    @property
    def pid(self) -> str:
        """The number of a program that runs on this machine."""
        return str(self.folder / "pid")

    @property
    def log(self) -> str:
        """What a program that runs on this machine says."""
        return str(self.folder / "log.txt")


@dataclass(frozen=True)
class Prepared:
    """A plan, and the contents of what it writes or sends."""

    plan: Plan
    folders: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """By the folder that a `WriteFiles` names."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """By the name that a `Request` has as its `$file`."""


class Target(Protocol):
    """A place where rewards run."""

    name: str
    extras: tuple[str, ...]
    """The extras of reward-kit that its bundle needs."""
    services: Mapping[str, MakeHands]
    """Makes who does the requests of its own service, by the name that they give it; AWS's need nobody here."""

    def prepare(self, settings: DeploySettings, bundle: Bundle, place: Place, *, dry: bool) -> Prepared:
        """The plan. With `dry`, nothing is built, fetched or written: what that would find out stays open."""


def python_version(settings: DeploySettings) -> str:
    """The version of Python that the reward will run under, such as `3.12`."""
    return settings.python or f"{sys.version_info.major}.{sys.version_info.minor}"


def verdict_step(settings: DeploySettings, call: FirstCall) -> tuple[Step, ...]:
    """The last step: the deployed reward judges the sample that was given, or a small one of our own."""
    if not settings.verdict:
        return ()
    given = settings.sample
    whole = call.model_copy(update={"sample": given or DEFAULT_SAMPLE, "is_own": given is not None})
    return (Step(name="verdict", title="a first verdict", make=(whole,)),)


def name_within(name: str, most: int) -> str:
    """The name, shortened where it is longer than `most`, so that two long names stay two."""
    if len(name) <= most:
        return name
    return f"{name[: most - 7].rstrip('-')}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
