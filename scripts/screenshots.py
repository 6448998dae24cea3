# SPDX-License-Identifier: Apache-2.0
"""Takes the pictures of docs/viewer.md: sample runs are made, the viewer is started over them, a browser looks.

python scripts/screenshots.py [FOLDER]        the pictures go there; without it, into docs/images
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.look import chromium  # noqa: E402
from tests.browser.serve import Served, serve  # noqa: E402

MOST_BYTES = 150_000


class Picture(NamedTuple):
    name: str
    path: str
    """`{title}` stands for the key of that run."""
    there: str
    """What is to be seen before the picture is taken."""
    dark: bool = False
    width: int = 1280
    height: int = 800
    marks: str = ""
    """Keys that are pressed first, one verdict after the other."""


PICTURES = (
    Picture("viewer-overview", "/", "table.runs tbody tr", height=520),
    Picture("viewer-run", "/runs/{arithmetic}", ".chart .bar"),
    Picture("viewer-table", "/runs/{arithmetic}/table?contested=1&sort=score", ".grid .body .line a", height=560),
    Picture("viewer-sample", "/runs/{arithmetic}/sample?id=q002&order=index", ".formula math"),
    Picture("viewer-steps", "/runs/{lake}/sample?id=lake-4x4-0", ".timeline > li", dark=True),
    Picture("viewer-compare", "/compare?runs={arithmetic},{arithmetic_better}&cell=only_b", ".flip"),
    Picture(
        "viewer-review", "/runs/{arithmetic}/review?choose=disagreement", ".one .candidate", height=640, marks="rrwrurr"
    ),
    Picture("viewer-small", "/runs/{arithmetic}/sample?id=q004", ".candidate .answer", dark=True, width=390),
)


def main() -> None:
    """Take all pictures."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    program = chromium()
    if program is None:
        sys.exit("There is no chromium here. Install it (scripts/system-packages.sh chromium) and try again.")
    target.mkdir(parents=True, exist_ok=True)
    # A path that says nothing of the machine: it is in the pictures.
    folder = Path(tempfile.gettempdir()) / "reward-kit-pictures" / "runs"
    folder.mkdir(parents=True)
    try:
        subprocess.run(
            [sys.executable, str(ROOT / "scripts" / "sample_runs.py"), str(folder)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        shutil.rmtree(folder / "hostile")
        with serve(folder, "--allow-run", "--reviewer", "Ada", where=folder / ".made_of") as served:
            take(program, served, target)
    finally:
        shutil.rmtree(folder.parent)


def take(program: str, served: Served, target: Path) -> None:
    """Take every picture with this browser."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        for picture in PICTURES:
            context = browser.new_context(
                viewport={"width": picture.width, "height": picture.height},
                color_scheme="dark" if picture.dark else "light",
                reduced_motion="reduce",
            )
            page = context.new_page()
            page.goto(served.address)
            path = picture.path
            for title, key in served.keys.items():
                path = path.replace("{" + title + "}", key)
            page.goto(served.base + path)
            page.locator(picture.there).first.wait_for()
            for nth, key in enumerate(picture.marks, 1):
                before = page.locator(".one .facts a").evaluate("(link) => link.search")
                page.keyboard.press(key)
                page.locator("aside h2", has_text=f"{nth} review").wait_for()
                page.wait_for_function(
                    "(before) => ![before, undefined].includes(document.querySelector('.one .facts a')?.search)",
                    arg=before,
                )
                page.locator(picture.there).first.wait_for()
            settle(page)
            file = target / f"{picture.name}.png"
            page.screenshot(path=file)
            context.close()
            size = file.stat().st_size
            print(f"{size:8,}  {file.name}")
            if size > MOST_BYTES:
                sys.exit(f"{file.name} has {size:,} bytes, {MOST_BYTES:,} is the most. Make its window smaller.")
        browser.close()


def settle(page: Page) -> None:
    """Wait until formulas are drawn and nothing moves."""
    page.evaluate("() => document.fonts.ready.then(() => true)")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")


if __name__ == "__main__":
    main()
