"""Scoring: how rollouts and completions meet their reward; for runs and for trainers."""
