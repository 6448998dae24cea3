# SPDX-License-Identifier: Apache-2.0
"""Who may look, and at what: tokens, hosts, origins, and paths that lead elsewhere."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import DatasetError
from reward_kit.viewer.access import Access, start_page
from reward_kit.viewer.assets import Assets
from reward_kit.viewer.serve import serve_viewer
from reward_kit.viewer.sources import find_runs
from reward_kit.viewer.viewer import open_viewer
from tests.analysis.experiments import write_run
from tests.viewer.browser import PORT, Browser, browsing

pytest.importorskip("duckdb")

SECRET = "what nobody may read"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    (tmp_path / "secret.txt").write_text(SECRET)
    static = tmp_path / "static"
    static.mkdir()
    (static / "index.html").write_text("<!doctype html>the page")
    (static / "main-1A2B3C4D.js").write_text("1")
    (static / "plain.css").write_text("a{}")
    (static / "link.js").symlink_to(tmp_path / "secret.txt")
    with browsing(write_run(tmp_path / "run", {"q": [1.0]}), assets=Assets(static)) as found:
        yield found


def test_the_token_opens_the_page_and_makes_the_cookie(browser: Browser) -> None:
    opened = browser.ask(f"/?token={browser.access.token}", cookie=None)

    assert opened.status == 200
    assert b"the page" in opened.content
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert browser.access.token not in cookie
    assert browser.ask("/api/runs", cookie=cookie.partition(";")[0]).status == 200


def test_a_browser_is_started_by_a_file_of_its_owner_with_a_token_that_is_good_once(browser: Browser) -> None:
    with start_page(browser.access) as page:
        held = page.read_text()
        modes = page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777
    token = held.partition("token=")[2].partition('"')[0]
    from_file: Any = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}

    assert modes == (0o600, 0o700)
    assert not page.parent.exists()
    assert browser.access.token not in held
    assert token not in str(page)
    opened = browser.ask(f"/?token={token}", cookie=None, **from_file)
    assert opened.status == 200
    assert browser.ask("/api/runs", cookie=opened.headers["set-cookie"].partition(";")[0]).status == 200
    assert browser.ask(f"/?token={token}", cookie=None, **from_file).status == 401
    assert browser.ask(f"/?token={browser.access.token}", cookie=None).status == 200, "the printed address stays good"


@pytest.mark.parametrize("address", ["/", "/api/runs", "/static/plain.css", "/?token=", "/api/runs?token=wrong"])
@pytest.mark.parametrize("cookie", [None, "reward_kit_view_4321=", "reward_kit_view_4321=wrong", "a=b; ;;=", "\xff"])
def test_without_the_token_nothing_is_told(browser: Browser, address: str, cookie: str | None) -> None:
    refused = browser.ask(address, cookie=cookie)

    assert refused.status == 401
    assert b"terminal" in refused.content
    assert "set-cookie" not in refused.headers


@pytest.mark.parametrize(
    "host", [None, "evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1.evil.example:{PORT}", "[::1]:4321"]
)
def test_another_name_of_this_machine_is_refused(browser: Browser, host: str | None) -> None:
    assert browser.ask("/api/runs", host=host).status == 421
    assert browser.ask(f"/?token={browser.access.token}", host=host).status == 421


@pytest.mark.parametrize("origin", ["null", "http://evil.example", f"https://127.0.0.1:{PORT}", "http://127.0.0.1"])
def test_pages_of_other_sites_are_refused(browser: Browser, origin: str) -> None:
    assert browser.ask("/api/runs", origin=origin).error == "wrong_origin"
    assert browser.ask("/api/runs", method="POST", origin=origin).status == 403


def test_a_page_of_another_site_may_link_here_and_not_ask(browser: Browser) -> None:
    asked = browser.ask("/api/runs", sec_fetch_site="cross-site", sec_fetch_mode="no-cors", sec_fetch_dest="script")
    linked = browser.ask("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate", sec_fetch_dest="document")

    assert asked.status == 403
    assert linked.status == 200


def test_who_writes_says_where_from(browser: Browser) -> None:
    assert browser.ask("/api/runs", method="POST", body=b"{}").error == "wrong_origin"
    own = browser.ask("/api/runs", method="POST", body=b"{}", origin=f"http://127.0.0.1:{PORT}")
    assert own.status == 405 or own.error == "not_there"


@pytest.mark.parametrize("address", ["/", "/api/runs", "/static/plain.css", "/static/nothing.js", "/api/nothing"])
def test_every_answer_forbids_what_it_can(browser: Browser, address: str) -> None:
    headers = browser.ask(address).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "name",
    [
        "../secret.txt", "..%2Fsecret.txt", "%2e%2e/secret.txt", "....//secret.txt", "link.js", "/etc/passwd",
        "//etc/passwd", "plain.css%00.js", "", ".", "static/../../secret.txt",
    ],
)  # fmt: skip
def test_no_name_leads_out_of_the_pages_own_files(browser: Browser, name: str) -> None:
    found = browser.ask(f"/static/{name}")

    assert found.status == 404
    assert SECRET.encode() not in found.content
    assert b"root:" not in found.content


@pytest.mark.parametrize("key", ["..", "../secret.txt", "%2Fetc%2Fpasswd", "run", "..%2F..%2Fsecret.txt", "' OR 1=1"])
@pytest.mark.parametrize("rest", ["", "/rows", "/samples/q", "/records/q/0", "/changes", "/search?q=a"])
def test_a_run_is_named_by_its_key_and_by_no_path(browser: Browser, key: str, rest: str) -> None:
    found = browser.ask(f"/api/runs/{key}{rest}")

    assert found.status == 404
    assert SECRET.encode() not in found.content


def test_names_with_a_digest_are_kept_for_ever_and_others_asked_for_again(browser: Browser) -> None:
    assert "immutable" in browser.ask("/static/main-1A2B3C4D.js").headers["cache-control"]
    assert browser.ask("/static/plain.css").headers["cache-control"] == "no-cache"
    assert browser.ask("/api/runs").headers["cache-control"] == "no-store"


def test_every_address_of_the_page_is_the_page(browser: Browser) -> None:
    assert b"the page" in browser.ask("/runs/whatever/table?by=record").content


def test_a_page_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"q": [1.0]})
    with browsing(run, assets=Assets(tmp_path / "nothing")) as browser:
        assert b"make web" in browser.ask("/").content


# ── what is found ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_links_that_lead_out_of_what_was_given_are_not_followed(tmp_path: Path) -> None:
    outside = write_run(tmp_path / "outside", {"q": [1.0]})
    given = tmp_path / "given"
    inside = write_run(given / "inside", {"q": [1.0]})
    (given / "folder").symlink_to(outside)
    (given / "half").mkdir()
    (given / "half" / "results.jsonl").symlink_to(outside / "results.jsonl")
    (given / "out.parquet").symlink_to(outside / "results.jsonl")
    os.symlink(inside, given / "again")

    assert [found.path for found in find_runs([given])] == [inside]


def test_a_link_that_was_given_is_what_it_leads_to(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"q": [1.0]})
    (tmp_path / "link").symlink_to(run)

    assert [found.path for found in find_runs([tmp_path / "link"])] == [run]


def test_the_table_of_an_experiment_stands_for_its_run_directory(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "best_of_n"

    assert [found.path.name for found in find_runs([golden])] == ["table.parquet"]
    assert [found.path.name for found in find_runs([golden / "table.run"])] == ["table.run"]


def test_a_run_inside_the_directory_of_another_is_found(tmp_path: Path) -> None:
    outer = write_run(tmp_path / "outputs" / "task", {"q": [1.0]})
    (outer / "results.jsonl").write_bytes(b"")
    inner = write_run(outer / "models" / "small", {"q": [1.0]})
    write_run(outer / "batches" / "files", {"q": [1.0]})  # the outer run's own folder

    assert [found.path for found in find_runs([tmp_path])] == [outer, inner]
    assert [found.path for found in find_runs([outer])] == [outer, inner]
    assert [found.path for found in find_runs([outer / "results.jsonl"])] == [outer]


def test_runs_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    for parent in ("a", "b"):
        write_run(tmp_path / parent / "run", {"q": [1.0]})

    found = find_runs([tmp_path])

    assert [one.title for one in found] == ["a/run", "b/run"]
    assert len({one.key for one in found}) == 2


def test_where_there_is_no_run_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="There is no run under"):
        find_runs([tmp_path])
    with pytest.raises(DatasetError, match="There is no "):
        find_runs([tmp_path / "nothing"])


def test_ctrl_c_while_a_browser_starts_ends_the_viewer(tmp_path: Path) -> None:
    def interrupt(_: Access) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with open_viewer([write_run(tmp_path / "run", {"q": [1.0]})]) as viewer:
        serve_viewer(viewer, 0, interrupt)
