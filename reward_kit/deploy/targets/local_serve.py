# SPDX-License-Identifier: Apache-2.0
"""`local-serve`: a server on this machine that goes on when the command is done.

It serves a copy of the project, so that it does not change while you edit, and listens on 127.0.0.1 only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from reward_kit.deploy.archive import digest_of
from reward_kit.deploy.bundle import Bundle
from reward_kit.deploy.bundle_layout import KEY_VARIABLE, PROJECT, SERVE_FILE
from reward_kit.deploy.carry_out import MakeHands
from reward_kit.deploy.dockerfile import serve_settings
from reward_kit.deploy.plan import (
    Command,
    FirstCall,
    Plan,
    ReadFile,
    RemoveFile,
    Start,
    Step,
    Stop,
    WriteFiles,
    WriteSecret,
)
from reward_kit.deploy.settings import DeploySettings
from reward_kit.deploy.target import Place, Prepared, verdict_step
from reward_kit.errors import DeployError

__all__ = ["LocalServe", "key_step", "local_secrets"]


class LocalServe:
    """A process of this machine."""

    name = "local-serve"
    extras: tuple[str, ...] = ("serve",)
    services: Mapping[str, MakeHands] = {}

    def prepare(self, settings: DeploySettings, bundle: Bundle, place: Place, *, dry: bool) -> Prepared:
        """Write the files, start the server, have it judge an answer."""
        if settings.auth_mode == "iam":
            raise DeployError("There is no IAM on this machine. Use --auth-mode api-key, or open: it is loopback only.")
        folder = Path(place.context).absolute()
        access = {"api_key_envs": [KEY_VARIABLE]} if settings.auth_mode == "api-key" else {}
        served = {"host": "127.0.0.1", "port": settings.port, "access": access}
        files = {**bundle.files, SERVE_FILE: serve_settings(bundle, served)}
        files.setdefault(f"{PROJECT}/.keep", b"")
        url = f"http://127.0.0.1:{settings.port}"
        pythonpath = os.pathsep.join(str(folder / root) for root in bundle.import_roots)
        environment = {"PYTHONPATH": pythonpath, "PYTHONDONTWRITEBYTECODE": "1", **settings.environment}
        if settings.auth_mode == "api-key":
            environment[KEY_VARIABLE] = "${secret:api_key}"
        start = Start(
            argv=(sys.executable, "-m", "reward_kit", "serve", "--config", str(folder / SERVE_FILE)),
            folder=str(folder / PROJECT),
            log=place.log,
            pid_file=place.pid,
            ready=f"Serving at {url}",
            environment={**environment, **local_secrets(settings)},
        )
        stop = Stop(pid_file=place.pid, marker=str(folder / SERVE_FILE))
        call = FirstCall(
            url=f"{url}/evaluate", auth="open" if settings.auth_mode == "open" else "api-key", sample={},
            key=None if settings.auth_mode == "open" else ReadFile(path=place.key),
        )  # fmt: skip
        steps = (
            Step(
                name="files",
                title=f"the files in {place.context!r}",
                make=(WriteFiles(folder=place.context, names=tuple(sorted(files)), digest=digest_of(files)),),
            ),
            *key_step(settings, place),
            Step(
                name="server",
                title=f"the server at {url}",
                make=(start,),
                facts={"pid": "pid"},
                remove=(stop,),
                replaces=True,
            ),
            *verdict_step(settings, call),
        )
        plan = Plan(
            target=self.name,
            steps=steps,
            url=f"{url}/evaluate",
            auth=settings.auth_mode,
            key=f"cat {place.key}" if settings.auth_mode == "api-key" else "",
            key_from=ReadFile(path=place.key) if settings.auth_mode == "api-key" else None,
            status=(Command(argv=("ps", "-o", "pid=,stat=,etime=,args=", "-p", "${server.pid}"), missing=".*"),),
            logs=(Command(argv=("tail", "-n", "200", place.log), follow=True),),
        )
        return Prepared(plan, folders={place.context: files})


def key_step(settings: DeploySettings, place: Place) -> tuple[Step, ...]:
    """The endpoint's key in a file, for a target that has no store of secrets."""
    if settings.auth_mode != "api-key":
        return ()
    write = WriteSecret(path=place.key, value="${secret:api_key}")
    return (
        Step(
            name="key",
            title=f"the API key in {place.key!r}",
            look=None if settings.rotate_key else ReadFile(path=place.key),
            make=(write,),
            remove=(RemoveFile(path=place.key),),
        ),
    )


def local_secrets(settings: DeploySettings) -> dict[str, str]:
    """The reward's secrets as variables; where each is taken from is said by `secret_values`."""
    return {variable: f"${{secret:{variable}}}" for variable in settings.secrets}
