# SPDX-License-Identifier: Apache-2.0
"""The documentation site: pages find their places, the API names what is public, faults of the HTML are found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import reward_kit
from scripts.website import stage as staging
from scripts.website.api import MODULES, api_pages
from scripts.website.links import faults

BUILT = staging.ROOT / "build" / "site" / "latest"
WITHOUT_A_FRAME = {"index.md", "performance.md", "rewards.md"}
needs_the_site = pytest.mark.skipif(not (BUILT / "index.html").exists(), reason="`make site` builds it")


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


# ── the finished pages ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('<a href="gone.html">x</a>', "'gone.html': there is no such page"),
        ('<a href="b.html#nowhere">x</a>', "'b.html#nowhere': that page has no such place"),
        ('<a href="#nowhere">x</a>', "'#nowhere': that page has no such place"),
        ('<a href="../../out.html">x</a>', "'../../out.html' leads out of the site"),
        ('<img src="gone.png">', "'gone.png': there is no such page"),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js from another host"),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', "loads //fonts.example/x.css from another host"),
    ],
)
def test_a_fault_of_a_page_is_named(body: str, why: str, tmp_path: Path) -> None:
    root = write(tmp_path, v1__a_html=body, v1__b_html="<h1 id='here'>b</h1>")
    assert faults(root / "v1", root) == [f"v1/a.html: {why}"]


def test_a_style_that_fetches_a_font_is_a_fault(tmp_path: Path) -> None:
    root = write(tmp_path, v1__a_css="@font-face { src: url('https://fonts.example/f.woff2') }")
    assert faults(root / "v1", root) == ["v1/a.css: loads something from another host"]


def test_pages_without_faults_have_none(tmp_path: Path) -> None:
    links = '<a href="b.html#here">b</a> <a href="../versions.html">v</a> <a href="https://example.org/x">away</a>'
    root = write(tmp_path, v1__a_html=links, v1__b_html="<h1 id='here'>b</h1>", versions_html="<p>all</p>")
    assert faults(root / "v1", root) == []


# ── the pages on their way ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository with what the site is made of."""
    monkeypatch.setattr(staging, "api_pages", lambda: {"index": "# Python API\n"})
    root = tmp_path / "repository"
    write(
        root,
        docs__index_md="# Start\n\n## How-to guides\n\n- [One](one.md)\n\n## Examples\n\n## Reference\n\n"
        "- [Changes](../CHANGELOG.md)\n",
        docs__one_md="# One\n\n[![shot](images/a.svg)](two.md#there) [example](../examples/sums/README.md)\n"
        "[reward](../examples/sums/reward.py)\n\n```sh\necho '[left](alone.md)'\n```\n\n"
        "```csv file=rows.csv\na,b\n```\n",
        docs__two_md="# Two\n\n## There\n",
        docs__images__a_svg="<svg/>",
        examples__sums__README_md="# Sums\n\nSee [one](../../docs/one.md).\n",
        examples__sums__reward_py="pass\n",
        CHANGELOG_md="# Changelog\n\n[Two](docs/two.md)\n",
        CONTRIBUTING_md="# C\n",
        SECURITY_md="# S\n",
        README_md="# R\n",
    )
    (root / "CODE_OF_CONDUCT.md").write_text("# D\n")
    monkeypatch.setattr(staging, "ROOT", root)
    return root


def test_links_lead_to_where_their_pages_are_now(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "pages"
    staging.stage(out)
    one = (out / "one.md").read_text()
    assert "[![shot](files/docs/images/a.svg)](two.md#there)" in one
    assert "[example](examples/sums.md)" in one and "[reward](files/examples/sums/reward.py)" in one
    assert "echo '[left](alone.md)'" in one, "what a block shows is not a link"
    assert "```{code-block} text\n:caption: rows.csv\n" in one
    assert "[one](../one.md)" in (out / "examples" / "sums.md").read_text()
    assert "[Two](../two.md)" in (out / "about" / "changelog.md").read_text()
    assert (out / "files" / "examples" / "sums" / "reward.py").read_text() == "pass\n"


def test_the_contents_are_the_sections_of_the_start_page(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "pages"
    staging.stage(out)
    trees = re.findall(r"```{toctree}\n:hidden:\n:caption: (.+)\n\n([^`]+)```", (out / "index.md").read_text())
    contents = {heading: entries.split() for heading, entries in trees}
    assert contents["How-to guides"] == ["one"] and contents["Examples"] == ["examples/sums"]
    assert contents["Reference"][:2] == ["about/changelog", "/reference/api/index"]


def test_a_link_to_nothing_stops_the_build(repository: Path, tmp_path: Path) -> None:
    (repository / "docs" / "two.md").write_text("[x](gone.md)")
    with pytest.raises(SystemExit, match=r"docs/two.md links to 'gone.md', and there is no such file"):
        staging.stage(tmp_path / "pages")


def test_every_page_of_the_repository_has_a_place_in_the_contents() -> None:
    """Sphinx warns of one that has none, and warnings are errors; this says it sooner."""
    start = (staging.ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = {(staging.ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)#\s]+\.md)\)", start)}
    pages = {page for page in staging.pages() if page.name != "index.md" and "examples" not in page.parts}
    assert sorted(str(page.relative_to(staging.ROOT)) for page in pages - listed) == [], "list them in docs/index.md"


@pytest.mark.parametrize(
    "page", [page for page in staging.pages() if page.parent.name == "docs"], ids=lambda page: page.name
)
def test_a_page_says_what_it_needs_and_where_to_go_next(page: Path) -> None:
    if page.name in WITHOUT_A_FRAME:
        pytest.skip("the start page, or made from the program or by measuring")
    paragraphs = re.split(r"\n{2,}", page.read_text(encoding="utf-8").strip())
    assert paragraphs[1].startswith("*You need: ") and paragraphs[1].endswith("*"), "say at the top what it assumes"
    assert paragraphs[-1].startswith("*Next: ") and "](" in paragraphs[-1], "say at the end where to go next"


# ── the API ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def api() -> dict[str, str]:
    return api_pages()


def test_the_api_names_what_is_public_and_nothing_else(api: dict[str, str]) -> None:
    assert set(api) == {"index", *MODULES}
    named = re.findall(r"^## (\w+)$", api["reward_kit"], re.MULTILINE)
    assert named == [name for name in reward_kit.__all__ if name != "__version__"]
    assert not re.findall(r"^### \w+\._\w+", "".join(api.values()), re.MULTILINE)
    assert "a kind of `_" not in "".join(api.values())
    assert " at 0x" not in "".join(api.values())


def test_an_entry_of_the_api_has_signature_docstring_and_fields(api: dict[str, str]) -> None:
    page = api["reward_kit"]
    _, _, evaluate = page.partition("## evaluate\n")
    assert evaluate.lstrip().startswith("```text\nevaluate(")
    assert "Judge n answers per sample" in evaluate.split("\n## ")[0]
    assert re.search(r"^\| `score` \| `float` \|", page.partition("## EvaluateResult\n")[2], re.MULTILINE)


# ── what was built ───────────────────────────────────────────────────────────────────────────────────────────────────


@needs_the_site
def test_the_site_is_searched_without_a_server_of_anybody() -> None:
    index = (BUILT / "searchindex.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    assert {"quickstart", "reference/cli", "reference/api/reward_kit", "about/changelog"} <= set(found["docnames"])
    assert "sandbox" in found["terms"]


@needs_the_site
def test_every_version_has_its_folder_and_is_listed() -> None:
    versions = (BUILT.parent / "versions.html").read_text(encoding="utf-8")
    assert f"href='{reward_kit.__version__}/index.html'" in versions
    assert (BUILT.parent / reward_kit.__version__ / "index.html").exists()
    assert "latest/index.html" in (BUILT.parent / "index.html").read_text(encoding="utf-8")
    assert f"version {reward_kit.__version__}" in (BUILT / "quickstart.html").read_text(encoding="utf-8")
