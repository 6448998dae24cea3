# SPDX-License-Identifier: Apache-2.0
"""`reward-kit report`: runs as one HTML file that needs nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from reward_kit.cli_commands.options import FiniteNumber, NamedPath, NamedSource, reading_own_files
from reward_kit.cli_commands.output import echo

__all__ = ["report"]

_MOST = 2_000


@click.command()
@click.argument("paths", nargs=-1, required=True, type=NamedSource(path_type=Path), metavar="PATH...")
@click.option("-o", "--output", "target", type=NamedPath(path_type=Path, dir_okay=False), default="report.html",
              show_default=True, help="The file to write: a new one, or an earlier report.")  # fmt: skip
@click.option("--title", help="The title of the report.  [default: the run's name]")
@click.option("--records", type=click.IntRange(0, _MOST), default=_MOST, show_default=True,
              help="The most records whose texts are in the file. If there are "
                  "more, some are chosen at random.")  # fmt: skip
@click.option("--pass-threshold", "--threshold", "threshold", type=FiniteNumber(), metavar="S",
              help="Score from which an answer passes.  [default: what the run or the file says]")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
def report(
    paths: tuple[Path | str, ...], target: Path, title: str | None, records: int, threshold: float | None, verbose: bool
) -> None:
    """Write a report of runs into one HTML file, to send to somebody.

    PATH is a run directory, its results.jsonl or a Parquet file of `best-of-n`, on this machine or in an object store.
    With several, each is compared with the first. The file holds the figures that `inspect` prints, charts, the hardest
    and the most contested samples, and up to 2,000 records. The file loads nothing from elsewhere and needs no server.
    Text that models wrote is shown as plain text. Long texts are cut, so that the file is small enough for a mail.

    \b
    reward-kit report outputs/my_run -o report.html
    reward-kit report results/baseline.parquet results/new.parquet -o compared.html --title 'New prompt'
    """
    from reward_kit.storage.at_hand import at_hand
    from reward_kit.viewer.report.page import write_report

    with reading_own_files(*paths), at_hand(*paths) as found:
        names: list[str | None] = [path.resolve().name for path in found]
        shown = [None if names.count(name) == 1 else str(path) for name, path in zip(names, found, strict=True)]
        size = write_report(found, shown, target, title=title, most=records, pass_threshold=threshold)
    echo(f"{target}: {size / 1e6:.2f} MB", err=True)
