# SPDX-License-Identifier: Apache-2.0
"""Policies, and acting with them."""
