# SPDX-License-Identifier: Apache-2.0
"""`reward-kit view`: runs, experiments and shell tasks in the browser."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reward_kit.cli_commands.options import NamedPath
from reward_kit.cli_commands.output import echo

if TYPE_CHECKING:
    from reward_kit.viewer.access import Access

__all__ = ["view"]


@click.command()
@click.argument("paths", nargs=-1, required=True, type=NamedPath(path_type=Path), metavar="PATH...")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="The port. [default: 0, any free one]")
@click.option("--no-open", is_flag=True, help="Print the address, but do not open the browser.")
@click.option("--allow-run", is_flag=True, help="Let the page run the run's own reward on edited answers.")
@click.option("--reviewer", metavar="NAME", help="The name to write into reviews. [default: your user name]")
def view(paths: tuple[Path, ...], port: int, no_open: bool, allow_run: bool, reviewer: str | None) -> None:
    """Show runs in the browser: figures, tables, every answer with its verdict, and comparisons.

    A PATH is a run directory (also while it runs), a Parquet file of `reward-kit best-of-n`, or a directory that
    contains some of these. Only this machine can reach the page, and only with the address that is printed. The command
    writes only reviews.

    \b
    reward-kit view outputs/math_example
    reward-kit view experiments/results/*.parquet
    reward-kit view evaluation_results
    reward-kit view outputs --port 8765 --no-open
    """
    from reward_kit.cli_commands.garbage import collect_at_the_end
    from reward_kit.viewer.access import start_page
    from reward_kit.viewer.review_routes import ReviewDesk
    from reward_kit.viewer.reviewing.deciding import default_reviewer
    from reward_kit.viewer.serve import serve_viewer
    from reward_kit.viewer.viewer import open_viewer

    collect_at_the_end()
    who = reviewer or default_reviewer()
    desk = ReviewDesk(who)
    with open_viewer(paths, allow_run=allow_run, reviewer=who, reviews=desk) as viewer, ExitStack() as held:

        def announce(access: Access) -> None:
            count = len(viewer.runs)
            echo(f"{count} run{'' if count == 1 else 's'} to look at: {access.address}", err=True)
            echo("Press Ctrl-C to stop. Anybody who has this address can read the runs.", err=True)
            if not no_open:
                _open(held.enter_context(start_page(access)))

        serve_viewer(viewer, port, announce, desk.routes())
    if threading.active_count() > 1:  # somebody left while a large file was read: there is nothing to wait for
        sys.stderr.flush()
        os._exit(0)


def _open(page: Path) -> None:
    """Start a browser with a file; where the desktop knows of none, one that Python finds."""
    if click.launch(str(page)) != 0:
        import webbrowser

        webbrowser.open(page.as_uri())
