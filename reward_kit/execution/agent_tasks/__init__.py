# SPDX-License-Identifier: Apache-2.0
"""The inherited agent tasks as runs: `reward-kit agent-eval`, and `TaskManager` for Python."""
