# SPDX-License-Identifier: Apache-2.0
"""The backends of sandboxes by name: the one list of them.

Settings, command-line choices and messages are made from this table, and `sandbox/choose.py` makes a backend from its
row. A new backend is a row here and a package in `sandbox/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

__all__ = ["AUTO", "BACKENDS", "BackendChoice", "BackendRow", "backend_choices", "row_of"]

AUTO: Final = "auto"
"""The choice of the first backend that works here."""


class BackendRow(NamedTuple):
    """What has to be known of a backend before it is imported."""

    make: str
    """The function that makes it from a `SandboxConfig`: its module below `reward_kit.sandbox`, a colon, its name."""
    only_by_name: str = ""
    """Why `auto` never takes it; empty where it may. `auto` tries the backends in the order of the table."""
    runs_images: bool = False
    """Whether an image is a container's, by name; else it is a directory or an archive on this machine."""
    is_slow_to_open: bool = False
    """Whether its sandboxes are worth opening before anybody asks for one."""
    is_remote: bool = False
    """Whether its sandboxes are a server's, so that a server has no use for it."""
    isolates: bool = True


BACKENDS: Final = {
    # Its supervisors have the parts of the next sandbox ready by themselves.
    "namespaces": BackendRow("namespaces.backend:make_backend"),
    "docker": BackendRow("containers.backend:make_docker", runs_images=True, is_slow_to_open=True),
    "podman": BackendRow("containers.backend:make_podman", runs_images=True, is_slow_to_open=True),
    "sos": BackendRow(
        "sos.client:make_backend", "it needs the address of an SoS server", is_slow_to_open=True, is_remote=True
    ),
    "none": BackendRow(
        "local.unisolated:make_backend",
        "it isolates nothing, and is for commands you would run yourself",
        isolates=False,
    ),
}
"""Every backend by its name."""


def row_of(name: str) -> BackendRow:
    """What is known of the backend with this name; of one that is not in the table, nothing is promised."""
    return BACKENDS.get(name, BackendRow(""))


def backend_choices(*, served: bool = False) -> tuple[str, ...]:
    """What may be asked for; `served`, by a server of sandboxes."""
    return (AUTO, *(name for name, row in BACKENDS.items() if not (served and row.is_remote)))


if TYPE_CHECKING:
    BackendChoice = str
else:  # a setting that is checked when it is read
    BackendChoice = Literal[backend_choices()]
