# SPDX-License-Identifier: Apache-2.0
"""Model clients: who answers, how many requests they get at a time, and what was already paid for."""
