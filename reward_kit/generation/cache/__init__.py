# SPDX-License-Identifier: Apache-2.0
"""Answers that were paid for: found again by key, kept in one file of JSON lines."""
