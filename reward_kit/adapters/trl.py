# SPDX-License-Identifier: Apache-2.0
"""`reward_kit.integrations.trl` under its inherited path."""

from __future__ import annotations

from reward_kit.integrations.trl import create_trl_adapter

__all__ = ["create_trl_adapter"]
