# SPDX-License-Identifier: Apache-2.0
"""A step of preprocessing, as configs of the older package name it."""


def drop_drafts(row):
    """Rows that are ready, and no others."""
    return None if row["draft"] else {name: value for name, value in row.items() if name != "draft"}
