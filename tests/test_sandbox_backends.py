# SPDX-License-Identifier: Apache-2.0
"""The table of backends is the one list of them: everything that offers a choice of backends offers what it says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import pytest

import reward_kit
from reward_kit.cli_commands.best_of_n_cmd import best_of_n
from reward_kit.cli_commands.sandbox_cmd import serve
from reward_kit.cli_commands.shell_cmd import shell
from reward_kit.config_models import SandboxConfig
from reward_kit.errors import SandboxUnavailableError
from reward_kit.sandbox import choose
from reward_kit.sandbox.contract import Probe
from reward_kit.sandbox_backends import AUTO, BACKENDS, backend_choices, row_of

_EVERYTHING = (AUTO, *BACKENDS)
_PACKAGE = Path(reward_kit.__file__).parent


@pytest.mark.parametrize("name", BACKENDS)
async def test_a_row_leads_to_the_backend_of_its_name(name: str) -> None:
    backend = choose.backends()[name](SandboxConfig())
    assert backend.name == name
    await backend.close()


def test_settings_take_what_is_in_the_table() -> None:
    assert get_args(SandboxConfig.model_fields["backend"].annotation) == _EVERYTHING


def _choices(command: click.Command, flag: str) -> tuple[str, ...]:
    (found,) = [option for option in command.params if flag in option.opts]
    assert isinstance(found.type, click.Choice)
    return tuple(found.type.choices)


@pytest.mark.parametrize(("command", "flag"), [(shell, "--sandbox"), (best_of_n, "--sandbox")])
def test_flags_take_what_is_in_the_table(command: click.Command, flag: str) -> None:
    assert _choices(command, flag) == _EVERYTHING


def test_a_server_offers_no_other_servers_sandboxes() -> None:
    assert _choices(serve, "--backend") == backend_choices(served=True)
    assert set(_EVERYTHING) - set(backend_choices(served=True)) == {"sos"}


def _lists_of_backends(tree: ast.AST) -> Iterator[int]:
    """Lines where two backends or more are named in one list, tuple, set or dict."""
    for node in ast.walk(tree):
        parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        if len({part.value for part in parts if isinstance(part, ast.Constant)} & set(BACKENDS)) > 1:
            yield node.lineno  # type: ignore[attr-defined]


def test_nobody_else_keeps_a_list_of_backends() -> None:
    found = {
        f"{path.relative_to(_PACKAGE)}:{line}"
        for path in _PACKAGE.rglob("*.py")
        for line in _lists_of_backends(ast.parse(path.read_text()))
        if path.name != "sandbox_backends.py"
    }
    # These are names of other things: of functions that the module of containers offers, and of programs.
    others = ("sandbox/containers/backend.py", "cli_commands/extras.py", "deploy/machine.py")
    assert {place for place in found if not place.startswith(others)} == set()


async def test_where_none_works_the_others_are_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        async def probe(self) -> Probe:
            return Probe(False, "out of order")

        async def close(self) -> None: ...

    monkeypatch.setattr(choose, "backends", lambda: dict.fromkeys(BACKENDS, lambda _: Broken()))
    with pytest.raises(SandboxUnavailableError) as caught:
        await choose.choose_backend()
    for name, row in BACKENDS.items():
        said = f"{name!r} ({row.only_by_name})" if row.only_by_name else f"{name}: out of order"
        assert said in str(caught.value)


def test_of_a_backend_that_is_not_ours_nothing_is_promised() -> None:
    assert not row_of("moon").runs_images
    assert not row_of("moon").is_slow_to_open
