"""One sandbox as its supervisor sees it: put together, given a porter, emptied, taken apart."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress

from reward_kit.sandbox.overlay import MountedRoot, upper_directories
from reward_kit.sandbox.spare import Spare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from reward_kit.sandbox.overlay import Lowers

    class Hub(Protocol):
        """What a sandbox needs of its supervisor."""

        def root(self, lowers: Lowers) -> MountedRoot: ...

        def watch(self, descriptor: int, work: Callable[[], None]) -> None: ...
        def forget(self, descriptor: int) -> None: ...
        def say(self, message: dict[str, Any]) -> None: ...
        def adopt(self, process: int, ended: Callable[[], None]) -> None: ...
        def drop(self, sandbox: SupervisedSandbox) -> None: ...


__all__ = ["SupervisedSandbox"]

_READY = b"\n"


class SupervisedSandbox:
    """One sandbox, from its mounts to its unmounting."""

    def __init__(self, hub: Hub, request: dict[str, Any], spare: Spare) -> None:
        """Take the description, and the processes that will serve it; `open` does the work."""
        self.key: int = request["sandbox"]
        self._hub = hub
        self._request = request
        self._spare = spare
        self._root: MountedRoot | None = None
        self._init = 0  # the first process inside, by its number outside
        self._living = {"porter", "bwrap"}  # and `init`, once there is one
        self._said = self._information = b""
        self._open = self._closing = False

    @property
    def opening(self) -> bool:
        """Whether it is still being put together."""
        return not (self._open or self._closing)

    @property
    def home(self) -> str:
        """Where its files are; nowhere, when it has not come so far."""
        return self._root.home if self._root else ""

    @property
    def uppers(self) -> list[str]:
        """Where what is written in it comes to lie."""
        return upper_directories(self._root.home, len(self._root.lowers)) if self._root else []

    # ── opening ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def open(self, portal: int) -> None:
        """Start everything."""
        porter, bwrap = self._spare.porter, self._spare.bwrap
        self._hub.adopt(porter.process, lambda: self._ended("porter"))
        self._hub.adopt(bwrap.process, lambda: self._ended("bwrap"))
        try:
            self._root = self._hub.root(self._request["lowers"])
            bwrap.go(["--bind", self._root.path, "/", *self._request["options"]])
            self._hub.watch(bwrap.information, lambda: self._learn(bwrap.information))
            self._hub.watch(bwrap.said, lambda: self._hear(bwrap.said))
            if self._spare.group is not None:
                limits = {name: self._request[name] for name in ("memory_bytes", "processes")}
                self._spare.group.limit(**limits)
            porter.give_portal(portal, self._request)
        except OSError as error:
            self._fail(str(error))

    def _learn(self, information: int) -> None:
        """bwrap tells the number of the first process inside."""
        data = os.read(information, 4096)
        self._information += data
        if not data:
            self._hub.forget(information)
            if self._information:
                self._init = json.loads(self._information)["child-pid"]
            self._begin()

    def _hear(self, said: int) -> None:
        """The first process says an empty line when it runs; anything else is bwrap complaining."""
        data = os.read(said, 4096)
        self._said += data
        self._begin()
        if not data:
            self._hub.forget(said)
            if not self._open and not self._closing:
                self._fail(self._said.decode(errors="replace").strip() or "bwrap ended without a word")

    def _begin(self) -> None:
        if self._said == _READY and self._init and not self._open and not self._closing:
            self._open = True
            self._spare.porter.go(self._init)
            self._living.add("init")
            pidfd = os.pidfd_open(self._init)
            self._hub.watch(pidfd, lambda: self._init_ended(pidfd))
            group = self._spare.group.name if self._spare.group else ""
            told = {"group": group, "home": self.home, "first": self._init}
            self._hub.say({"event": "opened", "sandbox": self.key, **told})

    def _fail(self, reason: str) -> None:
        self._hub.say({"event": "failed", "sandbox": self.key, "reason": reason})
        self.close()

    # ── closing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Kill everything in it; the rest follows when the last one is dead."""
        if self._closing:
            return
        self._closing = True
        numbers = {"init": self._init, "bwrap": self._spare.bwrap.process, "porter": self._spare.porter.process}
        for name in self._living:
            with suppress(ProcessLookupError):
                os.kill(numbers[name], signal.SIGKILL)
        self._finish()

    def _init_ended(self, pidfd: int) -> None:
        self._hub.forget(pidfd)
        self._ended("init")

    def _ended(self, who: str) -> None:
        """One of its three processes is no more. When it is not closing, the sandbox has died."""
        self._living.discard(who)
        if not self._closing:
            self._hub.say({"event": "died", "sandbox": self.key})
            self.close()
        else:
            self._finish()

    def _finish(self) -> None:
        if self._living:
            return
        self._hub.say({"event": "emptied", "sandbox": self.key})
        self._spare.close()
        if self._root is not None:
            self._root.umount()
        if self._spare.group is not None:
            self._spare.group.remove()
        self._hub.drop(self)
        self._hub.say({"event": "closed", "sandbox": self.key, "home": self.home})
