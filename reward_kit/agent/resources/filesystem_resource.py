# SPDX-License-Identifier: Apache-2.0
"""FileSystemResource: a directory as a world.

The files are in memory until somebody asks for a real directory: a fork copies their names and shares their contents.
A real directory is private to the resource, and is looked at before each action, so that what a tool did to it counts.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from reward_kit.agent.environment import Durability
from reward_kit.agent.file_texts import file_text
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resources.directory import Seen, read_directory, update_directory, write_directory
from reward_kit.agent.resources.file_tree import File, FileTree, Link
from reward_kit.agent.resources.tool_spec import checkpoint_path, tool_spec, unknown_action

__all__ = ["FileSystemResource"]

_T = TypeVar("_T")
_MOST_MB = 256
_SHOWN = 4096
_DEFAULT_NAME = "files"
_CHECKPOINT = {"type": "filesystem_tar_gz"}


class FileSystemResource(ForkableResource):
    """A directory.

    Config: `base_dir_name`, `initial_files` (path → text); ours: `max_mb`, what its files may take together. Actions:
    `create_file` or `write_file`, `read_file`, `delete_file`, `list_dir`, `create_dir`, `delete_dir`. A path that leads
    out of the directory is a ValueError.
    """

    durability: ClassVar[Durability] = "replay"
    reading: ClassVar[frozenset[str]] = frozenset({"read_file", "list_dir"})

    def __init__(self) -> None:
        """No directory yet; `setup` makes one."""
        self._name = _DEFAULT_NAME
        self._most_bytes = _MOST_MB << 20
        self._tree: FileTree | None = None
        self._home: Path | None = None
        self._directory: Path | None = None
        self._seen: dict[str, Seen] = {}
        self._lock = asyncio.Lock()

    async def setup(self, config: dict[str, Any]) -> None:
        """Begin with `initial_files`."""
        name = config.get("base_dir_name") or _DEFAULT_NAME
        if Path(name).name != name or name in (".", ".."):
            raise ValueError(f"'base_dir_name' is one name without '/', not {name!r}")
        tree = FileTree(int(config.get("max_mb", _MOST_MB)) << 20)
        for path, content in (config.get("initial_files") or {}).items():
            tree.write(path, _as_bytes(content))
        await self.close()
        self._name, self._most_bytes, self._tree = name, tree.most_bytes, tree

    async def fork(self) -> FileSystemResource:
        """A resource with the same files, which are copied only where one of the two changes them."""
        async with self._lock:
            forked = type(self)()
            forked._name, forked._most_bytes = self._name, self._most_bytes
            forked._tree = (await self._current()).copy()
            return forked

    async def checkpoint(self) -> dict[str, Any]:
        """Write the files to an archive of this resource, which is removed by `close`."""
        async with self._lock:
            tree = await self._current()
            path = self._private() / f"{uuid.uuid4().hex}.tar.gz"
            await asyncio.to_thread(lambda: path.write_bytes(tree.to_archive()))
            return {**_CHECKPOINT, "checkpoint_path": str(path)}

    async def snapshot(self) -> bytes:
        """The files as a .tar.gz."""
        async with self._lock:
            tree = await self._current()
            return await asyncio.to_thread(tree.to_archive)

    async def restore(self, state_data: dict[str, Any] | bytes) -> None:
        """Go back to a checkpoint or a snapshot. The archive is read with suspicion; see `FileTree.from_archive`."""
        if not isinstance(state_data, bytes):
            path = Path(checkpoint_path(state_data, _CHECKPOINT))
            state_data = await asyncio.to_thread(path.read_bytes)
        tree = await asyncio.to_thread(FileTree.from_archive, state_data, self._most_bytes)
        async with self._lock:
            if self._tree is None:
                self._tree = FileTree(self._most_bytes)
            await self._put(await self._current(), tree)

    async def step(self, action_name: str, action_params: dict[str, Any]) -> Any:
        """Do an action on a path of the directory."""
        action = _ACTIONS.get(action_name)
        if action is None:
            raise unknown_action(self, action_name, list(_ACTIONS))
        if not isinstance(action_params.get("path"), str):
            raise ValueError(f"'{action_name}' needs 'path': a path in the directory")
        async with self._lock:
            before = await self._current()
            params = {**action_params, "path": self._from_root(action_params["path"])}
            if action_name in self.reading:
                return action(before, params)
            after = before.copy() if self._directory is not None else before
            done = action(after, params)
            await self._put(before, after)
            return done

    async def directory(self) -> Path:
        """A real directory with the files, for tools that need one. What is done to it counts; `close` removes it."""
        async with self._lock:
            tree = await self._current()
            if self._directory is None:
                path = self._private() / self._name
                await asyncio.to_thread(write_directory, path, tree)
                self._directory = path
            return self._directory

    async def get_observation(self) -> dict[str, Any]:
        """Where the real directory is; asking makes one."""
        if self._tree is None:
            return {"type": "filesystem", "managed_dir_path": None, "status": "uninitialized"}
        return {"type": "filesystem", "managed_dir_path": str(await self.directory()), "status": "ready"}

    async def describe(self) -> dict[str, Any]:
        """Every path with its text, or with size and digest where it is long or no text."""
        async with self._lock:
            tree = await self._current()
        return {"type": "filesystem", "files": {path: _shown(entry) for path, entry in tree.items()}}

    async def get_tools_spec(self) -> list[dict[str, Any]]:
        """One tool per action; `create_file` is `write_file` under another name, and is no tool of its own."""
        path = {"type": "string", "description": "A path relative to the directory."}
        content = {"type": "string", "description": "The whole new content of the file."}
        recursive = {"type": "boolean", "description": "Whether to list what is below, too."}
        both = {"path": path, "recursive": recursive}
        return [
            tool_spec("write_file", "Make a file, or replace its content.", {"path": path, "content": content}),
            tool_spec("read_file", "Read the content of a file.", {"path": path}),
            tool_spec("delete_file", "Delete a file.", {"path": path}),
            tool_spec("list_dir", "List a directory; '.' is the top.", both, ["path"]),
            tool_spec("create_dir", "Make a directory, and those above it.", {"path": path}),
            tool_spec("delete_dir", "Delete a directory with all that is in it.", {"path": path}),
        ]

    async def close(self) -> None:
        """Forget the files, and remove the directory and the checkpoints."""
        async with self._lock:
            home, self._home, self._directory, self._tree = self._home, None, None, None
            self._seen = {}
        if home is not None:
            await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)

    async def _current(self) -> FileTree:
        """The files as they are now."""
        if self._tree is None:
            raise RuntimeError("this FileSystemResource has no directory; call setup() first")
        if self._directory is not None:
            self._tree = await asyncio.to_thread(read_directory, self._directory, self._most_bytes, self._seen)
        return self._tree

    async def _put(self, before: FileTree, after: FileTree) -> None:
        self._tree = after
        if self._directory is not None:
            await asyncio.to_thread(update_directory, self._directory, before, after)

    def _private(self) -> Path:
        """A temporary directory that only we may enter, made when first needed."""
        if self._home is None:
            self._home = Path(tempfile.mkdtemp(prefix="reward-kit-fs-"))
        return self._home

    def _from_root(self, path: str) -> str:
        """A path as the tree has it: who was shown the real directory may name it in full."""
        if self._directory is not None and Path(path).is_relative_to(self._directory):
            return str(Path(path).relative_to(self._directory))
        return path


def _as_bytes(content: object) -> bytes:
    if isinstance(content, bytes):
        return content
    if not isinstance(content, str):
        raise ValueError(f"the content of a file is text, not {type(content).__name__}")
    return content.encode()


def _shown(entry: File | Link | None) -> Any:
    if entry is None:
        return {"directory": True}
    if isinstance(entry, Link):
        return {"link": entry.target}
    if len(entry.content) <= _SHOWN:
        try:
            return entry.content.decode()
        except UnicodeDecodeError:
            pass
    return {"bytes": len(entry.content), "sha256": hashlib.sha256(entry.content).hexdigest()}


# ── the actions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _done(name: str) -> dict[str, str]:
    return {"status": "success", "path": name or "."}


def _write(tree: FileTree, params: dict[str, Any]) -> Any:
    return _done(tree.write(params["path"], _as_bytes(params.get("content", ""))))


_ACTIONS: dict[str, Callable[[FileTree, dict[str, Any]], Any]] = {
    "create_file": _write,
    "write_file": _write,
    "read_file": lambda tree, params: file_text(params["path"], tree.read(params["path"])),
    "delete_file": lambda tree, params: _done(tree.delete_file(params["path"])),
    "list_dir": lambda tree, params: tree.list_dir(params["path"], recursive=bool(params.get("recursive"))),
    "create_dir": lambda tree, params: _done(tree.make_dir(params["path"])),
    "delete_dir": lambda tree, params: _done(tree.delete_dir(params["path"])),
}
