"""Estimators and their intervals: plain numbers in, plain numbers out, in constant memory where a run needs it."""

from reward_kit.statistics.best_of_k import best_of_k, rank_weights
from reward_kit.statistics.clustered import ClusteredMean, clustered_standard_error
from reward_kit.statistics.estimate import Estimate, Interval
from reward_kit.statistics.majority import majority_at_k, win_chances
from reward_kit.statistics.paired import McNemar, doubt_about_differences, mcnemar, paired_difference_interval
from reward_kit.statistics.pass_at_k import PassAtK, pass_at_k, pass_hat_k
from reward_kit.statistics.proportion import clustered_proportion_interval, wilson_interval
from reward_kit.statistics.quantiles import normal_quantile, student_t_quantile

__all__ = [
    "ClusteredMean",
    "Estimate",
    "Interval",
    "McNemar",
    "PassAtK",
    "best_of_k",
    "clustered_proportion_interval",
    "clustered_standard_error",
    "doubt_about_differences",
    "majority_at_k",
    "mcnemar",
    "normal_quantile",
    "paired_difference_interval",
    "pass_at_k",
    "pass_hat_k",
    "rank_weights",
    "student_t_quantile",
    "wilson_interval",
    "win_chances",
]
