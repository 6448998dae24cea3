# SPDX-License-Identifier: Apache-2.0
"""`reward_kit.integrations.deepeval` under its inherited path."""

from __future__ import annotations

from reward_kit.integrations.deepeval import adapt_metric

__all__ = ["adapt_metric"]
