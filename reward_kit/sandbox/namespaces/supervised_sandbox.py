"""One sandbox as its supervisor sees it: put together, given a porter, emptied, taken apart."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from reward_kit.sandbox.namespaces.bubblewrap import Bubblewrap, Launcher
    from reward_kit.sandbox.namespaces.nursery import PorterAhead
    from reward_kit.sandbox.namespaces.workshop import MountedFiles, Workshop

    class Hub(Protocol):
        """What a sandbox needs of its supervisor."""

        workshop: Workshop
        launcher: Launcher

        def watch(self, descriptor: int, work: Callable[[], None]) -> None: ...
        def forget(self, descriptor: int) -> None: ...
        def say(self, message: dict[str, Any]) -> None: ...
        def drop(self, sandbox: SupervisedSandbox) -> None: ...


__all__ = ["SupervisedSandbox"]

_READY = b"\n"


class SupervisedSandbox:
    """One sandbox, from its mounts to its unmounting. It may be put together before anybody asks for it."""

    def __init__(self, hub: Hub, kind: dict[str, Any], porter: PorterAhead) -> None:
        """Take the description and the process that will serve it; `begin` does the work."""
        self.kind = kind
        self.key = 0
        """By what the backend knows it; 0 where nobody has asked for it yet."""
        self._hub = hub
        self._porter = porter
        self._portal = -1
        self._files: MountedFiles | None = None
        self._bwrap: Bubblewrap | None = None
        self._said = b""
        self._first = 0  # by its number outside
        self._living: dict[str, int] = {}  # by their pidfds
        self._is_mounted = True
        self._made = self._open = self._closing = self._keep = False

    @property
    def opening(self) -> bool:
        """Whether it is still being put together."""
        return not (self._open or self._closing)

    @property
    def closing(self) -> bool:
        """Whether it is of no more use."""
        return self._closing

    @property
    def home(self) -> str:
        """Where its files are; nowhere, when it has not come so far."""
        return self._files.home if self._files else ""

    @property
    def uppers(self) -> list[str]:
        """Where what is written in it comes to lie."""
        return self._files.root.uppers if self._files else []

    # ── opening ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Start everything."""
        self._watch("porter", self._porter.pidfd)
        try:
            if self._porter.group is not None:
                self._porter.group.limit(memory_bytes=self.kind["memory_bytes"], processes=self.kind["processes"])
            self._files = files = self._hub.workshop.make(self.kind)
            self._bwrap = self._hub.launcher.start(files.root.path, files.devices, self.kind["options"])
            if self._bwrap.pidfd >= 0:  # else it has ended, and has said why
                self._watch("bwrap", self._bwrap.pidfd)
            self._hub.watch(self._bwrap.said, self._hear)
        except OSError as error:
            self._fail(str(error))

    def _watch(self, name: str, pidfd: int) -> None:
        self._living[name] = pidfd
        self._hub.watch(pidfd, lambda: self._ended(name))

    def _hear(self) -> None:
        """The first process says an empty line when it runs; anything else is bwrap complaining."""
        assert self._bwrap is not None
        data = os.read(self._bwrap.said, 4096)
        self._said += data
        if data and self._said != _READY:
            return
        self._made = True
        self._hub.forget(self._bwrap.said)
        found = self._said == _READY and self._find_first(self._bwrap.first())
        if self._closing:
            self._kill()
        elif found:
            self._enter()
        else:
            self._fail(self._complaint)

    @property
    def _complaint(self) -> str:
        return self._said.decode(errors="replace").strip() or "bwrap ended without a word"

    def _find_first(self, first: int) -> bool:
        self._first = first
        try:
            self._watch("first", os.pidfd_open(first))
        except ProcessLookupError:
            return False
        return True

    def _enter(self) -> None:
        """It is all there: let the porter in. What bwrap was given is its own by now, and here only in the way."""
        self._open = True
        with suppress(BrokenPipeError):  # it has ended, and that will be heard of
            self._porter.enter(self._first, self.kind)
        self._introduce()
        self._umount()

    def give_to(self, key: int, portal: int) -> None:
        """Somebody asks for it, and talks to its porter through `portal`, which is taken over."""
        self.key, self._portal = key, portal
        self._introduce()

    def _introduce(self) -> None:
        if self._open and self.key:
            group = self._porter.group.name if self._porter.group else ""
            is_bounded = self._files is not None and self._files.is_bounded
            told = {"group": group, "home": self.home, "first": self._first, "bounded": is_bounded}
            with suppress(BrokenPipeError):
                self._porter.serve(self._portal)
            self._close_portal()
            self._hub.say({"event": "opened", "sandbox": self.key, **told})

    def _close_portal(self) -> None:
        if self._portal >= 0:
            os.close(self._portal)
        self._portal = -1

    def _umount(self) -> None:
        if self._files is not None and self._is_mounted:
            self._is_mounted = False
            self._files.umount()

    def _fail(self, reason: str) -> None:
        self._tell({"event": "failed", "reason": reason})
        self.close()

    def _tell(self, event: dict[str, Any]) -> None:
        """Tell who has asked for it, if anybody has."""
        if self.key:
            self._hub.say({**event, "sandbox": self.key})

    # ── closing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self, *, keep: bool = False) -> None:
        """Kill everything in it; the rest follows when the last one is dead. `keep`: what was written is wanted."""
        if self._closing:
            return
        self._closing = True
        self._keep = keep
        self._kill()
        self._finish()

    def _kill(self) -> None:
        """A bwrap that is still at work is let finish: by now it may have a child that nobody else knows of."""
        for name, pidfd in self._living.items():
            if name != "bwrap" or self._made:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    def _ended(self, who: str) -> None:
        """One of its three processes is no more. When it is not closing, the sandbox has died."""
        self._hub.forget(self._living.pop(who))
        if not self._closing:
            self._fail(self._last_words() if who == "bwrap" else f"its {who} process ended")
        else:
            self._finish()

    def _last_words(self) -> str:
        """What bwrap has said before it ended; that matters only to who waits for the sandbox to open."""
        if self._bwrap is not None and not self._made:
            os.set_blocking(self._bwrap.said, False)
            with suppress(BlockingIOError):
                while data := os.read(self._bwrap.said, 4096):
                    self._said += data
            self._made = True
            self._hub.forget(self._bwrap.said)
        return self._complaint

    def _finish(self) -> None:
        if self._living:
            return
        self._close_portal()
        if self._bwrap is not None:
            self._bwrap.close()
        self._umount()
        self._porter.remove()
        if self._keep and self._files is not None and self._files.is_bounded:
            self._copy(self._files)
        else:
            self._end(is_kept=self._keep)

    def _copy(self, files: MountedFiles) -> None:
        """What is wanted goes to where other supervisors find it, too."""
        try:
            result = files.copy()
        except OSError:
            self._end(is_kept=False)
            return

        def copied() -> None:
            is_kept = files.is_copied(result)
            self._hub.forget(result)
            self._end(is_kept=is_kept)

        self._hub.watch(result, copied)

    def _end(self, *, is_kept: bool) -> None:
        if self._files is not None:
            self._files.release()
        self._hub.drop(self)
        self._tell({"event": "closed", "home": self.home, "kept": is_kept})
