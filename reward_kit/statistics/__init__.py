"""Estimators and their intervals: plain numbers in, plain numbers out, in constant memory where a run needs it."""

from reward_kit.statistics.clustered import ClusteredMean, clustered_standard_error
from reward_kit.statistics.estimate import Estimate, Interval
from reward_kit.statistics.pass_at_k import PassAtK, pass_at_k, pass_hat_k
from reward_kit.statistics.proportion import wilson_interval
from reward_kit.statistics.quantiles import normal_quantile, student_t_quantile

__all__ = [
    "ClusteredMean",
    "Estimate",
    "Interval",
    "PassAtK",
    "clustered_standard_error",
    "normal_quantile",
    "pass_at_k",
    "pass_hat_k",
    "student_t_quantile",
    "wilson_interval",
]
