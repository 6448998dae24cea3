# SPDX-License-Identifier: Apache-2.0
"""Reviewing verdicts: choosing what to look at, what the reviews say of the verifier, and test cases made of them."""

import reward_kit.analysis  # noqa: F401 - says which extra is missing, before a module here needs it
