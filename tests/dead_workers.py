# SPDX-License-Identifier: Apache-2.0
"""A process of pytest-xdist that dies costs the test it ran, at once, and nothing else.

xdist means to start another process in its place and to go on. With `--dist loadgroup` it could wait for ever instead:

- It hands out again all that the dead process had been given. The tests it had done are then lists of nothing, and
  nobody reports the end of these. The test it died of kills the next process.
- The new process gets one test, but a process begins a test only when it knows the one after it.
- A death is noticed by the end of a pipe. A child that a test had forked keeps that pipe open.
- Giving tests to a process that has died a moment ago ends the whole run.

And a process that dies when its tests are done fails nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler.loadgroup import LoadGroupScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

__all__ = ["pytest_configure", "pytest_sessionfinish", "pytest_testnodedown", "pytest_xdist_make_scheduler"]

_BEGINS_WITH = 2
"""How many tests a process must know of before it begins one."""
_DEATHS: pytest.StashKey[int] = pytest.StashKey()


class Scheduling(LoadGroupScheduling):  # type: ignore[misc]
    """xdist's own scheduler, which here survives a death."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Take back what a process still owes, without the test it died of; the name of that one."""
        work = self.assigned_work[node]
        died_of = next(((scope, name) for scope, unit in work.items() for name, done in unit.items() if not done), None)
        if died_of is not None:
            work[died_of[0]][died_of[1]] = True
        for scope in [scope for scope, unit in work.items() if all(unit.values())]:
            del work[scope]
        super().remove_node(node)
        return None if died_of is None else died_of[1].removesuffix(f"@{died_of[0]}")  # where its group is named

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Note which tests a process has found. Where they are not those of the others, it can run none."""
        super().add_node_collection(node, collection)
        if node not in self.registered_collections:
            node.shutdown()

    def _assign_work_unit(self, node: WorkerController) -> None:
        try:
            super()._assign_work_unit(node)
        except OSError:
            return  # it has just died: what it was given is taken back when that is noticed

    def _reschedule(self, node: WorkerController) -> None:
        if node not in self.registered_collections:  # it is still starting
            return
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < _BEGINS_WITH:
            super()._reschedule(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """The scheduler of `--dist loadgroup`."""
    return Scheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_configure(config: pytest.Config) -> None:
    """In a process of xdist: see that what it forks lets go of the pipes to the one who waits for it."""
    for plugin in config.pluginmanager.get_plugins() if hasattr(config, "workerinput") else ():
        if type(plugin).__name__ == "WorkerInteractor":  # a class made from text, which cannot be imported
            os.register_at_fork(after_in_child=partial(_let_go, plugin.channel.gateway._io))


def _let_go(pipes: Any) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for pipe in (pipes.infile, pipes.outfile):
        os.dup2(nowhere, pipe.fileno(), inheritable=False)
    os.close(nowhere)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController, error: object | None) -> None:
    """Count the deaths."""
    if error is not None:
        node.config.stash[_DEATHS] = node.config.stash.get(_DEATHS, 0) + 1


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a process died, though no test may have been lost with it."""
    if session.config.stash.get(_DEATHS, 0) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
