# SPDX-License-Identifier: Apache-2.0
"""Setups that take long are done once: what they leave is stacked under every sandbox that asks for the same.

A setup that took more than a moment is ended where it stands, its upper layer becomes a lower one, and what it did in
the shell (directory, variables, functions, options) is written down and read again by the next shell. Whoever asks for
the same while it runs waits for it. Left out are setups that look at the clock or at chance, that leave a process
behind, or that write to memory; and a snapshot is used for a minute or two only, so that its files do not look old.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import shlex
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace

from reward_kit.errors import SandboxError
from reward_kit.sandbox.contract import SandboxSpec
from reward_kit.sandbox.local.sandbox import LocalSandbox

__all__ = ["Snapshot", "SnapshotPolicy", "SnapshotStore", "snapshot_key"]

_VOLATILE = re.compile(
    r"\b(date|sleep|at|cron|nohup|setsid|disown|uuidgen|mktemp|shuf|hostname|uptime|ps|kill|ulimit|exec|exit)\b"
    r"|RANDOM|SECONDS|EPOCH|/dev/(u?random|shm|fd|tcp)|/proc\b|\$\$|\$!|(^|[^&>])&($|[^&>])|(touch|--date|-d)\b.*(ago|now|yesterday)"
)
"""Setups that are different each time they run, or that leave something behind which is not a file."""

_STATE = r"""
for __rk_v in $(compgen -v); do
  case $__rk_v in
    BASH*|__rk_*|COMP_*|EPOCH*|DIRSTACK|EUID|FUNCNAME|GROUPS|HIST*|HOST*|LINENO|MACHTYPE|OSTYPE|OPT*|PIPESTATUS) ;;
    PPID|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_) ;;
    *) declare -p "$__rk_v" ;;
  esac
done
declare -f; alias -p; trap -p; shopt -p; set +o; umask -p; printf 'cd -- %q\n' "$PWD"
"""
"""Says what is to be known of a shell, as commands."""


_REMEMBERED = 10_000


@dataclass(frozen=True)
class SnapshotPolicy:
    """When a setup is worth keeping, and for how long."""

    slower_than: float = 0.05
    """Seconds that a setup has to take."""
    seconds: float = 120.0
    """How long a snapshot is used."""
    most_bytes: int = 1 << 30
    """What all snapshots together may take on disk; the least recently used go first."""


@dataclass(eq=False)
class Snapshot:
    """What the setup commands of a task left behind, kept so that they need not run again."""

    home: str
    """Where its files are."""
    state: str
    """What it did in the shell, as commands."""
    size: int
    made: float = field(default_factory=time.monotonic)
    users: int = 0


def snapshot_key(spec: SandboxSpec) -> str | None:
    """The same for specs whose setup leaves the same; None for one that may not."""
    if not spec.setup or any(_VOLATILE.search(command) for command in spec.setup):
        return None
    files = {path: hashlib.sha256(content).hexdigest() for path, content in spec.files.items()}
    parts = [spec.image, spec.setup, spec.setup_join, files, dict(spec.environment), spec.workdir, spec.network]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class SnapshotStore:
    """Opens sandboxes for a backend, on snapshots where that pays.

    `open_fresh` opens a sandbox on a snapshot or on none; `keep` ends one and tells where its files are and how many
    bytes they take, or None where they are lost; `discard` removes such files.
    """

    def __init__(
        self,
        policy: SnapshotPolicy,
        open_fresh: Callable[[SandboxSpec, Snapshot | None], Awaitable[LocalSandbox]],
        keep: Callable[[LocalSandbox], Awaitable[tuple[str, int] | None]],
        discard: Callable[[str], None],
    ) -> None:
        """Begin with no snapshot. The callables open a sandbox, keep what one holds, and remove what was kept."""
        self._policy = policy
        self._open_fresh = open_fresh
        self._keep = keep
        self._discard = discard
        self._kept: OrderedDict[str, Snapshot] = OrderedDict()
        self._not_worth: OrderedDict[str, None] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    async def open(self, spec: SandboxSpec) -> LocalSandbox:
        """A sandbox with its setup done, one way or the other."""
        key = snapshot_key(spec)
        if key is None or key in self._not_worth:
            return await self._open_fresh(spec, None)
        try:
            async with self._locks.setdefault(key, asyncio.Lock()):
                snapshot = self._usable(key)
                if snapshot is None and key not in self._not_worth:
                    sandbox = await self._open_fresh(spec, None)
                    async with _closed_unless_done(sandbox):
                        snapshot = await self._take(key, sandbox)
                    if snapshot is None and sandbox.is_open:
                        return sandbox
        finally:
            self._locks.pop(key, None)  # those who wait for it have it; whoever comes now finds what was found out
        return await (self._open_on(spec, snapshot) if snapshot else self._open_fresh(spec, None))

    def _usable(self, key: str) -> Snapshot | None:
        snapshot = self._kept.get(key)
        if snapshot is None or time.monotonic() - snapshot.made > self._policy.seconds:
            return None
        self._kept.move_to_end(key)
        return snapshot

    async def _take(self, key: str, sandbox: LocalSandbox) -> Snapshot | None:
        """Make a snapshot of a sandbox that has just been set up, which ends it; None where that is not worth it."""
        state = await sandbox.run(_STATE) if sandbox.setup_seconds > self._policy.slower_than else None
        is_fit = state is not None and state.ok and not state.truncated and sandbox.is_quiet()
        kept = await self._keep(sandbox) if is_fit else None
        if state is None or kept is None:
            self._not_worth[key] = None
            if len(self._not_worth) > _REMEMBERED:
                self._not_worth.popitem(last=False)
            return None
        home, size = kept
        snapshot = Snapshot(home, state.stdout, size)
        self._forget(key)
        self._kept[key] = snapshot
        self._make_room()
        return snapshot

    async def _open_on(self, spec: SandboxSpec, snapshot: Snapshot) -> LocalSandbox:
        snapshot.users += 1
        try:
            sandbox = await self._open_fresh(replace(spec, setup=(), files={}), snapshot)
        finally:
            self.released(snapshot)  # an open sandbox counts by itself
        async with _closed_unless_done(sandbox):
            done = await sandbox.run(f"eval {shlex.quote(snapshot.state)} 2>/dev/null")
            if done.exited or done.timed_out:
                raise SandboxError("The state of a snapshot could not be restored. Try again, or switch snapshots off.")
        return sandbox

    def released(self, snapshot: Snapshot) -> None:
        """One sandbox less uses the snapshot."""
        snapshot.users -= 1
        if not snapshot.users and snapshot not in self._kept.values():
            self._discard(snapshot.home)

    def _forget(self, key: str) -> None:
        snapshot = self._kept.pop(key, None)
        if snapshot is not None and not snapshot.users:
            self._discard(snapshot.home)

    def _make_room(self) -> None:
        while len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > self._policy.most_bytes:
            self._forget(next(iter(self._kept)))


@contextlib.asynccontextmanager
async def _closed_unless_done(sandbox: LocalSandbox) -> AsyncIterator[None]:
    """Close a sandbox that nobody has been given yet where something goes wrong, being cancelled included."""
    try:
        yield
    except BaseException:
        await sandbox.close()
        raise
