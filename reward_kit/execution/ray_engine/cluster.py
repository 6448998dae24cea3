# SPDX-License-Identifier: Apache-2.0
"""Ray itself: attached to where there is a cluster, else started for the run and ended with it; quiet either way."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import shutil
import socket
import tempfile
import warnings
from collections.abc import Awaitable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from reward_kit.config_models import EngineConfig
from reward_kit.errors import ClusterError, ConfigError, MissingExtraError, RewardKitError
from reward_kit.execution.ray_engine.crew import Actor
from reward_kit.execution.ray_engine.order import Order
from reward_kit.execution.ray_engine.stations import Facts, GenerateStation, ScoreStation

__all__ = ["Cluster", "load_ray", "open_cluster"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # else `uv run` has every worker make an environment of its own
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",  # of a Ray of our own: rewards run as they do without it, and not after all others
}
_OBJECT_STORE_BYTES = 256 << 20
"""Of a Ray of our own: packs are small, and soon fetched."""
_LONGEST_TEMPORARY = 40
"""Characters of a directory in which Ray can still name its sockets."""
_STARTS = 3
"""Attempts to start Ray. It gives itself 30 seconds each time, and a busy machine may take longer."""
_IN_A_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Set where `ray job submit` has started this process: its code and environment are the job's."""
_LARGEST_COPY = 100 << 20
_NOT_COPIED = [
    ".git", ".venv*", "venv", "__pycache__", "*.pyc", ".mypy_cache", ".ruff_cache", ".pytest_cache", "node_modules",
    ".reward_kit_cache", "outputs", "multirun", "*.gguf", "*.safetensors", "*.parquet",
]  # fmt: skip
_token = secrets.token_hex(32)
"""What a Ray of our own wants to hear from whoever speaks to it."""


def load_ray() -> Any:
    """Ray's package, told to be quiet and to report nothing to anybody before it is imported."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
        logging.getLogger("ray").setLevel(logging.ERROR)
    except ImportError as error:
        raise MissingExtraError("The engine 'ray'", "ray") from error
    return ray


class Cluster:
    """A Ray that this process is attached to."""

    def __init__(self, ray: Any) -> None:
        """Use `ray`, which is initialised."""
        self._ray = ray
        self._stations = {"generate": ray.remote(GenerateStation), "score": ray.remote(ScoreStation)}

    @property
    def lost_errors(self) -> tuple[type[Exception], ...]:
        """What calling an actor raises when it, or its node, or what it had sent is gone."""
        found: type[Exception] = self._ray.exceptions.RayError
        return (found,)

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return sum(bool(node["Alive"]) for node in self._ray.nodes())

    def try_an_actor(self) -> bool:
        """Whether an actor can be made and answers."""
        handle = self._stations["score"].options(num_cpus=0).remote()
        return bool(self._ray.get(handle.where.remote()))

    def actor(self, order: Order, num_cpus: float, resources: Mapping[str, float], env: Mapping[str, str]) -> Actor:
        """Ask for an actor. It is made when a node has room for it."""
        ray = self._ray
        options = {
            "num_cpus": num_cpus,
            "resources": dict(resources),
            "max_concurrency": 64,
            "max_restarts": 0,  # the driver makes another, and knows what was lost with this one
            "runtime_env": {"env_vars": dict(env)},
        }
        handle = self._stations[order.kind].options(**options).remote()
        failure = ray.exceptions.RayTaskError

        async def plainly(call: Awaitable[T]) -> T:
            """What the call returns or raises there, without Ray's wrapping."""
            try:
                return await call
            except failure as error:
                cause = error.cause
                if isinstance(cause, RewardKitError):
                    raise cause from None
                raise RuntimeError(f"In actor {order.name!r}: {error}") from None

        async def opened() -> Facts:
            node = await plainly(handle.where.remote())
            facts: Facts = await plainly(handle.open.remote(order, node))
            return facts

        return Actor(
            order.name,
            open=opened,
            add=handle.add.remote,
            take=lambda: _left_alone(plainly(handle.take.remote())),
            close=lambda: plainly(handle.close.remote()),
            kill=lambda: _kill(ray, handle),
        )


async def _left_alone(call: Coroutine[Any, Any, T]) -> T:
    """What the call returns. Whoever waits may be cancelled, the call may not: Ray's client complains of such ones."""
    calling = asyncio.ensure_future(call)
    calling.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(calling)


def _kill(ray: Any, handle: Any) -> None:
    with contextlib.suppress(Exception):  # Ray may be gone itself
        ray.kill(handle, no_restart=True)


@contextlib.contextmanager
def open_cluster(engine: EngineConfig, *, with_code: bool = True) -> Iterator[Cluster]:
    """The cluster that the settings name; where they name none, and this process is in none, one of our own.

    `with_code`: the actors of a cluster get a copy of the directory of code.
    """
    ray = load_ray()
    if ray.is_initialized():  # by whoever calls us, and theirs to end
        yield Cluster(ray)
        return
    address = engine.address or os.environ.get("RAY_ADDRESS")
    with contextlib.ExitStack() as around:
        if address is None:
            _start(ray, engine, around)
        else:
            _attach(ray, address, _code(engine) if with_code else None)
        around.callback(ray.shutdown)
        yield Cluster(ray)


def _attach(ray: Any, address: str, code: dict[str, Any] | None) -> None:
    try:
        _knock(address)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, runtime_env=code)
    except Exception as error:  # Ray raises whatever it stumbles over, plain `Exception`s too
        raise ClusterError(
            f"No Ray cluster can be reached at {address!r}: {_first_line(error)} "
            "Correct `engine.address`, or leave it out to start a Ray of its own."
        ) from error


def _knock(address: str) -> None:
    """Fail at once where nobody listens: Ray itself goes on trying for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():  # not `auto`, and no address of a form that only Ray knows
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_SECONDS).close()


_KNOCK_SECONDS = 20.0


def _start(ray: Any, engine: EngineConfig, around: contextlib.ExitStack) -> None:
    """Start a Ray on this machine that has room for the actors, whatever the settings ask a node for."""
    parts = ((engine.generate.actors, engine.generate), (engine.score.actors, engine.score))
    cores = sum(count * part.num_cpus for count, part in parts)
    resources: dict[str, float] = {}
    for count, part in parts:
        for name, amount in part.resources.items():
            resources[name] = resources.get(name, 0.0) + count * amount
    place = around.enter_context(_temporary())
    if not {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        # Ray asks for a token by default. Without this one it would make one and leave it in the home directory.
        around.enter_context(_environment({"RAY_AUTH_TOKEN": _token}, also=("RAY_AUTH_MODE",)))
    for attempt in range(_STARTS):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray.init(
                    address="local", num_cpus=max(os.cpu_count() or 1, int(cores) + 1), num_gpus=0,
                    resources=resources, object_store_memory=_OBJECT_STORE_BYTES, include_dashboard=False,
                    log_to_driver=False, logging_level=logging.ERROR, _temp_dir=str(place),
                )  # fmt: skip
            return
        except Exception as error:  # as above
            ray.shutdown()
            if attempt + 1 < _STARTS and "timed out during startup" in str(error):
                continue
            raise ClusterError(
                f"Ray cannot be started on this machine: {_first_line(error)} `reward-kit doctor` tells more."
            ) from error


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    """A directory for Ray's files. The names of sockets are short: where the usual place is too deep, `/tmp`."""
    usual = tempfile.gettempdir()
    place = Path(tempfile.mkdtemp(prefix="rk-ray-", dir=usual if len(usual) <= _LONGEST_TEMPORARY else "/tmp"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def _environment(values: Mapping[str, str], also: tuple[str, ...] = ()) -> Iterator[None]:
    """Set variables for a while; those and what is set of `also` meanwhile are as before in the end."""
    before = {name: os.environ.get(name) for name in (*values, *also)}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _code(engine: EngineConfig) -> dict[str, Any] | None:
    """How the actors come by the code of rewards: by a copy of this directory, unless the job has one already."""
    if engine.working_dir is None and _IN_A_JOB in os.environ:
        return None
    place = Path(engine.working_dir or ".").resolve()
    if not place.is_dir():
        raise ConfigError(f"There is no directory {str(place)!r}. Correct `engine.working_dir`.")
    size = _size(place)
    if size > _LARGEST_COPY:
        raise ConfigError(
            f"The actors get a copy of {str(place)!r}, and it has {size >> 20:,} MB. Run from a directory that holds "
            "only code, or name one with `engine.working_dir`."
        )
    return {"working_dir": str(place), "excludes": _NOT_COPIED}


def _size(place: Path) -> int:
    total = 0
    for directory, names, files in os.walk(place):
        names[:] = [name for name in names if not any(Path(name).match(pattern) for pattern in _NOT_COPIED)]
        for name in files:
            if not any(Path(name).match(pattern) for pattern in _NOT_COPIED):
                with contextlib.suppress(OSError):
                    total += (Path(directory) / name).lstat().st_size
        if total > _LARGEST_COPY:
            break
    return total


def _first_line(error: BaseException) -> str:
    line = str(error).strip().partition("\n")[0][:300]
    return line if line.endswith(".") else f"{line}."
