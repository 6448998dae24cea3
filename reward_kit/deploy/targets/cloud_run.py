# SPDX-License-Identifier: Apache-2.0
"""`gcp-cloud-run`: a service of Cloud Run, made with `gcloud` and its credentials.

The image is built by Cloud Build, so no engine is needed here. The service runs as an account of its own that may read
its secrets and nothing else. The key is in Secret Manager.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reward_kit.deploy.archive import digest_of
from reward_kit.deploy.bundle import Bundle
from reward_kit.deploy.bundle_layout import KEY_VARIABLE
from reward_kit.deploy.carry_out import MakeHands
from reward_kit.deploy.dockerfile import default_base, image_files
from reward_kit.deploy.gcloud import NOT_FOUND, gcloud
from reward_kit.deploy.plan import Command, FirstCall, Plan, Step, WriteFiles
from reward_kit.deploy.settings import DeploySettings
from reward_kit.deploy.target import Place, Prepared, name_within, python_version, verdict_step
from reward_kit.deploy.targets.docker import server_access
from reward_kit.deploy.wheels import read_wheelhouse
from reward_kit.errors import DeployError

__all__ = ["CloudRun", "joined_pairs"]

_NO_ACCOUNT = f"{NOT_FOUND}|Unknown service account"
_SECRET_READER = "roles/secretmanager.secretAccessor"
_INVOKER = "roles/run.invoker"
_LONGEST_ACCOUNT = 30
_LONGEST_SERVICE = 49


class CloudRun:
    """A service of Cloud Run."""

    name = "gcp-cloud-run"
    extras: tuple[str, ...] = ("serve",)
    services: Mapping[str, MakeHands] = {}

    def prepare(self, settings: DeploySettings, bundle: Bundle, place: Place, *, dry: bool) -> Prepared:
        """Build the image, make the account and the secrets, deploy the service, have it judge an answer."""
        files: dict[str, bytes] | None = None
        if settings.gcp.image is None:
            base = settings.docker.base_image or default_base(python_version(settings))
            access = server_access(settings, "google-iam")
            files = image_files(bundle, base, read_wheelhouse(settings.wheelhouse), access)
        call = _first_call(_Names(settings))
        return self.prepare_image(settings, files, place, call.url, verdict_step(settings, call))

    def prepare_image(
        self, settings: DeploySettings, files: Mapping[str, bytes] | None, place: Place, url: str, last: Sequence[Step]
    ) -> Prepared:
        """The plan for any image: built from these files, or there already; `last` are the steps after its service."""
        names = _Names(settings)
        steps: list[Step] = []
        folders = {} if files is None else {place.context: files}
        if files is not None:
            steps += _image_steps(names, place, files)
        steps += _account_steps(names)
        steps += _secret_steps(names)
        steps.append(_service_step(names, names.image(files)))
        steps += _invoker_steps(names)
        steps += last
        plan = Plan(
            target=self.name,
            steps=tuple(steps),
            url=url,
            auth=settings.auth_mode,
            key=" ".join(_read_key(names).argv) if settings.auth_mode == "api-key" else "",
            key_from=_read_key(names, missing=NOT_FOUND) if settings.auth_mode == "api-key" else None,
            status=(names.run("services", "describe", names.service, "--format=yaml(status.url,status.conditions)"),),
            logs=(names.run("services", "logs", "read", names.service, "--limit=200", follow=True),),
            remarks=tuple(_remarks(settings)),
        )
        return Prepared(plan, folders=folders)


class _Names:
    """What everything is called."""

    def __init__(self, settings: DeploySettings) -> None:
        gcp = settings.gcp
        if not gcp.project or not gcp.region:
            missing = "--gcp-project" if not gcp.project else "--gcp-region"
            raise DeployError(f"Cloud Run needs a project and a region. Give {missing}, or set it in rewardkit.yaml.")
        self.settings = settings
        self.project, self.region = gcp.project, gcp.region
        self.service = name_within(gcp.service_name.format(evaluator_id=settings.id), _LONGEST_SERVICE)
        self.key = f"rk-eval-{settings.id}-authkey"
        self.account_id = name_within(f"rk-eval-{settings.id}", _LONGEST_ACCOUNT)
        self.account = gcp.service_account or f"{self.account_id}@{self.project}.iam.gserviceaccount.com"

    def run(self, *words: str, missing: str = "", follow: bool = False) -> Command:
        """A command about the service's region."""
        return gcloud("run", *words, f"--region={self.region}", project=self.project, missing=missing, follow=follow)

    def do(self, *words: str, stdin: str | None = None, missing: str = "") -> Command:
        """A command about the project."""
        return gcloud(*words, project=self.project, stdin=stdin, missing=missing)

    def image(self, files: Mapping[str, bytes] | None) -> str:
        """The image of the service: what was named, or what is built from the files."""
        if files is None:
            return str(self.settings.gcp.image)
        place = f"{self.region}-docker.pkg.dev/{self.project}/{self.settings.gcp.repository}"
        return f"{place}/{self.settings.id}:{digest_of(files)[:12]}"


def _image_steps(names: _Names, place: Place, files: Mapping[str, bytes]) -> Iterator[Step]:
    repository, image = names.settings.gcp.repository, names.image(files)
    here = ("--location=" + names.region,)
    yield Step(
        name="files",
        title=f"the files in {place.context!r}",
        make=(WriteFiles(folder=place.context, names=tuple(sorted(files)), digest=digest_of(files)),),
    )
    yield Step(
        name="repository",
        title=f"the repository {repository!r} of Artifact Registry",
        look=names.do("artifacts", "repositories", "describe", repository, *here, missing=NOT_FOUND),
        make=(names.do("artifacts", "repositories", "create", repository, "--repository-format=docker", *here),),
    )
    yield Step(
        name="image",
        title=f"the image {image!r}",
        look=names.do("artifacts", "docker", "images", "describe", image, missing=NOT_FOUND),
        make=(names.do("builds", "submit", place.context, f"--tag={image}"),),
        remove=(names.do("artifacts", "docker", "images", "delete", image, "--delete-tags", missing=NOT_FOUND),),
    )


def _account_steps(names: _Names) -> Iterator[Step]:
    if names.settings.gcp.service_account is not None:
        return
    yield Step(
        name="account",
        title=f"the service account {names.account!r}",
        look=names.do("iam", "service-accounts", "describe", names.account, missing=_NO_ACCOUNT),
        make=(
            names.do(
                "iam", "service-accounts", "create", names.account_id,
                f"--display-name=reward-kit {names.settings.id}",
            ),
        ),
        remove=(names.do("iam", "service-accounts", "delete", names.account, missing=_NO_ACCOUNT),),
    )  # fmt: skip


def _secret_steps(names: _Names) -> Iterator[Step]:
    settings = names.settings
    if settings.auth_mode == "api-key":
        add = names.do("secrets", "versions", "add", names.key, "--data-file=-", stdin="${secret:api_key}")
        yield Step(
            name="secret",
            title=f"the secret {names.key!r} of Secret Manager",
            look=names.do("secrets", "describe", names.key, missing=NOT_FOUND),
            make=(
                names.do(
                    "secrets", "create", names.key, "--replication-policy=automatic",
                    f"--labels=reward-kit-deployment={settings.id}",
                ),
            ),
            remove=(names.do("secrets", "delete", names.key, missing=NOT_FOUND),),
        )  # fmt: skip
        yield Step(
            name="key",
            title=f"the API key in {names.key!r}",
            look=None if settings.rotate_key else _read_key(names, missing=NOT_FOUND),
            make=(add,),
        )
        yield _reader_step(names, names.key, is_ours=True)
    for secret in dict.fromkeys(settings.secrets.values()):
        yield Step(
            name=f"secret-{secret}",
            title=f"the secret {secret!r} of Secret Manager",
            look=names.do("secrets", "describe", secret, missing=NOT_FOUND),
            absent=f"There is no secret {secret!r}. Make it with: reward-kit secrets set {secret} --store gcp",
        )
        yield _reader_step(names, secret, is_ours=False)


def _read_key(names: _Names, missing: str = "") -> Command:
    return names.do("secrets", "versions", "access", "latest", f"--secret={names.key}", missing=missing)


def _reader_step(names: _Names, secret: str, *, is_ours: bool) -> Step:
    """Let the service's account read one secret. A secret that is removed takes this with it."""
    who = (f"--member=serviceAccount:{names.account}", f"--role={_SECRET_READER}")
    take = names.do("secrets", "remove-iam-policy-binding", secret, *who, missing=f"{NOT_FOUND}|binding")
    return Step(
        name=f"reader-{secret}",
        title=f"the permission of {names.account} to read {secret!r}",
        make=(names.do("secrets", "add-iam-policy-binding", secret, *who),),
        remove=() if is_ours else (take,),
    )


def _service_step(names: _Names, image: str) -> Step:
    settings, gcp = names.settings, names.settings.gcp
    mounted = {variable: f"{secret}:latest" for variable, secret in settings.secrets.items()}
    if settings.auth_mode == "api-key":
        mounted[KEY_VARIABLE] = f"{names.key}:latest"
    deploy = names.run(
        "deploy", names.service, f"--image={image}", f"--service-account={names.account}",
        f"--port={settings.image_port}",
        "--no-allow-unauthenticated" if settings.auth_mode == "iam" else "--allow-unauthenticated",
        f"--min-instances={gcp.min_instances}", f"--max-instances={gcp.max_instances}",
        f"--concurrency={gcp.concurrency}", f"--cpu={gcp.cpu}", f"--memory={gcp.memory}",
        f"--timeout={settings.request_seconds}", "--execution-environment=gen2",
        f"--labels=reward-kit-deployment={settings.id}",
        f"--set-secrets={joined_pairs(mounted)}" if mounted else "--clear-secrets",
        f"--set-env-vars={joined_pairs(settings.environment)}" if settings.environment else "--clear-env-vars",
        "--format=json",
    )  # fmt: skip
    return Step(
        name="service",
        title=f"the service {names.service!r} of Cloud Run",
        look=names.run("services", "describe", names.service, "--format=json", missing=NOT_FOUND),
        make=(deploy,),
        change=(deploy,),
        facts={"url": "status.url"},
        remove=(names.run("services", "delete", names.service, missing=NOT_FOUND),),
    )


def joined_pairs(values: Mapping[str, str]) -> str:
    """`A=1,B=2`; with another mark than the comma where a value has one, as gcloud wants it said."""
    mark = next(mark for mark in ",@|#~%" if not any(mark in value for value in values.values()))
    joined = mark.join(f"{name}={value}" for name, value in sorted(values.items()))
    return joined if mark == "," else f"^{mark}^{joined}"


def _invoker_steps(names: _Names) -> Iterator[Step]:
    for member in names.settings.gcp.invokers if names.settings.auth_mode == "iam" else ():
        who = (names.service, f"--member={member}", f"--role={_INVOKER}")
        yield Step(
            name=f"invoker-{member}",
            title=f"the permission of {member} to call {names.service!r}",
            make=(names.run("services", "add-iam-policy-binding", *who),),
            remove=(names.run("services", "remove-iam-policy-binding", *who, missing=f"{NOT_FOUND}|binding"),),
        )


def _first_call(names: _Names) -> FirstCall:
    auth = names.settings.auth_mode
    return FirstCall(
        url="${service.url}/evaluate",
        auth="google" if auth == "iam" else auth,
        key=_read_key(names) if auth == "api-key" else None,
        sample={},
    )


def _remarks(settings: DeploySettings) -> Iterator[str]:
    if settings.auth_mode == "open":
        yield "Anybody on the internet can call this service. Use --gcp-auth-mode api-key or iam to prevent that."
    if settings.auth_mode == "iam" and not settings.gcp.invokers:
        yield "Nobody was named with --allow-invoker: only who may call every service of the project can call it."
