# SPDX-License-Identifier: Apache-2.0
"""`reward-kit shell`: have a model write commands for shell tasks, run them in sandboxes, see which did the job."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.door_options import COMMAND_LINE, door_options, given_settings, run_options
from reward_kit.cli_commands.options import PORT
from reward_kit.cli_commands.output import (
    NOTHING_JUDGED,
    echo_error,
    echo_not_mirrored,
    echo_nothing_done,
    exit_code,
    name_settings,
    show_logs,
)
from reward_kit.doors import AT_SHELL
from reward_kit.stores.addresses import is_stored

if TYPE_CHECKING:
    from reward_kit.cli_commands.display.shell import ShellDisplay
    from reward_kit.execution.result import Phase, RunResult
    from reward_kit.execution.shell import ShellEvaluation

__all__ = ["shell"]


@click.command()
@door_options(AT_SHELL)
@click.option(
    "--sos-port", type=PORT, default=3000, show_default=True, help="The same, for an SoS server on this machine."
)
@click.option("--no-cache", is_flag=True, help="Do not use the cache: ask again for answers that it already holds.")
@click.option(
    "--shard", metavar="I/K", help="Run only the I-th of K parts of the commands file (see reward-kit merge)."
)
@run_options(
    "phase", "rescore", "retry_failed", "keep_going", "detach", "resume_from_mirror", "dry_run", "quiet", "as_json",
    "verbose", rows="tasks", items="commands", judged="run", generate="write commands", judge="run",
)  # fmt: skip
@click.pass_context
def shell(context: click.Context, /, phase: Phase, quiet: bool, as_json: bool, verbose: bool, **flags: Any) -> None:
    """Let a model write commands for shell tasks, run each command in a sandbox, and check whether it did the job.

    A task is a row {task, setup_commands, success_condition}. Any setting of a run may be given as key=value, which
    counts before a flag. Run the same command again after any interruption: it goes on where it was.

    \b
    reward-kit shell --model gpt-4o-mini --dataset tasks.jsonl
    reward-kit shell --model qwen --base-url http://localhost:8000/v1 --dataset tasks.jsonl -n 4 --phase inference
    reward-kit shell --phase execution --commands-file commands.jsonl --output-dir elsewhere
    reward-kit shell --model mock --dataset tasks.jsonl --max-samples 5
    reward-kit shell --model gpt-4o-mini --dataset tasks.jsonl -n 8 --dry-run
    reward-kit shell --rescore --timeout 60

    Exit codes: 0 done; 1 failed, or nothing could be run; 2 wrong usage or data; 3 stopped by --max-cost;
    5 done, but not all of it is in --mirror; 6 left with batches under way (--detach);
    7 the first 20 commands could not be run, all for the same reason; 130 interrupted.
    """
    from reward_kit.cli_commands.display.shell import ShellDisplay

    show_logs(verbose=verbose)
    name_settings(AT_SHELL.spell)
    if flags["rescore"]:
        phase = "execution"
    given = _settings(context, phase, flags)
    display = ShellDisplay(quiet=quiet, as_json=as_json)
    with _evaluation(given, flags) as evaluation:
        if flags["dry_run"]:
            display.show_plan(evaluation.plan(phase))
            return
        code = _run(evaluation, phase, display)
    sys.exit(code)


def _run(evaluation: ShellEvaluation, phase: Phase, display: ShellDisplay) -> int:
    """Enter the phases that were asked for, and return the exit code."""
    enter = {"both": evaluation.run, "inference": evaluation.infer, "execution": evaluation.execute}[phase]
    display.announce(phase, evaluation)
    result = enter(display.reporter())
    display.show(result)
    code = exit_code(result.status, result.judged if "judged" in result.summary else _commands(result))
    if code == NOTHING_JUDGED and _without_command(result):
        echo_error(_no_command(result))
    elif code == NOTHING_JUDGED:
        echo_nothing_done("run", result.summary)
    return code or echo_not_mirrored(result.not_mirrored)


def _commands(result: RunResult) -> int:
    return int(result.summary.get("inference", {}).get("commands", 0))


def _without_command(result: RunResult) -> int:
    return int(result.summary.get("inference", {}).get("no_command", 0))


def _no_command(result: RunResult) -> str:
    from reward_kit.execution.shell import COMMANDS

    count = _without_command(result)
    return (
        f"No command was found in {f'any of the {count:,} answers' if count > 1 else 'the answer'}. Look at the field "
        f"`error` in {str(result.output_dir / COMMANDS)!r}: it says what was answered. Raise --max-tokens if answers "
        "were cut off; else name another --model. Either needs a new --output-dir."
    )


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _settings(context: click.Context, phase: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were typed, by place, with what follows from them; what contradicts itself is refused."""
    from reward_kit.errors import ConfigError

    given = given_settings(context, AT_SHELL)
    if _was_given(context, "sos_port"):
        given.setdefault("sandbox.sos_url", f"http://127.0.0.1:{flags['sos_port']}")
    if given.get("sandbox.sos_url"):
        given.setdefault("sandbox.backend", "sos")
    if flags["no_cache"]:
        given.setdefault("generation.cache.enabled", False)
    if phase == "execution":
        asking = ("generation.", "dataset.")
        return {place: value for place, value in given.items() if not place.startswith(asking)} | {
            "generation.enabled": False
        }
    if given.get("generation.model_name") is None:
        raise ConfigError("No model is named. Add --model, `--model mock` to try it without one, or --phase execution.")
    for flag, value in (("--commands-file", given.get("rollouts_file")), ("--shard", flags["shard"])):
        if value is not None:
            raise ConfigError(f"{flag} is for running commands that were written before. Add --phase execution.")
    return _with_endpoint(given)


def _with_endpoint(given: dict[str, Any]) -> dict[str, Any]:
    """Who writes the commands. `mock` is asked for by name; an endpoint that is not named is the provider's own."""
    from reward_kit.execution.best_of_n.experiment import price_table

    if not any(place.startswith("generation.price") for place in given):
        given["generation.price"] = price_table(given.get("prices") or {}).get(given["generation.model_name"])
    base = given.get("generation.api_base") or None
    if given["generation.model_name"] == "mock":
        return {place: value for place, value in given.items() if place not in _ENDPOINT}
    if (
        base
        and given.get("generation.api_key_env") is None
        and (key := given.get("generation.api_key") or _key_for(base))
    ):
        given["generation.api_key"] = key
    return {**given, "generation.api_base": base}


_ENDPOINT = ("generation.api_base", "generation.api_key", "generation.api_key_env")


@contextlib.contextmanager
def _evaluation(given: dict[str, Any], flags: Mapping[str, Any]) -> Iterator[ShellEvaluation]:
    """What is to be evaluated; a file of commands that is in a store is on this machine as long as it is needed."""
    from reward_kit.execution.shell import ShellEvaluation, shell_config
    from reward_kit.execution.shell.commands_file import Shard
    from reward_kit.storage.at_hand import at_hand

    name = given.pop("rollouts_file", None)
    given.pop("prices", None)
    with at_hand(*([] if name is None else [name if is_stored(name) else Path(name)])) as found:
        yield ShellEvaluation(
            shell_config(given, COMMAND_LINE),
            commands_file=found[0] if found else None,
            commands_address=name if name is not None and is_stored(name) else None,
            shard=None if flags["shard"] is None else Shard.parse(flags["shard"]),
            **{name: flags[name] for name in ("retry_failed", "keep_going", "rescore", "resume_from_mirror", "detach")},
        )


def _key_for(base_url: str) -> str | None:
    """The environment's key for an endpoint that was named, unless it would travel the open network unencrypted."""
    from urllib.parse import urlsplit

    from reward_kit.auth import is_private_host
    from reward_kit.errors import AuthError
    from reward_kit.redaction import mask

    key = os.environ.get("OPENAI_API_KEY", "").strip() or None
    try:
        url = urlsplit(base_url)
    except ValueError:
        return None  # no address; the config says so
    if key and url.scheme != "https" and not is_private_host(url.hostname or ""):
        raise AuthError(
            f"The key in OPENAI_API_KEY would be sent unencrypted to {mask(base_url)!r}. Use https://, or unset it."
        )
    return key


def _was_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
