# SPDX-License-Identifier: Apache-2.0
"""A bash that stays, served by a porter: what the backends `namespaces` and `none` share."""
