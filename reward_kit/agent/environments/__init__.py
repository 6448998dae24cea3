# SPDX-License-Identifier: Apache-2.0
"""Environments of others, as environments of ours. Each module needs its own package, and only when it is used."""
