# SPDX-License-Identifier: Apache-2.0
"""Model files by name, and what their headers tell."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from reward_kit.errors import ConfigError
from reward_kit.generation.gguf import find_weights, shows_tools


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "hub"


def store(cache: Path, revision: str, file: str = "m.gguf", *, main: bool = False) -> Path:
    """Put a file into the cache as Hugging Face's tools do: a link into a snapshot."""
    folder = cache / "models--owner--repo"
    path = folder / "snapshots" / revision / file
    blob = folder / "blobs" / revision
    path.parent.mkdir(parents=True)
    blob.parent.mkdir(exist_ok=True)
    blob.write_bytes(b"GGUF")
    path.symlink_to(blob)
    if main:
        (folder / "refs").mkdir()
        (folder / "refs" / "main").write_text(revision)
    return path


def test_the_file_of_the_branch_main_is_found(cache: Path) -> None:
    wanted = store(cache, "aaa", main=True)
    store(cache, "bbb")
    assert find_weights("owner/repo/m.gguf") == wanted


def test_without_that_branch_a_snapshot_that_has_it_is(cache: Path) -> None:
    wanted = store(cache, "aaa", "deep/m.gguf")
    assert find_weights("owner/repo/deep/m.gguf") == wanted


def test_the_place_of_the_cache_may_be_told_by_its_home(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    wanted = store(cache, "aaa", main=True)
    assert find_weights("owner/repo/m.gguf") == wanted


def test_a_file_of_that_path_comes_first(cache: Path) -> None:
    store(cache, "aaa", main=True)
    path = Path("owner/repo/m.gguf")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    assert find_weights("owner/repo/m.gguf") == path


def test_what_is_missing_is_said_with_the_command_that_fetches_it() -> None:
    with pytest.raises(ConfigError, match=r"hf download owner/repo deep/m\.gguf;"):
        find_weights("owner/repo/deep/m.gguf")


@pytest.mark.parametrize(
    "name",
    ["m.gguf", "repo/m.gguf", "/no/such/m.gguf", "../../m.gguf", "owner/../m.gguf", "owner/repo/m.bin", "a//b.gguf"],
)
def test_what_names_no_repository_is_a_path_that_is_wrong(name: str) -> None:
    with pytest.raises(ConfigError, match=r"no model file.*Correct the path") as raised:
        find_weights(name)
    assert "hf download" not in str(raised.value)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def header(*entries: tuple[str, bytes]) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(text(name) + value for name, value in entries)


STRING, ARRAY = struct.pack("<I", 8), struct.pack("<I", 9)
OTHERS = [
    ("general.alignment", struct.pack("<II", 4, 32)),
    ("general.flag", struct.pack("<I?", 7, True)),
    ("some.double", struct.pack("<Id", 12, 0.5)),
    ("tokenizer.tokens", ARRAY + struct.pack("<IQ", 8, 3) + text("a") + text("tools") + text("")),
    ("tokenizer.scores", ARRAY + struct.pack("<IQ", 6, 2) + bytes(8)),
    ("nested", ARRAY + struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 0, 2) + bytes(2)),
    ("general.description", STRING + text("It calls tools.")),
]


@pytest.mark.parametrize(
    ("template", "shown"),
    [("{% if tools %}{{ tools }}{% endif %}", True), ("{{ messages }}", False), ("{{ toolset }}", False)],
)
def test_the_template_tells_whatever_stands_around_it(tmp_path: Path, template: str, shown: bool) -> None:
    file = tmp_path / "m.gguf"
    for seed in range(5):
        entries = [*OTHERS, ("tokenizer.chat_template", STRING + text(template))]
        random.Random(seed).shuffle(entries)
        file.write_bytes(header(*entries))
        assert shows_tools(file) is shown


def test_a_template_for_tools_only_counts(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    plain, other = ("tokenizer.chat_template", STRING + text("{{ messages }}")), STRING + text("{{ tools }}")
    file.write_bytes(header(plain, ("tokenizer.chat_template.tool_use", other)))
    assert shows_tools(file)


def test_a_file_that_is_cut_off_or_garbled_shows_none(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    whole = header(*OTHERS, ("tokenizer.chat_template", STRING + text("{{ tools }}")))
    for length in range(4, len(whole)):
        file.write_bytes(whole[:length])
        assert not shows_tools(file)
    garble = random.Random(7)
    for _ in range(300):
        data = bytearray(whole)
        data[garble.randrange(16, len(data))] = garble.randrange(256)
        file.write_bytes(data)
        shows_tools(file)  # any verdict, and no error
    file.write_bytes(header(("nested", ARRAY + struct.pack("<IQ", 9, 1) * 10_000)))
    assert not shows_tools(file)
    file.write_bytes(header(("long", ARRAY + struct.pack("<IQ", 12, 2**64 - 1)), *OTHERS))
    assert not shows_tools(file)
