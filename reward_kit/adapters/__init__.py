# SPDX-License-Identifier: Apache-2.0
"""Inherited import paths: what they name is in `reward_kit.integrations`."""
