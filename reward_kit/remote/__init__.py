# SPDX-License-Identifier: Apache-2.0
"""A reward behind an address: how it is asked, and what its answers mean."""
