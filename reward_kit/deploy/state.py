# SPDX-License-Identifier: Apache-2.0
"""What exists of a deployment: one small file for each, written before and after every step.

`.reward_kit/deployments/ID.json`, in the folder where the command is run. It holds names, addresses and how each thing
is taken away again; no key and no secret.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from reward_kit.deploy.plan import Action
from reward_kit.errors import DeployError
from reward_kit.storage.files import Draft, write_whole

__all__ = ["Deployment", "Deployments", "StepState", "check_id"]

_ID = re.compile(r"[a-z](?:[a-z0-9-]{0,46}[a-z0-9])?")
FOLDER = Path(".reward_kit") / "deployments"


def check_id(deployment_id: str) -> str:
    """The id, if every target can make names of it."""
    if not _ID.fullmatch(deployment_id):
        raise DeployError(
            f"The id {deployment_id!r} cannot be used. Use small letters, digits and hyphens, begin with a letter, and "
            "take at most 48 characters, such as 'math-v1'."
        )
    return deployment_id


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StepState(_File):
    """What is known of one step."""

    name: str
    title: str
    state: Literal["begun", "done"]
    """`begun`: it may exist, or half of it."""
    digest: str
    facts: dict[str, str] = {}
    remove: list[Action] = []


class Deployment(_File):
    """One deployment."""

    format: Literal[1] = 1
    id: str
    target: str
    status: Literal["deploying", "ready", "deleting"] = "deploying"
    settings: dict[str, Any] = {}
    """What it was deployed with, as far as it may be written down."""
    bundle: str = ""
    """The digest of the bundle."""
    url: str = ""
    auth: str = ""
    key: str = ""
    """How to read the endpoint's key."""
    changed: str = ""
    steps: list[StepState] = []
    inspect: list[Action] = []
    """What `deploy status` asks."""
    logs: list[Action] = []

    @property
    def facts(self) -> dict[str, str]:
        """All that the steps found out."""
        return {f"{step.name}.{name}": value for step in self.steps for name, value in step.facts.items()}

    def step(self, name: str) -> StepState | None:
        """What is known of a step, if it was ever begun."""
        return next((step for step in self.steps if step.name == name), None)

    def note(self, state: StepState) -> None:
        """Put a step in the place of what was known of it, or last."""
        for number, step in enumerate(self.steps):
            if step.name == state.name:
                self.steps[number] = state
                return
        self.steps.append(state)


class Deployments:
    """The deployments that were made from a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        """Look in `folder`, by default the one of the current directory. Nothing is written yet."""
        self.folder = folder if folder is not None else FOLDER

    def ids(self) -> list[str]:
        """Every deployment that is known here."""
        return sorted(path.stem for path in self.folder.glob("*.json"))

    def read(self, deployment_id: str) -> Deployment | None:
        """What is known of a deployment; None where there is none of that id."""
        path = self._path(deployment_id)
        try:
            return Deployment.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            first = error.errors()[0]
            raise DeployError(
                f"{str(path)!r} is not what reward-kit wrote ({first['msg']}). Restore it; what it named can then be "
                "deleted."
            ) from None

    def get(self, deployment_id: str) -> Deployment:
        """What is known of a deployment."""
        found = self.read(check_id(deployment_id))
        if found is None:
            known = ", ".join(self.ids())
            here = f"Known here: {known}." if known else "None was made from this folder."
            raise DeployError(f"There is no deployment {deployment_id!r}. {here}")
        return found

    def write(self, deployment: Deployment) -> None:
        """Write it down, whole or not at all."""
        deployment.changed = datetime.now(UTC).isoformat(timespec="seconds")
        path = self._path(deployment.id)
        self._make_folder()
        with Draft(path, mode=0o600) as draft:
            draft.write(deployment.model_dump_json(indent=2).encode() + b"\n")

    def forget(self, deployment_id: str) -> None:
        """Take away everything that is kept of it."""
        import shutil

        self._path(deployment_id).unlink(missing_ok=True)
        (self.folder / f"{deployment_id}.lock").unlink(missing_ok=True)
        shutil.rmtree(self.place(deployment_id), ignore_errors=True)

    def place(self, deployment_id: str) -> Path:
        """The folder for files of a deployment: what is built from, logs, the key of a local one."""
        return self.folder / deployment_id

    @contextmanager
    def alone(self, deployment_id: str) -> Iterator[None]:
        """Let nobody else change the deployment meanwhile."""
        self._make_folder()
        with open(self.folder / f"{deployment_id}.lock", "w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DeployError(
                    f"Another command is changing {deployment_id!r}. Wait for it, then run this one again."
                ) from None
            yield

    def _path(self, deployment_id: str) -> Path:
        return self.folder / f"{deployment_id}.json"

    def _make_folder(self) -> None:
        """The folder is nobody's business but this machine's: git is told so."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            write_whole(ignore, "*\n")
