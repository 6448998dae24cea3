# SPDX-License-Identifier: Apache-2.0
"""Lambda: the requests against moto's server, and the packed zip under Lambda's own runtime client."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import textwrap
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reward_kit.deploy.bundle import BundleSource, make_bundle
from reward_kit.deploy.settings import AwsSettings, DeploySettings
from reward_kit.deploy.state import Deployments
from reward_kit.deploy.target import Place
from reward_kit.deploy.targets import aws_lambda
from reward_kit.deploy.targets.aws_lambda import HANDLER, AwsLambda
from reward_kit.errors import DeployError
from tests.cli_commands.conftest import Call
from tests.deploy.conftest import FILES
from tests.deploy.runtime_api import RuntimeApi, http_event

pytestmark = pytest.mark.xdist_group("deploy-aws")  # one moto and one wheelhouse
boto3 = pytest.importorskip("boto3", reason="the extra `aws` is not installed")

DEPLOY = (
    "deploy", "--id", "exact", "--target", "aws-lambda", "--function-ref", "rewards.py:exact", "--aws-region",
    "eu-central-1", "--no-verdict",
)  # fmt: skip
ANSWER = {"messages": [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": "4"}], "ground_truth": "4"}


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """moto's server, in a process of its own."""
    log = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", "0", "-H", "127.0.0.1"], stderr=log, stdout=subprocess.DEVNULL,
        text=True, env={**os.environ, "MOTO_ACCOUNT_ID": "123456789012", "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stderr is not None
    url = ""
    for line in process.stderr:
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            url = found[0]
            break
    assert url, "moto does not start"
    yield url
    process.kill()
    process.stderr.close()
    process.wait()


@pytest.fixture
def aws(moto: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """AWS without anything in it."""
    for name, value in {
        "AWS_ENDPOINT_URL": moto, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret",
        "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "eu-central-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    urllib.request.urlopen(urllib.request.Request(f"{moto}/moto-api/reset", method="POST"), timeout=60).close()
    yield moto


@pytest.fixture
def small_zip(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function without its packages, where these do not matter."""
    monkeypatch.setattr(aws_lambda, "unpacked", lambda *_: {"reward_kit/__init__.py": b""})


def client(service: str) -> Any:
    return boto3.client(service, region_name="eu-central-1")


def exists() -> set[str]:
    """What there is in the account."""
    found = {f"role {role['RoleName']}" for role in client("iam").list_roles()["Roles"]}
    found |= {f"function {one['FunctionName']}" for one in client("lambda").list_functions()["Functions"]}
    found |= {f"secret {one['Name']}" for one in client("secretsmanager").list_secrets()["SecretList"]}
    return found | {f"log {one['logGroupName']}" for one in client("logs").describe_log_groups()["logGroups"]}


def permissions() -> list[dict[str, Any]]:
    policy = client("lambda").get_policy(FunctionName="rewardeval-exact")["Policy"]
    statements: list[dict[str, Any]] = json.loads(policy)["Statement"]
    return statements


ALL = {
    "role rewardeval-exact-role", "function rewardeval-exact", "secret rk-eval-exact-authkey",
    "log /aws/lambda/rewardeval-exact",
}  # fmt: skip


def test_a_function_is_made_changed_and_deleted(aws: str, small_zip: None, call: Call, project: Path) -> None:
    said = call(*DEPLOY, "--env", "COLOUR=blue", "--max-instances", "5")
    assert said.code == 0, said.err
    assert exists() == ALL
    function = client("lambda").get_function(FunctionName="rewardeval-exact")["Configuration"]
    assert function["Handler"] == HANDLER and function["Environment"]["Variables"]["COLOUR"] == "blue"
    arns = json.loads(function["Environment"]["Variables"]["REWARD_KIT_SECRETS"])
    secret = client("secretsmanager").get_secret_value(SecretId="rk-eval-exact-authkey")
    assert arns == {"RK_ENDPOINT_API_KEY": secret["ARN"]}
    policy = client("iam").get_role_policy(RoleName="rewardeval-exact-role", PolicyName="read-secrets")[
        "PolicyDocument"
    ]
    assert policy["Statement"][0]["Resource"] == [secret["ARN"]]
    assert {one["Action"] for one in permissions()} == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}
    assert {one["Principal"] for one in permissions()} == {"*"}
    url = client("lambda").get_function_url_config(FunctionName="rewardeval-exact")
    assert url["AuthType"] == "NONE" and Deployments().get("exact").url == f"{url['FunctionUrl']}evaluate"
    everything = "".join(path.read_text(errors="replace") for path in Path(".reward_kit").rglob("*") if path.is_file())
    assert secret["SecretString"] not in everything + said.out + said.err

    (project / "helper.py").write_text("def is_same(a, b): return 0.0\n")
    role = "arn:aws:iam::123456789012:role/trainer"
    changed = call(*DEPLOY, "--auth-mode", "iam", "--allow-invoker", role)
    assert changed.code == 0, changed.err
    assert "change: the function" in changed.out
    assert exists() == ALL - {"secret rk-eval-exact-authkey"}  # it has no key any more
    assert {json.dumps(one["Principal"]) for one in permissions()} != {'"*"'} and not any(
        one["Principal"] == "*" for one in permissions()
    )
    assert client("lambda").get_function_url_config(FunctionName="rewardeval-exact")["AuthType"] == "AWS_IAM"
    assert "Active" in call("deploy", "status", "exact").out
    assert call("deploy", "logs", "exact").code == 0
    assert call("deploy", "delete", "exact").code == 0
    assert exists() == set()


STEPS = [
    "iam.CreateRole", "iam.PutRolePolicy", "secretsmanager.CreateSecret", "logs.CreateLogGroup",
    "logs.PutRetentionPolicy", "lambda.CreateFunction", "lambda.CreateFunctionUrlConfig", "lambda.AddPermission",
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_what_is_denied_says_what_exists_and_goes_on(
    aws: str, small_zip: None, call: Call, project: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The refusal comes from the service's own error, put in before its answer is read."""
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError

    ask = BaseClient._make_api_call
    service, _, operation = step.partition(".")
    code = "AccessDeniedException" if STEPS.index(step) % 2 else "CodeStorageExceededException"

    def refuse(self: Any, name: str, parameters: Any) -> Any:
        if name == operation and self.meta.service_model.service_name == service:
            raise ClientError({"Error": {"Code": code, "Message": "not today"}}, name)
        return ask(self, name, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
    said = call(*DEPLOY)
    assert said.code == 1
    assert code in said.sentence and "not today" in said.sentence and "Run the same command again" in said.sentence
    monkeypatch.setattr(BaseClient, "_make_api_call", ask)
    if STEPS.index(step) % 2:
        assert call(*DEPLOY).code == 0
        assert exists() == ALL
    assert call("deploy", "delete", "exact").code == 0
    assert exists() == set()


def test_a_role_that_lambda_has_not_heard_of_is_waited_for(
    aws: str, small_zip: None, call: Call, project: Path
) -> None:
    from reward_kit.deploy.aws import AwsHands
    from reward_kit.deploy.plan import Request

    hands = AwsHands("eu-central-1", {}, again_pause=0.0)
    asked: list[str] = []
    hands._ask = lambda action: _later(asked)  # type: ignore[method-assign]
    assert hands.do(Request(service="lambda", operation="create_function", again="cannot be assumed"), {}) == "made"
    assert len(asked) == 3


def _later(asked: list[str]) -> str:
    from reward_kit.deploy.aws import _Again

    asked.append("once")
    if len(asked) < 3:
        raise _Again("The role defined for the function cannot be assumed by Lambda.")
    return "made"


def test_a_dry_run_asks_nothing(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    before = sorted(project.rglob("*"))
    said = call(*DEPLOY, "--dry-run")
    assert said.code == 0, said.err
    assert sorted(project.rglob("*")) == before
    for words in ("request iam.create_role", "request lambda.create_function", "SecretString: ***", "<role.arn>",
                  "InvokedViaFunctionUrl: true", "pip install"):  # fmt: skip
        assert words in said.out, words


def test_without_credentials_or_region_it_says_how(
    call: Call, project: Path, small_zip: None, monkeypatch: Any
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert "aws configure" in call(*DEPLOY).sentence
    without = [part for part in DEPLOY if part not in ("--aws-region", "eu-central-1")]
    assert "--aws-region" in call(*without).sentence


def test_what_is_too_large_for_lambda_is_said_before(source: BundleSource, project: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(aws_lambda, "unpacked", lambda *_: {"large": os.urandom(51 << 20)})
    settings = DeploySettings(id="exact", target="aws-lambda", aws=AwsSettings(region="eu-central-1"))
    with pytest.raises(DeployError, match="Lambda takes 50 MB"):
        AwsLambda().prepare(settings, make_bundle(source), Place(project), dry=False)


# ── the packed function ──────────────────────────────────────────────────────────────────────────────────────────────


def pack(folder: Path, house: Path) -> Path:
    """The zip as it is uploaded, with all packages, from wheels only."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
    before = Path.cwd()
    os.chdir(folder)
    try:
        bundle = make_bundle(BundleSource({"exact": "rewards.py:exact"}, folder, {"bonus": 0.25}))
        region = AwsSettings(region="eu-central-1")
        settings = DeploySettings(id="exact", target="aws-lambda", wheelhouse=house, aws=region)
        prepared = AwsLambda().prepare(settings, bundle, Place(folder), dry=False)
    finally:
        os.chdir(before)
    path = folder / "function.zip"
    path.write_bytes(prepared.files["function.zip"])
    return path


@pytest.fixture(scope="module")
def packed(house: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(tmp_path_factory.mktemp("packed"), house)


def test_the_same_source_is_packed_to_the_same_bytes(packed: Path, house: Path, tmp_path: Path) -> None:
    (tmp_path / "another place").mkdir()
    assert pack(tmp_path / "another place", house).read_bytes() == packed.read_bytes()


def test_the_zip_holds_what_runs_there_and_nothing_of_this_machine(packed: Path) -> None:
    with zipfile.ZipFile(packed) as archive:
        names = archive.namelist()
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {"bundle.json", "serve.json", "project/rewards.py", "reward_kit/deploy/lambda_handler.py"} <= set(names)
        assert not any(
            name.startswith(("hydra/", "rich/", "bin/")) or name.endswith((".pyc", ".env")) for name in names
        )
        texts = b"".join(archive.read(name) for name in names if name.endswith((".json", ".txt", "METADATA", "WHEEL")))
    assert str(packed.parent).encode() not in texts and sys.prefix.encode() not in texts
    assert packed.stat().st_size < 50 << 20


def test_the_packed_function_judges_under_lambdas_own_runtime(
    aws: str, packed: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = client("secretsmanager")
    key = "a-key-of-the-endpoint-0123456789"
    arn = store.create_secret(Name="key", SecretString=key)["ARN"]
    variables = {name: os.environ[name] for name in os.environ if name.startswith("AWS_")}
    variables |= {"REWARD_KIT_SECRETS": json.dumps({"RK_ENDPOINT_API_KEY": arn})}
    function = RuntimeApi(packed, tmp_path / "task", HANDLER, variables)
    request.addfinalizer(function.close)

    assert function.invoke(http_event("/health", method="GET"))["statusCode"] == 200
    assert function.invoke(http_event("/evaluate", ANSWER))["statusCode"] == 401
    assert function.invoke(http_event("/evaluate", ANSWER, **{"x-api-key": "wrong-wrong-wrong-1"}))["statusCode"] == 403
    right = {"x-api-key": key}
    judged = function.invoke(http_event("/evaluate", ANSWER, **right))
    assert judged["statusCode"] == 200 and json.loads(judged["body"])["score"] == 1.0
    wrong = {**ANSWER, "ground_truth": "5"}
    assert json.loads(function.invoke(http_event("/evaluate", wrong, **right))["body"])["score"] == 0.25  # the param
    batch = function.invoke(http_event("/evaluate/batch", {"items": [ANSWER, wrong]}, authorization=f"Bearer {key}"))
    assert [one["score"] for one in json.loads(batch["body"])["results"]] == [1.0, 0.25]
    event = http_event("/evaluate", ANSWER, **right)
    event |= {"body": base64.b64encode(json.dumps(ANSWER).encode()).decode(), "isBase64Encoded": True}
    assert function.invoke(event)["statusCode"] == 200
    assert function.invoke({**event, "body": "a"})["statusCode"] == 400
    for body, status in (("{", 400), ("[]", 422), ('{"messages": 1}', 422), (None, 422)):
        assert function.invoke(http_event("/evaluate", body, **right))["statusCode"] == status
    assert function.invoke(http_event("/nowhere", ANSWER, **right))["statusCode"] == 404
    assert function.invoke(http_event("/evaluate", method="PUT", **right))["statusCode"] == 405
    failing = function.invoke(http_event("/evaluate", {"messages": [{"role": "user"}]}, **right))
    assert json.loads(failing["body"]).get("score") in (None, 0.25)  # no content: judged, or said to be no verdict
    assert function.invoke(http_event("/evaluate", ANSWER, **right))["statusCode"] == 200
    assert key not in function.log()


def test_a_key_is_read_again_when_it_is_old_and_kept_when_the_store_fails() -> None:
    from reward_kit.deploy.lambda_handler import SecretOfKeys

    now = 0.0
    value = "one"

    def read(_: str) -> str:
        if value == "down":
            raise DeployError("throttled")
        return value

    keys = SecretOfKeys("arn", read, lambda: now)
    assert keys.changed() and keys.read() == "one" and not keys.changed()
    value, now = "two", 299.0
    assert not keys.changed()
    now = 300.0
    assert keys.changed() and keys.read() == "two"
    value, now = "down", 700.0
    assert keys.changed() and keys.read() == "two"  # what was known stays known
    with pytest.raises(OSError, match="throttled"):
        SecretOfKeys("arn", read, lambda: now).read()


def test_the_first_call_is_signed_for_the_region(aws: str) -> None:
    from reward_kit.deploy.first_call import _headers
    from reward_kit.deploy.plan import FirstCall

    url = "https://x.lambda-url.eu-central-1.on.aws/evaluate"
    headers = _headers(FirstCall(url=url, auth="aws", region="eu-central-1", sample=ANSWER), None, lambda _: "")
    assert headers["X-Amz-Date"][:8] == time.strftime("%Y%m%d", time.gmtime())
    assert "Credential=testing/" in headers["Authorization"] and "/eu-central-1/lambda/" in headers["Authorization"]
