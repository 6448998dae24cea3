# SPDX-License-Identifier: Apache-2.0
"""Policies that are ready to use."""
