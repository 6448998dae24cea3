# SPDX-License-Identifier: Apache-2.0
"""Builds the site into build/site/VERSION and build/site/latest, and fails at the first kind of fault it finds.

Folders of other versions that are already in build/site stay there, and are listed. Nothing is fetched.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import shutil
import subprocess
from pathlib import Path

from reward_kit import __version__
from scripts.website.links import faults
from scripts.website.stage import ROOT, stage

SPHINX = ROOT / ".venv-site" / "bin" / "sphinx-build"
SITE = ROOT / "build" / "site"
WORK = ROOT / "build" / "site-work"
"""The pages as Sphinx reads them, and what it remembers of them."""
LIST = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>reward-kit: versions</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body {{ font-family: system-ui, sans-serif; max-width: 40rem; margin: 3rem auto }}</style></head>
<body><h1>reward-kit: the documentation of each version</h1><ul>
{items}
</ul></body></html>
"""
FORWARD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>reward-kit</title>
<meta http-equiv="refresh" content="0; url=latest/index.html"></head>
<body><p><a href="latest/index.html">The documentation of reward-kit</a></p></body></html>
"""


def main() -> None:
    """Stage, build, place, list, check."""
    parser = argparse.ArgumentParser(prog="python -m scripts.website", description=__doc__)
    parser.add_argument(
        "--version", default=__version__, help="The name of the folder (default: the package's version)."
    )
    version: str = parser.parse_args().version
    if not SPHINX.exists():
        raise SystemExit("the site: Sphinx is not here; `make site` installs it and builds")
    pages = WORK / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    count = stage(pages)
    built = WORK / "html"
    # Built afresh: a page that is gone must not leave its HTML behind.
    shutil.rmtree(built, ignore_errors=True)
    _sphinx(pages, built, version)
    for name in (version, "latest"):
        shutil.rmtree(SITE / name, ignore_errors=True)
        shutil.copytree(built, SITE / name, copy_function=os.link)
    _list_versions(version)
    found = faults(SITE / version, SITE)
    if found:
        raise SystemExit("\n".join(["the site has faults:", *found, f"the site: {len(found)} to correct"]))
    print(f"the site: {count} pages of version {version}; open {(SITE / 'index.html').relative_to(ROOT)}")


def _sphinx(pages: Path, built: Path, version: str) -> None:
    done = subprocess.run(
        [SPHINX, "--fail-on-warning", "--keep-going", "--quiet", "-b", "html", "-d", WORK / "doctrees",
         "-c", Path(__file__).parent, "-D", f"release={version}", "-D", f"version={version}", "-j", "2", pages, built],
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit("the site: Sphinx warned or failed; each message above names a page of build/site-work/pages")


def _list_versions(built: str) -> None:
    """The newest first, by the numbers in their names."""
    names = [path.name for path in SITE.iterdir() if (path / "index.html").exists() and path.name != "latest"]
    names.sort(key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)
    notes = {built: " (also under <a href='latest/index.html'>latest</a>)"}
    items = [f"<li><a href='{name}/index.html'>{html.escape(name)}</a>{notes.get(name, '')}</li>" for name in names]
    (SITE / "versions.html").write_text(LIST.format(items="\n".join(items)), encoding="utf-8")
    (SITE / "index.html").write_text(FORWARD, encoding="utf-8")


if __name__ == "__main__":
    main()
