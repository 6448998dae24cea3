# SPDX-License-Identifier: Apache-2.0
"""Fireworks as a platform: evaluators, datasets, evaluation jobs, reinforcement fine-tuning, secrets.

`api` asks, with retries; the other modules each know one kind of thing that Fireworks keeps.
"""
