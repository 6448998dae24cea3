# SPDX-License-Identifier: Apache-2.0
"""`reward_kit.integrations.openeval` under its inherited path."""

from __future__ import annotations

from reward_kit.integrations.openeval import adapt

__all__ = ["adapt"]
