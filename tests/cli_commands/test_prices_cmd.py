# SPDX-License-Identifier: Apache-2.0
"""`reward-kit prices`: what is known, and since when."""

from __future__ import annotations

import json

import pytest

from reward_kit.cli import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as leave:
        main(["prices", *arguments])
    assert not leave.value.code
    return capsys.readouterr().out


def test_models_are_listed_with_their_prices_and_the_date(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "gpt-4o")
    assert [line.split()[0] for line in shown.splitlines()[1:3]] == ["gpt-4o", "gpt-4o-mini"]
    assert "as of 20" in shown and "claude" not in shown


def test_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "--json", "gpt-4o-mini"))
    assert found["prices"] == [
        {"provider": "OpenAI", "model": "gpt-4o-mini", "input": 0.15, "output": 0.6, "cached_input": 0.075}
    ]


def test_a_whole_name_is_told_with_who_says_its_price(capsys: pytest.CaptureFixture[str]) -> None:
    name = "anthropic/claude-haiku-4-5-20251001"
    found = json.loads(printed(capsys, "--json", name))
    assert [(each["provider"], each["model"]) for each in found["prices"]] == [("Anthropic", name)]
    assert found["source"].startswith("the table of reward-kit, 20")
    assert f"The price of {name} is from {found['source']}." in printed(capsys, name)
    assert "generation.price={" in printed(capsys, "somebody/finetune")
