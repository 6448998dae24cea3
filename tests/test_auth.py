# SPDX-License-Identifier: Apache-2.0
"""Credentials: where they come from, and to whom they go."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from reward_kit.auth import (
    KEY_VARIABLES,
    get_fireworks_account_id,
    get_fireworks_api_base,
    get_fireworks_api_key,
    resolve_api_key,
)
from reward_kit.errors import AuthError

FIREWORKS = "https://api.fireworks.ai/inference/v1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory of its own, and an environment without keys."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in {*KEY_VARIABLES.values(), "FIREWORKS_ACCOUNT_ID", "FIREWORKS_API_BASE"}:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write_auth_file(home: Path, text: str) -> None:
    (home / ".fireworks").mkdir()
    (home / ".fireworks" / "auth.ini").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "[fireworks]\napi_key = k1\naccount_id = a1\n",
        "api_key=k1\naccount_id=a1",
        "# a comment\n; another\n[fireworks]\n  api_key = \"k1\"  # mine\naccount_id = 'a1'\n",
        "[other]\napi_key = no\n[fireworks]\napi_key = k1 ; mine\naccount_id = a1 # mine\n",
        "\ufeffAPI_KEY = k1\naccount_id = a1\nnonsense\n",
        "[default]\napi_key = k1\naccount_id = a1\n",
        "[My Profile]\napi_key = k1\naccount_id = a1\n",
    ],
)
def test_the_file_is_read_in_all_its_forms(home: Path, text: str) -> None:
    write_auth_file(home, text)
    assert (get_fireworks_api_key(), get_fireworks_account_id()) == ("k1", "a1")


def test_nothing_is_found_where_nothing_is(home: Path) -> None:
    assert (get_fireworks_api_key(), get_fireworks_account_id()) == (None, None)
    write_auth_file(home, "[rewards.example.com]\napi_key = no\n")
    assert get_fireworks_api_key() is None


@pytest.mark.parametrize("host", ["rewards.example.com", "127.0.0.1:8000", "localhost", "box:8000"])
def test_the_key_of_another_host_is_not_fireworks(home: Path, host: str) -> None:
    write_auth_file(home, f"[{host}]\napi_key = no\n")
    assert get_fireworks_api_key() is None


def test_one_of_several_sections_is_not_guessed(home: Path) -> None:
    write_auth_file(home, "[work]\napi_key = no\n[home]\napi_key = no\n")
    assert get_fireworks_api_key() is None


def test_the_environment_comes_before_the_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_auth_file(home, "api_key = file\naccount_id = file\n")
    monkeypatch.setenv("FIREWORKS_API_KEY", " environment\n")
    monkeypatch.setenv("FIREWORKS_ACCOUNT_ID", "")
    assert (get_fireworks_api_key(), get_fireworks_account_id()) == ("environment", "file")


def test_the_address_of_fireworks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_fireworks_api_base() == "https://api.fireworks.ai"
    monkeypatch.setenv("FIREWORKS_API_BASE", "https://dev.api.fireworks.ai/")
    assert get_fireworks_api_base() == "https://dev.api.fireworks.ai"


def test_a_file_that_cannot_be_read_is_told(home: Path) -> None:
    (home / ".fireworks" / "auth.ini").mkdir(parents=True)
    with pytest.raises(AuthError, match=r"auth\.ini"):
        get_fireworks_api_key()


def test_the_given_key_comes_first_then_the_named_variable_then_the_hosts_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIREWORKS_API_KEY", "own")
    monkeypatch.setenv("MY_KEY", "named")
    given = SecretStr("given")
    assert resolve_api_key(FIREWORKS, explicit=given, env_name="MY_KEY") == "given"
    assert resolve_api_key(FIREWORKS, explicit=SecretStr(""), env_name="MY_KEY") == "named"
    assert resolve_api_key(FIREWORKS) == "own"


def test_a_named_variable_that_is_missing_is_named() -> None:
    with pytest.raises(AuthError, match="'MY_KEY'"):
        resolve_api_key("http://localhost:8000/v1", env_name="MY_KEY")


@pytest.mark.parametrize(("domain", "variable"), KEY_VARIABLES.items())
def test_a_known_host_gets_its_own_key_and_says_which_is_missing(
    domain: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AuthError, match=variable):
        resolve_api_key(f"https://api.{domain}/v1")
    monkeypatch.setenv(variable, "own")
    assert resolve_api_key(f"https://api.{domain}/v1") == "own"


@pytest.mark.parametrize(
    "base",
    [
        "http://localhost:8000/v1",
        "http://127.0.0.1:8000/v1",
        "http://[::1]:8000/v1",
        "http://10.1.2.3/v1",
        "http://vllm:8000/v1",
        "http://gpu.internal/v1",
        "https://api.openai.com.evil.example/v1",
        "https://evil.example/api.openai.com",
        "https://notopenai.com/v1",
    ],
)
def test_no_key_goes_to_a_host_it_does_not_belong_to(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in KEY_VARIABLES.values():
        monkeypatch.setenv(variable, "own")
    assert resolve_api_key(base) is None


def test_a_key_does_not_travel_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "own-key")
    with pytest.raises(AuthError, match="https://") as caught:
        resolve_api_key("http://api.openai.com/v1")
    assert "own-key" not in str(caught.value)
