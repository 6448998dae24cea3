# SPDX-License-Identifier: Apache-2.0
"""Who may call: keys, certificates and tokens that are right are taken, and all others refused alike."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from reward_kit.errors import ConfigError
from reward_kit.serving import api_keys
from reward_kit.serving.api_keys import ApiKeys, FileOfKeys, parse_keys
from reward_kit.serving.app import build_app
from reward_kit.serving.callers import ANYBODY, Allowance, Caller
from reward_kit.serving.gate import Gate
from reward_kit.serving.google_tokens import Fetched, GoogleTokens, PublicKeys
from reward_kit.serving.refusals import Refusal
from reward_kit.serving.request_head import Credentials, Head
from reward_kit.serving.settings import AccessSettings, ServeSettings
from tests.serving.certificates import DAY, Authority, dns, loopback
from tests.serving.rewards import equal
from tests.serving.served import Server, asked, raw, serving

KEY_A, KEY_B, KEY_OLD, KEY_HASHED = ("key-a-0123456789abcdef", "key-b-0123456789abcdef", "key-old-0123456789", "key-h")
MISSING, REFUSED = {"detail": "A credential is needed."}, {"detail": "This credential is not accepted."}


@pytest.fixture(autouse=True)
def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "_REREAD_SECONDS", 0.0)


def digest(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(
        f"# who  key\na {KEY_A}\nb {KEY_B} rate=1000\nold {KEY_OLD} expires=2020-01-01\nhashed {digest(KEY_HASHED)}\n"
    )
    return file


@pytest.fixture
def server(keys_file: Path) -> Iterator[Server]:
    with serving(equal, access={"api_key_files": [keys_file]}) as found:
        yield found


# ── API keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_keys_are_taken_in_both_headers(server: Server) -> None:
    for headers in ({"X-Api-Key": KEY_A}, {"Authorization": f"Bearer {KEY_B}"}, {"X-Api-Key": KEY_HASHED}):
        assert server.post("/evaluate", asked("a", "a"), headers).status == 200


def test_without_a_key_there_is_one_answer(server: Server) -> None:
    for path in ("/evaluate", "/evaluate/batch", "/metrics", "/openapi.json", "/", "/nowhere"):
        found = server.post(path, b"x" * 100)
        assert (found.status, found.json) == (401, MISSING)
        assert found.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Api-Key": "wrong-0123456789abcdef"},
        {"X-Api-Key": KEY_A[:-1]},
        {"X-Api-Key": KEY_A + "x"},
        {"X-Api-Key": KEY_A.upper()},
        {"X-Api-Key": ""},
        {"X-Api-Key": KEY_OLD},
        {"X-Api-Key": digest(KEY_HASHED)},
        {"X-Api-Key": "a"},
        {"X-Api-Key": "ä" * 20},
        {"Authorization": f"Bearer wrong{KEY_A}"},
        {"Authorization": f"Basic {KEY_A}"},
        {"Authorization": KEY_A},
        {"Authorization": "Bearer a.b.c"},
    ],
)
def test_whatever_is_wrong_with_a_key_there_is_one_answer(server: Server, headers: dict[str, str]) -> None:
    found = server.post("/evaluate", asked("a"), headers)

    assert (found.status, found.json) == (403, REFUSED)


def test_whether_it_lives_may_be_asked_by_anybody(server: Server) -> None:
    assert server.get("/health").status == server.get("/ready").status == 200


def test_a_body_is_not_read_before_it_is_known_whose_it_is(server: Server) -> None:
    found = server.say(b"POST /evaluate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n")

    assert found.startswith(b"HTTP/1.1 401")


def test_of_two_keys_none_counts(server: Server) -> None:
    fields = [f"x-api-key: {KEY_A}", "x-api-key: other"]

    assert server.say(raw(b"{}", "/evaluate", "POST", *fields)).startswith(b"HTTP/1.1 400")
    assert server.say(raw(b"{}", "/evaluate", "POST", *reversed(fields))).startswith(b"HTTP/1.1 400")


def test_keys_are_compared_by_digest_and_all_of_them(monkeypatch: pytest.MonkeyPatch, keys_file: Path) -> None:
    """Which key it is, and how much of it is right, must not show in the time that takes."""
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def spy(kept: bytes, given: bytes) -> bool:
        compared.append((kept, given))
        return real(kept, given)

    monkeypatch.setattr(hmac, "compare_digest", spy)
    keys = ApiKeys([FileOfKeys(keys_file)])
    for presented in (KEY_A, KEY_HASHED, "wrong"):
        compared.clear()
        keys.caller_of(presented.encode())
        assert len(compared) == 4
        assert {given for _, given in compared} == {hashlib.sha256(presented.encode()).digest()}


def test_keys_are_changed_without_a_restart(server: Server, keys_file: Path) -> None:
    new = "key-new-0123456789abcdef"
    assert server.post("/evaluate", asked("a"), {"X-Api-Key": new}).status == 403
    swapped = keys_file.with_suffix(".new")
    swapped.write_text(f"new {new}\n")

    os.replace(swapped, keys_file)

    assert server.post("/evaluate", asked("a"), {"X-Api-Key": new}).status == 200
    assert server.post("/evaluate", asked("a"), {"X-Api-Key": KEY_A}).status == 403


def test_keys_of_a_file_that_is_away_for_a_moment_stay_as_they_were(server: Server, keys_file: Path) -> None:
    keys_file.unlink()
    assert server.post("/evaluate", asked("a"), {"X-Api-Key": KEY_A}).status == 200


BAD_LINES = [
    b"!! !!", b"a b c d=e", b"\x00", b"\xff\xfe\xff", b"id-without-key", b"id rate=5", b"id key0123456789abcdef rate=x",
    b"stays key9876543210abcdef", b"x " + b"\xc3" * 20, b"id expires=", "\u2028".encode(), b"k\x00y0123456789abcdef00",
]  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(BAD_LINES), st.binary(max_size=30)), min_size=1, max_size=4), st.data())
@examples(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_a_bad_line_keeps_no_removed_key_alive_and_no_other_key_out(
    tmp_path: Path, bad: list[bytes], data: st.DataObject
) -> None:
    file = tmp_path / "keys.txt"
    file.write_text(f"stays {KEY_A}\ngone {KEY_B}\n")
    keys = ApiKeys([FileOfKeys(file)])
    added = base64.b64encode(b"drawn by openssl rand -base64 32").decode()
    lines = [f"stays {KEY_A}".encode(), f"new {added} rate=5".encode()]
    for line in bad:
        if KEY_B.encode() not in line:
            lines.insert(data.draw(st.integers(1, len(lines))), line.replace(b"#", b""))

    file.write_bytes(b"\n".join(lines) + b"\n")
    keys._looked = float("-inf")

    assert keys.caller_of(KEY_B.encode()) is None
    assert keys.caller_of(KEY_A.encode()) is not None
    assert (keys.caller_of(added.encode()) or Caller("nobody")).id == "new"


def test_a_file_that_is_too_large_lets_nobody_in(server: Server, keys_file: Path) -> None:
    keys_file.write_bytes(keys_file.read_bytes() + b"# " + b"x" * (1 << 20))

    assert server.post("/evaluate", asked("a"), {"X-Api-Key": KEY_A}).status == 403


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode, base64.b32encode])
@pytest.mark.parametrize("size", [16, 31, 32, 33])
@pytest.mark.parametrize("line", ["trainer-a {}", "{}", "trainer-a {} rate=5 concurrency=2", "{} expires=2999-01-01"])
def test_keys_in_base64_are_read(encode: Callable[[bytes], bytes], size: int, line: str) -> None:
    secret = encode(bytes(range(200, 200 + size)))
    (key,) = parse_keys(line.format(secret.decode()), "keys.txt")
    assert key.digest == hashlib.sha256(secret).digest()


def test_a_file_without_keys_lets_nobody_in(server: Server, keys_file: Path) -> None:
    keys_file.write_text("# all revoked\n")

    assert server.post("/evaluate", asked("a"), {"X-Api-Key": KEY_A}).status == 403


@pytest.mark.parametrize("line", ["a", "a b c", "! key0123456789abcdef", "a k expires=never", "a k rate=-1", "a k x=1"])
def test_a_line_that_is_no_key_is_named_and_not_quoted(line: str) -> None:
    try:
        parse_keys(f"\n{line}\n", "keys.txt")
    except ConfigError as error:
        assert "Line 2" in str(error)
        assert "key0123456789abcdef" not in str(error)


def test_a_key_may_ask_so_often() -> None:
    now = 100.0
    allowance = Allowance(2.0, None, lambda: now)
    allowance.spend(2)
    with pytest.raises(Refusal) as refused:
        allowance.spend(1)
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "1")
    now += 0.5
    allowance.spend(1)
    now += 1.0
    allowance.spend(100)  # a batch is let through by a full bucket, and paid for afterwards
    now += 40.0
    with pytest.raises(Refusal):
        allowance.spend(1)
    now += 10.0
    allowance.spend(1)


def test_a_caller_over_its_rate_is_told_when_to_come_back(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"slow {KEY_A} rate=0.01\nfree {KEY_B}\n")
    with serving(equal, access={"api_key_files": [file]}) as server:
        assert server.post("/evaluate", asked("a"), {"X-Api-Key": KEY_A}).status == 200
        found = server.post("/evaluate", asked("a"), {"X-Api-Key": KEY_A})
        assert found.status == 429
        assert 50 < int(found.headers["retry-after"]) <= 100
        assert server.post("/evaluate", asked("a"), {"X-Api-Key": KEY_B}).status == 200


# ── no protection ────────────────────────────────────────────────────────────────────────────────────────────────────


def settings(**more: Any) -> ServeSettings:
    return ServeSettings.model_validate({"rewards": {"a": {"function_path": "math"}}, **more})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])
def test_others_are_not_served_without_protection(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RK_ENDPOINT_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"`access\.api_key_envs` .* set `access\.insecure=true`"):
        build_app(settings(host=host))
    build_app(settings(host=host, access={"insecure": True}))
    build_app(settings(host=host, access={"behind": "aws-iam"}))
    monkeypatch.setenv("RK_ENDPOINT_API_KEY", "inherited-key")
    build_app(settings(host=host))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.9.10"])
def test_this_machine_is_served(host: str) -> None:
    build_app(settings(host=host))


# ── certificates ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority("ours", tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def secured(authority: Authority) -> Iterator[Server]:
    cert, key = authority.sign("server", dns("localhost"), loopback())
    tls = {"cert": cert, "key": key, "client_ca": authority.file, "allow_clients": ["trainer.example"]}
    with serving(equal, tls=tls) as found:
        yield found


def client(authority: Authority, pair: tuple[Path, Path] | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.file))
    if pair is not None:
        context.load_cert_chain(*pair)
    return context


def test_a_certificate_with_the_right_name_is_taken(secured: Server, authority: Authority) -> None:
    pair = authority.sign("trainer", dns("other.example"), dns("trainer.example"))

    found = secured.request("POST", "/evaluate", asked("a", "a"), tls=client(authority, pair))

    assert found.json["score"] == 1.0


def test_a_web_page_cannot_use_the_certificate_of_its_browser(secured: Server, authority: Authority) -> None:
    context = client(authority, authority.sign("trainer", dns("trainer.example")))
    page = {"Origin": "https://page.example"}

    assert secured.request("POST", "/evaluate", asked("a", "a"), page, tls=context).status == 403


def test_a_certificate_with_another_name_is_refused(secured: Server, authority: Authority) -> None:
    other_kinds = [x509.UniformResourceIdentifier("trainer.example"), x509.RFC822Name("trainer.example")]
    for names in ([], [dns("evil.example")], [dns("trainer.example.evil.example")], [dns("*.example")], other_kinds):
        pair = authority.sign("trainer.example", *names)  # the common name does not count
        found = secured.request("POST", "/evaluate", asked("a", "a"), tls=client(authority, pair))
        assert (found.status, found.json) == (403, REFUSED)


def test_no_certificate_and_those_of_others_are_refused(secured: Server, authority: Authority, tmp_path: Path) -> None:
    foreign = Authority("theirs", tmp_path).sign("trainer", dns("trainer.example"))
    expired = authority.sign("late", dns("trainer.example"), lasts=-2 * DAY)
    for pair in (None, foreign, expired):
        with pytest.raises((OSError, ssl.SSLError)):
            secured.request("POST", "/evaluate", asked("a", "a"), tls=client(authority, pair))
    assert secured.request(
        "GET", "/health", tls=client(authority, authority.sign("t", dns("trainer.example")))
    ).status == 200  # fmt: skip


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_tls_is_refused(secured: Server, authority: Authority) -> None:
    pair = authority.sign("trainer", dns("trainer.example"))
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        context = client(authority, pair)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version, context.maximum_version = version, version
        with pytest.raises((OSError, ssl.SSLError)):
            secured.request("GET", "/health", tls=context)
    context = client(authority, pair)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert secured.request("GET", "/health", tls=context).status == 200


def test_plain_http_is_not_spoken_where_tls_is(secured: Server) -> None:
    assert not secured.say(raw(b"{}")).startswith(b"HTTP/1.1 200")


def test_a_certificate_does_not_stand_in_for_a_key(authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"a {KEY_A}\n")
    cert, key = authority.sign("server2", loopback())
    tls = {"cert": cert, "key": key, "client_ca": authority.file}
    with serving(equal, tls=tls, access={"api_key_files": [file]}) as server:
        context = client(authority, authority.sign("any", dns("any.example")))
        assert server.request("POST", "/evaluate", asked("a"), tls=context).status == 401
        assert server.request("POST", "/evaluate", asked("a"), {"X-Api-Key": KEY_A}, tls=context).status == 200


# ── Google ID tokens ─────────────────────────────────────────────────────────────────────────────────────────────────

AUDIENCE = "https://rewards.example"
ACCESS = AccessSettings(google_audience=AUDIENCE, allow_emails=["trainer@project.iam.gserviceaccount.com", "*@lab.org"])
google_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
other_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def key_set(*named: tuple[str, rsa.RSAPrivateKey]) -> dict[str, Any]:
    keys = [{**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": name} for name, key in named]
    return {"keys": keys}


def token(key: Any = google_key, kid: str = "one", algorithm: str = "RS256", **changed: Any) -> str:
    now = int(time.time())
    claims: dict[str, Any] = {
        "iss": "https://accounts.google.com", "aud": AUDIENCE, "iat": now, "exp": now + 3600,
        "email": "trainer@project.iam.gserviceaccount.com", "email_verified": True, "sub": "1",
    }  # fmt: skip
    claims = {name: value for name, value in (claims | changed).items() if value is not None}
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": kid})


class Google:
    """Gives out public keys, and counts how often it is asked."""

    def __init__(self) -> None:
        self.keys = key_set(("one", google_key))
        self.asked = 0
        self.fails = False

    async def fetch(self, url: str) -> Fetched:
        self.asked += 1
        if self.fails:
            raise OSError("down")
        return Fetched(self.keys, 3600.0)


@pytest.fixture
def google() -> Google:
    return Google()


def tokens_of(google: Google, **more: Any) -> GoogleTokens:
    return GoogleTokens(ACCESS, PublicKeys("https://keys.example", google.fetch, **more))


async def test_a_token_of_somebody_on_the_list_is_taken(google: Google) -> None:
    tokens = tokens_of(google)

    assert (await tokens.caller_of(token())).id == "trainer@project.iam.gserviceaccount.com"
    assert (await tokens.caller_of(token(email="Ann@lab.org"))).id == "ann@lab.org"
    assert google.asked == 1


HOUR = 3600
BAD_TOKENS: dict[str, str] = {
    "no token": "a.b.c",
    "signed by another": token(other_key),
    "signed by nobody": jwt.encode({"aud": AUDIENCE}, "", algorithm="none", headers={"kid": "one"}),
    "signed by the public key as a secret": token("a secret of thirty-two characters", algorithm="HS256"),
    "an unknown key": token(kid="two"),
    "for another audience": token(aud="https://other.example"),
    "for several audiences": token(aud=[AUDIENCE, "https://other.example"]),
    "by another issuer": token(iss="https://evil.example"),
    "expired": token(iat=int(time.time()) - 2 * HOUR, exp=int(time.time()) - HOUR),
    "not valid yet": token(iat=int(time.time()) + HOUR, exp=int(time.time()) + 2 * HOUR),
    "without end": token(exp=None),
    "without audience": token(aud=None),
    "without e-mail": token(email=None),
    "of somebody else": token(email="trainer@other.iam.gserviceaccount.com"),
    "of a longer domain": token(email="ann@lab.org.evil.example"),
    "of an unverified address": token(email_verified=False),
    "of an address that says it is verified": token(email_verified="true"),
    "very long": token(x="y" * 20_000),
    "changed": token()[:-4] + "AAAA",
}


@pytest.mark.parametrize("bad", BAD_TOKENS.values(), ids=BAD_TOKENS.keys())
async def test_any_other_token_is_refused_alike(google: Google, bad: str) -> None:
    with pytest.raises(Refusal) as refused:
        await tokens_of(google).caller_of(bad)

    assert (refused.value.status, refused.value.body) == (403, REFUSED)


async def test_new_public_keys_are_fetched_when_a_token_needs_them_and_not_more_often(google: Google) -> None:
    now = 0.0
    tokens = tokens_of(google, clock=lambda: now)
    await tokens.caller_of(token())
    google.keys = key_set(("one", google_key), ("two", other_key))
    for _ in range(20):
        with pytest.raises(Refusal):
            await tokens.caller_of(token(other_key, kid="two"))
    assert google.asked == 1
    now += 61
    await tokens.caller_of(token(other_key, kid="two"))
    assert google.asked == 2


async def test_public_keys_outlive_an_outage_and_not_forever(google: Google) -> None:
    now = 0.0
    tokens = tokens_of(google, clock=lambda: now)
    await tokens.caller_of(token())
    google.fails = True
    now += 2 * HOUR
    await tokens.caller_of(token(sub="2"))
    now += 48 * HOUR
    with pytest.raises(Refusal) as late:
        await tokens.caller_of(token(sub="3"))
    assert (late.value.status, "retry-after" in late.value.headers) == (503, True)


async def test_a_moment_without_public_keys_refuses_nobody_for_good(google: Google) -> None:
    now = 1000.0
    tokens = tokens_of(google, clock=lambda: now)
    google.fails = True
    for _ in range(3):
        with pytest.raises(Refusal) as down:
            await tokens.caller_of(token())
        assert down.value.status == 503
    assert google.asked == 1, "not once for each request"
    google.fails = False
    now += int(down.value.headers["retry-after"])

    assert (await tokens.caller_of(token())).id == "trainer@project.iam.gserviceaccount.com"


async def test_a_token_that_was_good_is_not_good_after_its_end(google: Google) -> None:
    now = time.time()
    tokens = GoogleTokens(ACCESS, PublicKeys("https://keys.example", google.fetch), clock=lambda: now)
    short = token(exp=int(now) + 60)
    await tokens.caller_of(short)
    now += 61

    google.keys, tokens._keys._keys = {"keys": []}, {}  # whoever looks at it again finds no key for it
    with pytest.raises(Refusal):
        await tokens.caller_of(short)


async def test_keys_and_tokens_are_told_apart(google: Google, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"a {KEY_A}\n")
    told = settings(access={**ACCESS.model_dump(), "api_key_files": [file]})
    gate = Gate(told, {}, tokens=tokens_of(google))

    async def caller(value: str) -> str:
        return (await gate.caller_of(Head([(b"authorization", f"Bearer {value}".encode())]), ())).id

    assert await caller(KEY_A) == "a"
    assert await caller(token()) == "trainer@project.iam.gserviceaccount.com"
    for bad in ("wrong", token(other_key)):
        with pytest.raises(Refusal):
            await caller(bad)


# ── keys in the address, and what a browser sends by itself ──────────────────────────────────────────────────────────


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@given(user=st.text(st.characters(codec="ascii", exclude_characters=":\r\n"), max_size=8))
@examples(deadline=None, max_examples=20)
def test_the_password_is_the_key_whoever_is_named(user: str) -> None:
    request = Head([(b"authorization", basic(user, KEY_A)["Authorization"].encode())])

    assert request.credentials() == Credentials(KEY_A.encode(), by_itself=True)


def test_a_key_fits_into_the_address(server: Server) -> None:
    """As trainers' clients that send no headers have it: aiohttp and httpx make `Basic` of it."""

    async def ask() -> int:
        address = server.address.replace("://", f"://trainer:{KEY_A}@") + "/evaluate"
        async with aiohttp.ClientSession() as session, session.post(address, json=asked("a", "a")) as reply:
            return reply.status

    assert asyncio.run(ask()) == 200
    assert server.post("/evaluate", asked("a"), basic("trainer", KEY_B[:-1])).json == REFUSED
    assert server.post("/evaluate", asked("a"), basic(KEY_A, "")).json == REFUSED
    assert server.post("/evaluate", asked("a"), {"Authorization": "Basic ä"}).json == REFUSED


def test_a_web_page_needs_more_than_what_its_browser_keeps(server: Server) -> None:
    page = {"Origin": "https://page.example"}

    assert server.post("/evaluate", asked("a"), {**page, **basic("a", KEY_A)}).status == 403
    assert server.post("/evaluate", asked("a"), {**page, "X-Api-Key": KEY_A}).status == 200


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
def test_an_open_server_answers_to_the_names_of_this_machine(name: str) -> None:
    with serving(equal) as found:
        for host in (name, f"{name}:{found.port}"):
            assert found.get("/evaluate", {"Host": host}).status == 200


@pytest.mark.parametrize(
    "name", ["page.example", "localhost.page.example", "127.0.0.1.page.example", "", "[::2]", "x@localhost"]
)
def test_an_open_server_answers_to_no_other_name(name: str) -> None:
    """A page may have its own name lead to this machine, and then ask as if it had come from here."""
    with serving(equal) as found:
        for path in ("/", "/evaluate", "/metrics"):
            assert found.get(path, {"Host": name}).status == 421
        assert found.get("/health", {"Host": name}).status == 200


def test_a_protected_server_may_have_any_name(server: Server) -> None:
    assert server.get("/evaluate", {"Host": "rewards.example", "X-Api-Key": KEY_A}).status == 200


def test_whoever_looks_after_the_server_is_never_refused() -> None:
    with serving(equal, access={"concurrency": 1, "rate": 1e-9}) as found:
        found.app._allowances.of(ANYBODY).enter()
        assert found.post("/evaluate", asked("a")).status == 429
        assert [found.get(path).status for path in ("/health", "/ready")] == [200, 200]
