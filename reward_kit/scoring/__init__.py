# SPDX-License-Identifier: Apache-2.0
"""Scoring: how rollouts and completions meet their reward; for runs and for trainers."""
