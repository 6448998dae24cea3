# SPDX-License-Identifier: Apache-2.0
"""PythonStateResource: a world that is a dict of Python values.

The state is kept as a pickle, as a dict, or as both, whichever is known. A fork is handed the pickle and reads it when
the fork is first used: the cheapest copy that Python has, and free where nobody looks.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any, ClassVar, cast

from reward_kit.agent.environment import Durability
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resources import plain_pickle
from reward_kit.agent.resources.tool_spec import tool_spec, unknown_action

__all__ = ["PythonStateResource"]


class PythonStateResource(ForkableResource):
    """A dict as a world. Config: `initial_state`, and `allowed_classes` (as `module:Class`) that a checkpoint may hold.

    Actions: `update_state` with the keys to set, or with all of them under `updates`; `get_value` with `key`.
    """

    durability: ClassVar[Durability] = "replay"
    reading: ClassVar[frozenset[str]] = frozenset({"get_value"})

    def __init__(self) -> None:
        """Empty; `setup` gives it a state."""
        self._live: dict[str, Any] | None = {}
        self._frozen: bytes | None = None
        self._allowed: tuple[str, ...] = ()

    async def setup(self, config: dict[str, Any]) -> None:
        """Begin with a copy of `initial_state`."""
        initial = config.get("initial_state") or {}
        if not isinstance(initial, dict):
            raise ValueError(f"'initial_state' must be a dict, not {type(initial).__name__}")
        self._allowed = tuple(config.get("allowed_classes") or ())
        self.set_state(initial)

    async def fork(self) -> PythonStateResource:
        """A resource with an equal state of its own."""
        forked = type(self)()
        forked._allowed = self._allowed
        try:
            forked._live, forked._frozen = None, self._pickled()
        except (pickle.PicklingError, TypeError, AttributeError):  # a lambda, a lock …: perhaps it can be copied
            forked._live = copy.deepcopy(self._state())
        return forked

    async def checkpoint(self) -> bytes:
        """The state as a pickle."""
        return self._pickled()

    async def restore(self, state_data: bytes) -> None:
        """Take the state of a checkpoint. Nothing that the checkpoint names is run; see `plain_pickle`."""
        state = plain_pickle.loads(state_data, self._allowed)
        if not isinstance(state, dict):
            raise ValueError(f"a checkpoint holds a dict, not {type(state).__name__}")
        self._live, self._frozen = state, None

    async def snapshot(self) -> bytes:
        """The same as `checkpoint`."""
        return self._pickled()

    async def step(self, action_name: str, action_params: dict[str, Any]) -> Any:
        """Do `update_state`, which returns a copy of the state, or `get_value`."""
        if action_name == "update_state":
            updates = action_params
            if set(action_params) == {"updates"} and isinstance(action_params["updates"], dict):
                updates = action_params["updates"]  # as the tool's schema has it
            state = self._state()
            self._frozen = None
            state.update(copy.deepcopy(updates))
            return copy.deepcopy(state)
        if action_name == "get_value":
            if action_params.get("key") is None:
                raise ValueError("'get_value' needs 'key': the name of the value to read")
            return copy.deepcopy(self._state().get(action_params["key"]))
        raise unknown_action(self, action_name, ["update_state", "get_value"])

    async def get_observation(self) -> dict[str, Any]:
        """A copy of the state."""
        return self.get_state()

    def get_state(self) -> dict[str, Any]:
        """A copy of the state."""
        return copy.deepcopy(self._state())

    def set_state(self, state: dict[str, Any]) -> None:
        """Put a copy of `state` in the place of the present one."""
        self._live, self._frozen = copy.deepcopy(state), None

    async def get_tools_spec(self) -> list[dict[str, Any]]:
        """The tools `update_state` and `get_value`."""
        updates = {"type": "object", "description": "The keys to set, with their new values."}
        key = {"type": "string", "description": "The key to read."}
        return [
            tool_spec("update_state", "Set values of the state, and see the whole state.", {"updates": updates}),
            tool_spec("get_value", "Read one value of the state; null where there is none.", {"key": key}),
        ]

    async def close(self) -> None:
        """Forget the state."""
        self._live, self._frozen = {}, None

    def _state(self) -> dict[str, Any]:
        """The state as a dict, which may be changed by whoever forgets the pickle first."""
        if self._live is None:
            # Never bytes from elsewhere: those that come in by `restore` are read there, by another reader.
            self._live = cast("dict[str, Any]", pickle.loads(self._frozen or b""))
        return self._live

    def _pickled(self) -> bytes:
        if self._frozen is None:
            self._frozen = plain_pickle.dumps(self._state())
        return self._frozen
