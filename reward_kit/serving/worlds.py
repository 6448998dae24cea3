# SPDX-License-Identifier: Apache-2.0
"""Worlds that a trainer elsewhere steps through, as OpenEnv's clients and SkyRL's loops do it.

    POST /reset   {columns of a row …}       →  {"observation", "reward", "done", "metadata": {"session_id", …}}
    POST /step    {"session_id", "action"}   →  the same
    GET  /state?session_id=…                 →  {"episode_id", "step_count", "done", …}
    POST /close   {"session_id"}             →  {}
    WebSocket /ws {"type": "reset" | "step" | "state" | "close", "data": …}  →  {"type": "observation" | …, "data"}

Each session has a world of its own, which is closed with it: when the WebSocket is, when it was idle or open for too
long, and when the server ends. Over HTTP a session is whoever has its id. An action is a text, in which tool calls may
be written, or `{"tool_name", "arguments"}`, or an assistant's message. The reward of a step is the world's own; where a
reward judges episodes, that of the last step is its verdict. A world or a verdict that fails is an error, never a 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from reward_kit.agent.environment import Answer, Environment
from reward_kit.config_models import RewardConfig
from reward_kit.datasets.rows import BadRow, Written, as_json, as_written
from reward_kit.errors import ItemError, RewardError, RewardKitError
from reward_kit.integrations.trainer_reward import TrainerReward
from reward_kit.integrations.world_session import WorldSession, environment_from, sample_from_row
from reward_kit.models import Message
from reward_kit.redaction import mask
from reward_kit.serving.dialect import BadRequest, messages_in, object_in
from reward_kit.serving.world_settings import WorldsSettings
from reward_kit.utils import exact_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute
    from starlette.websockets import WebSocket

__all__ = ["Worlds"]

_LOOK_SECONDS = 1.0
_OWN_FIELDS = frozenset({"session_id", "timeout_s", "request_id"})


class _TooMany(Exception):
    """No further session is opened now."""


class _Session:
    """One world, one episode at a time."""

    def __init__(
        self, environment: Environment, settings: WorldsSettings, judge: TrainerReward | None, now: float
    ) -> None:
        self.id = secrets.token_urlsafe(18)
        self.opened = self.used = now
        self.busy = asyncio.Lock()
        self._world = WorldSession(environment, settings.agent)
        self._judge = judge
        self._episode: str | None = None
        self._steps = 0
        self._over = False

    async def reset(self, row: Mapping[str, Any], written: Written = as_json) -> dict[str, Any]:
        self._episode = str(row.get("episode_id") or secrets.token_hex(8))
        self._steps, self._over = 0, False
        try:
            sample = sample_from_row({"id": self._episode, **row}, written=written)
        except BadRow as error:
            raise BadRequest(f"The row cannot be read: {error}.") from None
        shown = await self._world.reset_async(sample)
        return self._observation(shown, None, done=False)

    async def step(self, action: Any) -> dict[str, Any]:
        if self._episode is None:
            raise BadRequest("There is no episode yet. Send reset first.", 409)
        if self._over:
            raise BadRequest("The episode is over. Send reset to begin another.", 409)
        answer = await self._act(action)
        self._steps += 1
        self._over = answer.done or self._world.ended is not None
        reward = answer.reward
        metadata: dict[str, Any] = {}
        if self._over:
            metadata = {"ended": self._world.ended or "done"}
            if self._judge is not None:
                metadata |= {"step_reward": reward, **await self._verdict(self._judge)}
                reward = metadata["score"]
        return self._observation(answer.messages, reward, done=self._over, **metadata)

    async def _act(self, action: Any) -> Answer:
        speech = _as_speech(action)
        return await (self._world.say_async(speech) if isinstance(speech, str) else self._world.act_async(speech))

    async def _verdict(self, judge: TrainerReward) -> dict[str, Any]:
        (earned,) = await judge.judge_async([await self._world.rollout_async()])
        if earned.error is not None:
            raise RewardError(earned.error)
        return {"score": earned.score, "reason": earned.reason, "metrics": dict(earned.metrics)}

    def _observation(
        self, messages: Sequence[Message], reward: float | None, *, done: bool, **metadata: Any
    ) -> dict[str, Any]:
        observation = {
            "text": "\n".join(message.text for message in messages),
            "messages": [message.model_dump(exclude_none=True) for message in messages],
            "tools": [tool.spec for tool in self._world.tools],
        }
        return {
            "observation": observation, "reward": reward, "done": done,
            "metadata": {"session_id": self.id, "episode_id": self._episode, **metadata},
        }  # fmt: skip

    def state(self) -> dict[str, Any]:
        told = {"episode_id": self._episode, "step_count": self._steps, "done": self._over, "session_id": self.id}
        return told if self._episode is None else {**told, "rewards": self._world.rewards}

    async def close(self) -> None:
        with contextlib.suppress(ItemError):  # a world that does not close well is gone all the same
            await self._world.close_async()


class Worlds:
    """The extension of a server that steps through worlds."""

    name = "worlds"

    def __init__(
        self,
        settings: WorldsSettings,
        reward: RewardConfig | None = None,
        environment: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load the environment, or take the one given; `reward` is what judges episodes, where one does."""
        self.settings = settings
        self._environment = environment_from(environment or settings.environment, settings.params)
        self._judge = None if reward is None else TrainerReward(
            reward.function_path, failed_score=0.0, params=reward.params, timeout=reward.timeout, workers=reward.workers
        )  # fmt: skip
        self._clock = clock
        self._sessions: dict[str, _Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def routes(self) -> Sequence[BaseRoute]:
        """What a server adds to its own."""
        from starlette.routing import Route, WebSocketRoute

        return [
            Route("/reset", self._http_reset, methods=["POST"]),
            Route("/step", self._http_step, methods=["POST"]),
            Route("/state", self._http_state, methods=["GET"]),
            Route("/close", self._http_close, methods=["POST"]),
            WebSocketRoute("/ws", self._socket),
        ]

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Close what is idle or old meanwhile, and all sessions in the end."""
        looking = asyncio.create_task(self._close_old())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.gather(looking, *map(self._close, [*self._sessions]), return_exceptions=True)
            if self._judge is not None:
                self._judge.close()

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> _Session:
        if len(self._sessions) >= self.settings.sessions:
            raise _TooMany
        session = _Session(self._environment, self.settings, self._judge, self._clock())
        self._sessions[session.id] = session
        return session

    async def _close(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            async with session.busy:  # a step that is under way ends first; its world's own limits see to that
                await session.close()

    async def _close_old(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            await self.close_old()

    async def close_old(self) -> None:
        """Close the sessions whose time is up and that nobody steps through just now."""
        now, settings = self._clock(), self.settings
        old = [
            session.id
            for session in self._sessions.values()
            if not session.busy.locked()
            and (now - session.used > settings.idle_seconds or now - session.opened > settings.longest_seconds)
        ]
        await asyncio.gather(*map(self._close, old))

    @contextlib.asynccontextmanager
    async def _using(self, session_id: Any) -> AsyncIterator[_Session]:
        session = self._sessions.get(session_id) if isinstance(session_id, str) else None
        if session is None:
            raise BadRequest("There is no such session: it was closed, or never opened. Send reset to open one.", 404)
        if session.busy.locked():
            raise BadRequest("The session is busy with another step. Wait for its reply.", 409)
        async with session.busy:
            try:
                yield session
            finally:
                session.used = self._clock()

    # ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _http_reset(self, request: Request) -> Response:
        async def reset(body: dict[str, Any], written: Written) -> dict[str, Any]:
            held = body.get("session_id")
            session_id = self._begin().id if held is None else held
            try:
                async with self._using(session_id) as session:
                    return await session.reset(_row(body), written)
            except BaseException:
                if held is None:  # nobody knows its id
                    await self._close(session_id)
                raise

        return await self._replied(request, reset)

    async def _http_step(self, request: Request) -> Response:
        async def step(body: dict[str, Any], _: Written) -> dict[str, Any]:
            object_in(body, "session_id", "action")
            async with self._using(body["session_id"]) as session:
                return await session.step(body["action"])

        return await self._replied(request, step)

    async def _http_state(self, request: Request) -> Response:
        async def state(_: dict[str, Any], __: Written) -> dict[str, Any]:
            async with self._using(request.query_params.get("session_id")) as session:
                return session.state()

        return await self._replied(request, state)

    async def _http_close(self, request: Request) -> Response:
        async def close(body: dict[str, Any], _: Written) -> dict[str, Any]:
            if isinstance(body.get("session_id"), str):
                await self._close(body["session_id"])
            return {}

        return await self._replied(request, close)

    async def _replied(self, request: Request, ask: Callable[[dict[str, Any], Written], Any]) -> Response:
        from starlette.responses import Response

        headers: dict[str, str] = {}
        try:
            raw = await request.body()
            body, written = _decoded(raw or b"{}")
            status, told = 200, await ask(object_in(body), written)
        except exact_json.JSONDecodeError as error:
            status, told = 400, {"detail": f"The body is not JSON: {error}. Send a JSON object."}
        except BadRequest as error:
            status, told = error.status, {"detail": str(error)}
        except _TooMany:
            status, told, headers = (
                503,
                {"detail": "Too many sessions are open. Come back later."},
                {"retry-after": "5"},
            )
        except ItemError as error:
            status = 503 if error.retryable else 500
            told = {"detail": mask(str(error)), "type": type(error).__name__}
        return Response(exact_json.dumps(told), status, {**headers, "content-type": "application/json"})

    # ── WebSocket ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _socket(self, socket: WebSocket) -> None:
        """One connection, one world: it is closed with the connection."""
        from starlette.websockets import WebSocketDisconnect

        await socket.accept()
        try:
            session = self._begin()
        except _TooMany:
            await _send(socket, _error("CAPACITY_REACHED", "Too many sessions are open. Come back later."))
            await socket.close(1013)
            return
        try:
            while session.id in self._sessions:
                text = await self._next(socket, session)
                if text is None or not await self._answer_one(socket, session, text):
                    break
            await socket.close()
        except (WebSocketDisconnect, RuntimeError):  # the caller left, while we waited or while we answered
            pass
        finally:
            await self._close(session.id)

    async def _next(self, socket: WebSocket, session: _Session) -> str | None:
        """What the caller says next; None when the session's time is up first."""
        now, settings = self._clock(), self.settings
        left = min(settings.idle_seconds, session.opened + settings.longest_seconds - now)
        try:
            async with asyncio.timeout(max(0.0, left)):
                return await socket.receive_text()
        except TimeoutError:
            await _send(socket, _error("SESSION_ERROR", "The session was idle, or open, for too long. Connect again."))
            return None
        except KeyError:  # bytes where a text belongs
            return ""

    async def _answer_one(self, socket: WebSocket, session: _Session, text: str) -> bool:
        """Answer one message; False where it is the last."""
        try:
            message, written = _decoded(text.encode("utf-8", "surrogatepass"))
        except exact_json.JSONDecodeError as error:
            await _send(socket, _error("INVALID_JSON", f"That is not JSON: {error}"))
            return True
        kind = message.get("type") if isinstance(message, dict) else None
        if kind == "close":
            return False
        try:
            async with self._using(session.id) as held:
                data = message.get("data") if isinstance(message, dict) else None
                told = await self._answer(held, kind, data, written)
        except BadRequest as error:
            told = _error("VALIDATION_ERROR", str(error))
        except RewardKitError as error:
            told = _error("EXECUTION_ERROR", mask(str(error)))
        await _send(socket, told)
        return True

    @staticmethod
    async def _answer(session: _Session, kind: Any, data: Any, written: Written) -> dict[str, Any]:
        match kind:
            case "reset":
                return {"type": "observation", "data": await session.reset(_row(object_in(data or {})), written)}
            case "step":
                return {"type": "observation", "data": await session.step(data)}
            case "state":
                return {"type": "state", "data": session.state()}
            case _:
                return _error("UNKNOWN_TYPE", f"There is no message {kind!r}. Send reset, step, state or close.")


def _decoded(raw: bytes) -> tuple[Any, Written]:
    """What a caller says, and how it writes numbers that Python would write otherwise."""
    value, texts = exact_json.loads_with_texts(raw, unique_keys=True)
    return value, as_written(texts)


def _row(body: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row, from a request that may hold them under `row`."""
    row = body.get("row")
    given = {**body, **row} if isinstance(row, dict) else body
    columns = {name: value for name, value in given.items() if name not in _OWN_FIELDS and name != "row"}
    prompt = columns.get("prompt", "")
    if isinstance(prompt, list) and prompt:
        messages_in(prompt, "prompt")
    elif not isinstance(prompt, str | list):
        raise BadRequest(
            "The field 'prompt' is neither a text nor a list of messages. Send one of them, or leave it out."
        )
    return columns


def _as_speech(action: Any) -> str | Message:
    """What an action says: a text, or a message that may call tools."""
    if isinstance(action, str):
        return action
    if not isinstance(action, dict):
        raise BadRequest("The action is neither a text nor an object. Send what the model said, or a tool's name.")
    inner = action.get("action", action.get("message"))
    if isinstance(inner, str | dict):
        return _as_speech(inner)
    if isinstance(name := action.get("tool_name", action.get("name")), str) and "role" not in action:
        arguments = action.get("arguments") or {}
        written = arguments if isinstance(arguments, str) else exact_json.dumps(arguments).decode()
        call = {"id": "call_0", "type": "function", "function": {"name": name, "arguments": written}}
        return Message.model_validate({"role": "assistant", "content": None, "tool_calls": [call]})
    if isinstance(text := action.get("text"), str):
        return text
    try:
        return Message.model_validate({"role": "assistant", **action}) if action else _no_action()
    except ValidationError:
        return _no_action()


def _no_action() -> str:
    raise BadRequest("The action says nothing. Send {'text': …}, {'tool_name': …, 'arguments': …} or a message.")


def _error(code: str, message: str) -> dict[str, Any]:
    return {"type": "error", "data": {"message": message, "code": code}}


async def _send(socket: WebSocket, told: Mapping[str, Any]) -> None:
    await socket.send_text(exact_json.dumps(told, non_str_keys=True).decode())
