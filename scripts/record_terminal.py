# SPDX-License-Identifier: Apache-2.0
"""Runs commands in a terminal of its own, and draws what they leave on its screen as an SVG: the README's picture.

    python scripts/record_terminal.py docs/images/run.svg             the picture of the README
    python scripts/record_terminal.py OUT.svg --command "…" …         other commands

The commands really run, in an empty directory in which `examples` is ours; what they print is what the picture shows.
The picture is text in the reader's own fixed-width font: it loads nothing.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 96
HEIGHT = 50
COMMANDS = [
    "reward-kit run examples/math_example/conf/run_math_eval.yaml",
    "reward-kit inspect outputs/math_example | head -5",
]
CONTROL = re.compile(r"\x1b\[\??(?P<number>\d+)?[\d;]*(?P<code>[A-Za-z])|(?P<end>[\r\n])")
COLOUR = re.compile(r"\x1b\[[\d;]*m")
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""
"""Rich's own frame names a font on another host."""


def main() -> None:
    """Run the commands and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--command", action="append", help="a command to run, in the place of the README's")
    given = parser.parse_args()
    out: Path = given.out.resolve()
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory(prefix="reward-kit-") as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        for command in given.command or COMMANDS:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(Text.from_ansi("\n".join(screen(typed(command, Path(folder))))))
            console.print()
    out.parent.mkdir(parents=True, exist_ok=True)
    svg = console.export_svg(title="reward-kit", theme=MONOKAI, code_format=FRAME, unique_id="terminal")
    out.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


def typed(command: str, directory: Path) -> str:
    """What a command writes to the terminal it is typed in."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {
        **os.environ,
        "PATH": path,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "COLUMNS": str(WIDTH),
    }
    for name in ("LINES", "NO_COLOR"):
        environment.pop(name, None)
    with subprocess.Popen(
        ["bash", "-c", command], cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        written = b""
        while part := _read(ours):
            written += part
    os.close(ours)
    if process.returncode:
        raise SystemExit(f"{command!r} ended with {process.returncode}:\n{written.decode(errors='replace')}")
    return written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError as error:
        if error.errno != errno.EIO:  # what Linux says when the last program has closed its end
            raise
        return b""


class Screen:
    """The lines of a terminal: going up, clearing and writing anew are done, colours are kept.

    Rich writes a changed line from its beginning and whole, so a line that is written to again begins anew.
    """

    def __init__(self) -> None:
        self.lines = [""]
        self._row = 0
        self._anew = False

    def write(self, text: str) -> None:
        """Text, or a change of colour."""
        self.lines[self._row] = text if self._anew else self.lines[self._row] + text
        self._anew = False

    def control(self, code: str, number: int) -> None:
        """A line's end, or one of the codes that rich uses: A goes up, K clears the line, m changes the colour."""
        if code == "\n":
            self._row += 1
            self._anew = self._row < len(self.lines)
            if not self._anew:
                self.lines.append("")
        elif code == "\r":
            self._anew = True
        elif code == "A":
            self._row = max(0, self._row - number)
        elif code == "K":
            self.lines[self._row], self._anew = "", False


def screen(written: str) -> list[str]:
    """The lines that are left when all is written."""
    shown, end = Screen(), 0
    for found in CONTROL.finditer(written):
        if found.start() > end:
            shown.write(written[end : found.start()])
        end = found.end()
        if found["code"] == "m":
            shown.write(found[0])
        else:
            shown.control(found["code"] or found["end"], int(found["number"] or 1))
    if written[end:]:
        shown.write(written[end:])
    while shown.lines and not COLOUR.sub("", shown.lines[-1]).strip():
        shown.lines.pop()
    return shown.lines


if __name__ == "__main__":
    main()
