# SPDX-License-Identifier: Apache-2.0
"""HttpRolloutResource: an episode on an HTTP server as a world.

The server holds the state, so it can neither be copied nor gone back to. A fork of a resource whose episode has not
begun begins an episode of its own; one of a resource in the middle of an episode is refused.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ValidationError

from reward_kit.agent.environment import Durability
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resources.http_rollout_protocol import (
    EndEpisodeRequest,
    HttpRolloutConfig,
    StartEpisodeRequest,
    StartEpisodeResponse,
    StepRequest,
    StepResponse,
)
from reward_kit.agent.resources.tool_spec import tool_spec, unknown_action
from reward_kit.errors import EnvironmentFailure, ProviderError
from reward_kit.http.faults import HttpFault, moved_to
from reward_kit.http.retry import Timing, with_retries

if TYPE_CHECKING:
    from reward_kit.http.exchange import HttpSession, Reply

__all__ = ["HttpRolloutResource"]

_log = logging.getLogger(__name__)
_MOST_BYTES = 16 << 20
_AS_JSON = {"Content-Type": "application/json"}
_REDIRECT, _CLIENT_ERROR, _SERVER_ERROR = 300, 400, 500


class HttpRolloutResource(ForkableResource):
    """An episode on a server that speaks the protocol of `http_rollout_protocol`. Config: `HttpRolloutConfig`.

    Action: `step` with `action`; or the tools of the config, whose names and arguments are sent as the action.
    """

    durability: ClassVar[Durability] = "restart"

    def __init__(self) -> None:
        """No server yet; `setup` names one."""
        self.config: HttpRolloutConfig | None = None
        self.episode_id: str | None = None
        self.current_observation: dict[str, Any] | None = None
        self.is_episode_active = False
        self._steps = 0
        self._session: HttpSession | None = None
        self._timing = Timing()

    async def setup(self, config: dict[str, Any]) -> None:
        """Remember where the server is. The episode begins with `initialize`, or with the first step."""
        self.config = HttpRolloutConfig(**config)

    async def fork(self) -> HttpRolloutResource:
        """A resource that will begin an episode of its own, as long as this one has not begun."""
        if self.episode_id is not None:
            raise NotImplementedError(
                "An episode on an HTTP server cannot be forked once it has begun: its state is the server's. Fork "
                "before the first step, or repeat the steps in a new resource."
            )
        forked = type(self)()
        forked.config = self._known()
        return forked

    async def get_state(self) -> dict[str, Any]:
        """The episode's id, what was last seen of it, and whether it goes on."""
        return {
            "episode_id": self.episode_id,
            "observation": self.current_observation,
            "is_episode_active": self.is_episode_active,
            "type": "http_rollout",
        }

    async def initialize(self, **kwargs: Any) -> None:
        """Begin an episode; `kwargs` go to the server, such as a seed."""
        config = self._known()
        if self.is_episode_active:
            await self._end_episode()
        wanted = StartEpisodeRequest(**{**config.start_params, **kwargs})
        begun: StartEpisodeResponse = await self._post(config.start_episode_endpoint, wanted, StartEpisodeResponse)
        self.episode_id, self.current_observation = begun.episode_id, begun.observation
        self.is_episode_active, self._steps = True, 0

    async def get_initial_state_description(self) -> str:
        """What a model is told first: the prompt of the config, and what the episode begins with."""
        if self.episode_id is None:
            await self.initialize()
        seen = self.current_observation or {}
        told = [text for name in ("message", "visual") if isinstance(text := seen.get(name), str) and text]
        told = told or [json.dumps(seen, ensure_ascii=False)]
        return "\n\n".join([*filter(None, [self._known().prompt]), *told])

    async def cleanup(self) -> None:
        """End the episode and close the connections."""
        try:
            if self.is_episode_active:
                await self._end_episode()
        finally:
            self.episode_id = self.current_observation = None
            self.is_episode_active = False
            session, self._session = self._session, None
            if session is not None:
                await session.close()

    async def get_tools_spec(self) -> list[dict[str, Any]]:
        """The tools of the config, or one tool `step`."""
        config = self._known()
        if config.tools is not None:
            return [tool if "function" in tool else {"type": "function", "function": tool} for tool in config.tools]
        action: dict[str, Any] = {"description": "What to do."}
        if config.action_map:
            action |= {"type": "string", "enum": list(config.action_map)}
        return [tool_spec("step", "Act in the environment.", {"action": action})]

    async def step(self, action_name: str, action_params: dict[str, Any]) -> Any:
        """Act: what is seen, whether the episode is over, and what else the server says."""
        config = self._known()
        names = [tool["function"]["name"] for tool in await self.get_tools_spec()]
        if action_name not in {*names, "step"}:
            raise unknown_action(self, action_name, names)
        if self.episode_id is None:
            await self.initialize()
        if not self.is_episode_active or self.episode_id is None:
            raise ValueError("the episode is over")
        action = _action(action_name, action_params, config.action_map)
        done: StepResponse = await self._post(
            config.step_endpoint, StepRequest(episode_id=self.episode_id, action=action), StepResponse
        )
        self.current_observation, self.is_episode_active = done.observation, not done.is_done
        self._steps += 1
        return done.model_dump(exclude_none=True)

    async def get_observation(self) -> Any:
        """What was last seen of the episode."""
        if self.current_observation is None:
            return {"message": "No observation available. Start an episode first."}
        return self.current_observation

    async def start(self) -> str:
        """Begin an episode with what the sample says, such as a seed; the prompt and the first observation."""
        await self.initialize(**self.sample.columns)
        return await self.get_initial_state_description()

    async def is_over(self) -> bool:
        """Whether the server has said that the episode is done."""
        return self.episode_id is not None and not self.is_episode_active

    async def checkpoint(self) -> dict[str, Any]:
        """Which episode it is and how far it is. It can only be restored as long as no step is made."""
        return {
            "episode_id": self.episode_id,
            "current_observation": self.current_observation,
            "is_episode_active": self.is_episode_active,
            "steps": self._steps,
        }

    async def restore(self, state_data: Any) -> None:
        """Nothing, where the episode is still as it was; else it is refused, because the server cannot go back."""
        if state_data.get("episode_id") != self.episode_id or state_data.get("steps") != self._steps:
            raise NotImplementedError(
                "An episode on an HTTP server cannot go back to an earlier state. Repeat its steps in a new resource."
            )

    async def close(self) -> None:
        """End the episode and close the connections."""
        await self.cleanup()

    async def is_healthy(self) -> bool:
        """Whether the server answers, and says that it is well."""
        config = self._known()
        try:
            reply = await self._connected().request("GET", self._url(config.health_endpoint), seconds=config.timeout)
        except HttpFault:
            return False
        return reply.status < _REDIRECT

    async def _end_episode(self) -> None:
        if self.episode_id is None:
            return
        try:
            await self._post(self._known().end_episode_endpoint, EndEpisodeRequest(episode_id=self.episode_id), None)
        except (EnvironmentFailure, ValueError) as error:  # the episode is given up either way
            _log.warning("Episode %s could not be ended on its server: %s", self.episode_id, error)

    async def _post(self, endpoint: str, body: BaseModel, kind: type[BaseModel] | None) -> Any:
        """Send a request and read its answer. Sent again is only what never reached the server."""
        config, url = self._known(), self._url(endpoint)
        content = json.dumps(body.model_dump()).encode()

        async def attempt() -> Reply:
            try:
                return await self._connected().request("POST", url, content, _AS_JSON, seconds=config.timeout)
            except HttpFault as fault:
                if fault.kind == "unreached":
                    raise ProviderError(f"{url} cannot be reached: {fault}; see that the server runs") from fault
                raise EnvironmentFailure(f"{url} failed: {fault}; see what its server says") from fault

        try:
            reply = await with_retries(attempt, retries=config.max_retries, timing=self._timing)
        except ProviderError as error:
            raise EnvironmentFailure(str(error)) from error
        return _answer(url, reply, kind)

    def _connected(self) -> HttpSession:
        if self._session is None:
            from reward_kit.http.exchange import HttpSession

            self._session = HttpSession(max_reply=_MOST_BYTES)
        return self._session

    def _known(self) -> HttpRolloutConfig:
        if self.config is None:
            raise RuntimeError("this HttpRolloutResource has no server; call setup() first")
        return self.config

    def _url(self, endpoint: str) -> str:
        return f"{self._known().base_url.rstrip('/')}/{endpoint.lstrip('/')}"


def _action(name: str, params: dict[str, Any], names: dict[str, Any]) -> Any:
    """What the server is sent: the action alone where there is one tool for all, else the tool with its arguments."""
    if name != "step":
        return {"name": name, "arguments": params}
    if "action" not in params:
        raise ValueError("'step' needs 'action'")
    action = params["action"]
    if not names:
        return action
    if isinstance(action, str) and action.lower() in names:
        return names[action.lower()]
    if action in names.values():
        return action
    raise ValueError(f"there is no action {action!r}; there are {', '.join(names)}")


def _answer(url: str, reply: Reply, kind: type[BaseModel] | None) -> Any:
    status, text = reply.status, reply.data
    said = text[:300].decode(errors="replace")
    if moved := moved_to(status, reply.headers):
        raise EnvironmentFailure(f"{url} answered {status}: {moved}")
    if status >= _SERVER_ERROR:
        raise EnvironmentFailure(f"{url} failed with status {status}: {said}; see what its server says")
    if status >= _CLIENT_ERROR:
        raise ValueError(f"the server refuses this with status {status}: {said}")
    if kind is None:
        return None
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise EnvironmentFailure(f"{url} answered with something that is no {kind.__name__}: {said}") from error
