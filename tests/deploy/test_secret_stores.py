# SPDX-License-Identifier: Apache-2.0
"""Secrets: in a keyring that is a real backend of `keyring`, in the pretended Google, and in moto's AWS."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli_commands.conftest import Call
from tests.deploy.conftest import World

keyring = pytest.importorskip("keyring", reason="the extra `keyring` is not installed")
from keyring.backend import KeyringBackend  # noqa: E402

VALUE = "the-value-that-nobody-may-see-1234"


class InMemory(KeyringBackend):
    """A keyring that works, and forgets with the process."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # keyring's own
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.held[service, username]


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> InMemory:
    ring = InMemory()
    monkeypatch.setattr(keyring, "get_keyring", lambda: ring)
    return ring


def give(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_keyring_keeps_lists_and_forgets(ring: InMemory, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, f"{VALUE}\n")
    said = call("secrets", "set", "OPENAI_API_KEY")
    assert said.code == 0 and VALUE not in said.out + said.err
    assert ring.held["reward-kit", "OPENAI_API_KEY"] == VALUE
    assert call("secrets", "list").out.split() == ["OPENAI_API_KEY"]
    assert call("secrets", "delete", "OPENAI_API_KEY").code == 0
    assert call("secrets", "list").out == ""
    assert "has no secret 'OPENAI_API_KEY'" in call("secrets", "delete", "OPENAI_API_KEY").sentence


def test_a_value_on_the_command_line_is_refused_and_not_repeated(ring: InMemory, call: Call) -> None:
    said = call("secrets", "set", f"KEY={VALUE}")
    assert said.code == 1 and VALUE not in said.err and "never written on the command line" in said.sentence
    assert call("secrets", "set", "KEY", VALUE).code == 2
    assert ring.held == {}


@pytest.mark.parametrize("text", ["", "\n"])
def test_an_empty_value_is_refused(ring: InMemory, call: Call, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    give(monkeypatch, text)
    assert "is empty" in call("secrets", "set", "KEY").sentence


def test_where_there_is_no_keyring_it_says_so(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from keyring.backends.fail import Keyring

    monkeypatch.setattr(keyring, "get_keyring", Keyring)
    give(monkeypatch, VALUE)
    said = call("secrets", "set", "KEY")
    assert said.code == 1 and "has no keyring" in said.sentence and "--store fireworks, gcp or aws" in said.sentence

    class PlaintextKeyring(InMemory):
        pass

    monkeypatch.setattr(keyring, "get_keyring", PlaintextKeyring)
    assert "plain file" in call("secrets", "list").sentence


def test_google_keeps_them_and_no_command_line_shows_them(
    world: World, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ("--store", "gcp", "--gcp-project", "p")
    for _ in range(2):  # the second time, a version more
        give(monkeypatch, VALUE)
        assert call("secrets", "set", "KEY", *where).code == 0
    assert world.things["version/KEY"] == VALUE
    assert VALUE not in json.dumps(world.calls)
    assert call("secrets", "list", *where).out.split() == ["KEY"]
    assert call("secrets", "delete", "KEY", *where).code == 0
    assert "has no secret 'KEY'" in call("secrets", "delete", "KEY", *where).sentence
    give(monkeypatch, VALUE)
    assert "--gcp-project" in call("secrets", "set", "KEY", "--store", "gcp").sentence


def test_aws_keeps_them(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    moto = pytest.importorskip("moto", reason="moto is not installed")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing-testing")
    where = ("--store", "aws", "--aws-region", "eu-central-1")
    with moto.mock_aws():
        for _ in range(2):
            give(monkeypatch, VALUE)
            said = call("secrets", "set", "KEY", *where)
            assert said.code == 0 and VALUE not in said.out + said.err
        assert call("secrets", "list", *where).out.split() == ["KEY"]
        assert call("secrets", "delete", "KEY", *where).code == 0
        give(monkeypatch, VALUE)
        assert call("secrets", "set", "KEY", *where).code == 0  # deleted less than a week ago: it is had back
        import boto3

        kept = boto3.client("secretsmanager", region_name="eu-central-1").get_secret_value(SecretId="KEY")
        assert kept["SecretString"] == VALUE
        assert "has no secret 'OTHER'" in call("secrets", "delete", "OTHER", *where).sentence


def test_a_secret_of_the_keyring_reaches_a_reward_on_this_machine(
    ring: InMemory, call: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy = ("deploy", "--id", "x", "--target", "docker", "--function-ref", "math", "--secret", "TOKEN=mine")
    said = call(*deploy, "--dry-run")
    assert "TOKEN=***" in said.out and "--env TOKEN" in said.out
    from reward_kit.deploy.secret_stores import local_secret

    ring.set_password("reward-kit", "mine", VALUE)
    assert local_secret("mine") == VALUE
