# SPDX-License-Identifier: Apache-2.0
"""A step of preprocessing, which the config of a dataset names."""


def only_checked(row):
    """The row without its state; None, which drops it, where nobody has checked it."""
    state = row.pop("state")
    return row if state == "checked" else None
