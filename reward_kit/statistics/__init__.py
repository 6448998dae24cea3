# SPDX-License-Identifier: Apache-2.0
"""Estimators and their intervals: plain numbers in, plain numbers out, in constant memory where a run needs it."""

from reward_kit.statistics.best_of_k import best_of_k, rank_weights
from reward_kit.statistics.clustered import ClusteredMean, ClusterSums, clustered_standard_error
from reward_kit.statistics.estimate import Estimate, Interval
from reward_kit.statistics.majority import majority_at_k, win_chances
from reward_kit.statistics.paired import McNemar, PairedDifference, mcnemar, paired_difference
from reward_kit.statistics.pass_at_k import PassAtK, ladder, pass_at_k, pass_hat_k
from reward_kit.statistics.proportion import clustered_proportion_interval, proportion_interval, wilson_interval
from reward_kit.statistics.quantiles import normal_quantile, student_t_quantile, student_t_tail
from reward_kit.statistics.weighted import DrawnItem, agreement_beyond_chance, draw_weights, weighted_rate

__all__ = [
    "ClusterSums",
    "ClusteredMean",
    "DrawnItem",
    "Estimate",
    "Interval",
    "McNemar",
    "PairedDifference",
    "PassAtK",
    "agreement_beyond_chance",
    "best_of_k",
    "clustered_proportion_interval",
    "clustered_standard_error",
    "draw_weights",
    "ladder",
    "majority_at_k",
    "mcnemar",
    "normal_quantile",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
    "proportion_interval",
    "rank_weights",
    "student_t_quantile",
    "student_t_tail",
    "weighted_rate",
    "wilson_interval",
    "win_chances",
]
