# SPDX-License-Identifier: Apache-2.0
"""Requests to Fireworks: who is asked, with what key, how often, and what a refusal becomes."""

from __future__ import annotations

import logging

import pytest

from reward_kit.deploy.fireworks.api import FireworksAPI, PlatformAPIError
from reward_kit.errors import AuthError
from tests.deploy.fireworks.fake import ACCOUNT, KEY, FakeFireworks


def test_the_account_follows_from_the_key(fireworks: FakeFireworks) -> None:
    assert FireworksAPI().account == ACCOUNT
    assert fireworks.requests == [("GET", "/verifyApiKey")]


def test_an_account_that_is_configured_is_not_asked_for(
    fireworks: FakeFireworks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIREWORKS_ACCOUNT_ID", "other")
    assert FireworksAPI().account == "other"
    assert fireworks.requests == []


def test_without_a_key_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.delenv("FIREWORKS_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(AuthError, match="FIREWORKS_API_KEY"):
        FireworksAPI()


def test_a_key_does_not_travel_unencrypted() -> None:
    with pytest.raises(AuthError, match="unencrypted"):
        FireworksAPI(KEY, ACCOUNT, "http://api.fireworks.ai")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_what_may_pass_is_asked_again(api: FireworksAPI, fireworks: FakeFireworks, status: int) -> None:
    fireworks.fail("GET", "secrets", status)
    fireworks.lose("GET", "secrets")
    assert api.listed(f"accounts/{ACCOUNT}/secrets", "secrets") == []
    assert len(fireworks.requests) == 3


def test_what_does_not_pass_is_told_with_its_status_and_without_the_key(
    api: FireworksAPI, fireworks: FakeFireworks, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for _ in range(6):
        fireworks.fail("GET", "datasets")
    with pytest.raises(PlatformAPIError, match=r"503.*told to.*[Rr]un the same command again") as caught:
        api.get(f"accounts/{ACCOUNT}/datasets/x")
    assert caught.value.status_code == 503
    assert KEY not in str(caught.value) and KEY not in caplog.text


def test_a_wrong_key_is_refused_at_once(fireworks: FakeFireworks) -> None:
    with pytest.raises(AuthError, match="FIREWORKS_API_KEY"):
        FireworksAPI("fw_wrong_key_000000000", ACCOUNT, fireworks.url).get(f"accounts/{ACCOUNT}/secrets")
    assert len(fireworks.requests) == 1


def test_what_is_not_there_is_found_to_be_none(api: FireworksAPI) -> None:
    assert api.find(f"accounts/{ACCOUNT}/evaluators/x") is None
    assert api.delete(f"accounts/{ACCOUNT}/evaluators/x") is False


@pytest.mark.parametrize("how", ["lose", "fail"])
def test_a_thing_whose_answer_was_lost_was_made_once(api: FireworksAPI, fireworks: FakeFireworks, how: str) -> None:
    getattr(fireworks, how)("POST", "/datasets$", after=True)
    body = {"datasetId": "d", "dataset": {"exampleCount": "1", "format": "CHAT", "userUploaded": {}}}
    made = api.create(f"accounts/{ACCOUNT}/datasets", body, made=f"accounts/{ACCOUNT}/datasets/d")
    assert made["name"] == f"accounts/{ACCOUNT}/datasets/d"


def test_a_thing_that_was_there_before_is_a_conflict(api: FireworksAPI) -> None:
    body = {"datasetId": "d", "dataset": {"exampleCount": "1", "format": "CHAT", "userUploaded": {}}}
    name = f"accounts/{ACCOUNT}/datasets/d"
    api.create(f"accounts/{ACCOUNT}/datasets", body, made=name)
    with pytest.raises(PlatformAPIError) as caught:
        api.create(f"accounts/{ACCOUNT}/datasets", body, made=name)
    assert caught.value.status_code == 409


@pytest.mark.parametrize("url", ["http://storage.example.com/x?sig=1", "ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_bytes_go_to_no_address_that_others_can_read_along(api: FireworksAPI, url: str) -> None:
    with pytest.raises(PlatformAPIError, match="not https"):
        api.put_signed(url, b"x", {}, None)
    with pytest.raises(PlatformAPIError, match="not https"):
        api.read_signed(url)
