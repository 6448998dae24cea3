# SPDX-License-Identifier: Apache-2.0
"""`reward-kit inspect`: what an experiment found, and how sure that is; several of them compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from reward_kit.cli_commands.options import MOST, FiniteNumber, FiniteRange, NamedPath, NamedSource, reading_own_files
from reward_kit.cli_commands.output import echo

if TYPE_CHECKING:
    from reward_kit.analysis import JudgedAnswers, Report, RunComparison

__all__ = ["inspect"]

_MOST_DIGITS = 18

Format = Literal["text", "json", "markdown", "csv"]


class _Flags(TypedDict):
    """What the figures depend on beside the files."""

    value: float | None
    votes: str
    examples: int
    by: str | None
    full: bool
    verbose: bool


class _AnalysisOptions(TypedDict):
    value: float | None
    vote_limit: int | None


@click.command()
@click.argument("experiments", nargs=-1, required=True, type=NamedSource(path_type=Path), metavar="EXPERIMENT...")
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
    help="The value of a verified answer, in the unit of the costs. The optimal N depends on it.",
)  # fmt: skip
@click.option(
    "--votes", metavar="N|all", default="8000", show_default=True,
    help="The most answers that are read for the majority vote; a larger experiment is sampled. 0 means no vote.",
)  # fmt: skip
@click.option("--examples", type=click.IntRange(0, MOST), default=5, show_default=True, help="Queries listed per kind.")
@click.option(
    "--pass-threshold", "--threshold", "threshold", type=FiniteNumber(), metavar="S",
    help="Score from which an answer counts as verified.  [default: what the run or the file says]",
)  # fmt: skip
@click.option(
    "--by",
    metavar="COLUMN",
    help="Show figures for each value of this column of the dataset, such as `subject`, instead of for each split.",
)
@click.option("--full", is_flag=True, help="Show all tables.")
@click.option("--no-color", is_flag=True, help="Plain text. Piped output is always plain.")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
def inspect(
    experiments: tuple[Path | str, ...],
    form: Format,
    query_id: str | None,
    picture: Path | None,
    threshold: float | None,
    no_color: bool,
    **flags: Unpack[_Flags],
) -> None:
    """Show what runs and experiments found, with intervals; compare several on their common queries.

    EXPERIMENT is a Parquet file of `reward-kit best-of-n`, a run directory, a results.jsonl, or a directory of runs, as
    a sweep makes it; on this machine or in an object store. With several, each is compared with the first.

    \b
    reward-kit inspect results/baseline.parquet
    reward-kit inspect results/baseline.parquet --plot curve.png
    reward-kit inspect results/baseline.parquet --query 4f0c21
    reward-kit inspect results/baseline.parquet results/new.parquet
    reward-kit inspect outputs/my_run --by subject
    reward-kit inspect s3://bucket/runs/one
    reward-kit inspect outputs/my_run --format json
    """
    from reward_kit.analysis import Report, analyse, compare, load
    from reward_kit.analysis.present.conclusions import comparison_conclusion
    from reward_kit.analysis.present.pictures import check_picture, draw
    from reward_kit.storage.at_hand import at_hand
    from reward_kit.storage.run_directory import unfinished

    options: _AnalysisOptions = {"value": flags["value"], "vote_limit": _votes(flags["votes"])}
    if picture is not None:
        check_picture(picture)
    with reading_own_files(*experiments), at_hand(*experiments) as fetched:
        paths = [found for path in fetched for found in _runs_in(path)]
        names = _names(paths)
        loaded = [
            load(path, name=name, pass_threshold=threshold, by=flags["by"])
            for path, name in zip(paths, names, strict=True)
        ]
        for warning in filter(None, map(unfinished, paths)):
            echo(warning, err=True)
        if query_id is not None:
            _show_query(loaded, query_id, color=not no_color)
            return
        found: Report | RunComparison
        if len(loaded) == 1:
            found = analyse(loaded[0], **options, examples=flags["examples"])
        else:
            found = compare(*loaded, examples=flags["examples"])
        _show(found, form, full=flags["full"], color=not no_color)
        if picture is not None:
            if isinstance(found, Report):
                draw([found], picture)
            else:
                draw([analyse(one, **options, examples=0) for one in loaded], picture, comparison_conclusion(found))
            echo(f"Drawn: {picture}", err=True)


def _votes(value: str) -> int | None:
    if value == "all":
        return None
    if not (value.isascii() and value.isdecimal()) or len(value) > _MOST_DIGITS:
        raise click.BadParameter(f"{value!r} is neither a number nor 'all'.", param_hint="--votes")
    return int(value)


def _runs_in(path: Path) -> list[Path]:
    """The path itself; of a directory that holds runs and is none, as a sweep leaves it, the runs."""
    if not path.is_dir() or (path / "results.jsonl").exists():
        return [path]
    return sorted(found.parent for found in path.glob("*/results.jsonl")) or [path]


def _names(paths: list[Path]) -> list[str | None]:
    """What runs are called: by their own names, or by their paths where several have the same name."""
    own = [path.resolve().name for path in paths]
    return [str(path) if own.count(name) > 1 else None for path, name in zip(paths, own, strict=True)]


def _show(found: Report | RunComparison, form: Format, *, full: bool, color: bool) -> None:
    from reward_kit.analysis import Report, as_csv, as_json, as_markdown

    if form != "text":
        write = {"json": as_json, "markdown": as_markdown, "csv": as_csv}[form]
        echo(write(found).rstrip("\n"))
        return
    from reward_kit.cli_commands.display.inspect import InspectDisplay

    display = InspectDisplay(color=color)
    if isinstance(found, Report):
        display.show_report(found, full=full)
    else:
        display.show_comparison(found, full=full)


def _show_query(experiments: list[JudgedAnswers], query_id: str, *, color: bool) -> None:
    from reward_kit.analysis.present.one_query import view_query
    from reward_kit.cli_commands.display.inspect import InspectDisplay

    display = InspectDisplay(color=color)
    for experiment in experiments:
        for query in view_query(experiment, query_id):
            display.show_query(experiment.name, query)
