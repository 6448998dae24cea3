# SPDX-License-Identifier: Apache-2.0
"""The inherited path of `TaskManager`, which lives in `execution`, because it runs whole evaluations."""

from reward_kit.execution.agent_tasks.manager import TaskManager

__all__ = ["TaskManager"]
