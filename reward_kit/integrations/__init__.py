# SPDX-License-Identifier: Apache-2.0
"""Rewards in other people's programs, and other people's scorers as rewards. Importing this imports none of theirs."""
