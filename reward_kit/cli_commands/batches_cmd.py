# SPDX-License-Identifier: Apache-2.0
"""`reward-kit batches`: see a run's batches at the provider, end them, or give them up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reward_kit.cli_commands.options import NamedPath
from reward_kit.cli_commands.output import Line, echo, echo_lines, print_json

if TYPE_CHECKING:
    from reward_kit.config_models import GenerationConfig
    from reward_kit.generation.batch.provider import BatchState
    from reward_kit.storage.batch_journal import Part

__all__ = ["batches"]

_directory = click.argument("directory", metavar="DIR", type=NamedPath(path_type=Path, exists=True, file_okay=False))


@click.group()
def batches() -> None:
    """See a run's batches at the provider, or end them.

    DIR is the run directory of a run with generation.transport=batch. To fetch answers, run the command again that
    began the run.
    """


@batches.command("list")
@_directory
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON on standard output.")
def list_(directory: Path, as_json: bool) -> None:
    """List the batches of a run, and the progress of those that are not finished."""
    parts = _parts(directory)
    under_way = [part for part in parts if part.batch is not None and part.is_under_way and part.fetched is None]
    states = asyncio.run(_states(directory, under_way)) if under_way else {}
    if as_json:
        print_json([_as_dict(part, states.get(part.name)) for part in parts])
    elif not parts:
        echo(f"The run in {str(directory)!r} has no batches.")
    else:
        echo_lines([Line(part.batch or part.name, *_in_words(part, states.get(part.name))) for part in parts])


@batches.command()
@_directory
def cancel(directory: Path) -> None:
    """Ask the provider to end the batches that are under way.

    You pay for the requests that were answered by then. Run the command of the run again to fetch these answers.
    """
    under_way = [part for part in _parts(directory) if part.is_under_way and part.batch and part.fetched is None]
    if not under_way:
        echo("No batch is running.")
        return
    asyncio.run(_cancel(directory, under_way))
    echo(f"Cancelled: {', '.join(str(part.batch) for part in under_way)}.")
    echo("You pay for the requests that were answered. Run the same command again to fetch their answers.")


@batches.command()
@_directory
def forget(directory: Path) -> None:
    """Give up the batches of a run: their answers are not fetched, and the next run asks for them again.

    Use this for batches that the provider has lost. You still pay for what they cost, so cancel them first.
    """
    from reward_kit.storage.batch_journal import BatchJournal
    from reward_kit.storage.run_directory import RunDirectory

    with RunDirectory(directory) as run, BatchJournal(run.batches_path) as journal:
        live = journal.live
        for part in live:
            journal.note("dropped", part.name, reason="given up by `reward-kit batches forget`")
    requests = sum(part.requests for part in live)
    echo(f"Given up: {len(live)} batches of {requests:,} requests. The next run asks for them again.")


@batches.command()
@_directory
@click.option("--adopt", metavar="ID", help="It was taken, and this is the batch's id at the provider.")
@click.option("--submit-again", is_flag=True, help="It was not taken: the next run submits it again.")
@click.option("--part", "name", metavar="NAME", help="The file of requests, where several are in doubt.")
def decide(directory: Path, adopt: str | None, submit_again: bool, name: str | None) -> None:
    """Say what became of a file of requests, where the provider does not tell whether it took it.

    What each choice risks: if the batch that you adopt is another one, the requests are asked for again when it has
    ended. If you submit again what the provider took, you pay twice.
    """
    from reward_kit.storage.batch_journal import BatchJournal
    from reward_kit.storage.run_directory import RunDirectory

    if (adopt is None) is not submit_again:
        raise click.UsageError("Give one of --adopt ID and --submit-again.")
    with RunDirectory(directory) as run, BatchJournal(run.batches_path) as journal:
        parts = [part for part in journal.live if part.is_in_doubt and name in {None, part.name}]
        names = ", ".join(part.name for part in parts)
        if not parts:
            raise click.UsageError(f"No such file of requests in {str(directory)!r} is in doubt.")
        if adopt is not None and len(parts) > 1:
            raise click.UsageError(f"Several are in doubt: {names}. Name one of them with --part NAME.")
        for part in parts:
            if adopt is not None:
                journal.note("submitted", part.name, batch=adopt)
            else:
                journal.note("declined", part.name, reason="submitted again by `reward-kit batches decide`")
    echo(f"Decided: {names}. Run the same command again to go on.")


def _parts(directory: Path) -> list[Part]:
    from reward_kit.storage.batch_journal import BATCHES, BatchJournal

    with BatchJournal(directory / BATCHES, read_only=True) as journal:
        return list(journal.parts.values())


def _generation(directory: Path) -> GenerationConfig:
    """Who was asked, by the config that the run left in its directory."""
    from reward_kit.config_models import load_config
    from reward_kit.errors import ConfigError
    from reward_kit.utils.strict_yaml import load_yaml, read_yaml_text

    path = directory / "config.yaml"
    values = load_yaml(read_yaml_text(path, f"the config {str(path)!r}", "Name a run directory."), repr(str(path)))
    if not isinstance(values, dict):
        raise ConfigError(f"{str(path)!r} is not the config of a run. Name a run directory.")
    return load_config(values).generation


async def _states(directory: Path, parts: list[Part]) -> dict[str, BatchState]:
    from reward_kit.generation.batch.choose import open_provider

    provider = open_provider(_generation(directory))
    try:
        return {part.name: await provider.state(str(part.batch)) for part in parts}
    finally:
        await provider.close()


async def _cancel(directory: Path, parts: list[Part]) -> None:
    from reward_kit.generation.batch.choose import open_provider

    provider = open_provider(_generation(directory))
    try:
        for part in parts:
            await provider.cancel(str(part.batch))
    finally:
        await provider.close()


def _as_dict(part: Part, state: BatchState | None) -> dict[str, object]:
    return {
        "part": part.name,
        "batch": part.batch,
        "requests": part.requests,
        "attempt": part.attempt,
        "status": _status(part, state),
        "answered": state.answered if state is not None else part.noted.get("answered"),
    }


def _in_words(part: Part, state: BatchState | None) -> tuple[str, str]:
    answered = f", {state.answered:,} answered" if state is not None and state.answered else ""
    again = f", attempt {part.attempt}" if part.attempt > 1 else ""
    return f"{part.requests:,} requests{answered}{again}", _status(part, state)


def _status(part: Part, state: BatchState | None) -> str:
    if part.dropped:
        return "given up"
    if part.absorbed:
        return "in the rollouts"
    if part.fetched is not None:
        return "fetched"
    if state is not None:
        return state.words
    if part.is_in_doubt:
        return "asked for; the provider has not told the batch's id"
    return "submitted" if part.submitting else "prepared"
