# SPDX-License-Identifier: Apache-2.0
"""Sandboxes: places where commands written by a model run without touching anything else.

    backend = await choose_backend()
    async with await backend.open(SandboxSpec(setup=("mkdir work", "cd work"))) as sandbox:
        done = await sandbox.run("touch here")

The names below are the public ones; each is imported when it is first used.
"""

TYPE_CHECKING = False
"""Type checkers take this to be true; `typing`, which has it too, is not imported for it."""

if TYPE_CHECKING:
    from reward_kit.sandbox.choose import backends, choose_backend, probe_all
    from reward_kit.sandbox.contract import Limits, Probe, Sandbox, SandboxBackend, SandboxSpec
    from reward_kit.sandbox.local.unisolated import UnisolatedBackend
    from reward_kit.sandbox.namespaces.backend import NamespacesBackend
    from reward_kit.sandbox.pool import SandboxPool
    from reward_kit.sandbox.python.pool import PythonZygote

__all__ = [
    "Limits",
    "NamespacesBackend",
    "Probe",
    "PythonZygote",
    "Sandbox",
    "SandboxBackend",
    "SandboxPool",
    "SandboxSpec",
    "UnisolatedBackend",
    "backends",
    "choose_backend",
    "probe_all",
]

_HOMES = {
    "Limits": "contract",
    "NamespacesBackend": "namespaces.backend",
    "Probe": "contract",
    "PythonZygote": "python.pool",
    "Sandbox": "contract",
    "SandboxBackend": "contract",
    "SandboxPool": "pool",
    "SandboxSpec": "contract",
    "UnisolatedBackend": "local.unisolated",
    "backends": "choose",
    "choose_backend": "choose",
    "probe_all": "choose",
}


def __getattr__(name: str) -> object:
    """Import a public name where it lives: the supervisor, which must stay small, imports this package too."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return vars(importlib.import_module(f"{__name__}.{_HOMES[name]}"))[name]
