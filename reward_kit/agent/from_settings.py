# SPDX-License-Identifier: Apache-2.0
"""The environment that the settings of a run name."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from reward_kit.agent.environment import Environment, World, environment_of, finished
from reward_kit.config_models import AgentConfig, SandboxConfig, UserConfig
from reward_kit.errors import ConfigError
from reward_kit.generation.budget import Budget, within
from reward_kit.generation.cache.responses import cached
from reward_kit.generation.factory import make_client
from reward_kit.generation.prices import price_for
from reward_kit.models import Sample
from reward_kit.redaction import without_secrets
from reward_kit.utils.module_loader import load_function, load_object
from reward_kit.utils.source_digest import source_digest

if TYPE_CHECKING:
    from reward_kit.agent.users import User

__all__ = ["environment_settings", "environment_source", "load_environment", "named_by", "open_environment"]


@contextlib.asynccontextmanager
async def open_environment(
    config: AgentConfig, sandbox: SandboxConfig, budget: Budget | None = None
) -> AsyncIterator[Environment]:
    """The environment that the settings name, with the sandbox and the user they ask for; closed in the end."""
    environment = load_environment(config)
    if config.sandbox_tools or config.capture:
        from reward_kit.agent.sandbox_tools import WithSandbox  # here: most agents have none

        environment = WithSandbox(environment, config.sandbox_tools, sandbox, config.capture)
    async with contextlib.AsyncExitStack() as stack:
        if config.user is not None:
            from reward_kit.agent.users import WithUser

            environment = WithUser(environment, await stack.enter_async_context(_open_user(config.user, budget)))
        try:
            yield environment
        finally:
            await finished(environment.close())


def load_environment(config: AgentConfig) -> Environment:
    """The environment that the settings name. One that cannot be loaded is a `ConfigError`."""
    named, *functions = named_by(config)
    if named is None and not functions and (config.sandbox_tools or config.user):
        named = _nothing_of_its_own
    return environment_of(named, functions, config.params)


def _nothing_of_its_own(_: Sample) -> World:
    return World()


@contextlib.asynccontextmanager
async def _open_user(config: UserConfig, budget: Budget | None) -> AsyncIterator[User]:
    """Who talks to the model: a script, or a model with a cache, within the run's budget."""
    from reward_kit.agent.users import ModelUser, ScriptedUser

    if config.script is not None:
        yield ScriptedUser(config.script)
        return
    client = make_client(config)
    price = price_for(config)
    with cached(within(budget, client, price, "agent.user"), config.cache) as layered:
        try:
            yield ModelUser(layered, config.sampling(), price, config.prompt or "", config.last_words)
        finally:
            await client.close()


def environment_source(config: AgentConfig) -> str:
    """A digest of the files that define the worlds and the tools."""
    parts = [source_digest(each) for each in named_by(config) if each is not None]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def environment_settings(config: AgentConfig) -> dict[str, Any]:
    """What the worlds depend on, beside their source: what is named, and what it is handed."""
    user = None if config.user is None else config.user.model_dump(exclude={"api_params", "cache", "api_key", "price"})
    named = None if config.environment is None else named_by(config)[0]
    elsewhere: Mapping[str, Any] = {}
    if isinstance(named, type) and issubclass(named, Environment):
        elsewhere = named.settings_elsewhere(config.params)
    return {
        "environment": config.environment,
        "tools": config.tools,
        "params": without_secrets(config.params),
        **({"elsewhere": without_secrets(dict(elsewhere))} if elsewhere else {}),
        **({"sandbox_tools": config.sandbox_tools} if config.sandbox_tools else {}),
        **({} if user is None else {"user": without_secrets(user)}),
    }


def named_by(config: AgentConfig) -> list[Any]:
    """What the settings name: the environment, or None, and then the functions that are tools."""
    try:
        environment = None if config.environment is None else load_object(config.environment)
        return [environment, *(load_function(path) for path in config.tools)]
    except ImportError as error:
        raise ConfigError(f"The agent's environment cannot be loaded: {error}") from error
