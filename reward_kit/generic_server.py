# SPDX-License-Identifier: Apache-2.0
"""`python -m reward_kit.generic_server REF [--host HOST] [--port 8080] [--insecure]`: the inherited server of a reward.

    POST /evaluate   {messages, ground_truth?, kwargs?} → a result; 5xx where the reward could not judge
    GET  /health     {"status": "ok"}

A key in `RK_ENDPOINT_API_KEY` is asked for, as `X-Api-Key: KEY` or `Authorization: Bearer KEY`: 401 without one, 403
with a wrong one. On an address that other machines reach, the server does not start without, unless told `--insecure`:
behind a platform that checks callers itself. It is the server of `reward-kit serve`, which has more settings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from pydantic import BaseModel

from reward_kit.config_models import RewardConfig
from reward_kit.errors import ConfigError, Setting
from reward_kit.serving.app import RewardApp, build_app
from reward_kit.serving.settings import AccessSettings, ServeSettings, check_protected_by_a_key

__all__ = ["EvaluationRequest", "app", "load_reward_function"]


class EvaluationRequest(BaseModel):  # type: ignore[no-redef]  # pydantic's plugin has a `kwargs` of its own
    """What is posted to `/evaluate`."""

    messages: list[dict[str, Any]]
    ground_truth: Any = None
    kwargs: dict[str, Any] | None = {}


class _LoadedApp:
    """An ASGI application that serves the reward that was loaded last."""

    def __init__(self) -> None:
        self.loaded: RewardApp | None = None

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        if self.loaded is None:
            raise ConfigError("No reward is loaded. Call load_reward_function first.")
        await self.loaded(scope, receive, send)


app = _LoadedApp()


def load_reward_function(
    import_string: str, host: str = "127.0.0.1", port: int = 8080, *, insecure: bool = False
) -> RewardApp:
    """Have `app` serve the reward at this import path; an error where it cannot be loaded.

    `insecure`: also to other machines without a key.
    """
    settings = ServeSettings(
        rewards={"reward": RewardConfig(function_path=import_string)},
        dialects=["reward_kit.serving.dialects.generic:INHERITED"],
        host=host,
        port=port,
        access=AccessSettings(insecure=insecure),
    )
    check_protected_by_a_key(settings)
    app.loaded = build_app(settings)
    return app.loaded


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    import argparse
    import sys

    from reward_kit.errors import RewardKitError, with_settings_named
    from reward_kit.redaction import mask
    from reward_kit.serving.run import run_app

    parser = argparse.ArgumentParser(prog="python -m reward_kit.generic_server", description="Serve one reward.")
    parser.add_argument("import_string", help="the reward, such as my_package.my_module.my_reward")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="the port to listen on (default: %(default)s)")
    parser.add_argument("--insecure", action="store_true", help="serve other machines without a key, too")
    given = parser.parse_args(arguments)
    try:
        served = load_reward_function(given.import_string, given.host, given.port, insecure=given.insecure)
        run_app(served, lambda address: print(f"Serving {given.import_string} at {address}", flush=True))
    except (RewardKitError, ValueError) as error:
        sys.exit(f"Error: {mask(with_settings_named(str(error), _flag))}")


def _flag(setting: Setting) -> str:
    return f"`--{setting.whole}`" if setting.whole in ("host", "port") else str(setting)


if __name__ == "__main__":
    main()
