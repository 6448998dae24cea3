"""`reward-kit inspect`: what an experiment found, and how sure that is; several of them compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from reward_kit.cli_commands.options import MOST, FiniteRange, NamedPath, reading_own_files
from reward_kit.cli_commands.output import echo

if TYPE_CHECKING:
    from reward_kit.analysis import JudgedAnswers, Report, RunComparison

__all__ = ["inspect"]

_MOST_DIGITS = 18

Format = Literal["text", "json", "markdown", "csv"]


class _Asked(TypedDict):
    """What the figures depend on beside the files."""

    value: float | None
    votes: str
    examples: int
    verbose: bool


class _Told(TypedDict):
    value: float | None
    vote_limit: int | None


@click.command()
@click.argument("experiments", nargs=-1, required=True, type=NamedPath(path_type=Path), metavar="EXPERIMENT...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown", "csv"]),
    default="text",
    help="How the figures are printed; json has all of them.",
)
@click.option("--query", "query_id", metavar="ID", help="Show one query with its candidates side by side.")
@click.option(
    "--plot", "picture", type=NamedPath(path_type=Path, dir_okay=False), metavar="FILE",
    help="Also draw the curves into a .png, .svg or .html file.",
)  # fmt: skip
@click.option(
    "--value", type=FiniteRange(min=0, min_open=True), metavar="V",
    help="What a verified answer is worth, in the unit of cost: decides the optimal N.",
)  # fmt: skip
@click.option(
    "--votes", metavar="N|all", default="8000", show_default=True,
    help="Answers read for the majority vote; larger experiments are sampled. 0: none.",
)  # fmt: skip
@click.option(
    "--examples", type=click.IntRange(0, MOST), default=5, show_default=True, help="Queries listed of a kind."
)
@click.option(
    "--pass-threshold", "--threshold", "threshold", type=FiniteRange(), metavar="S",
    help="Score from which an answer of a `reward-kit run` is verified.  [default: the run's own]",
)  # fmt: skip
@click.option("--no-color", is_flag=True, help="Plain text. Piped output is always plain.")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
def inspect(
    experiments: tuple[Path, ...],
    form: Format,
    query_id: str | None,
    picture: Path | None,
    threshold: float | None,
    no_color: bool,
    **asked: Unpack[_Asked],
) -> None:
    """Say what an experiment found, with intervals; compare several on their common queries.

    EXPERIMENT is a Parquet file of `reward-kit best-of-n`, a run directory, or a results.jsonl. With several, each is
    compared with the first.

    \b
    reward-kit inspect results/baseline.parquet
    reward-kit inspect results/baseline.parquet --plot curve.png
    reward-kit inspect results/baseline.parquet --query 4f0c21
    reward-kit inspect results/baseline.parquet results/new.parquet
    reward-kit inspect outputs/my_run --format json
    """
    from reward_kit.analysis import Report, analyse, compare, load, plot
    from reward_kit.storage.run_directory import unfinished

    told: _Told = {"value": asked["value"], "vote_limit": _votes(asked["votes"])}
    with reading_own_files(*experiments):
        loaded = [load(path, pass_threshold=threshold) for path in experiments]
        for said in filter(None, map(unfinished, experiments)):
            echo(said, err=True)
        if query_id is not None:
            _show_query(loaded, query_id, color=not no_color)
            return
        found: Report | RunComparison
        if len(loaded) == 1:
            found = analyse(loaded[0], **told, examples=asked["examples"])
        else:
            found = compare(*loaded, examples=asked["examples"])
        _show(found, form, color=not no_color)
        if picture is not None:
            plot(found if isinstance(found, Report) else [analyse(one, **told, examples=0) for one in loaded], picture)
            echo(f"Drawn: {picture}", err=True)


def _votes(told: str) -> int | None:
    if told == "all":
        return None
    if not (told.isascii() and told.isdecimal()) or len(told) > _MOST_DIGITS:
        raise click.BadParameter(f"{told!r} is neither a number nor 'all'.", param_hint="--votes")
    return int(told)


def _show(found: Report | RunComparison, form: Format, *, color: bool) -> None:
    from reward_kit.analysis import Report, as_csv, as_json, as_markdown

    if form != "text":
        write = {"json": as_json, "markdown": as_markdown, "csv": as_csv}[form]
        echo(write(found).rstrip("\n"))
        return
    from reward_kit.cli_commands.display.inspect import InspectDisplay

    display = InspectDisplay(color=color)
    if isinstance(found, Report):
        display.show_report(found)
    else:
        display.show_comparison(found)


def _show_query(experiments: list[JudgedAnswers], query_id: str, *, color: bool) -> None:
    from reward_kit.analysis.present.one_query import view_query
    from reward_kit.cli_commands.display.inspect import InspectDisplay

    display = InspectDisplay(color=color)
    for experiment in experiments:
        for query in view_query(experiment, query_id):
            display.show_query(experiment.name, query)
