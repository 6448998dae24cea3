# SPDX-License-Identifier: Apache-2.0
"""Commands of the examples, called in this process: most of what a small run takes is the start of a new one.

Each is called in an empty folder, so that none finds what another one has cached.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from reward_kit.cli import main

__all__ = ["python", "reward_kit"]


def reward_kit(*arguments: str | Path) -> str:
    """Call `reward-kit`, which must succeed; what it printed."""
    given = [str(argument) for argument in arguments]
    return _printed(["reward-kit", *given], lambda: main(given))


def python(script: Path, *arguments: str | Path) -> str:
    """Call a script, which must succeed; what it printed."""
    given = [str(script), *map(str, arguments)]
    with mock.patch.object(sys, "path", [str(script.parent), *sys.path]):
        return _printed(given, lambda: runpy.run_path(str(script), run_name="__main__"))


def _printed(argv: list[str], call: Callable[[], object]) -> str:
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    before = Path.cwd()
    with (
        tempfile.TemporaryDirectory() as folder, mock.patch.object(sys, "argv", argv),
        contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
    ):  # fmt: skip
        os.chdir(folder)
        try:
            call()
        except SystemExit as ended:
            code = ended.code
        finally:
            os.chdir(before)
    assert code in (0, None), out.getvalue() + err.getvalue()
    return out.getvalue()
