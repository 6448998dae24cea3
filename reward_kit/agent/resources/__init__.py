# SPDX-License-Identifier: Apache-2.0
"""The resources: a dict, a SQLite database, a directory, a container, an HTTP server's episode, BFCL's simulators."""

from importlib import import_module

TYPE_CHECKING = False

if TYPE_CHECKING:
    from reward_kit.agent.resources.bfcl_sim_api_resource import BFCLSimAPIResource
    from reward_kit.agent.resources.docker_resource import DockerResource
    from reward_kit.agent.resources.filesystem_resource import FileSystemResource
    from reward_kit.agent.resources.http_rollout_resource import HttpRolloutResource
    from reward_kit.agent.resources.python_state_resource import PythonStateResource
    from reward_kit.agent.resources.sql_resource import SQLResource

__all__ = [
    "BFCLSimAPIResource",
    "DockerResource",
    "FileSystemResource",
    "HttpRolloutResource",
    "PythonStateResource",
    "SQLResource",
]

_HOMES = {
    "BFCLSimAPIResource": "bfcl_sim_api_resource",
    "DockerResource": "docker_resource",
    "FileSystemResource": "filesystem_resource",
    "HttpRolloutResource": "http_rollout_resource",
    "PythonStateResource": "python_state_resource",
    "SQLResource": "sql_resource",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a resource when it is first asked for."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
