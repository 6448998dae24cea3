# SPDX-License-Identifier: Apache-2.0
"""Model clients: who answers, how hard they may be pressed, and what was already paid for."""
