# SPDX-License-Identifier: Apache-2.0
"""What a server says of a reward that it serves, so that callers can call it as if it were theirs: `GET /evaluate`."""

from __future__ import annotations

from typing import Any

from reward_kit.remote.protocol import Description, Parameter
from reward_kit.scoring.identity import reward_settings
from reward_kit.scoring.rewards import Reward
from reward_kit.serving.settings import ServeSettings

__all__ = ["description_of"]


def description_of(reward: Reward, settings: ServeSettings) -> dict[str, Any]:
    """The reward's name, the columns that it takes, and what its results depend on. No secret is among them."""
    call = reward.call
    return Description(
        name=call.name,
        mode=call.mode,
        parameters=[Parameter(name=name, required=needed) for name, needed in call.columns_named.items()],
        takes_any=call.takes_any,
        number_truth=call.takes_number_truth,
        identity=reward_settings(reward, settings.sandbox, settings.judge),
        batch=True,
    ).model_dump()
