# SPDX-License-Identifier: Apache-2.0
"""Who we say we are: keys, ID tokens, signatures and certificates, each to the host it is for and to nobody else."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import RewardConfig
from reward_kit.errors import AuthError, ConfigError, EndpointError
from reward_kit.models import EvaluateResult
from reward_kit.remote.reward import RemoteReward, open_remote
from tests.remote.live_server import live_server
from tests.remote.reward_server import RewardServer, Told, serving

TURNS: list[Any] = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
QUESTION = {"messages": TURNS, "ground_truth": "4"}
QUICK: dict[str, Any] = {"max_retries": 0, "max_outage": 0.0}


@pytest.fixture
def server() -> Iterator[RewardServer]:
    with serving(RewardServer()) as state:
        yield state


def judge(server: RewardServer, **settings: Any) -> EvaluateResult:
    return RemoteReward(server.url, {**QUICK, **settings}).judge(QUESTION)


def sent(server: RewardServer) -> dict[str, str]:
    return {name.lower(): value for name, value in server.asked[-1].headers.items()}


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_is_named_by_its_variable(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_REWARD_KEY", "key-of-mine-123")
    judge(server, api_key_env="MY_REWARD_KEY")
    assert sent(server)["authorization"] == "Bearer key-of-mine-123"
    with pytest.raises(AuthError, match="NO_SUCH_KEY"):
        judge(server, api_key_env="NO_SUCH_KEY")
    judge(server, api_key_env="MY_REWARD_KEY", sign_in="none")
    assert "authorization" not in sent(server)


def test_a_key_in_the_file_belongs_to_one_host(
    server: RewardServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FIREWORKS_API_KEY", "fw-secret-key-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key-12")
    file = tmp_path / ".fireworks" / "auth.ini"
    file.parent.mkdir()
    netloc = server.url.split("/")[2]
    file.write_text(f"api_key = fw\n[elsewhere.example]\napi_key = other\n[{netloc}]\napi_key = for-this-one\n")
    judge(server)
    assert sent(server)["authorization"] == "Bearer for-this-one"
    file.write_text("api_key = fw\n[elsewhere.example]\napi_key = other\n")
    judge(server)
    assert "authorization" not in sent(server), "neither Fireworks' key nor another host's"


def test_no_key_goes_where_a_redirect_points(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_REWARD_KEY", "key-of-mine-123")
    with serving(RewardServer()) as thief:
        for status in (301, 302, 303, 307, 308):
            server.before = [Told(status, {}, {"Location": thief.url})]
            with pytest.raises(EndpointError, match="no redirect is followed"):
                judge(server, api_key_env="MY_REWARD_KEY")
        assert thief.asked == []


def test_a_key_that_is_echoed_is_in_no_message(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_REWARD_KEY", "key-of-mine-123")
    server.before = [Told(403, {"detail": "no such key: key-of-mine-123"})]
    with pytest.raises(AuthError) as caught:
        judge(server, api_key_env="MY_REWARD_KEY")
    assert "key-of-mine-123" not in str(caught.value)


def test_a_config_holds_the_name_of_a_variable_and_never_a_key() -> None:
    with pytest.raises(ValueError, match="api_key_env") as caught:
        RewardConfig.model_validate(
            {"function_path": "https://h/evaluate", "remote": {"api_key_env": "sk-abc123def456ghi"}}
        )
    assert "sk-abc123def456ghi" not in str(caught.value)
    with pytest.raises(ValueError, match="login"):
        RewardConfig(function_path="https://user:pass@h/evaluate")


def test_our_own_server_lets_the_right_key_in_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEYS", "right-key-0123456789")
    monkeypatch.setenv("WRONG_KEY", "wrong-key-0123456789")
    with live_server({"exact": "exact_match_reward"}, access={"api_key_envs": ["SERVER_KEYS"]}) as address:
        assert open_remote(address, {**QUICK, "api_key_env": "SERVER_KEYS"}).judge(QUESTION).score == 1.0
        for settings in ({}, {"api_key_env": "WRONG_KEY"}):
            with pytest.raises(AuthError):
                open_remote(address, {**QUICK, **settings})


# ── Google ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def token(until: float) -> str:
    parts = [{"alg": "RS256"}, {"exp": until, "aud": "x"}]
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*coded, "signature-nobody-checks-here"])


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> Iterator[RewardServer]:
    """A metadata server, as on Cloud Run."""
    with serving(RewardServer()) as state:
        monkeypatch.setenv("GCE_METADATA_HOST", state.url.split("/")[2])
        monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
        yield state


def test_an_id_token_is_fetched_once_for_the_servers_address(server: RewardServer, metadata: RewardServer) -> None:
    made = token(time.time() + 3600)
    metadata.description, metadata.before = None, [Told(200, made.encode())]
    reward = RemoteReward(server.url, {**QUICK, "sign_in": "google"})
    for _ in range(3):
        reward.judge(QUESTION)
        assert sent(server)["authorization"] == f"Bearer {made}"
    (asked,) = metadata.asked
    assert "audience=http%3A%2F%2F127.0.0.1" in asked.path and asked.headers["Metadata-Flavor"] == "Google"


def test_an_id_token_that_ends_soon_is_fetched_again(server: RewardServer, metadata: RewardServer) -> None:
    old, new = token(time.time() + 60), token(time.time() + 3600)
    metadata.before = [Told(200, old.encode()), Told(200, new.encode())]
    reward = RemoteReward(server.url, {**QUICK, "sign_in": "google", "audience": "https://me"})
    reward.judge(QUESTION)
    reward.judge(QUESTION)
    assert sent(server)["authorization"] == f"Bearer {new}"
    assert "audience=https%3A%2F%2Fme" in metadata.asked[0].path


def test_beside_an_id_token_a_key_has_a_header_of_its_own(
    server: RewardServer, metadata: RewardServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_REWARD_KEY", "key-of-mine-123")
    metadata.before = [Told(200, token(time.time() + 3600).encode())]
    judge(server, sign_in="google", api_key_env="MY_REWARD_KEY")
    assert sent(server)["x-api-key"] == "key-of-mine-123" and sent(server)["authorization"].startswith("Bearer eyJ")


def test_no_token_to_be_had_says_what_to_set(
    server: RewardServer, metadata: RewardServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    metadata.before = [Told(404)]
    with pytest.raises(AuthError, match=r"answered 404.*GOOGLE_APPLICATION_CREDENTIALS"):
        judge(server, sign_in="google")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    pytest.importorskip("google.auth")
    with pytest.raises(AuthError, match="GOOGLE_APPLICATION_CREDENTIALS"):
        judge(server, sign_in="google")
    assert server.asked == []


def test_a_service_account_gets_its_token_from_google_auth(
    server: RewardServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("google.auth")
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    made = token(time.time() + 3600)
    with serving(RewardServer(judge=lambda body: {"id_token": made})) as google:
        account = {"type": "service_account", "client_email": "me@p.iam.gserviceaccount.com", "private_key": pem,
                   "private_key_id": "1", "token_uri": google.url.replace("/evaluate", "/token")}  # fmt: skip
        file = tmp_path / "account.json"
        file.write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        judge(server, sign_in="google")
    assert sent(server)["authorization"] == f"Bearer {made}"


# ── AWS ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_request_is_signed_as_aws_would_check_it(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE12345")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-aws-0123456789")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-aws-0123456789")
    judge(server, sign_in="aws", aws_region="eu-central-1")
    got, asked = sent(server), server.asked[-1]
    assert "Credential=AKIDEXAMPLE12345" in got["authorization"] and "/eu-central-1/lambda/" in got["authorization"]
    request = AWSRequest(
        asked.method, server.url, data=asked.raw, headers={"X-Amz-Security-Token": got["x-amz-security-token"]}
    )
    request.context["timestamp"] = got["x-amz-date"]
    request.headers["X-Amz-Date"] = got["x-amz-date"]
    signer = auth.SigV4Auth(
        Credentials("AKIDEXAMPLE12345", "secret-of-aws-0123456789", "token-of-aws-0123456789"), "lambda", "eu-central-1"
    )
    signed = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    assert got["authorization"].endswith(f"Signature={signed}")


def test_what_is_signed_for_is_in_the_address(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    from reward_kit.remote.sign_in import _ByAws

    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    settings = RemoteReward(server.url, {"sign_in": "aws"}).settings
    function = _ByAws("https://abc.lambda-url.us-east-2.on.aws/evaluate", settings, {})
    gateway = _ByAws("https://abc.execute-api.eu-west-1.amazonaws.com/prod/evaluate", settings, {})
    assert (function._region, function._service) == ("us-east-2", "lambda")
    assert (gateway._region, gateway._service) == ("eu-west-1", "execute-api")
    with pytest.raises(ConfigError, match="aws_region"):
        _ByAws("https://rewards.example.com", settings, {})


def test_no_credentials_say_so(server: RewardServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("botocore")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(AuthError, match="AWS_PROFILE"):
        judge(server, sign_in="aws", aws_region="eu-central-1")
    assert server.asked == []


# ── certificates ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Authority:
    """A certificate authority, and the files of those it vouches for."""

    def __init__(self, directory: Path, name: str) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        self._x509, self._hashes, self._forms, self._ec = x509, hashes, serialization, ec
        self._directory, self._name = directory, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self._certificate = self._signed(self._subject, self._key.public_key(), is_authority=True)
        self.file = self._written(f"{name}.pem", self._certificate.public_bytes(serialization.Encoding.PEM))

    def _signed(self, subject: Any, key: Any, *, is_authority: bool = False, host: str = "") -> Any:
        import ipaddress

        x509, now = self._x509, datetime.now(UTC)
        made = (
            x509.CertificateBuilder().subject_name(subject).issuer_name(self._subject).public_key(key)
            .serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )  # fmt: skip
        if host:
            names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName(host)]
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return made.sign(self._key, self._hashes.SHA256())

    def _written(self, name: str, data: bytes) -> str:
        path = self._directory / name
        path.write_bytes(data)
        return str(path)

    def vouch_for(self, name: str) -> tuple[str, str]:
        """The files of a certificate and its key."""
        key = self._ec.generate_private_key(self._ec.SECP256R1())
        subject = self._x509.Name([self._x509.NameAttribute(self._x509.NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key.public_key(), host=f"{name}.example")
        pem, forms = self._forms.Encoding.PEM, self._forms
        private = key.private_bytes(pem, forms.PrivateFormat.PKCS8, forms.NoEncryption())
        return self._written(f"{name}.crt", certificate.public_bytes(pem)), self._written(f"{name}.key", private)


def test_a_server_knows_us_by_our_certificate_and_we_know_it_by_its_own(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    ours, others = Authority(tmp_path, "ours"), Authority(tmp_path, "others")
    server_cert, server_key = ours.vouch_for("server")
    client_cert, client_key = ours.vouch_for("client")
    foreign_cert, foreign_key = others.vouch_for("foreign")
    tls = {"cert": server_cert, "key": server_key, "client_ca": ours.file, "allow_clients": ["client.example"]}
    known: dict[str, Any] = {**QUICK, "ca_file": ours.file}
    with live_server({"exact": "exact_match_reward"}, tls=tls) as address:
        mine = {**known, "client_cert_file": client_cert, "client_key_file": client_key}
        assert open_remote(address, mine).judge(QUESTION).score == 1.0
        with pytest.raises((AuthError, EndpointError)):
            open_remote(address, known)  # no certificate of ours
        with pytest.raises((AuthError, EndpointError)):
            open_remote(address, {**known, "client_cert_file": foreign_cert, "client_key_file": foreign_key})
        with pytest.raises((AuthError, EndpointError)):  # right authority, and not on the list
            open_remote(address, {**known, "client_cert_file": server_cert, "client_key_file": server_key})
        with pytest.raises(EndpointError, match="cannot be trusted"):
            open_remote(address, {**mine, "ca_file": others.file})
        with pytest.raises(EndpointError, match="cannot be trusted"):
            open_remote(address, QUICK)


def test_files_that_are_no_certificates_are_said(tmp_path: Path) -> None:
    file = tmp_path / "x.pem"
    file.write_text("nothing")
    for settings in ({"ca_file": str(file)}, {"client_cert_file": str(tmp_path / "none")}):
        with pytest.raises(AuthError, match="PEM"):
            RemoteReward("https://127.0.0.1:9/evaluate", {**QUICK, **settings}).judge(QUESTION)
    with pytest.raises(ConfigError, match="client_cert_file"):
        RemoteReward("https://127.0.0.1:9/evaluate", {"client_key_file": "x"})


def test_what_is_signed_never_travels_in_the_open() -> None:
    for way in ("google", "aws"):
        with pytest.raises(AuthError, match="https://"):
            RemoteReward("http://rewards.example.com/evaluate", {**QUICK, "sign_in": way}).judge(QUESTION)
    assert ssl.OPENSSL_VERSION
