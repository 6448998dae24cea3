# SPDX-License-Identifier: Apache-2.0
"""`reward-kit best-of-n`: an experiment's YAML in, a Parquet file of verified candidates out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.engine_options import SETTINGS as ENGINE_SETTINGS
from reward_kit.cli_commands.engine_options import engine_options, engine_settings
from reward_kit.cli_commands.options import MOST, FiniteRange, NamedPath, completed_by, key_value_pairs
from reward_kit.cli_commands.output import (
    NOTHING_JUDGED,
    answers_made,
    echo_failing,
    echo_not_mirrored,
    echo_nothing_done,
    exit_code,
    name_settings,
    prints_on_stderr,
    show_logs,
)
from reward_kit.sandbox_backends import backend_choices

if TYPE_CHECKING:
    from reward_kit.execution.best_of_n import BestOfN

__all__ = ["SETTINGS", "best_of_n"]

SETTINGS = {
    "dataset.column_mapping": "--column-mapping",
    "dataset.config_name": "--config-name",
    "dataset.format": "--format",
    "dataset.id_column": "--id-column",
    "dataset.max_samples": "--max-samples",
    "dataset.on_bad_row": "--on-bad-row",
    "dataset.path_or_name": "--dataset",
    "dataset.preprocess": "--preprocess",
    "dataset.prompt_template": "--prompt-template",
    "dataset.response_column": "--response-column",
    "dataset.split": "--splits",
    "dataset.streaming": "--streaming",
    "dataset.system_prompt": "--system-prompt",
    "evaluation_params.limit_samples": "--max-samples",
    "generation.api_base": "--base-url",
    "generation.api_key_env": "--api-key-env",
    "generation.api_params.max_concurrent_requests": "--concurrency",
    "generation.api_params.timeout": "--request-timeout",
    "generation.cache.cache_dir": "--cache-dir",
    "generation.cache.enabled=false": "cache_dir: null",
    "generation.extra_body": "--extra-body",
    "generation.max_tokens": "--max-tokens",
    "generation.mock.function_path": "--mock",
    "generation.model_name": "--model",
    "generation.n": "--num-candidates",
    "generation.price": "--prices",
    "generation.temperature": "--temperature",
    "generation.transport": "--transport",
    "generation.transport=batch": "--transport batch",
    "generation.transport=online": "--transport online",
    "judge": "judge",
    "judge.api_base": "--judge-base-url",
    "judge.api_key_env": "--judge-api-key-env",
    "judge.model_name": "--judge-model",
    "judge.price": "--prices",
    "max_cost": "--max-cost",
    "output.mirror": "--mirror",
    "output.output_dir": "--output",
    "output.output_dir=…": "--output …` or start from the beginning with `--overwrite",
    "output.storage_options": "storage_options",
    "dataset.storage_options": "storage_options",
    "phase": "--phase",
    "rescore": "--rescore",
    "resume_from_mirror": "--resume-from-mirror",
    "keep_going": "--keep-going",
    "retry_failed": "--retry-failed",
    "reward": "verifiers.SPLIT",
    "sandbox.backend": "--sandbox",
    "sandbox.image": "--sandbox-image",
    "sandbox.sos_url": "--sos-url",
    **ENGINE_SETTINGS,
}
"""What sets each setting that a message may name: a flag, or a key of the experiment's file."""

_NOT_KEYS = (
    "config", "phase", "overwrite", "rescore", "retry_failed", "keep_going", "resume_from_mirror", "detach", "dry_run",
    "quiet", "as_json", "verbose",
)  # fmt: skip
_JUDGE_FLAGS = {"judge_model": "model_name", "judge_base_url": "api_base", "judge_api_key_env": "api_key_env"}
"""The flags for keys of the section `judge`."""


@click.command("best-of-n")
@click.option("-c", "--config", type=NamedPath(path_type=Path), help="The experiment's YAML file.")
@click.option(
    "--dataset",
    shell_complete=completed_by("complete_paths"),
    help="A Hugging Face name, a file, a folder, or a path with {split} in it.",
)
@click.option("--config-name", help="The configuration (subset) of a Hugging Face dataset.")
@click.option("--splits", help="The splits, separated by commas.")
@click.option("--streaming/--no-streaming", default=None, help="Stream a Hugging Face dataset, or download it first.")
@click.option(
    "--max-samples", "--max-queries", "max_queries", type=click.IntRange(1, MOST),
    help="Use at most this many queries of each split, the first ones.",
)  # fmt: skip
@click.option("--format", help="The shape of the rows (`reward-kit datasets formats`); by default the columns decide.")
@click.option(
    "--column-mapping", multiple=True, metavar="NEW=OLD",
    help="A column's new name and its old one, e.g. user_query=question. May be given again.",
)  # fmt: skip
@click.option("--preprocess", multiple=True, help="The path of a function from row to row. May be given again.")
@click.option("--prompt-template", help="A Jinja template over the columns that makes the user turn.")
@click.option("--id-column", help="The column that names a row.")
@click.option("--response-column", help="A column with answers. They are verified, and no model is asked.")
@click.option(
    "--on-bad-row",
    type=click.Choice(["skip", "error"]),
    help="skip: leave out rows that cannot be used, and count them. error: stop at the first one.",
)
@click.option(
    "--verifier", "verifiers", multiple=True, metavar="SPLIT=WHO",
    help="Who verifies a split: math, code, tool_calling, or the path of a reward. May be given again.",
)  # fmt: skip
@click.option("--system-prompt", help="The system prompt of queries that have none of their own.")
@click.option(
    "--model", shell_complete=completed_by("complete_models"),
    help="PROVIDER/NAME (anthropic/NAME); a model the endpoint knows; `local`; or `mock` for answers without a model.",
)  # fmt: skip
@click.option("--base-url", "--api-base", help="An OpenAI-compatible endpoint.")
@click.option("--api-key-env", help="The environment variable that holds the endpoint's key.")
@click.option("-n", "--num-candidates", type=click.IntRange(1, 1_000_000), help="Candidates per query.")
@click.option("--temperature", type=FiniteRange(min=0), help="The sampling temperature.")
@click.option("--max-tokens", type=click.IntRange(1, MOST), help="The most tokens of one candidate.")
@click.option(
    "--top-p",
    type=FiniteRange(min=0, min_open=True, max=1),
    help="Sample from the likeliest tokens that together have this probability.",
)
@click.option(
    "--reasoning-effort",
    help="For models that reason first: how much. The endpoint defines the words (low, medium, high …).",
)
@click.option(
    "--seed",
    type=int,
    help="The seed of the experiment. Each candidate of each query gets its own seed, derived from this one.",
)
@click.option("--extra-body", metavar="JSON", help="Further fields of the request body.")
@click.option(
    "--transport", type=click.Choice(["online", "batch"]),
    help="online: ask now. batch: send files of requests, which are answered within a day at half the price.",
)  # fmt: skip
@click.option("--concurrency", type=click.IntRange(1, 100_000), help="Requests at a time.")
@click.option(
    "--request-timeout", "--timeout", "timeout", type=FiniteRange(min=0, min_open=True),
    help="Seconds one request to the model may take.",
)  # fmt: skip
@click.option("--sandbox", type=click.Choice(backend_choices()), help="Where verifiers run code.")
@click.option(
    "--sandbox-image",
    help="A container image, or the directory of a root filesystem (namespaces). Default: the backend's; for an SoS "
    "server that is not ours, deathbyknowledge/shellm-sandbox:latest.",
)
@click.option("--sos-url", help="The address of an SoS server. Without --sandbox, it implies --sandbox sos.")
@click.option("--judge-model", help="The model that a verifier asks for verdicts, where it asks one.")
@click.option("--judge-base-url", "--judge-api-base", help="The endpoint of that model.")
@click.option("--judge-api-key-env", help="The environment variable that holds the key of that endpoint.")
@click.option(
    "--max-cost", type=FiniteRange(min=0), help="Stop before the run has cost more than this in all. It can be resumed."
)
@click.option(
    "--prices",
    metavar="FILE",
    shell_complete=completed_by("complete_paths"),
    help="A YAML file with the prices of models: for each model, `input` and `output`, per million tokens.",
)
@click.option("--cache-dir", help="Where answers that were paid for are kept.")
@click.option("--mock", help="For the model `mock`: the path of a function (messages, draw).")
@click.option("-o", "--output", help="The Parquet file.")
@click.option(
    "--mirror", help="An address such as s3://bucket/run. The files of the run are copied there while it goes on."
)
@click.option("--resume-from-mirror", is_flag=True, help="Go on with the experiment that --mirror holds.")
@click.option("--notes", help="A note on what you test. It is kept in the metadata of the Parquet file.")
@click.option(
    "--phase", type=click.Choice(["both", "inference", "execution"]), default="both", show_default=True,
    help="both: generate and verify. inference: only generate. execution: only verify what was generated; needs no "
        "dataset and no key.",
)  # fmt: skip
@click.option(
    "--detach",
    is_flag=True,
    help="With batches: submit them and exit. Run the same command later to fetch the answers.",
)
@engine_options
@click.option(
    "--dry-run", is_flag=True, help="Print the number of calls, tokens and the cost per split. Send and write nothing."
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Start from the beginning, even if the output of another experiment exists. The old run is kept.",
)
@click.option("--rescore", is_flag=True, help="Verify the answers of an old run again, with these verifiers.")
@click.option("--retry-failed", is_flag=True, help="Retry all failed items, permanent failures included.")
@click.option("--keep-going", is_flag=True, help="Go on where the first 20 answers all fail to be judged in one way.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no table; errors only.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens, and show tracebacks.")
@click.pass_context
def best_of_n(context: click.Context, /, **flags: Any) -> None:
    """Draw n candidates for each query of each split, verify them, and write one Parquet file.

    The config file holds the settings; a flag overrides the file. Run the same command again after any
    interruption: it goes on where it was, and nothing is paid twice. If you raise --num-candidates or --max-queries
    later, you pay only for the new candidates.

    \b
    reward-kit best-of-n --config experiments/baseline.yaml
    reward-kit best-of-n --config experiments/baseline.yaml --model gpt-6-luna --max-queries 200
    reward-kit best-of-n --config experiments/baseline.yaml --dry-run
    reward-kit best-of-n --dataset data.jsonl --splits math --model local -n 4 -o out.parquet
    reward-kit best-of-n -c stem.yaml --verifier stem=my_rewards.py:multiple_choice
    reward-kit best-of-n --dataset answered.jsonl --splits math --response-column model_answer -o out.parquet
    reward-kit inspect experiments/results/baseline_run.parquet

    Exit codes: 0 done; 1 failed, or nothing could be verified; 2 wrong usage or data; 3 stopped by max_cost;
    5 done, but not all of it is in the mirror; 6 left with batches under way (--detach);
    7 the first 20 answers could not be verified, all for the same reason; 130 interrupted.
    """
    from reward_kit.cli_commands.display.best_of_n import ExperimentDisplay

    show_logs(verbose=flags["verbose"])
    display = ExperimentDisplay(quiet=flags["quiet"], as_json=flags["as_json"])
    name_settings(SETTINGS)
    experiment = _experiment(flags["config"], _given(context, flags))
    if flags["dry_run"]:
        with prints_on_stderr(when=flags["as_json"]):
            plans = experiment.plan()
        display.show_plan(plans)
        return
    display.announce(experiment.experiment)
    names = ("phase", "overwrite", "rescore", "retry_failed", "keep_going", "resume_from_mirror", "detach")
    options = {name: flags[name] for name in names}
    with prints_on_stderr(when=flags["as_json"]):
        result = experiment.run(display.reporter(), **options)
    display.show(result)
    echo_failing(result.run, when=flags["quiet"])
    code = exit_code(result.run.status, answers_made(result.run))
    if code == NOTHING_JUDGED:
        echo_nothing_done("verified", result.run.summary)
    sys.exit(code or echo_not_mirrored(result.run.not_mirrored))


def _given(context: click.Context, flags: dict[str, Any]) -> dict[str, Any]:
    """The keys that were set on the command line, whatever they were set to."""
    given = click.core.ParameterSource.COMMANDLINE
    return {
        name: value
        for name, value in flags.items()
        if name not in _NOT_KEYS and context.get_parameter_source(name) is given
    }


def _experiment(file: Path | None, given: dict[str, Any]) -> BestOfN:
    from reward_kit.cli_commands.config_paths import resolve_experiment_paths
    from reward_kit.execution.best_of_n import BestOfN
    from reward_kit.execution.best_of_n.experiment import load_experiment, main_names, read_experiment_file

    values = {} if file is None else resolve_experiment_paths(read_experiment_file(file), file.parent)
    if isinstance(values.get("verifiers"), dict) and "splits" in given:
        values["verifiers"] = _still_asked_for(values["verifiers"], values.get("splits"), given["splits"])
    if "verifiers" in given:
        chosen = values.get("verifiers")
        given["verifiers"] = (chosen if isinstance(chosen, dict) else {}) | key_value_pairs(
            given["verifiers"], "--verifier", "SPLIT=WHO, such as math=math"
        )
    if "preprocess" in given:
        given["preprocess"] = list(given["preprocess"])
    if "column_mapping" in given:
        given["column_mapping"] = key_value_pairs(
            given["column_mapping"], "--column-mapping", "NEW=OLD, such as user_query=question"
        )
    judge = {_JUDGE_FLAGS[flag]: given.pop(flag) for flag in _JUDGE_FLAGS if flag in given}
    if judge:
        chosen = values.get("judge")
        given["judge"] = (chosen if isinstance(chosen, dict) else {}) | judge
    if "engine" in given or "engine_set" in given:
        given["engine"] = engine_settings(given.get("engine"), given.pop("engine_set", ()), values.get("engine"))
    if "extra_body" in given:
        given["extra_body"] = _json_object(given["extra_body"])
    name = "The experiment" if file is None else f"The experiment {str(file)!r}"
    experiment = load_experiment(main_names(values) | given, name)
    return BestOfN(experiment, config_file=None if file is None else str(file))


def _still_asked_for(verifiers: dict[str, Any], before: Any, now: str) -> dict[str, Any]:
    """The file's verifiers without those of splits that the flag leaves out."""
    listed = before.split(",") if isinstance(before, str) else before if isinstance(before, list) else []
    left_out = {str(split).strip() for split in listed} - {split.strip() for split in now.split(",")}
    return {split: who for split, who in verifiers.items() if split not in left_out}


def _json_object(text: str) -> dict[str, Any]:
    from reward_kit.utils import exact_json

    try:
        value = exact_json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise click.UsageError(f"--extra-body is {text!r}; expected a JSON object.")
    return value
