# SPDX-License-Identifier: Apache-2.0
"""Files that code opens: those that were read are told once, those that were written to are no input."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from reward_kit.utils.opened_files import OpenedFiles


def test_what_is_read_is_told_once_by_its_full_path(tmp_path: Path) -> None:
    words, other = tmp_path / "words.txt", tmp_path / "other.txt"
    words.write_text("a")
    other.write_text("b")
    watch = OpenedFiles()
    assert not watch.has_news
    with watch.here():
        words.read_text()
        os.close(os.open(os.fsencode(other), os.O_RDONLY))
        words.read_bytes()
        Path("/proc/self/stat").read_text()
    other.read_text()
    assert watch.has_news
    assert watch.take().read == [str(words), str(other)]
    assert not watch.has_news and watch.take() == ([], [])
    with watch.here():
        words.read_text()
    assert not watch.has_news, "it was told of"


def test_what_is_also_written_to_is_no_input(tmp_path: Path) -> None:
    watch = OpenedFiles()
    with watch.here():
        (tmp_path / "memo").write_text("mine")
        (tmp_path / "memo").read_text()
    assert watch.take() == ([], [str(tmp_path / "memo")])


@pytest.mark.parametrize("name", ["{}", "file:{}", "file://{}?mode=ro"])
def test_a_database_is_an_input_until_it_is_written_to(tmp_path: Path, name: str) -> None:
    file, watch = tmp_path / "words.db", OpenedFiles()
    with contextlib.closing(sqlite3.connect(file)) as made, made:
        made.execute("CREATE TABLE words AS SELECT 'a' AS word")
    with watch.here(), contextlib.closing(sqlite3.connect(name.format(file), uri=":" in name)) as held:
        assert held.execute("SELECT word FROM words").fetchall() == [("a",)]
        sqlite3.connect(":memory:").close()
    assert watch.take() == ([str(file)], []) and not watch.has_news
    with contextlib.closing(sqlite3.connect(file)) as held, held:
        held.execute("INSERT INTO words VALUES ('b')")
    assert watch.has_news and watch.take() == ([], [str(file)])
    assert not watch.has_news


async def test_a_task_is_watched_alone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)

    async def read(watch: OpenedFiles, name: str) -> None:
        watch.join()
        watch.join()
        await asyncio.sleep(0)
        (tmp_path / name).read_text()

    first, second = OpenedFiles(), OpenedFiles()
    await asyncio.gather(read(first, "one"), read(second, "two"))
    assert first.take().read == [str(tmp_path / "one")]
    assert second.take().read == [str(tmp_path / "two")]


def test_a_whole_process_can_be_watched(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a")
    program = (
        "from reward_kit.utils.opened_files import OpenedFiles\n"
        "watch = OpenedFiles()\nwatch.watch_everywhere()\n"
        "open('words.txt').close()\nimport os; os.chdir('/')\n"
        "print([path for path in watch.take().read if path.endswith('words.txt')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([str(tmp_path.resolve() / "words.txt")])
