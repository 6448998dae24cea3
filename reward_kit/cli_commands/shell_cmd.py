# SPDX-License-Identifier: Apache-2.0
"""`reward-kit shell`: have a model write commands for shell tasks, run them in sandboxes, see which did the job."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.engine_options import SETTINGS as ENGINE_SETTINGS
from reward_kit.cli_commands.engine_options import engine_options, engine_settings
from reward_kit.cli_commands.options import MOST, PORT, FiniteRange, NamedPath, NamedSource, completed_by
from reward_kit.cli_commands.output import (
    NOTHING_JUDGED,
    echo_error,
    echo_not_mirrored,
    echo_nothing_done,
    exit_code,
    name_settings,
    show_logs,
)
from reward_kit.sandbox_backends import AUTO, backend_choices

if TYPE_CHECKING:
    from reward_kit.cli_commands.display.shell import ShellDisplay
    from reward_kit.execution.result import Phase, RunResult
    from reward_kit.execution.shell import ShellEvaluation

__all__ = ["SETTINGS", "shell"]

_REQUESTS = 64
_COMMAND_LINE = "The command line"

SETTINGS = {
    "dataset.config_name": "--config-name",
    "dataset.max_samples": "--max-samples",
    "dataset.on_bad_row": "--on-bad-row",
    "dataset.path_or_name": "--dataset",
    "dataset.split": "--split",
    "evaluation_params.limit_samples": "--max-samples",
    "generation.api_base": "--base-url",
    "generation.api_key_env": "--api-key-env",
    "generation.api_params.max_concurrent_requests": "--concurrency",
    "generation.api_params.timeout": "--request-timeout",
    "generation.cache.cache_dir": "--cache-dir",
    "generation.cache.enabled=false": "--no-cache",
    "generation.max_tokens": "--max-tokens",
    "generation.model_name": "--model",
    "generation.n": "-n",
    "generation.price": "--prices",
    "generation.temperature": "--temperature",
    "generation.transport": "--transport",
    "generation.transport=batch": "--transport batch",
    "generation.transport=online": "--transport online",
    "max_cost": "--max-cost",
    "output.mirror": "--mirror",
    "output.output_dir": "--output-dir",
    "phase": "--phase",
    "rescore": "--rescore",
    "resume_from_mirror": "--resume-from-mirror",
    "keep_going": "--keep-going",
    "retry_failed": "--retry-failed",
    "reward.concurrency": "--concurrency",
    "reward.timeout": "--command-timeout",
    "rollouts_file": "--commands-file",
    "sandbox.backend": "--sandbox",
    "sandbox.image": "--sandbox-image",
    "sandbox.setup_join": "--setup-join",
    "sandbox.sos_url": "--sos-url",
    "sandbox.timeout": "--command-timeout",
    **ENGINE_SETTINGS,
}
"""The flag of each setting that a message may name. The time of the reward follows from that of a command."""


@click.command()
@click.option(
    "--model", shell_complete=completed_by("complete_models"),
    help="PROVIDER/NAME (anthropic/NAME); a model the endpoint knows; `local`; or `mock` for answers without a model.",
)  # fmt: skip
@click.option(
    "--dataset",
    shell_complete=completed_by("complete_paths"),
    help="The tasks: a file (JSONL, CSV, Parquet) or the name of a Hugging Face dataset.",
)
@click.option("--config-name", help="The configuration (subset) of a Hugging Face dataset.")
@click.option("--split", default="test", show_default=True, help="The split of a Hugging Face dataset.")
@click.option(
    "--phase", type=click.Choice(["both", "inference", "execution"]), default="both", show_default=True,
    help="both: write commands and run them. inference: only write them. execution: only run those of a commands "
        "file; needs no dataset and no key.",
)  # fmt: skip
@click.option(
    "-o", "--output-dir", type=NamedPath(path_type=Path, file_okay=False), default=Path("evaluation_results"),
    show_default=True, help="Where the files go. The same directory again resumes the run in it.",
)  # fmt: skip
@click.option(
    "--mirror", help="An address such as s3://bucket/run. The files of the run are copied there while it goes on."
)
@click.option(
    "--resume-from-mirror", is_flag=True, help="Go on with the run that --mirror holds, in an empty --output-dir."
)
@click.option("--max-samples", type=click.IntRange(1, MOST), help="Use at most this many tasks, the first ones.")
@click.option(
    "--on-bad-row", type=click.Choice(["error", "skip"]), default="error", show_default=True,
    help="error: stop at a row that is not a task. skip: leave it out and count it.",
)  # fmt: skip
@click.option("-n", "n", type=click.IntRange(1, 1_000_000), default=1, show_default=True, help="Commands per task.")
@click.option(
    "--temperature", type=FiniteRange(min=0), default=0.6, show_default=True, help="The sampling temperature."
)
@click.option(
    "--max-tokens", type=click.IntRange(1, MOST), default=2000, show_default=True, help="The most tokens of one answer."
)
@click.option(
    "--base-url",
    "--api-base",
    help="An OpenAI-compatible endpoint. Default: OPENAI_BASE_URL, or the provider's own endpoint.",
)
@click.option("--api-key-env", help="The environment variable that holds the endpoint's key. Default: OPENAI_API_KEY.")
@click.option(
    "--api-key", help="The key itself. Use --api-key-env instead: other users of this machine can see a command line."
)
@click.option(
    "--request-timeout", type=FiniteRange(min=0, min_open=True), default=300.0, show_default=True,
    help="Seconds one request to the model may take.",
)  # fmt: skip
@click.option(
    "--transport", type=click.Choice(["online", "batch"]), default="online", show_default=True,
    help="online: ask now. batch: send files of requests, which are answered within a day at half the price.",
)  # fmt: skip
@click.option(
    "--cache-dir", default=".reward_kit_cache", show_default=True, help="Where answers that were paid for are kept."
)
@click.option("--no-cache", is_flag=True, help="Do not use the cache: ask again for answers that it already holds.")
@click.option(
    "--sandbox", "backend", default=AUTO, show_default=True, type=click.Choice(backend_choices()),
    help="The kind of sandbox. `auto` takes the first kind that works on this machine. `none` isolates nothing.",
)  # fmt: skip
@click.option(
    "--sandbox-image",
    help="A container image, or the directory of a root filesystem (namespaces). Default: the backend's; for an SoS "
    "server that is not ours, deathbyknowledge/shellm-sandbox:latest.",
)
@click.option("--sos-url", help="The address of an SoS server. Without --sandbox, it implies --sandbox sos.")
@click.option(
    "--sos-port", type=PORT, default=3000, show_default=True, help="The same, for an SoS server on this machine."
)
@click.option(
    "--commands-file",
    type=NamedSource(path_type=Path),
    help="Run the commands of this file. It may be in an object store.",
)
@click.option("--concurrency", type=click.IntRange(1, 100_000), help="Requests at a time, and sandboxes at a time.")
@click.option(
    "--setup-join", type=click.Choice(["&&", ";"]), default="&&", show_default=True,
    help="With &&, a setup command that fails ends the task. With ;, the other setup commands still run.",
)  # fmt: skip
@click.option(
    "--snapshots/--no-snapshots",
    default=True,
    show_default=True,
    help="Run a slow setup once, and reuse its result for all tasks with the same setup (namespaces only).",
)
@click.option(
    "--command-timeout",
    "--timeout",
    "timeout",
    type=FiniteRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds one command may take.",
)
@click.option(
    "--shard", metavar="I/K", help="Run only the I-th of K parts of the commands file (see reward-kit merge)."
)
@click.option("--retry-failed", is_flag=True, help="Retry all failed items, permanent failures included.")
@click.option("--keep-going", is_flag=True, help="Go on where the first 20 commands all fail to be run in one way.")
@click.option("--rescore", is_flag=True, help="Run the commands of an old run again, with these settings.")
@click.option(
    "--max-cost",
    type=FiniteRange(min=0, min_open=True),
    help="Stop before the run in this directory has cost more than this in all.",
)
@click.option(
    "--prices",
    metavar="FILE",
    shell_complete=completed_by("complete_paths"),
    help="A YAML file with the prices of models: for each model, `input` and `output`, per million tokens.",
)
@click.option(
    "--detach",
    is_flag=True,
    help="With batches: submit them and exit. Run the same command later to fetch the answers.",
)
@engine_options
@click.option("--dry-run", is_flag=True, help="Print the plan (tasks, requests, cached, tokens, cost); send nothing.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no table; errors only.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens, and show tracebacks.")
@click.pass_context
def shell(context: click.Context, /, phase: Phase, quiet: bool, as_json: bool, verbose: bool, **flags: Any) -> None:
    """Let a model write commands for shell tasks, run each command in a sandbox, and check whether it did the job.

    A task is a row {task, setup_commands, success_condition}. Run the same command again after any interruption: it
    goes on where it was.

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
    if (flags["sos_url"] or _was_given(context, "sos_port")) and not _was_given(context, "backend"):
        flags["backend"] = "sos"
    if flags["rescore"]:
        phase = "execution"
    name_settings(SETTINGS)
    _check(phase, flags)
    display = ShellDisplay(quiet=quiet, as_json=as_json)
    with _commands_at_hand(flags):
        evaluation = _evaluation(phase, flags)
        if flags["dry_run"]:
            display.show_plan(evaluation.plan(phase))
            return
        code = _run(evaluation, phase, display)
    sys.exit(code)


@contextlib.contextmanager
def _commands_at_hand(flags: dict[str, Any]) -> Iterator[None]:
    """Have a file of commands that is in a store on this machine as long as it is needed."""
    from reward_kit.storage.at_hand import at_hand

    name = flags["commands_file"]
    flags["commands_address"] = name if isinstance(name, str) else None
    with at_hand(*([] if name is None else [name])) as found:
        flags["commands_file"] = found[0] if found else None
        yield


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


def _check(phase: str, flags: dict[str, Any]) -> None:
    """Refuse what contradicts itself before anything is done."""
    from reward_kit.errors import ConfigError

    if phase != "execution":
        if flags["model"] is None:
            raise ConfigError(
                "No model is named. Add --model, `--model mock` to try it without one, or --phase execution."
            )
        for name in ("commands_file", "shard"):
            if flags[name] is not None:
                raise ConfigError(
                    f"--{name.replace('_', '-')} is for running commands that were written before. Add --phase "
                    "execution."
                )


def _evaluation(phase: str, flags: dict[str, Any]) -> ShellEvaluation:
    from reward_kit.config_models import EngineConfig, SandboxConfig, validated
    from reward_kit.execution.shell import ShellEvaluation
    from reward_kit.execution.shell.commands_file import Shard

    return ShellEvaluation(
        output_dir=flags["output_dir"],
        dataset=flags["dataset"],
        config_name=flags["config_name"],
        on_bad_row=flags["on_bad_row"],
        split=flags["split"],
        max_samples=flags["max_samples"],
        generation=_generation(phase, flags),
        sandbox=validated(
            SandboxConfig,
            {
                "backend": flags["backend"],
                "image": flags["sandbox_image"],
                "sos_url": flags["sos_url"] or f"http://127.0.0.1:{flags['sos_port']}",
                "setup_join": flags["setup_join"],
                "snapshots": flags["snapshots"],
                "timeout": flags["timeout"],
            },
            _COMMAND_LINE,
            section="sandbox",
        ),
        concurrency=flags["concurrency"],
        commands_file=flags["commands_file"],
        commands_address=flags["commands_address"],
        mirror=flags["mirror"],
        resume_from_mirror=flags["resume_from_mirror"],
        shard=None if flags["shard"] is None else Shard.parse(flags["shard"]),
        retry_failed=flags["retry_failed"],
        keep_going=flags["keep_going"],
        rescore=flags["rescore"],
        max_cost=flags["max_cost"],
        detach=flags["detach"],
        engine=validated(
            EngineConfig, engine_settings(flags["engine"], flags["engine_set"]), _COMMAND_LINE, section="engine"
        ),
    )


def _generation(phase: str, flags: dict[str, Any]) -> Any:
    """Who writes the commands. `mock` is asked for by name; an endpoint that is not named is the provider's own."""
    from pydantic import SecretStr

    from reward_kit.config_models import GenerationConfig, validated
    from reward_kit.execution.best_of_n.experiment import price_table

    if phase == "execution":
        return GenerationConfig(enabled=False)
    mock = flags["model"] == "mock"
    base = flags["base_url"] or None
    usual = _key_for(base) if base and flags["api_key_env"] is None else None
    key = flags["api_key"] or usual
    given = {
        "model_name": flags["model"],
        "n": flags["n"],
        "temperature": flags["temperature"],
        "max_tokens": flags["max_tokens"],
        "transport": flags["transport"],
        "api_base": None if mock else base,
        "api_key": SecretStr(key) if key and not mock else None,
        "api_key_env": None if mock else flags["api_key_env"],
        "api_params": {
            "max_concurrent_requests": flags["concurrency"] or _REQUESTS,
            "timeout": flags["request_timeout"],
        },
        "cache": {"enabled": False if flags["no_cache"] else None, "cache_dir": flags["cache_dir"]},
        "mock": {"function_path": "reward_kit.generation.mock_shell:answer"},
        "price": price_table(flags["prices"] or {}).get(flags["model"]),
    }
    return validated(GenerationConfig, given, _COMMAND_LINE, section="generation")


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
