# SPDX-License-Identifier: Apache-2.0
"""A cache's files survive what happens to files: other writers, pruning, kill -9, torn lines, rubbish, a full disk."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reward_kit.errors import StorageError
from reward_kit.generation.cache.responses import ResponseCache, draw_key
from reward_kit.generation.cache.upkeep import prune
from reward_kit.models import Completion, Message


def key(number: int) -> str:
    return draw_key(b"test", number)


ENTRIES = Path("v1", "responses.jsonl")


def answer(text: str) -> Completion:
    return Completion(message=Message(role="assistant", content=text))


def text_of(completion: Completion | None) -> object:
    return completion and completion.message.content


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ResponseCache]:
    with ResponseCache(tmp_path) as opened:
        yield opened


def test_entries_of_other_schemas_are_ignored(cache: ResponseCache) -> None:
    cache.put(key(1), answer("current"))
    entries = cache.cache_dir / ENTRIES
    current = entries.read_bytes()
    for schema in ("0", "2", "11", '"1"', "null"):
        entries.write_bytes(current.replace(b'"schema":1,', f'"schema":{schema},'.encode()))
        with ResponseCache(cache.cache_dir) as reopened:
            assert reopened.get(key(1)) is None
    entries.rename(cache.cache_dir / "elsewhere")
    (cache.cache_dir / "v0").mkdir()
    (cache.cache_dir / "v0" / entries.name).write_bytes(current)
    with ResponseCache(cache.cache_dir) as reopened:
        assert reopened.get(key(1)) is None


@pytest.mark.parametrize(
    "rubbish",
    [b"\n", b"{}\n", b"\xff\xfe\n", b'{"key":"' + b"z" * 64 + b'","schema":1,"created":1}}\n', b"x" * 70_000 + b"\n"],
)
def test_rubbish_in_a_file_costs_nothing_else(cache: ResponseCache, rubbish: bytes) -> None:
    (cache.cache_dir / ENTRIES).write_bytes(rubbish)
    cache.put(key(1), answer("1"))
    with ResponseCache(cache.cache_dir) as reopened:
        assert text_of(reopened.get(key(1))) == "1"
    assert text_of(cache.get(key(1))) == "1"


def test_an_entry_whose_content_is_broken_is_a_miss_and_is_mended_by_the_next_put(cache: ResponseCache) -> None:
    cache.put(key(1), answer("1"))
    entries = cache.cache_dir / ENTRIES
    entries.write_bytes(entries.read_bytes().replace(b'"role"', b'"rule"'))
    with ResponseCache(cache.cache_dir) as reopened:
        assert reopened.get(key(1)) is None
        reopened.put(key(1), answer("again"))
        assert text_of(reopened.get(key(1))) == "again"


def test_a_file_cut_anywhere_keeps_its_whole_entries_and_takes_new_ones(tmp_path: Path) -> None:
    numbers = range(6)
    with ResponseCache(tmp_path / "whole") as whole:
        for number in numbers[:-1]:
            whole.put(key(number), answer(f"answer {number}"))
    content = (tmp_path / "whole" / ENTRIES).read_bytes()
    for cut in random.Random(5).sample(range(len(content)), 60):
        directory = tmp_path / str(cut)
        with ResponseCache(directory) as before:  # opened before the cut, so it has to notice
            (directory / ENTRIES).write_bytes(content[:cut])
            before.put(key(numbers[-1]), answer("new"))
        whole_entries = content[:cut].count(b"\n")
        with ResponseCache(directory) as reopened:
            found = [text_of(reopened.get(key(number))) for number in numbers]
        expected = [f"answer {number}" for number in numbers[:whole_entries]]
        assert found == expected + [None] * (len(numbers) - 1 - whole_entries) + ["new"]


def test_a_line_torn_by_another_process_does_not_swallow_the_next_entry(cache: ResponseCache) -> None:
    cache.put(key(1), answer("before"))
    assert cache.get(key(2)) is None
    with (cache.cache_dir / ENTRIES).open("ab") as other:
        other.write(b'{"key":"torn')
    cache.put(key(2), answer("after"))
    cache.put(key(1), answer("before"))
    assert (text_of(cache.get(key(1))), text_of(cache.get(key(2)))) == ("before", "after")


def test_a_full_disk_loses_neither_the_run_nor_the_cache(
    cache: ResponseCache, caplog: pytest.LogCaptureFixture
) -> None:
    before, too_large, fits, after = range(4)
    cache.put(key(before), answer("small"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))  # the kernel writes a part, then nothing more
    try:
        cache.put(key(too_large), answer("x" * 2_000_000))
        cache.put(key(fits), answer("small"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    cache.put(key(after), answer("small"))
    found = [text_of(cache.get(key(number))) for number in (before, too_large, fits, after)]
    assert found == ["small", None, "small", "small"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files through /proc")
@pytest.mark.parametrize("seed", range(4))
def test_entries_of_any_size_are_found_in_any_order_while_more_are_written(cache: ResponseCache, seed: int) -> None:
    dice = random.Random(seed)
    texts: dict[int, str] = {}
    cache.put(key(0), answer("superseded, so that pruning moves all others"))
    with ResponseCache(cache.cache_dir) as reader:
        for number in range(120):
            texts[number] = chr(97 + number % 26) * dice.choice([1, 300, 5_000, 70_000])
            cache.put(key(number), answer(texts[number]))
            if number % 12 == 11:
                time.sleep(0.02)  # after which others see what was written
                entries = list(texts) if dice.random() < 0.5 else dice.choices(list(texts), k=len(texts))
                for opened in (cache, reader):
                    assert [text_of(opened.get(key(entry))) for entry in entries] == [texts[each] for each in entries]
            if number == 60:
                prune(cache.cache_dir)  # moves everything


def test_a_file_without_locks_is_written_beside_others(cache: ResponseCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    torn = b'{"key":"what another process is in the middle of'
    with ResponseCache(cache.cache_dir) as other:
        for number in range(6):
            (cache, other)[number % 2].put(key(number), answer(str(number)))
            with (cache.cache_dir / ENTRIES).open("ab") as third:
                third.write(torn)
    for opened in (cache, ResponseCache(cache.cache_dir)):
        opened._file._followed = 0.0
        assert [text_of(opened.get(key(number))) for number in range(6)] == [*"012345"]
        opened.close()
    assert (cache.cache_dir / ENTRIES).read_bytes().count(torn) == 6
    with pytest.raises(StorageError, match="Nothing in the cache is lost"):
        prune(cache.cache_dir)


def test_a_file_that_has_a_second_name_is_left_when_it_is_pruned(cache: ResponseCache) -> None:
    cache.put(key(1), answer("superseded"))
    cache.put(key(1), answer("1"))
    (cache.cache_dir / "kept").hardlink_to(cache.cache_dir / ENTRIES)
    prune(cache.cache_dir)
    cache.put(key(2), answer("2"))
    with ResponseCache(cache.cache_dir) as reopened:
        assert [text_of(reopened.get(key(number))) for number in (1, 2)] == ["1", "2"]


def test_closing_closes_the_file(cache: ResponseCache) -> None:
    for number in range(100):
        cache.put(key(number), answer("1"))
    opened = len(os.listdir("/proc/self/fd"))
    cache.close()
    assert len(os.listdir("/proc/self/fd")) == opened - 1


# ── several processes ────────────────────────────────────────────────────────────────────────────────────────────────

WRITER = """
import sys
import time
from reward_kit.generation.cache.responses import ResponseCache, draw_key
from reward_kit.models import Completion, Message

directory, first, count, size = sys.argv[1], *map(int, sys.argv[2:])
with ResponseCache(directory) as cache:
    for number in range(first, first + count):
        text = f"{number} " + "x" * (number % 7 * size)
        cache.put(draw_key(b"test", number), Completion(message=Message(role="assistant", content=text)))
        print(number, flush=True)
"""


def start_writer(directory: Path, first: int, count: int, size: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WRITER, str(directory), str(first), str(count), str(size)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def acknowledged(writer: subprocess.Popen[str], kill_after: int | None = None) -> list[int]:
    """What the writer said it has put, killing it after so many."""
    numbers = []
    assert writer.stdout is not None
    with writer:
        for line in writer.stdout:
            if line.endswith("\n"):
                numbers.append(int(line))
            if len(numbers) == kill_after:
                writer.send_signal(signal.SIGKILL)
    assert writer.returncode == (0 if kill_after is None else -signal.SIGKILL)
    return numbers


def assert_all_readable(cache: ResponseCache, numbers: Sequence[int]) -> None:
    for number in numbers:
        assert str(text_of(cache.get(key(number)))).startswith(f"{number} "), number


def test_several_processes_write_and_read_one_cache(cache: ResponseCache) -> None:
    writers = [start_writer(cache.cache_dir, first, 400, 100) for first in (0, 10_000, 20_000)]
    with ThreadPoolExecutor() as pool:
        written = list(pool.map(acknowledged, writers))
    assert [len(numbers) for numbers in written] == [400] * 3
    for numbers in written:
        assert_all_readable(cache, numbers)


def test_what_was_acknowledged_survives_kill_9(cache: ResponseCache) -> None:
    moments = random.Random(11)
    survived: list[int] = []
    for base in (0, 100_000):
        # Answers of up to 300 kB take many pages to write, so that some kills land inside a line.
        writers = [start_writer(cache.cache_dir, base + first, 10_000, 50_000) for first in (0, 20_000, 40_000)]
        with ThreadPoolExecutor() as pool:
            for numbers in pool.map(lambda writer: acknowledged(writer, moments.randint(1, 40)), writers):
                survived.extend(numbers)
        cache.put(key(base + 99_999), answer(f"{base + 99_999} after"))
        survived.append(base + 99_999)
    assert_all_readable(cache, survived)
    with ResponseCache(cache.cache_dir) as reopened:
        assert_all_readable(reopened, survived)


def test_pruning_while_others_write_loses_nothing(cache: ResponseCache) -> None:
    writers = [start_writer(cache.cache_dir, first, 1_500, 20) for first in (0, 10_000)]
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(acknowledged, writer) for writer in writers]
        own = 50_000
        while not all(done.done() for done in waiting):
            for _ in range(2):  # an entry to supersede, so that each pruning replaces files
                cache.put(key(own), answer(f"{own} own"))
            prune(cache.cache_dir)
            own += 1
        written = [number for done in waiting for number in done.result()]
    assert len(written) == 3_000
    assert_all_readable(cache, written)
    assert_all_readable(cache, range(50_000, own))
