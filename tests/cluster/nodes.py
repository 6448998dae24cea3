# SPDX-License-Identifier: Apache-2.0
"""The nodes of a cluster on this machine, and ways to lose them and what runs on them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from reward_kit.execution.ray_engine.cluster import load_ray

_STORE_BYTES = 80 << 20


class Nodes:
    """A head that has no room for actors, and two nodes that have; one of them has sandboxes."""

    def __init__(self) -> None:
        os.environ["RAY_AUTH_MODE"] = "disabled"
        load_ray()
        from ray.cluster_utils import Cluster

        self._cluster: Any = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "object_store_memory": _STORE_BYTES, "include_dashboard": False},
        )
        self._workers: list[Any] = []
        self._lost: list[Any] = []
        self.add("plain")
        self.add("sandboxed", sandbox=2)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.shutdown()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    @property
    def logs(self) -> Path:
        """Where all nodes write their logs."""
        return Path(self._cluster.head_node.get_session_dir_path())

    def node_with(self, name: str) -> str:
        """The id of the node that was added under a name."""
        return next(str(node.node_id) for node, called, _ in self._workers if called == name)

    def add(self, name: str, **resources: float) -> None:
        node = self._cluster.add_node(
            num_cpus=4, object_store_memory=_STORE_BYTES, resources={name: 8, **resources}, include_dashboard=False
        )
        self._workers.append((node, name, resources))

    def lose_one(self, place: int = 0) -> None:
        """Lose a node with all that runs on it."""
        self._lost.append(self._workers.pop(place))
        self._cluster.remove_node(self._lost[-1][0], allow_graceful=False)

    def lose_one_with(self, kind: str) -> bool:
        """Lose a node that has an actor of a kind: Ray may place all of them on one. False where there is none yet.

        Its actors go at the same moment, as when a machine loses its power. By themselves they would work on for a
        while, and a short run could end with nothing lost.
        """
        homes = {process: _parent_of(process) for process in actors("")}
        for place, (node, _, _) in enumerate(self._workers):
            raylets = {raylet.process.pid for raylet in node.all_processes["raylet"]}
            if any(homes.get(process) in raylets for process in actors(kind)):
                self.lose_one(place)
                for process in [process for process, home in homes.items() if home in raylets]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                return True
        return False

    def have_three_again(self) -> None:
        """Have another of the same kind take the place of each that was lost."""
        while self._lost:
            _, name, resources = self._lost.pop()
            self.add(name, **resources)


def _parent_of(process: int) -> int | None:
    """The process that started another one: of an actor, the raylet of its node."""
    try:
        return int((Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def actors(kind: str) -> list[int]:
    """The processes of all actors of a kind, by what Ray calls them."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                title = (place / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(f"ray::{kind}".encode()):
                found.append(int(place.name))
    return sorted(found)


def kill_an_actor(kind: str, rng: random.Random) -> bool:
    """End one actor of a kind as the kernel does when memory is short."""
    running = actors(kind)
    if not running:
        return False
    try:
        os.kill(rng.choice(running), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Misfortune:
    """Does harm, in a thread, each time a count has reached the next of some numbers."""

    def __init__(self, count: Callable[[], int], at: list[int], harm: Callable[[], object]) -> None:
        self._count, self._at, self._harm = count, sorted(at), harm
        self.done = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="misfortune", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(120)

    def _watch(self) -> None:
        for number in self._at:
            while self._count() < number:
                if self._ended.is_set():
                    return
                time.sleep(0.005)
            if self._harm() is not False:
                self.done += 1
