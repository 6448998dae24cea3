# SPDX-License-Identifier: Apache-2.0
"""The resource that is a directory: hostile paths, links and archives; the real directory and what is done to it."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.agent.resources import FileSystemResource, directory
from reward_kit.agent.resources.file_tree import File, FileTree
from reward_kit.agent.tools import ToolError

FILES = {"a.txt": "one", "sub/b.txt": "two", "sub/deep/c.txt": "three"}


async def made(**config: Any) -> FileSystemResource:
    resource = FileSystemResource()
    await resource.setup({"initial_files": FILES, **config})
    return resource


async def read(resource: FileSystemResource, path: str) -> Any:
    return await resource.step("read_file", {"path": path})


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory that no path may reach."""
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path


@pytest.fixture(params=["in memory", "on disk"])
async def files(request: pytest.FixtureRequest) -> Any:
    resource = await made()
    if request.param == "on disk":
        await resource.directory()
    yield resource
    await resource.close()


async def test_actions_do_what_they_say(files: FileSystemResource) -> None:
    assert await files.step("list_dir", {"path": "."}) == ["a.txt", "sub"]
    assert await files.step("list_dir", {"path": "sub"}) == ["sub/b.txt", "sub/deep"]
    assert len(await files.step("list_dir", {"path": ".", "recursive": True})) == 5
    assert await files.step("write_file", {"path": "new/x/y.txt", "content": "é"}) == {
        "status": "success",
        "path": "new/x/y.txt",
    }
    assert await read(files, "./new//x/../x/y.txt") == "é"
    await files.step("create_file", {"path": "empty"})
    assert await read(files, "empty") == ""
    await files.step("delete_file", {"path": "empty"})
    await files.step("create_dir", {"path": "d/e"})
    await files.step("delete_dir", {"path": "new"})
    assert await files.step("list_dir", {"path": "."}) == ["a.txt", "d", "sub"]
    for action, path, error in [
        ("read_file", "empty", FileNotFoundError),
        ("read_file", "sub", FileNotFoundError),
        ("delete_file", "sub", FileNotFoundError),
        ("list_dir", "a.txt", NotADirectoryError),
        ("delete_dir", ".", ValueError),
        ("create_dir", "a.txt/x", NotADirectoryError),
        ("write_file", "sub", IsADirectoryError),
        ("write_file", "a.txt/x", NotADirectoryError),
    ]:
        with pytest.raises(error):
            await files.step(action, {"path": path})
    with pytest.raises(ValueError, match="'path'"):
        await files.step("read_file", {})


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n", b"text\0more", "Größe".encode("latin-1"), b"cut \xc3"])
async def test_a_binary_file_is_said_with_its_size(files: FileSystemResource, content: bytes) -> None:
    await files.step("write_file", {"path": "picture.png", "content": content})
    with pytest.raises(ToolError, match=rf"'picture\.png' is a binary file of {len(content)} bytes") as told:
        await read(files, "picture.png")
    assert told.value.kind == "not_text"


@pytest.mark.parametrize(
    "path", ["..", "../x", "sub/../../x", "/etc/passwd", "/", "a\0b", "x" * 300, "sub/" + "../" * 50 + "etc/passwd"]
)
@pytest.mark.parametrize("action", ["read_file", "write_file", "delete_file", "list_dir", "create_dir", "delete_dir"])
async def test_no_path_leads_out(files: FileSystemResource, action: str, path: str) -> None:
    before = await files.snapshot()
    with pytest.raises(ValueError):
        await files.step(action, {"path": path, "content": "x"})
    assert await files.snapshot() == before


@pytest.mark.parametrize("how", ["absolute", "relative", "directory", "by two links"])
async def test_links_in_the_real_directory_that_lead_out_are_refused(how: str, outside: Path) -> None:
    async with await made() as files:
        place = await files.directory()
        target = os.path.relpath(outside, place)
        if how == "absolute":
            (place / "link").symlink_to(outside / "secret.txt")
        elif how == "relative":
            (place / "link").symlink_to(f"{target}/secret.txt")
        elif how == "directory":
            (place / "link").symlink_to(outside)
        else:
            (place / "up").symlink_to("sub/..")
            (place / "link").symlink_to(f"up/{target}/secret.txt")
        for action in ("read_file", "write_file", "delete_file", "list_dir"):
            for path in ("link", "link/secret.txt"):
                with pytest.raises(ValueError):
                    await files.step(action, {"path": path, "content": "overwritten"})
        for copying in (files.fork, files.checkpoint, files.snapshot):
            with pytest.raises(ValueError, match="outside"):
                await copying()
    assert (outside / "secret.txt").read_text() == "secret"


async def test_links_inside_the_directory_are_followed_and_kept() -> None:
    async with await made() as files:
        place = await files.directory()
        (place / "to_file").symlink_to("sub/b.txt")
        (place / "sub" / "to_dir").symlink_to("../sub/deep")
        (place / "loop").symlink_to("loop")
        assert await read(files, "to_file") == "two"
        assert await read(files, "sub/to_dir/c.txt") == "three"
        with pytest.raises(ValueError, match="too many links"):
            await read(files, "loop")
        await files.step("delete_file", {"path": "loop"})
        await files.step("write_file", {"path": "to_file", "content": "through"})
        fork = await files.fork()
        assert os.readlink(await fork.directory() / "to_file") == "sub/b.txt"
        assert await read(fork, "sub/b.txt") == "through"
        await fork.close()


async def test_what_tools_do_to_the_real_directory_counts() -> None:
    async with await made(base_dir_name="project") as files:
        place = await files.directory()
        assert place.name == "project"
        assert (await files.get_observation())["managed_dir_path"] == str(place)
        for round in range(5):  # the same file, with contents of one length, within one tick of the clock
            (place / "a.txt").write_text(f"{round}{round}{round}")
            assert await read(files, "a.txt") == f"{round}" * 3
            assert await read(await files.fork(), "a.txt") == f"{round}" * 3
        script = place / "run.sh"
        script.write_text("echo hello")
        script.chmod(0o755)
        (place / "sub" / "b.txt").unlink()
        fork = await files.fork()
        forked = await fork.directory()
        assert forked != place
        assert os.access(forked / "run.sh", os.X_OK)
        assert not (forked / "sub" / "b.txt").exists()
        await fork.step("write_file", {"path": str(forked / "here.txt"), "content": "named in full"})
        assert (forked / "here.txt").read_text() == "named in full"
        assert not (place / "here.txt").exists()
        await fork.close()
        assert not forked.exists()


def test_a_file_is_read_again_unless_it_has_long_been_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("one")
    seen: dict[str, directory.Seen] = {}
    directory.read_directory(root, 1000, seen)
    assert seen == {}  # it may be changed again before the clock goes on
    monkeypatch.setattr(directory, "_now", lambda _: (root / "a").stat().st_ctime_ns + 3_000_000_000)
    directory.read_directory(root, 1000, seen)
    assert list(seen) == ["a"]
    monkeypatch.setattr(os, "open", _no_reading(os.open))
    assert directory.read_directory(root, 1000, seen).read("a") == b"one"


def _no_reading(opening: Callable[..., int]) -> Callable[..., int]:
    def opened(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        assert flags & os.O_DIRECTORY, f"{path} was read again"
        return opening(path, flags, *arguments, **named)

    return opened


async def test_restoring_brings_the_real_directory_back(outside: Path) -> None:
    async with await made() as files:
        place = await files.directory()
        checkpoint, before = await files.checkpoint(), await files.snapshot()
        (place / "a.txt").unlink()
        (place / "a.txt").mkdir()
        (place / "a.txt" / "x").write_text("x")
        (place / "sub" / "b.txt").write_text("changed")
        (place / "new").symlink_to("sub")
        await files.restore(checkpoint)
        assert await files.snapshot() == before
        assert (place / "a.txt").read_text() == "one"


async def test_what_is_no_file_is_refused() -> None:
    async with await made() as files:
        os.mkfifo(await files.directory() / "pipe")
        with pytest.raises(ValueError, match="'pipe'"):
            await files.fork()


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def member(name: str, **attributes: Any) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for attribute, value in attributes.items():
        setattr(made, attribute, value)
    return made


HOSTILE: dict[str, Callable[[], bytes]] = {
    "a path upwards": lambda: archive((member("../evil.txt"), b"x")),
    "an absolute path": lambda: archive((member("/tmp/evil.txt"), b"x")),
    "a link out": lambda: archive((member("l", type=tarfile.SYMTYPE, linkname="../.."), b"")),
    "an absolute link": lambda: archive((member("l", type=tarfile.SYMTYPE, linkname="/etc"), b"")),
    "a link, then through it": lambda: archive(
        (member("l", type=tarfile.SYMTYPE, linkname="."), b""), (member("l/../../x"), b"x")
    ),
    "a hard link": lambda: archive((member("l", type=tarfile.LNKTYPE, linkname="/etc/passwd"), b"")),
    "a device": lambda: archive((member("d", type=tarfile.CHRTYPE), b"")),
    "too much": lambda: archive((member("big"), b"\0" * (3 << 20))),
    "cut off": lambda: archive((member("big"), os.urandom(1 << 16)))[:2000],
}


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_a_hostile_archive_is_refused_and_changes_nothing(hostile: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.tar.gz"
    path.write_bytes(HOSTILE[hostile]())
    async with await made(max_mb=2) as files:
        before = await files.snapshot()
        with pytest.raises(ValueError):
            await files.restore({"type": "filesystem_tar_gz", "checkpoint_path": str(path)})
        assert await files.snapshot() == before
    with pytest.raises(ValueError, match="filesystem_tar_gz"):
        await files.restore({"checkpoint_path": str(path)})


async def test_the_directory_is_bounded() -> None:
    async with await made(max_mb=1) as files:
        await files.step("write_file", {"path": "x", "content": "x" * 900_000})
        with pytest.raises(ValueError, match="delete something"):
            await files.step("write_file", {"path": "y", "content": "y" * 200_000})
        await files.step("write_file", {"path": "x", "content": "x" * 1_000_000})  # what is replaced does not count
        await files.step("delete_file", {"path": "x"})
        await files.step("write_file", {"path": "y", "content": "y" * 200_000})


async def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="base_dir_name"):
        await made(base_dir_name="../x")
    with pytest.raises(ValueError, match="outside"):
        await made(initial_files={"../x": "x"})
    with pytest.raises(ValueError, match="text"):
        await made(initial_files={"x": 1})
    with pytest.raises(RuntimeError, match="setup"):
        await FileSystemResource().fork()


NAMES = st.sampled_from(["a", "b", "a/a", "a/b", "b/a/c", "c"])
ACTIONS = st.one_of(
    st.tuples(st.just("write"), NAMES, st.binary(max_size=5)),
    st.tuples(st.just("delete_file"), NAMES),
    st.tuples(st.just("make_dir"), NAMES),
    st.tuples(st.just("delete_dir"), NAMES),
)


@given(st.lists(ACTIONS, max_size=20), st.lists(ACTIONS, max_size=20))
def test_a_tree_comes_back_from_its_archive_and_counts_its_bytes(before: list[Any], after: list[Any]) -> None:
    tree = FileTree(1000)
    _apply(tree, before)
    copied, told = tree.copy(), tree.entries()
    _apply(copied, after)
    assert tree.entries() == told  # what is done to a copy does not reach the tree
    again = FileTree.from_archive(copied.to_archive(), 1000)
    assert again.entries() == copied.entries()
    assert (
        again._size == copied._size == sum(len(entry.content) for _, entry in copied.items() if isinstance(entry, File))
    )


def _apply(tree: FileTree, actions: list[Any]) -> None:
    for name, *arguments in actions:
        with suppress(OSError):
            getattr(tree, name)(*arguments)
