# SPDX-License-Identifier: Apache-2.0
"""One reward as an HTTP service, under the names that users of the public package import.

    serve("my_rewards:correct", port=8000)        POST /reward, GET /, GET /health; and all that `reward-kit serve` has
    app = create_app(correct)                     an ASGI application, for any server and for tests

Other than in that package, it listens on 127.0.0.1 unless told otherwise, and on an address that other machines reach
it asks for the API key in `RK_ENDPOINT_API_KEY`. `reward-kit serve` has more ways, and more settings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reward_kit.config_models import RewardConfig
from reward_kit.serving.app import RewardApp, build_app
from reward_kit.serving.run import run_app
from reward_kit.serving.settings import ServeSettings, check_protected_by_a_key

__all__ = ["RewardServer", "create_app", "serve"]


class RewardServer:
    """A server for the reward that `func_path` names, such as `my_module:my_reward`."""

    def __init__(self, func_path: str, host: str = "127.0.0.1", port: int = 8000) -> None:
        """Load the reward; nothing listens yet."""
        self.func_path = func_path
        self.host = host
        self.port = port
        settings = ServeSettings(rewards={"reward": RewardConfig(function_path=func_path)}, host=host, port=port)
        check_protected_by_a_key(settings)
        self.app = build_app(settings)

    def run(self) -> None:
        """Serve until SIGTERM or Ctrl-C; what was accepted is answered first."""
        run_app(self.app)


def serve(func_path: str, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve the reward that `func_path` names until SIGTERM or Ctrl-C."""
    RewardServer(func_path, host, port).run()


def create_app(reward_func: Callable[..., Any]) -> RewardApp:
    """An ASGI application that serves this function. Who may call is for whoever runs it to see to.

    A key in `RK_ENDPOINT_API_KEY` is asked for.
    """
    name = getattr(reward_func, "__name__", "reward")
    rewards = {"reward": RewardConfig(function_path=name)}
    return build_app(ServeSettings(rewards=rewards, access_log=None), functions={"reward": reward_func})
