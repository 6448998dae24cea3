# SPDX-License-Identifier: Apache-2.0
"""`aws-lambda`: a function of Lambda behind a function URL, made with boto3 and the credentials that AWS's tools use.

The zip holds the bundle and all packages, as wheels for Lambda's platform. The function runs under a role of its own
that may write its log and read its secrets. Who may call is checked by AWS (`iam`) or by the function (`api-key`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from reward_kit.deploy.archive import zip_of
from reward_kit.deploy.aws import aws_client
from reward_kit.deploy.bundle import Bundle
from reward_kit.deploy.bundle_layout import KEY_VARIABLE, SECRETS_VARIABLE, SERVE_FILE
from reward_kit.deploy.carry_out import MakeHands
from reward_kit.deploy.dockerfile import serve_settings
from reward_kit.deploy.plan import Command, FirstCall, Plan, Request, Step
from reward_kit.deploy.settings import DeploySettings
from reward_kit.deploy.target import Place, Prepared, name_within, python_version, verdict_step
from reward_kit.deploy.wheels import Platform, Wanted, total_size, unpacked
from reward_kit.errors import DeployError

__all__ = ["HANDLER", "AwsLambda", "function_files"]

HANDLER = "reward_kit.deploy.lambda_handler.handle"
_ZIP = "function.zip"
_LARGEST_ZIP = 50 << 20
_LARGEST_UNPACKED = 250 << 20
_LONGEST_NAME = 64
_LOG_POLICY = "write-log"
_SECRETS_POLICY = "read-secrets"
_LOG_DAYS = 30
_MOST_SECONDS = 900
_GLIBC_OF_AMAZON_LINUX_2 = 26
_GLIBC_OF_AMAZON_LINUX_2023 = 34
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
    ],
}


class AwsLambda:
    """A function of Lambda."""

    name = "aws-lambda"
    extras: tuple[str, ...] = ()
    services: Mapping[str, MakeHands] = {}

    def prepare(self, settings: DeploySettings, bundle: Bundle, place: Place, *, dry: bool) -> Prepared:
        """Make the role and the secrets, the function, its URL and who may call it; have it judge an answer."""
        names = _Names(settings)
        if not dry:
            aws_client("lambda", settings.aws.region)  # says what is missing before anything is built
        files = {} if dry else {_ZIP: _zip(settings, bundle)}
        digest = hashlib.sha256(files[_ZIP]).hexdigest() if files else "<when it is built>"
        call = _first_call(names)
        steps = (
            *_role_steps(names),
            *_secret_steps(names),
            *_policy_steps(names),
            _log_step(names),
            _function_step(names, digest),
            *_concurrency_steps(names),
            _url_step(names),
            *_permission_steps(names),
            *verdict_step(settings, call),
        )
        fetch = _wanted(settings, bundle).commands("LISTS", "PACKAGES")
        plan = Plan(
            target=self.name,
            before=tuple(Command(argv=tuple(argv)) for argv in fetch),
            steps=steps,
            url=call.url,
            auth=settings.auth_mode,
            key=f"aws secretsmanager get-secret-value --secret-id {names.key} --query SecretString --output text"
            if settings.auth_mode == "api-key"
            else "",
            key_from=_read_key(names) if settings.auth_mode == "api-key" else None,
            status=(names.about("get_function_configuration"),),
            logs=(
                Request(
                    service="logs",
                    operation="filter_log_events",
                    parameters={"logGroupName": names.log_group, "limit": 200},
                ),
            ),
            remarks=tuple(_remarks(settings)),
        )
        return Prepared(plan, files=files)


class _Names:
    """What everything is called."""

    def __init__(self, settings: DeploySettings) -> None:
        self.settings = settings
        self.function = name_within(settings.aws.function_name.format(evaluator_id=settings.id), _LONGEST_NAME)
        self.role = name_within(f"{self.function}-role", _LONGEST_NAME)
        self.key = f"rk-eval-{settings.id}-authkey"
        self.log_group = f"/aws/lambda/{self.function}"
        self.tags = {"reward-kit-deployment": settings.id}

    @property
    def role_arn(self) -> str:
        """The role that was named, or the one that is made."""
        return self.settings.aws.role or "${role.arn}"

    def about(self, operation: str, parameters: dict[str, Any] | None = None, **meaning: str) -> Request:
        """A request about the function; `meaning` says what its refusals mean."""
        whole = {"FunctionName": self.function, **(parameters or {})}
        return Request(service="lambda", operation=operation, parameters=whole, **meaning)


# ── the zip ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _zip(settings: DeploySettings, bundle: Bundle) -> bytes:
    files = function_files(settings, bundle)
    if (size := total_size(files)) > _LARGEST_UNPACKED:
        raise DeployError(_too_large(size, _LARGEST_UNPACKED, "unpacked"))
    packed = zip_of(files)
    if len(packed) > _LARGEST_ZIP:
        raise DeployError(_too_large(len(packed), _LARGEST_ZIP, "as a zip"))
    return packed


def _too_large(size: int, most: int, how: str) -> str:
    return (
        f"The function is {size >> 20} MB {how}, and Lambda takes {most >> 20} MB. Take requirements or --include "
        "away, or deploy a container: --target gcp-cloud-run or docker."
    )


def function_files(settings: DeploySettings, bundle: Bundle) -> dict[str, bytes]:
    """Everything in the zip: packages at its root, where Lambda imports from, and the bundle beside them."""
    packages = unpacked(_wanted(settings, bundle))
    access = {"api_key_envs": [KEY_VARIABLE]} if settings.auth_mode == "api-key" else _open_access(settings)
    limits = {"request_seconds": max(1, _timeout(settings) - 2)}  # so that a late verdict is told, not cut off
    served = serve_settings(bundle, {"host": "0.0.0.0", "access": access, "limits": limits})
    return {**packages, **bundle.files, SERVE_FILE: served}


def _wanted(settings: DeploySettings, bundle: Bundle) -> Wanted:
    python = python_version(settings)
    modern = tuple(map(int, python.split("."))) >= (3, 12)
    glibc = _GLIBC_OF_AMAZON_LINUX_2023 if modern else _GLIBC_OF_AMAZON_LINUX_2
    platform = Platform(settings.aws.architecture, python, glibc)
    return Wanted(bundle.pinned.requirements, bundle.pinned.constraints, platform, settings.wheelhouse)


def _timeout(settings: DeploySettings) -> int:
    return min(settings.request_seconds, _MOST_SECONDS)


def _open_access(settings: DeploySettings) -> dict[str, Any]:
    return {"behind": "aws-iam"} if settings.auth_mode == "iam" else {"insecure": True}


# ── the steps ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _role_steps(names: _Names) -> Iterator[Step]:
    if names.settings.aws.role is not None:
        return
    role = {"RoleName": names.role}
    logs = {**role, "PolicyName": _LOG_POLICY}
    group = f"arn:*:logs:*:*:log-group:{names.log_group}:*"
    may = _allowing(["logs:CreateLogStream", "logs:PutLogEvents"], [group])
    may_log = Request(service="iam", operation="put_role_policy", parameters={**logs, "PolicyDocument": may})
    tags = [{"Key": key, "Value": value} for key, value in names.tags.items()]
    create = {**role, "AssumeRolePolicyDocument": json.dumps(_TRUST), "Tags": tags}
    gone = "NoSuchEntity"
    yield Step(
        name="role",
        title=f"the IAM role {names.role!r}",
        look=Request(service="iam", operation="get_role", parameters=role, missing=gone),
        make=(Request(service="iam", operation="create_role", parameters=create), may_log),
        change=(may_log,),
        facts={"arn": "Role.Arn"},
        remove=(
            Request(service="iam", operation="delete_role_policy", parameters=logs, missing=gone),
            Request(service="iam", operation="delete_role", parameters=role, missing=gone),
        ),
    )


def _allowing(actions: list[str], resources: list[str]) -> str:
    """A policy that allows these actions on these resources, and nothing else."""
    statement = {"Effect": "Allow", "Action": actions, "Resource": resources}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _secret_steps(names: _Names) -> Iterator[Step]:
    settings, gone = names.settings, "ResourceNotFoundException"
    if settings.auth_mode == "api-key":
        secret = {"SecretId": names.key}
        create = {
            "Name": names.key,
            "SecretString": "${secret:api_key}",
            "Description": f"The API key of the reward {settings.id}",
            "Tags": [{"Key": key, "Value": value} for key, value in names.tags.items()],
        }
        put = Request(
            service="secretsmanager", operation="put_secret_value",
            parameters={**secret, "SecretString": "${secret:api_key}"},
        )  # fmt: skip
        remove = {**secret, "ForceDeleteWithoutRecovery": True}
        yield Step(
            name="secret",
            title=f"the secret {names.key!r} of Secrets Manager",
            look=Request(service="secretsmanager", operation="describe_secret", parameters=secret, missing=gone),
            make=(Request(service="secretsmanager", operation="create_secret", parameters=create),),
            change=(put,) if settings.rotate_key else (),
            facts={"arn": "ARN"},
            remove=(Request(service="secretsmanager", operation="delete_secret", parameters=remove, missing=gone),),
        )
    for number, secret_name in enumerate(dict.fromkeys(settings.secrets.values())):
        yield Step(
            name=f"secret{chr(ord('a') + number)}",
            title=f"the secret {secret_name!r} of Secrets Manager",
            look=Request(
                service="secretsmanager", operation="describe_secret", parameters={"SecretId": secret_name},
                missing=gone,
            ),
            facts={"arn": "ARN"},
            absent=f"There is no secret {secret_name!r}. Make it: reward-kit secrets set {secret_name} --store aws",
        )  # fmt: skip


def _arns(names: _Names) -> dict[str, str]:
    """Environment variable → ARN of its secret, as the steps above will find it out."""
    settings = names.settings
    order = list(dict.fromkeys(settings.secrets.values()))
    arns = {
        variable: f"${{secret{chr(ord('a') + order.index(secret))}.arn}}"
        for variable, secret in settings.secrets.items()
    }
    return {KEY_VARIABLE: "${secret.arn}", **arns} if settings.auth_mode == "api-key" else arns


def _policy_steps(names: _Names) -> Iterator[Step]:
    if names.settings.aws.role is not None or not (arns := _arns(names)):
        return
    allowed = _allowing(["secretsmanager:GetSecretValue"], sorted(set(arns.values())))
    policy = {"RoleName": names.role, "PolicyName": _SECRETS_POLICY}
    yield Step(
        name="policy",
        title=f"the permission of {names.role!r} to read its secrets",
        make=(
            Request(
                service="iam", operation="put_role_policy",
                parameters={**policy, "PolicyDocument": allowed},
            ),
        ),
        remove=(Request(service="iam", operation="delete_role_policy", parameters=policy, missing="NoSuchEntity"),),
    )  # fmt: skip


def _log_step(names: _Names) -> Step:
    group = {"logGroupName": names.log_group}
    return Step(
        name="log",
        title=f"the log group {names.log_group!r}",
        make=(
            Request(
                service="logs", operation="create_log_group", parameters=group, fine="ResourceAlreadyExistsException"
            ),
            Request(
                service="logs", operation="put_retention_policy", parameters={**group, "retentionInDays": _LOG_DAYS}
            ),
        ),
        remove=(
            Request(
                service="logs", operation="delete_log_group", parameters=group, missing="ResourceNotFoundException"
            ),
        ),
    )


def _function_step(names: _Names, digest: str) -> Step:
    settings = names.settings
    code = {"ZipFile": {"$file": _ZIP, "sha256": digest}}
    environment = {"HOME": "/tmp", **settings.environment}
    if arns := _arns(names):
        environment[SECRETS_VARIABLE] = json.dumps(arns, sort_keys=True)
    configuration = {
        "Runtime": f"python{python_version(settings)}",
        "Role": names.role_arn,
        "Handler": HANDLER,
        "Description": (settings.description or settings.display_name or f"reward-kit {settings.id}")[:256],
        "Timeout": _timeout(settings),
        "MemorySize": settings.aws.memory_mb,
        "Environment": {"Variables": environment},
    }
    architectures = [settings.aws.architecture]
    made = {"Code": code, "Architectures": architectures, "Tags": names.tags, **configuration}
    # A role that was made a moment ago is not known to Lambda yet.
    make = names.about("create_function", made, again="cannot be assumed")
    ready = names.about("wait:function_updated_v2")
    return Step(
        name="function",
        title=f"the function {names.function!r}",
        look=names.about("get_function", missing="ResourceNotFoundException"),
        make=(make, names.about("wait:function_active_v2")),
        change=(
            ready,
            names.about("update_function_code", {"Architectures": architectures, **code}),
            ready,
            names.about("update_function_configuration", configuration),
            ready,
        ),
        facts={"arn": "FunctionArn|Configuration.FunctionArn"},
        remove=(names.about("delete_function", missing="ResourceNotFoundException"),),
    )


def _concurrency_steps(names: _Names) -> Iterator[Step]:
    most = names.settings.aws.reserved_concurrency
    if most is not None:
        yield Step(
            name="concurrency",
            title=f"at most {most} instances of {names.function!r}",
            make=(names.about("put_function_concurrency", {"ReservedConcurrentExecutions": most}),),
            remove=(names.about("delete_function_concurrency", missing="ResourceNotFoundException"),),
        )


def _url_step(names: _Names) -> Step:
    gone = "ResourceNotFoundException"
    auth = _auth_type(names.settings)
    return Step(
        name="url",
        title=f"the URL of {names.function!r}",
        look=names.about("get_function_url_config", missing=gone),
        make=(names.about("create_function_url_config", {"AuthType": auth}),),
        change=(names.about("update_function_url_config", {"AuthType": auth}),),
        facts={"url": "FunctionUrl"},
        remove=(names.about("delete_function_url_config", missing=gone),),
    )


def _auth_type(settings: DeploySettings) -> str:
    return "AWS_IAM" if settings.auth_mode == "iam" else "NONE"


def _permission_steps(names: _Names) -> Iterator[Step]:
    """Two permissions for each who may call: for the URL, and for the function that is behind it."""
    settings = names.settings
    principals = settings.aws.invokers if settings.auth_mode == "iam" else ("*",)
    for principal in principals:
        mark = "anybody" if principal == "*" else hashlib.sha256(principal.encode()).hexdigest()[:12]
        url, function = f"reward-kit-url-{mark}", f"reward-kit-invoke-{mark}"
        taken = [{"StatementId": url}, {"StatementId": function}]
        fine, gone = "ResourceConflictException", "ResourceNotFoundException"
        yield Step(
            name=f"permission-{mark}",
            title=f"the permission of {'anybody' if principal == '*' else principal} to call {names.function!r}",
            make=(
                names.about("add_permission", {
                    "StatementId": url, "Action": "lambda:InvokeFunctionUrl", "Principal": principal,
                    "FunctionUrlAuthType": _auth_type(settings),
                }, fine=fine),
                names.about("add_permission", {
                    "StatementId": function, "Action": "lambda:InvokeFunction", "Principal": principal,
                    "InvokedViaFunctionUrl": True,
                }, fine=fine),
            ),
            remove=tuple(names.about("remove_permission", one, missing=gone) for one in taken),
        )  # fmt: skip


def _first_call(names: _Names) -> FirstCall:
    auth = names.settings.auth_mode
    return FirstCall(
        url="${url.url}evaluate",
        auth="aws" if auth == "iam" else auth,
        key=_read_key(names) if auth == "api-key" else None,
        region=names.settings.aws.region or "",
        sample={},
    )


def _read_key(names: _Names) -> Request:
    return Request(
        service="secretsmanager", operation="get_secret_value", parameters={"SecretId": names.key},
        missing="ResourceNotFoundException",
    )  # fmt: skip


def _remarks(settings: DeploySettings) -> Iterator[str]:
    if settings.auth_mode == "open":
        yield "Anybody on the internet can call this function, and you pay for it. Use --auth-mode api-key or iam."
    if settings.auth_mode == "iam" and not settings.aws.invokers:
        yield "Nobody was named with --allow-invoker: who has lambda:InvokeFunctionUrl in this account can call it."
    if settings.auth_mode == "api-key":
        yield "Anybody can reach the URL; the key is checked by the function, so refused calls are paid for too."
