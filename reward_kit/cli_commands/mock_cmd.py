# SPDX-License-Identifier: Apache-2.0
"""`reward-kit mock serve`: an OpenAI-compatible endpoint without a model, for trying things and for tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.options import NamedPath
from reward_kit.cli_commands.output import echo

if TYPE_CHECKING:
    from reward_kit.generation.mock_script import Script

__all__ = ["mock"]


@click.group()
def mock() -> None:
    """Serve scripted answers, and faults, as an OpenAI-compatible endpoint would."""


@mock.command()
@click.argument("script", required=False, type=NamedPath(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="The port; by default a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--fault", "faults", multiple=True, metavar="KEY=VALUE,…",
    help="A fault, tried before those of the script (see above). May be given again.",
)  # fmt: skip
@click.option("--seed", type=int, help="Decides which requests a fault's `rate` picks. Default: the script's, else 0.")
@click.option("--log", type=NamedPath(path_type=Path), help="Append each request, and what became of it, to this file.")
def serve(
    script: Path | None, port: int, host: str, faults: tuple[str, ...], seed: int | None, log: Path | None
) -> None:
    """Answer chat completions as SCRIPT says, until interrupted. Without a SCRIPT, the prompt is echoed.

    The first line that is printed is the address for `generation.api_base`. GET /requests, at the same port, returns
    the requests so far.

    A script is YAML. Each prompt gets the answers of a rule in turn; an answer is a text, or a mapping with content,
    tool_calls, finish_reason, usage, logprobs, delay and more:

    \b
    rules:
      - {pattern: 'capital of (\\w+)', response: ['It is Paris.', 'I do not know \\1.']}
      - {pattern: weather, response: {tool_calls: [{name: weather, arguments: {city: Bern}}]}}
    responses: ['I do not know.']
    faults:
      - {rate: 0.1, status: 429, retry_after: 1}
      - {at: [3, 7], cut: within}

    A fault has one of status, cut (before, within), malformed (half, empty, html, no_choices) and delay (seconds). The
    keys at, every, rate, times, pattern and model say when it happens. All keys are in docs/mock-server.md.

    \b
    reward-kit mock serve answers.yaml --port 8123
    reward-kit mock serve --fault status=429,rate=0.2,retry_after=1 --fault cut=before,every=10
    reward-kit run run.yaml generation.model_name=m generation.api_base=http://127.0.0.1:8123/v1
    curl http://127.0.0.1:8123/requests
    """
    from reward_kit.generation.mock_script import Script, read_script, with_faults

    settings = read_script(script).settings
    told = with_faults(settings, [_fault(text) for text in faults])
    if seed is not None:
        told = told.model_copy(update={"seed": seed})
    _serve(Script(told), host, port, log)


def _serve(script: Script, host: str, port: int, log: Path | None) -> None:
    """Until SIGINT or SIGTERM."""
    import signal
    import threading

    from reward_kit.generation.mock_server import MockServer

    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with MockServer(script, host=host, port=port, log=log) as server:
        echo(server.url)
        stopped.wait()
        echo(f"{len(server.requests)} requests were answered.", err=True)


def _fault(text: str) -> dict[str, Any]:
    """A fault as the option gives it, such as `status=429,rate=0.1`."""
    from reward_kit.utils.strict_yaml import load_yaml

    found: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"--fault {text!r}: {part!r} is not KEY=VALUE, such as status=429.")
        found[key.strip()] = load_yaml(value, f"--fault {text!r}")
    return found
