# SPDX-License-Identifier: Apache-2.0
"""Isolated Python: processes that have Python loaded and fork into a new sandbox for each program."""
