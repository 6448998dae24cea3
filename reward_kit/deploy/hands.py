# SPDX-License-Identifier: Apache-2.0
"""Who does which action: this machine, AWS, or the first call. And the secrets that actions need, when they do."""

from __future__ import annotations

import os
import secrets as randomness
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reward_kit.deploy.aws import AwsHands
from reward_kit.deploy.carry_out import Hands, MakeHands, MissingThing, Tell
from reward_kit.deploy.first_call import call_first, list_tools, verdict_line
from reward_kit.deploy.machine import MachineHands, run_command
from reward_kit.deploy.plan import Action, FirstCall, ListTools, Plan, Request, fact_at
from reward_kit.deploy.settings import DeploySettings
from reward_kit.errors import DeployError
from reward_kit.redaction import remember

__all__ = ["AllHands", "SecretValues"]


class AllHands:
    """Hands every action to who can do it."""

    def __init__(
        self,
        tell: Tell,
        *,
        region: str | None = None,
        folders: Mapping[str, Mapping[str, bytes]] | None = None,
        files: Mapping[str, bytes] | None = None,
        services: Mapping[str, MakeHands] | None = None,
    ) -> None:
        """`services` are those that are not AWS's, by the name that requests give them."""
        self._tell = tell
        self._machine = MachineHands(folders or {}, tell)
        self._aws = AwsHands(region, files or {})
        self._services = {name: make(files or {}, tell) for name, make in (services or {}).items()}

    def do(self, action: Action, secrets: Mapping[str, str]) -> Any:
        """Do the action; see `Hands`."""
        if isinstance(action, Request):
            return self._services.get(action.service, self._aws).do(action, secrets)
        if isinstance(action, FirstCall):
            key = None if action.key is None else key_in(self.do(action.key, secrets))
            result = call_first(action, key, lambda command: run_command(command, self._tell))
            self._tell(verdict_line(result))
            return result
        if isinstance(action, ListTools):
            tools = list_tools(action, lambda command: run_command(command, self._tell))
            self._tell(f"  tools: {', '.join(tools)}")
            return tools
        return self._machine.do(action, secrets)


def key_in(answer: Any) -> str:
    """The key in what a store answered: a text, or AWS's object around it."""
    key = answer.strip() if isinstance(answer, str) else fact_at(answer, "SecretString")
    if not key:
        raise DeployError("The store holds no key. Add --rotate-key to make a new one.")
    remember(key)
    return str(key)


class SecretValues(Mapping[str, str]):
    """The values behind `${secret:…}`, found when they are first needed: no plan and no file holds them."""

    def __init__(self, settings: DeploySettings, plan: Plan, hands: Hands, read_local: Callable[[str], str]) -> None:
        """`read_local` reads a secret of the local store."""
        self._settings, self._plan, self._hands, self._read_local = settings, plan, hands, read_local
        self._known: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._known:
            self._known[name] = self._api_key() if name == "api_key" else self._own(name)
            remember(self._known[name])
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(["api_key", *self._settings.secrets])

    def __len__(self) -> int:
        return 1 + len(self._settings.secrets)

    def _api_key(self) -> str:
        """The key that the endpoint has already, else a new one."""
        if self._plan.key_from is not None and not self._settings.rotate_key:
            try:
                return key_in(self._hands.do(self._plan.key_from, {}))
            except MissingThing:
                pass
        return randomness.token_urlsafe(32)

    def _own(self, variable: str) -> str:
        """A secret of the reward: from the local store where it was given a name there, else from the environment."""
        name = self._settings.secrets[variable]
        if name != variable:
            return self._read_local(name)
        value = os.environ.get(variable)
        if not value:
            raise DeployError(
                f"The variable {variable} is not set here. Set it, or give a secret of the local store: "
                f"--secret {variable}=NAME"
            )
        return value
