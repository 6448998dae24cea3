# SPDX-License-Identifier: Apache-2.0
"""`reward-kit export`: judged answers in, training data out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

import click

from reward_kit.cli_commands.options import FiniteNumber, FiniteRange, NamedSource, reading_own_files
from reward_kit.cli_commands.output import echo, print_json

__all__ = ["export"]

EPISODE_SHAPES = ("steps", "episodes")
_CREDIT = ("method", "gamma", "omega", "mode")


@click.command()
@click.argument("source", type=NamedSource(path_type=Path))
@click.option(
    "--to", "shape", required=True,
    type=click.Choice(["sft", "preference", "rm", "kto", "grpo", "fireworks", *EPISODE_SHAPES]),
    help="sft: verified answers; preference: pairs with their prompt; rm: pairs of whole conversations; kto: single "
    "answers with a label; grpo: prompts with their difficulty; fireworks: the same, as Fireworks reads it; steps, "
    "episodes: what an agent did, with the credit of each step.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=NamedSource(path_type=Path, dir_okay=False), required=True,
    help="FILE.jsonl or FILE.parquet; also in an object store.",
)  # fmt: skip
@click.option(
    "--pick", type=click.Choice(["best", "all"]), default="best", show_default=True,
    help="sft: the best verified answer of a query, or all of them.",
)  # fmt: skip
@click.option(
    "--max-pairs", type=click.IntRange(min=1), default=1, show_default=True, help="preference, rm: pairs per query."
)
@click.option(
    "--min-margin",
    type=FiniteNumber(),
    default=0.0,
    show_default=True,
    help="preference, rm: the least difference between the two scores.",
)
@click.option(
    "--min-pass-rate", type=FiniteRange(0, 1), default=0.0, show_default=True,
    help="grpo: only queries with at least this share of verified answers.",
)  # fmt: skip
@click.option(
    "--max-pass-rate",
    type=FiniteRange(0, 1),
    default=1.0,
    show_default=True,
    help="grpo: only queries with at most this share of verified answers.",
)
@click.option(
    "--reasoning", type=click.Choice(["drop", "inline", "field"]), default="drop", show_default=True,
    help="What to do with the model's reasoning. drop: leave it out. inline: put it into <think> tags before the "
        "answer. field: put it into the field reasoning_content.",
)  # fmt: skip
@click.option(
    "--credit", "method", default="gigpo", show_default=True,
    type=click.Choice(["gigpo", "grpo", "dr_grpo", "rloo", "turn_level", "tree_grpo", "tree_values"]),
    help="steps, episodes: how advantages are computed.",
)  # fmt: skip
@click.option(
    "--gamma", type=FiniteRange(0, 1), default=0.95, show_default=True,
    help="steps, episodes: the discount of a reward per step.",
)  # fmt: skip
@click.option(
    "--omega", type=FiniteRange(0), default=1.0, show_default=True,
    help="gigpo: the weight of a step's own advantage beside its episode's.",
)  # fmt: skip
@click.option(
    "--mode", type=click.Choice(["mean_norm", "mean_std_norm"]), default="mean_norm", show_default=True,
    help="gigpo, turn_level: subtract the mean; or divide by the standard deviation, too.",
)  # fmt: skip
@click.option("--split", "splits", multiple=True, help="Only this split. May be given again.")
@click.option(
    "--pass-threshold", "--threshold", "threshold", type=FiniteNumber(),
    help="The score from which an answer is verified.  [default: what the source says]",
)  # fmt: skip
@click.option(
    "--upload", metavar="ID", help="fireworks: send the file there, too, as the dataset of this id (FIREWORKS_API_KEY)."
)
@click.option("--overwrite", is_flag=True, help="Replace a file that exists; with --upload, a dataset, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
def export(
    source: Path | str,
    output: Path | str,
    threshold: float | None,
    upload: str | None,
    overwrite: bool,
    as_json: bool,
    verbose: bool,
    **wanted: Any,
) -> None:
    """Turn judged answers into training data, in the shapes TRL's trainers read, or episodes with credit per step.

    SOURCE is a run directory, its results.jsonl, or the Parquet of `best-of-n`, also in an object store. Answers that
    were not judged are left out. Equal rows are written once.

    \b
    reward-kit export results/baseline_run.parquet --to sft -o sft.jsonl
    reward-kit export results/baseline_run.parquet --to sft --pick all --reasoning inline -o sft.parquet
    reward-kit export outputs/run --to preference --max-pairs 4 -o pairs.jsonl
    reward-kit export results/baseline_run.parquet --to kto -o kto.jsonl
    reward-kit export results/baseline_run.parquet --to grpo --min-pass-rate 0.1 --max-pass-rate 0.9 -o prompts.jsonl
    reward-kit export outputs/run --to fireworks -o prompts.jsonl --upload my-prompts
    reward-kit export s3://bucket/runs/one --to kto -o s3://bucket/training/kto.parquet
    reward-kit export outputs/agent --to steps --credit gigpo --gamma 0.95 -o steps.jsonl
    """
    from reward_kit.errors import ConfigError
    from reward_kit.storage.at_hand import at_hand, exists, written_to
    from reward_kit.storage.new_files import check_not_of_a_run
    from reward_kit.storage.run_directory import unfinished
    from reward_kit.storage.training_files import write_training_file

    if PurePath(output).suffix.lower() not in (".jsonl", ".parquet", ".pq"):
        raise ConfigError(f"--output is {str(output)!r}; expected FILE.jsonl or FILE.parquet.")
    if upload is not None and (wanted["shape"] != "fireworks" or not str(output).lower().endswith(".jsonl")):
        raise ConfigError(
            "--upload needs --to fireworks, and an --output that ends in .jsonl. Give both, or leave --upload out."
        )
    check_not_of_a_run(output, "--output")
    if _is_same(source, output):
        raise ConfigError(f"--output is the source itself, {str(source)!r}. Name another file with --output.")
    if not overwrite and exists(output):
        raise ConfigError(f"{str(output)!r} exists. Choose another --output, or replace it with --overwrite.")
    counts: Counter[str] = Counter()
    with (
        reading_own_files(source, output),
        written_to(output) as target,
        at_hand(source, rollouts=True) as (here,),
    ):
        wanted["splits"] = frozenset(wanted["splits"])
        credit = {name: wanted.pop(name) for name in _CREDIT}
        if wanted["shape"] in EPISODE_SHAPES:
            rows = _episode_rows(here, wanted["shape"], wanted["splits"], credit, counts)
        else:
            rows = _answer_rows(here, threshold, wanted, counts)
        write_training_file(rows, target)
        if warning := unfinished(here):
            echo(warning, err=True)
    _show(counts, output, as_json=as_json)
    if not counts["rows"]:
        raise ConfigError(f"Nothing in {str(source)!r} could be used, so {str(output)!r} is empty. See the counts.")
    if upload is not None:
        _upload(output, upload, overwrite=overwrite)


def _is_same(source: Path | str, output: Path | str) -> bool:
    if isinstance(source, Path) and isinstance(output, Path):
        return source.resolve() == output.resolve()
    return source == output


def _upload(file: Path | str, dataset_id: str, *, overwrite: bool) -> None:
    from reward_kit.deploy.fireworks.api import FireworksAPI
    from reward_kit.deploy.fireworks.datasets import upload_dataset
    from reward_kit.storage.at_hand import at_hand

    def tell(sent: int, total: int) -> None:
        if sent == total or sent * 10 // total != (sent - (1 << 18)) * 10 // total:
            echo(f"sent {sent:,} of {total:,} bytes", err=True)

    with at_hand(file) as (here,):
        dataset = upload_dataset(FireworksAPI(), dataset_id, here, force=overwrite, progress=tell)
    echo(f"dataset {dataset['name']}", err=True)


def _answer_rows(
    source: Path, threshold: float | None, wanted: dict[str, Any], counts: Counter[str]
) -> Iterator[dict[str, Any]]:
    from reward_kit.storage.candidates import read_queries
    from reward_kit.storage.judged import read_answers
    from reward_kit.storage.training_rows import Export, training_rows

    has_tools = any(answer.own("tools") for answer in read_answers(source))
    return training_rows(read_queries(source, threshold=threshold), Export(**wanted, with_tools=has_tools), counts)


def _episode_rows(
    source: Path, shape: Any, splits: frozenset[str], credit: dict[str, Any], counts: Counter[str]
) -> Iterator[dict[str, Any]]:
    from reward_kit.agent.step_credit import CreditSettings
    from reward_kit.agent.step_rows import episode_rows
    from reward_kit.storage.judged import read_answers
    from reward_kit.storage.judged_episodes import read_episodes

    has_tokens = any(step.get("tokens") for answer in read_answers(source) for step in answer.row.get("steps") or ())
    settings = CreditSettings(**credit)
    return episode_rows(read_episodes(source), shape, settings, counts, splits=splits, with_tokens=has_tokens)


def _show(counts: Counter[str], output: Path | str, *, as_json: bool) -> None:
    if as_json:
        print_json(counts)
        return
    echo(f"{counts['rows']:,} rows → {output}", err=True)
    for what, count in counts.items():
        if what != "rows" and count:
            echo(f"  {count:>9,} {what}", err=True)
