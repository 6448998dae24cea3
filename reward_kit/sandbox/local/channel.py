# SPDX-License-Identifier: Apache-2.0
"""A conversation with a process that serves a backend: messages out, messages in, and what happens when it ends."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reward_kit.sandbox.local.messages import Inbox, pack

__all__ = ["Channel", "close_all", "start_program"]

_ROOT = Path(__file__).parents[3]
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from reward_kit.sandbox.{} import main; main()"


def start_program(module: str, theirs: socket.socket, settings: str) -> subprocess.Popen[bytes]:
    """Start a module of this package as a program: small, with nothing of our environment, in a session of its own."""
    descriptor = theirs.fileno()
    code = _START.format(module)
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, str(_ROOT), str(descriptor), settings],
        stdin=subprocess.DEVNULL,
        pass_fds=(descriptor,),
        env={"PATH": os.defpath, "LD_BIND_NOW": "1"},  # else every fork of it would look the same functions up
        start_new_session=True,
    )


def close_all(descriptors: Sequence[int]) -> None:
    """Close every one of them."""
    for descriptor in descriptors:
        os.close(descriptor)


class Channel:
    """Our end of a socket. `happened` is called with every message, `ended` once, when there will be no more."""

    def __init__(
        self, ours: socket.socket, happened: Callable[[dict[str, Any]], None], ended: Callable[[str], None]
    ) -> None:
        """Take our end of the socket, and begin to listen on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._socket = ours
        self._socket.setblocking(False)
        self._happened = happened
        self._ended = ended
        self._inbox = Inbox(ours)
        self._outbox: deque[tuple[bytes, list[int]]] = deque()
        self.open = True
        """Whether anything can be sent."""
        self._loop.add_reader(ours.fileno(), self._readable)

    def send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Send a message, now or when there is room, and take over its descriptors."""
        if not self.open:
            close_all(descriptors)
            return
        self._outbox.append((pack(message, descriptors), list(descriptors)))
        if len(self._outbox) == 1:
            self._flush()

    def _flush(self) -> None:
        while self._outbox:
            data, descriptors = self._outbox[0]
            try:
                sent = socket.send_fds(self._socket, [data], descriptors) if descriptors else self._socket.send(data)
            except BlockingIOError:
                self._loop.add_writer(self._socket.fileno(), self._flush)
                return
            except OSError as error:
                self.close(str(error))
                return
            close_all(descriptors)
            if sent < len(data):
                self._outbox[0] = (data[sent:], [])
            else:
                self._outbox.popleft()
        self._loop.remove_writer(self._socket.fileno())

    def listen_now(self) -> None:
        """Take what has been said by now, before the loop comes to it."""
        if self.open:
            self._readable()

    def _readable(self) -> None:
        try:
            alive = self._inbox.receive()
        except BlockingIOError:
            return
        for event, _ in self._inbox.messages():
            self._happened(event)
        if not alive:
            self.close("its process ended")

    def close(self, reason: str = "it was closed") -> None:
        """Hang up. Closing twice is closing once."""
        if not self.open:
            return
        self.open = False
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        self._inbox.close()
        for _, descriptors in self._outbox:
            close_all(descriptors)
        self._outbox.clear()
        self._ended(reason)
