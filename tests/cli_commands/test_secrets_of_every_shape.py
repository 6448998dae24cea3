# SPDX-License-Identifier: Apache-2.0
"""Credentials of forty shapes in every setting of every door: nothing that is written or shown has one in clear."""

from __future__ import annotations

import base64
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from reward_kit.redaction import forget_all, mask, remember_settings, secret_paths, without_secrets
from tests.cli_commands.conftest import Call, Said, start

pytest.importorskip("pyarrow")

Shape = Callable[[str], Any]

BY_NAME = (
    "api_key", "DB_PASS", "SMTP_PASS", "PGPASSWORD", "pass", "db_pass", "login", "signature", "x-api-key", "authToken",
    "client_secret", "redis_pass", "MYSQL_PWD", "hf_token", "key", "TOKEN_2", "password1", "oldPassword", "token_value",
    "apisecret", "keypass", "pw", "hmac_key", "unlock_code", "db_cred", "contraseña", "пароль", "密码", "COHERE_KEY",
    "access_id", "seed_phrase", "recovery_code", "JSESSIONID",
)  # fmt: skip


def under(name: str) -> Shape:
    """The secret under a name."""
    return lambda secret: {name: secret}


SHAPES: dict[str, Shape] = {
    **{name: under(name) for name in BY_NAME},
    "list under a name": lambda s: {"tokens": {"access_token": [s]}},
    "flag": lambda s: {"command": ["serve", "--api-key", s, "--port", "1"]},
    "flag with a value": lambda s: {"command": ["serve", f"--api-key={s}"]},
    "one string": lambda s: {"command": f"serve --token {s} --port 1"},
    "one string with a value": lambda s: {"command": f"serve --password={s}"},
    "curl's user": lambda s: {"command": ["curl", "-u", f"bob:{s}", "http://h"]},
    "variable in a command": lambda s: {"command": ["env", f"DB_PASS={s}", "serve"]},
    "header in a command": lambda s: {"command": ["curl", "-H", f"X-Api-Key: {s}"]},
    "bearer in a command": lambda s: {"command": ["curl", "-H", f"Authorization: Bearer {s}"]},
    "environment": lambda s: {"env": {"DB_PASS": s, "PORT": "80"}},
    "header": lambda s: {"headers": {"X-Team-Thing": s}},
    "headers as pairs": lambda s: {"headers": [["X-Team-Thing", s]]},
    "authorization": lambda s: {"headers": {"Authorization": f"Basic {s}"}},
    "assigned": lambda s: {"options": f"api_key={s}"},
    "json in a text": lambda s: {"options": json.dumps({"api_key": s, "x": 1})},
    "json in json": lambda s: {"options": json.dumps({"inner": json.dumps({"password": s})})},
    "yaml in a text": lambda s: {"options": f"user: bob\npassword: {s}\n"},
    "ado": lambda s: {"store": f"Server=db;Uid=sa;Password={s};Encrypt=yes"},
    "azure": lambda s: {"store": f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={s};"},
    "libpq": lambda s: {"store": f"host=db user=bob password={s} dbname=x"},
    "postgres": lambda s: {"store": f"postgresql://bob:{s}@db:5432/x"},
    "redis": lambda s: {"store": f"redis://:{s}@cache:6379/0"},
    "go": lambda s: {"store": f"bob:{s}@tcp(db:3306)/x"},
    "jdbc": lambda s: {"store": f"jdbc:mysql://db/x?user=bob&password={s}"},
    "sentry": lambda s: {"place": f"https://{s}@o1.ingest.example.io/2"},
    "query": lambda s: {"place": f"https://h/x?api_key={s}&y=1"},
    "signed": lambda s: {"place": f"https://h/x?sv=2024&sig={s}"},
    "slack": lambda s: {"place": f"https://hooks.slack.com/services/T0/B0/{s}"},
    "discord": lambda s: {"place": f"https://discord.com/api/webhooks/42/{s}"},
    "telegram": lambda s: {"place": f"https://api.telegram.org/bot123456:{s}/sendMessage"},
    "own webhook": lambda s: {"webhook": f"https://chat.example.com/hooks/{s}"},
    "known prefix": lambda s: {"note": f"it is sk-proj-{s}"},
    "flag in a text": lambda s: {"command": f"serve --auth-token '{s}' -v"},
    "flag of a word in a text": lambda s: {"command": f"serve --db-password {s}"},
    "curl's user in a text": lambda s: {"command": f"curl -u bob:{s} http://h"},
    "scheme and key apart": lambda s: {"command": ["remote", "--header", "Authorization:", "Bearer", s]},
    "json in a command": lambda s: {"command": ["x", "--config", json.dumps({"apiKey": s})]},
    "pairs": lambda s: {"variables": [["PORT", "80"], ["DB_PASSWORD", s]]},
    "names and values": lambda s: {"variables": [{"name": "PORT", "value": "80"}, {"name": "DB_PASSWORD", "value": s}]},
    "keys and values": lambda s: {"variables": [{"key": "API_TOKEN", "value": s}]},
    "xml": lambda s: {"options": f"<password>{s}</password>"},
    "arrow": lambda s: {"options": f"password => {s}"},
    "sentence": lambda s: {"note": f"The password is {s}"},
    "netrc": lambda s: {"note": f"machine h login bob password {s}"},
    "pgpass": lambda s: {"note": f"db.example.org:5432:orders:bob:{s}1a"},
    "password before its flag": lambda s: {"command": f"mysql -u root -p{s} orders"},
    "glued to its flag": lambda s: {"command": ["7z", "x", f"-p{s}", "a.7z"]},
    "short flag": lambda s: {"command": ["sshpass", "-p", s, "ssh", "-p", "2222", "host"]},
    "short flag in a text": lambda s: {"command": f"docker login -u bob -p {s} registry.example.org"},
    "a flag of redis": lambda s: {"command": f"redis-cli -h cache -a {s} ping"},
    "curl's user at its flag": lambda s: {"command": ["curl", f"-ubob:{s}", "http://h"]},
    "set by name": lambda s: {"command": ["aws", "configure", "set", "aws_secret_access_key", s]},
    "set by name in a text": lambda s: {"command": f"npm config set //registry.example.org/:_authToken {s}"},
    "slash in a login": lambda s: {"place": f"https://bob:a/{s}@host.example.org/x"},
    "pagerduty": lambda s: {"place": f"https://events.pagerduty.com/integration/{s}1a/enqueue"},
    "ping": lambda s: {"place": f"https://hc-ping.com/{s}"},
    "heartbeat": lambda s: {"place": f"https://uptime.example.com/api/v1/heartbeat/{s}1a"},
    "npmrc": lambda s: {"note": f"//registry.example.org/:_authToken={s}"},
    "deep webhook": lambda s: {"place": f"https://open.example.cn/open-apis/bot/v2/hook/{s}"},
    "putty": lambda s: {"note": f"PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{s}"},
    "pem": lambda s: {"note": f"-----BEGIN PRIVATE KEY-----\n{s}\n-----END PRIVATE KEY-----"},
    "jwt": lambda s: {"note": f"eyJhbGciOiJI.{base64.urlsafe_b64encode(s.encode()).decode().rstrip('=')}.{s}"},
    "a name itself": lambda s: {"users": {f"sk-proj-{s}": "alice"}},
}
ORDINARY: dict[str, Any] = {
    "pass_threshold": 0.5, "first_pass": "strict", "pass_at_k": 3, "max_tokens": 99, "close_token": "</think>",
    "token_type": "subword", "password_length": 12, "key": "answer", "sort_key": "level", "auth": "none",
    "signature": "def f(x: int) -> int", "task": "token classification", "level": "Basic understanding",
    "secret_word": "pineapple", "stop": ["\n\n", "</s>"], "command": ["run", "--tokens", "5", "--key-column", "id"],
    "url": "https://host:8000/v1?version=3#part", "hash": "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3",
    "image": "registry:5000/team/name:tag@sha256:4f0c21aa", "env": {"LOG_LEVEL": "debug", "PORT": "80"},
    "headers": {"Accept": "text/html", "X-Team": "research"}, "keywords": ["alpha", "beta"], "tokens": [128000, 128001],
    "key_signature": "A minor", "key_of_music": "E_flat_major", "auth_kind": "oauth2", "ssh": "ssh://git@host/team/repo",
    "pw_dist": "l2norm2024", "bypass": "nothing1", "compass": "NNW12345", "monkey_name": "George2024",
    "cmd": "serve --max-tokens 4096 --key-column ans_2024 --pass-rate 0.5 -p 8080 -u bob", "ratio": "16:9@60",
    "variables": [["LOG_LEVEL", "debug2024x"], ["a", "b"]], "named": [{"name": "LOG_LEVEL", "value": "debug2024x"}],
    "grid": [{"key": "a", "value": 12345678}], "xml": "<answer>pass2024</answer>", "session": "morning-2024",
    "sql": "SELECT a FROM t WHERE key = 'a1b2c3' AND sort_key = 'b2c3d4e5'", "remote": "ssh://git@host:22/team/repo@v1",
    "shell": "docker run -p 8080:80 image; ssh -p 2222 host; mkdir -p /data/x1; python -u train.py; cp -a b c",
    "module": "https://unpkg.example.com:443/react@16.2/x.js", "log": "train.py:1234:WARN:loader:done",
    "pin": "GPIO17x", "salt": "sea_salt", "sid": "speaker-0042", "integration": "https://host/integrations/overview-of-things",
    "sentence": "The token is the last word. A password is required.", 
    "author": "Jane Doe <jane@example.org>", "regex": r"(?:key|token)\s*=\s*(\d+)",
}  # fmt: skip
drawn = st.text("abcdefghijkLMNOPQRSTUV0123456789", min_size=14, max_size=30).filter(
    lambda text: any(map(str.isdigit, text)) and any(map(str.islower, text)) and any(map(str.isupper, text))
)
nested: st.SearchStrategy[Callable[[Any], Any]] = st.sampled_from(
    [
        lambda value: {"params": value}, lambda value: {"params": {"deep": [{"er": value}]}},
        lambda value: {"extra_body": {"a": value}}, lambda value: {"by_split": {"x": {"params": value}}},
        lambda value: {"agent": {"params": {"mcpServers": {"a": value}}}}, lambda value: {"section": value},
    ]
)  # fmt: skip


def test_there_are_forty() -> None:
    assert len(SHAPES) >= 40


@pytest.mark.parametrize("shape", SHAPES)
@examples(max_examples=20)
@given(drawn, nested)
def test_no_setting_with_a_credential_is_kept_and_each_is_named(
    shape: str, secret: str, around: Callable[[Any], Any]
) -> None:
    forget_all()
    settings = around({**SHAPES[shape](secret), "kept": 1})
    written = without_secrets(settings)

    assert secret not in repr(written)
    assert "'kept': 1" in repr(written)
    assert secret_paths(settings)
    assert secret not in repr(secret_paths(settings))
    assert without_secrets(written) == written
    assert "***" not in repr(written)
    remember_settings(settings)
    assert secret not in mask(f"It failed with {settings!r}.")


@given(nested)
def test_no_other_setting_is_hidden(around: Callable[[Any], Any]) -> None:
    settings = around(ORDINARY)
    assert without_secrets(settings) == settings
    assert secret_paths(settings) == []


REWARD = """
from reward_kit import reward_function

@reward_function
def judge(messages, ground_truth=None, **kwargs):
    return {"score": 1.0, "reason": "yes", "metrics": {}}
"""


def planted() -> dict[str, str]:
    """A secret of its own for each shape."""
    return {name: f"pl4Nt{number:02d}Zx9Kq2Lm8Rt4V" for number, name in enumerate(SHAPES)}


def leaks(home: Path, said: Said) -> list[str]:
    """Which shapes are in clear, and where."""
    texts = {"out": said.out.encode(errors="surrogateescape"), "err": said.err.encode(errors="surrogateescape")}
    for path in home.rglob("*"):
        if path.is_file() and path.name not in {"run.yaml", "best.yaml", "reward.py"} and path.suffix != ".pyc":
            texts[str(path.relative_to(home))] = path.read_bytes()
    return [
        f"{name} in {place}" for name, value in planted().items() for place in texts if value.encode() in texts[place]
    ]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "reward.py").write_text(REWARD)
    rows = [{"id": str(i), "user_query": "hello", "ground_truth": "x"} for i in range(2)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_every_shape_in_every_door_is_nowhere_in_clear(home: Path, call: Call) -> None:
    secrets = {f"p{number}": SHAPES[name](value) for number, (name, value) in enumerate(planted().items())}
    told: dict[str, Any] = {
        "dataset": {"path_or_name": "data.jsonl"},
        "generation": {"model_name": "mock", "extra_body": secrets, "cache": {"cache_dir": "cache"}},
        "judge": {"model_name": "mock", "extra_body": secrets},
        "reward": {"function_path": "reward.py:judge", "params": {**secrets, **ORDINARY}},
        "output": {"output_dir": "out"},
    }
    (home / "run.yaml").write_text(yaml.safe_dump(told))
    said = call("run", "run.yaml", "--verbose")
    assert said.code == 0, said.err
    assert leaks(home, said) == []
    written = yaml.safe_load((home / "out" / "config.yaml").read_text())
    params = written["reward"]["params"]
    assert {name: params[name] for name in ORDINARY} == ORDINARY
    assert "***" not in (home / "out" / "config.yaml").read_text()
    assert "give it again: reward.params.p0.api_key=…" in call("run", "out/config.yaml", "output.output_dir=out").err
    for command in (
        ["run", "run.yaml", "--dry-run"], ["inspect", "out"], ["inspect", "out", "--format", "json"],
        ["report", "out", "-o", "report.html"], ["run", "out/config.yaml", "output.output_dir=out"],
        ["export", "out", "--to", "sft", "-o", "sft.jsonl"],
    ):  # fmt: skip
        said = call(*command)
        assert said.code == 0, said.err
        assert leaks(home, said) == [], command


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ("reward.params.token='***'", "reward.params.token"), ("generation.api_key='***'", "generation.api_key"),
        ("generation.api_key='**********'", "generation.api_key"),
        ("+reward.params.place='https://***@host/x'", "reward.params.place"),
        ("+reward.params.place='https://h/x?api_key=***'", "reward.params.place"),
        ("+generation.extra_body.headers.Authorization='Bearer ***'", "generation.extra_body.headers.Authorization"),
    ],
)  # fmt: skip
def test_the_stars_of_a_hidden_credential_are_sent_to_nobody(home: Path, call: Call, told: str, place: str) -> None:
    config = {
        "dataset": {"path_or_name": "data.jsonl"}, "generation": {"model_name": "mock"},
        "reward": {"function_path": "reward.py:judge", "params": {"ruler": "***"}}, "output": {"output_dir": "out"},
    }  # fmt: skip
    (home / "run.yaml").write_text(yaml.safe_dump(config))
    said = call("run", "run.yaml", told)
    assert said.code == 2
    assert place in said.err
    assert "Give the credential itself again" in said.err
    assert not (home / "out").exists()


# ── the other doors ──────────────────────────────────────────────────────────────────────────────────────────────────

TELLING = """
import json
from reward_kit import reward_function

@reward_function
def judge(messages, ground_truth=None, **params):
    raise ValueError("It cannot judge with " + repr(params) + json.dumps(params, default=str))
"""


@pytest.fixture
def secrets(home: Path) -> dict[str, Any]:
    """A setting of every shape. Beside them lies a reward that tells all its params."""
    (home / "telling.py").write_text(TELLING)
    return {f"p{number}": SHAPES[name](value) for number, (name, value) in enumerate(planted().items())}


def as_texts(secrets: Mapping[str, Any]) -> dict[str, str]:
    """The same, where each value must be a text: lists and sections are JSON."""
    texts: dict[str, str] = {}
    for number, held in secrets.items():
        name, value = next(iter(held.items()))
        is_text = isinstance(value, str)
        texts[name if is_text and name in BY_NAME else number] = value if is_text else json.dumps(held)
    return texts


def test_best_of_n_keeps_none(home: Path, call: Call, secrets: dict[str, Any]) -> None:
    (home / "data").mkdir()
    for split in ("math", "code"):
        (home / "data" / f"{split}.jsonl").write_text(
            json.dumps({"id": split, "user_query": "hello", "ground_truth": "x"}) + "\n"
        )
    files = {"math": "reward.py:judge", "code": "telling.py:judge"}
    told = {
        "dataset": "data", "splits": list(files), "model": "mock", "num_candidates": 1, "extra_body": secrets,
        "verifiers": {split: {"function_path": file, "params": secrets} for split, file in files.items()},
        "cache_dir": "cache", "output": "out.parquet", "notes": "We used\n" + "\n".join(as_texts(secrets).values()),
    }  # fmt: skip
    (home / "best.yaml").write_text(yaml.safe_dump(told))
    for more in (["--dry-run"], ["--verbose"]):
        said = call("best-of-n", "-c", "best.yaml", *more)
        assert said.code == 0, said.err
        assert leaks(home, said) == [], more
    assert leaks(home, call("inspect", "out.parquet")) == []


def test_shell_keeps_none(home: Path, call: Call, secrets: dict[str, Any]) -> None:
    (home / "data.jsonl").write_text(json.dumps({"task": "say hi", "setup_commands": [], "success_condition": "true"}))
    given = [
        f"+generation.extra_body.{name}={json.dumps(value)}"
        for name, value in as_texts(secrets).items()
        if name.isascii()
    ]
    for more in (["--dry-run"], ["--verbose"], ["--json"]):
        said = call("shell", "--model", "mock", "--dataset", "data.jsonl", "--phase", "inference", *given, *more)
        assert said.code == 0, said.err
        assert leaks(home, said) == [], more
    assert (home / "evaluation_results" / "commands.jsonl").exists()


def test_an_agent_and_the_servers_of_its_world_keep_none(home: Path, call: Call, secrets: dict[str, Any]) -> None:
    program = "import json, os, sys; print(json.dumps(dict(os.environ)), os.environ, file=sys.stderr); sys.exit(1)"
    world = {"command": [sys.executable, "-c", program], "sandbox": "none", "env": as_texts(secrets)}
    told = {
        "dataset": {"path_or_name": "data.jsonl"}, "generation": {"model_name": "mock", "extra_body": secrets},
        "agent": {"environment": "reward_kit.agent.mcp.environment:McpEnvironment", "params": world},
        "reward": {"function_path": "reward.py:judge"}, "output": {"output_dir": "out"},
    }  # fmt: skip
    (home / "run.yaml").write_text(yaml.safe_dump(told))
    said = call("run", "run.yaml", "--verbose")
    assert "ended with status 1" in said.err
    assert leaks(home, said) == []


@pytest.mark.parametrize("by_caller", [False, True])
def test_a_server_and_its_log_keep_none(home: Path, secrets: dict[str, Any], *, by_caller: bool) -> None:
    params = {} if by_caller else secrets
    told = {
        "rewards": {"telling": {"function_path": "telling.py:judge", "params": params, "workers": 1}},
        "port": 0, "access_log": "access.jsonl",
    }  # fmt: skip
    (home / "run.yaml").write_text(yaml.safe_dump(told))
    with start(home, "serve", "--config", "run.yaml") as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[-1]
            body = {"messages": [{"role": "user", "content": "x"}], **(secrets if by_caller else {})}
            replies = [answer_of(f"{address}/evaluate", json.dumps(body))]
            replies += [answer_of(f"{address}/{path}") for path in ("metrics", "openapi.json", "health")]
            for value in planted().values():
                answer_of(f"{address}/health?api_key={value}", key=value)
        finally:
            server.terminate()
            out, err = server.communicate(timeout=100)
    assert "It cannot judge with" in replies[0]
    assert "/health" in (home / "access.jsonl").read_text()
    assert leaks(home, Said(0, out + ("" if by_caller else "".join(replies)), err)) == []


def answer_of(url: str, body: str | None = None, key: str = "") -> str:
    """What a server answers, whether it is content or not."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(url, None if body is None else body.encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()


def test_a_deployment_takes_none_as_a_variable_or_a_param(home: Path, call: Call, secrets: dict[str, Any]) -> None:
    deploy = ("deploy", "--id", "a", "--target", "local-serve", "--function-ref", "reward.py:judge", "--dry-run")
    for number, (name, value) in enumerate(as_texts(secrets).items()):
        said = call(*deploy, "--env", f"{name}={value}")
        assert "seems to be a secret" in said.err, name
        assert leaks(home, said) == []
        if number % 8 == 0:
            said = call(*deploy, "--params", f"p={json.dumps({name: value})}")
            assert "seems to be a credential" in said.err, name
            assert leaks(home, said) == []
