# SPDX-License-Identifier: Apache-2.0
"""`reward_kit.integrations.braintrust` under its inherited path."""

from __future__ import annotations

from reward_kit.integrations.braintrust import reward_fn_to_scorer, scorer_to_reward_fn

__all__ = ["reward_fn_to_scorer", "scorer_to_reward_fn"]
