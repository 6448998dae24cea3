# SPDX-License-Identifier: Apache-2.0
"""The pages as the site has them: docs/ at the top, examples below it, and each link led to its page's new place.

In the repository, links between pages are paths, so that they work wherever the files are read. Here each path is
resolved, and written anew for where its page is now. A link to a file that is no page brings the file along.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from scripts.website.api import api_pages

ROOT = Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^\n]*)\n.*?^ *(?P=fence)[^\n]*$", re.DOTALL | re.MULTILINE
)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
"""A link or a picture: its `!`, its text (which may hold a picture), its target."""
OTHER_HOST = re.compile(r"[a-z][a-z0-9+.-]*:")
BESIDE = {
    "README.md": "about/readme.md",
    "CHANGELOG.md": "about/changelog.md",
    "CONTRIBUTING.md": "about/contributing.md",
    "CODE_OF_CONDUCT.md": "about/conduct.md",
    "SECURITY.md": "about/reporting.md",
}
"""Pages of the root, and where the site has them."""
API = "reference/api"
COLOURED_AS = {"csv": "text", "jsonl": "json"}
"""Languages of blocks that Pygments does not know, and what comes next to them."""


def pages() -> dict[Path, str]:
    """Each page's file, and its path in the site."""
    found = {page: page.relative_to(ROOT / "docs").as_posix() for page in sorted((ROOT / "docs").rglob("*.md"))}
    for page in sorted((ROOT / "examples").rglob("README.md")):
        folder = page.parent.relative_to(ROOT / "examples")
        found[page] = f"examples/{folder.as_posix()}.md" if folder.parts else "examples/index.md"
    return {**found, **{ROOT / name: place for name, place in BESIDE.items()}}


def stage(directory: Path) -> int:
    """Write every page into `directory`; how many they are."""
    places = pages()
    written = {place: _moved(page, place, places, directory) for page, place in places.items()}
    api = api_pages()
    written |= {f"{API}/{name}.md": text for name, text in api.items()}
    examples = [place.removesuffix(".md") for place in written if place.startswith("examples/")]
    written["index.md"] = _with_contents(written["index.md"], examples, [f"/{API}/{name}" for name in api])
    for place, text in written.items():
        (directory / place).parent.mkdir(parents=True, exist_ok=True)
        (directory / place).write_text(text, encoding="utf-8")
    return len(written)


def _moved(page: Path, place: str, places: dict[Path, str], directory: Path) -> str:
    """The page's text with its links as they are right in its new place."""

    def target(link: str) -> str:
        path, mark, anchor = link.partition("#")
        if OTHER_HOST.match(link) or not path:
            return link
        file = Path(os.path.normpath(page.parent / path))
        if file.is_dir():
            file /= "README.md"
        if file in places:
            new = places[file]
        elif file.is_file():
            new = f"files/{file.relative_to(ROOT).as_posix()}"
            (directory / new).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, directory / new)
        else:
            raise SystemExit(f"{page.relative_to(ROOT)} links to {link!r}, and there is no such file: correct the link")
        return os.path.relpath(new, Path(place).parent) + mark + anchor

    def prose(text: str) -> str:
        return LINK.sub(lambda found: f"{found[1]}[{prose(found[2])}]({target(found[3])})", text)

    content = page.read_text(encoding="utf-8")
    parts, end = [], 0
    for fence in FENCE.finditer(content):
        parts += [prose(content[end : fence.start()]), _block(fence)]
        end = fence.end()
    return "".join([*parts, prose(content[end:])])


def _block(fence: re.Match[str]) -> str:
    """A block that is a file shows the file's name above it."""
    language, _, rest = fence["info"].strip().partition(" ")
    language = COLOURED_AS.get(language, language)
    if not rest.startswith("file="):
        return fence[0].replace(fence["info"], language, 1) if fence["info"].strip() in COLOURED_AS else fence[0]
    name = rest.removeprefix("file=")
    _, _, body = fence[0].partition("\n")
    return f"{fence['indent']}{fence['fence']}{{code-block}} {language}\n{fence['indent']}:caption: {name}\n\n{body}"


def _with_contents(index: str, examples: list[str], api: list[str]) -> str:
    """The start page with the site's contents: each section's links, in their order, then examples and the API."""
    contents = []
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        entries = [link.removesuffix(".md") for _, _, link in LINK.findall(body) if link.endswith(".md")]
        if heading == "Reference":
            entries += api
        if heading == "Examples":
            entries += [name for name in examples if name not in entries]
        contents.append((heading, list(dict.fromkeys(entries))))
    trees = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", "", *entries, "```"])
        for heading, entries in contents
        if entries
    ]
    return index + "\n" + "\n\n".join(trees) + "\n"
