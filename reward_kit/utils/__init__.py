# SPDX-License-Identifier: Apache-2.0
"""Small named tools that know nothing of the rest of the package."""
