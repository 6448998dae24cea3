# SPDX-License-Identifier: Apache-2.0
"""Models over HTTP: clients of chat and of numbers, their limits, retries and refusals, and the exchange of bytes."""
