# SPDX-License-Identifier: Apache-2.0
"""BFCLSimAPIResource: the simulated APIs of BFCL's multi-turn tasks as a world. Needs the package `bfcl-eval`.

For whole BFCL tasks, with their scripted turns and verdicts, there is an environment of its own; this is the inherited
resource over the same simulators.
"""

from __future__ import annotations

import copy
import inspect
import json
from importlib.util import find_spec
from types import UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

from reward_kit.agent.environment import Durability
from reward_kit.agent.environments.bfcl_simulators import MODULES, needs_bfcl, public_state, simulator
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resources import plain_pickle

__all__ = ["BFCLSimAPIResource"]


def __getattr__(name: str) -> bool:
    """The inherited flag, found out when it is asked for."""
    if name == "BFCL_TYPES_AVAILABLE":
        return find_spec("bfcl_eval") is not None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_TYPES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    tuple: "array",
}


class _OfSimulators:
    """The classes that a checkpoint may hold: those of the simulators, and the generators of chance they use."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name.startswith(MODULES) or name == "random:Random")


class BFCLSimAPIResource(ForkableResource):
    """Simulated APIs. Config: `involved_classes`, and `initial_config` with the first state of each.

    Actions: the public methods of the APIs. An action that fails returns `{"error": …}`, as the simulators do.
    """

    durability: ClassVar[Durability] = "replay"

    def __init__(self, env_instances: dict[str, Any] | None = None) -> None:
        """Have these simulators, by the names of their classes; or none, until `setup`."""
        self._instances: dict[str, Any] = env_instances if env_instances is not None else {}

    async def setup(self, config: dict[str, Any]) -> None:
        """Make the simulators that are not there yet."""
        states = config.get("initial_config") or {}
        for name in config.get("involved_classes") or []:
            if name not in self._instances:
                self._instances[name] = simulator(name, states.get(name, {}))

    async def fork(self) -> BFCLSimAPIResource:
        """A resource with simulators of its own in the same state."""
        return type(self)(copy.deepcopy(self._instances))

    async def checkpoint(self) -> dict[str, Any]:
        """The simulators, written down, beside what can be compared of their state."""
        return {"type": "bfcl_simulators", "objects": await self.snapshot(), "state": self.get_comparable_state()}

    async def snapshot(self) -> bytes:
        """The simulators as a pickle."""
        return plain_pickle.dumps(self._instances)

    async def restore(self, state_data: dict[str, Any] | bytes) -> None:
        """Take over the simulators of a checkpoint or a snapshot. Nothing else that the bytes name is made."""
        state = state_data if isinstance(state_data, bytes) else state_data.get("objects")
        if not isinstance(state, bytes):
            raise ValueError("a checkpoint of BFCLSimAPIResource is {'type': 'bfcl_simulators', 'objects': …}")
        with needs_bfcl():
            instances = plain_pickle.loads(state, _OfSimulators())
        if not isinstance(instances, dict):
            raise ValueError("the state holds no simulators")
        self._instances = instances

    async def step(self, action_name: str, action_params: dict[str, Any]) -> Any:
        """Call a method of the simulators."""
        method = self._methods().get(action_name)
        if method is None:
            return {"error": f"Tool {action_name} not found in available resources."}
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in action_params.items()}
        try:
            result = method(**given)
        except Exception as error:  # noqa: BLE001 - a named boundary: whatever a simulator raises is its answer
            return {"error": f"Error executing tool {action_name}: {error}"}
        if isinstance(result, str):
            try:
                parsed = json.loads(result)
            except ValueError:
                return result
            return parsed if isinstance(parsed, dict) else result
        return result

    async def get_observation(self) -> dict[str, Any]:
        """The same as `get_comparable_state`."""
        return self.get_comparable_state()

    async def get_tools_spec(self) -> list[dict[str, Any]]:
        """The methods of the simulators as tools; their docstrings describe them."""
        return [{"type": "function", "function": _spec(name, one)} for name, one in self._methods().items()]

    async def close(self) -> None:
        """Forget the simulators."""
        self._instances = {}

    def get_comparable_state(self) -> dict[str, Any]:
        """The public attributes of each simulator as plain data, the same for equal states."""
        return {name: public_state(instance) for name, instance in self._instances.items()}

    def _methods(self) -> dict[str, Any]:
        """The public methods by name; where two simulators have one of a name, the first counts."""
        found: dict[str, Any] = {}
        for instance in self._instances.values():
            for name, method in inspect.getmembers(instance, inspect.ismethod):
                if not name.startswith("_"):
                    found.setdefault(name, method)
        return found


def _spec(name: str, method: Any) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    hints = get_type_hints(method)
    for parameter in inspect.signature(method).parameters.values():
        properties[parameter.name] = _schema(hints.get(parameter.name))
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": inspect.getdoc(method) or "", "parameters": parameters}


def _schema(hint: Any) -> dict[str, Any]:
    """The JSON schema of an annotation; `{}`, which is anything, where it is not known."""
    origin, inner = get_origin(hint), [one for one in get_args(hint) if one is not type(None)]
    if origin in (Union, UnionType):
        return _schema(inner[0]) if len(inner) == 1 else {}
    if origin is list and inner:
        return {"type": "array", "items": _schema(inner[0])}
    kind = _TYPES.get(origin or hint)
    return {"type": kind} if kind else {}
