# SPDX-License-Identifier: Apache-2.0
"""`docker`: an image, and a container of it on this machine.

The container runs with a read-only root, without capabilities, as a user without a name, and its port is opened on
127.0.0.1 unless another address is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from reward_kit.deploy.archive import digest_of
from reward_kit.deploy.bundle import Bundle
from reward_kit.deploy.bundle_layout import KEY_VARIABLE
from reward_kit.deploy.carry_out import MakeHands
from reward_kit.deploy.dockerfile import IMAGE_PORT, default_base, image_files
from reward_kit.deploy.plan import Action, Command, FirstCall, Plan, ReadFile, Step, WriteFiles
from reward_kit.deploy.settings import DeploySettings
from reward_kit.deploy.target import Place, Prepared, python_version, verdict_step
from reward_kit.deploy.targets.local_serve import key_step, local_secrets
from reward_kit.deploy.wheels import read_wheelhouse
from reward_kit.errors import DeployError

__all__ = ["Docker", "server_access"]

_PINNED = "{{if .RepoDigests}}{{index .RepoDigests 0}}{{else}}{{.Id}}{{end}}"
_NO_IMAGE = "no such image|not known|not found"
_NO_CONTAINER = "no such (container|object)|not found"


def server_access(settings: DeploySettings, platform: str | None = None) -> dict[str, object]:
    """Who may call, as the server's settings say it. `platform` is who checks callers where IAM does."""
    if settings.auth_mode == "api-key":
        return {"api_key_envs": [KEY_VARIABLE]}
    return {"insecure": True} if settings.auth_mode == "open" else {"behind": platform}


class Docker:
    """A container of this machine."""

    name = "docker"
    extras: tuple[str, ...] = ("serve",)
    services: Mapping[str, MakeHands] = {}

    def prepare(self, settings: DeploySettings, bundle: Bundle, place: Place, *, dry: bool) -> Prepared:
        """Write the files, build the image, run it, have it judge an answer."""
        if settings.auth_mode == "iam":
            raise DeployError("A container on this machine has no IAM. Use --auth-mode api-key.")
        base = settings.docker.base_image or default_base(python_version(settings))
        wheels = read_wheelhouse(settings.wheelhouse)
        files = image_files(bundle, base, wheels, server_access(settings))
        digest = digest_of(files)
        engine, name = settings.docker.program, f"reward-kit-{settings.id}"
        tag = f"reward-kit/{settings.id}:{digest[:12]}"
        call = FirstCall(
            url=f"http://{_reached_at(settings)}:{settings.port}/evaluate", patience=180.0, sample={},
            auth="open" if settings.auth_mode == "open" else "api-key",
            key=None if settings.auth_mode == "open" else ReadFile(path=place.key),
        )  # fmt: skip
        steps = (
            Step(
                name="files",
                title=f"the files in {place.context!r}",
                make=(WriteFiles(folder=place.context, names=tuple(sorted(files)), digest=digest),),
            ),
            _base_step(engine, base),
            _image_step(engine, tag, place, offline=bool(wheels)),
            *key_step(settings, place),
            _container_step(settings, name, tag),
            *verdict_step(settings, call),
        )
        state = "{{.State.Status}} {{if .State.Health}}({{.State.Health.Status}}) {{end}}since {{.State.StartedAt}}"
        plan = Plan(
            target=self.name,
            steps=steps,
            url=call.url,
            auth=settings.auth_mode,
            key=f"cat {place.key}" if settings.auth_mode == "api-key" else "",
            key_from=ReadFile(path=place.key) if settings.auth_mode == "api-key" else None,
            status=(_inspect(engine, "container", name, state, _NO_CONTAINER),),
            logs=(Command(argv=(engine, "logs", "--tail", "200", name), follow=True),),
        )
        return Prepared(plan, folders={place.context: files})


def _inspect(engine: str, kind: str, name: str, template: str, missing: str) -> Command:
    return Command(argv=(engine, kind, "inspect", "--format", template, name), missing=missing)


def _base_step(engine: str, base: str) -> Step:
    """The base, pinned by its digest: the image is built on exactly that, and the state file says on which."""
    look = _inspect(engine, "image", base, _PINNED, _NO_IMAGE)
    return Step(
        name="base",
        title=f"the base image {base!r}",
        look=look,
        make=(Command(argv=(engine, "pull", base)), look),
        facts={"pinned": ""},
    )


def _image_step(engine: str, tag: str, place: Place, *, offline: bool) -> Step:
    build: list[str] = [engine, "build", "--tag", tag, "--build-arg", "BASE=${base.pinned}"]
    if offline:
        build += ["--network", "none"]
    return Step(
        name="image",
        title=f"the image {tag!r}",
        look=_inspect(engine, "image", tag, "{{.Id}}", _NO_IMAGE),
        make=(Command(argv=(*build, place.context)),),
        remove=(Command(argv=(engine, "image", "rm", "--force", tag), missing=_NO_IMAGE),),
    )


def _container_step(settings: DeploySettings, name: str, tag: str) -> Step:
    engine = settings.docker.program
    gone = Command(argv=(engine, "rm", "--force", name), missing=_NO_CONTAINER)
    run = _run(settings, name, tag)
    return Step(
        name="container",
        title=f"the container {name!r}",
        look=_inspect(engine, "container", name, "{{.Id}}", _NO_CONTAINER),
        make=(run,),
        change=(gone, run),
        remove=(gone,),
    )


def _run(settings: DeploySettings, name: str, tag: str) -> Action:
    is_host = settings.docker.network == "host"
    port = settings.port if is_host else IMAGE_PORT
    values = {"PORT": str(port), **settings.environment, **local_secrets(settings)}
    if settings.auth_mode == "api-key":
        values[KEY_VARIABLE] = "${secret:api_key}"
    argv = [
        settings.docker.program, "run", "--detach", "--name", name, "--label", f"reward-kit-deployment={settings.id}",
        "--restart", "unless-stopped", "--read-only", "--tmpfs", "/tmp:size=256m", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--pids-limit", "512",
    ]  # fmt: skip
    if not is_host:
        argv += ["--publish", f"{settings.docker.bind}:{settings.port}:{IMAGE_PORT}"]
    if settings.docker.network is not None:
        argv += ["--network", settings.docker.network]
    for variable in values:  # the values go by the environment: a command line can be seen by everybody
        argv += ["--env", variable]
    listens = ["--host", settings.docker.bind] if is_host else []
    return Command(argv=(*argv, tag, "--port", str(port), *listens), environment=values)


def _reached_at(settings: DeploySettings) -> str:
    return "127.0.0.1" if settings.docker.bind in {"0.0.0.0", "::"} else settings.docker.bind
