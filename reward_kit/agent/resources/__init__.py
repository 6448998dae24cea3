# SPDX-License-Identifier: Apache-2.0
"""The resources: a dict, a SQLite database, a directory, a container, an HTTP server's episode, BFCL's simulators."""

from reward_kit.utils.lazy_names import lazy_names

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
    __getattr__, __dir__ = lazy_names(globals(), {name: f"{__name__}.{home}" for name, home in _HOMES.items()})
