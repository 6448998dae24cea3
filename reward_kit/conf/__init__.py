# SPDX-License-Identifier: Apache-2.0
"""Hydra configuration groups that ship with the package."""
