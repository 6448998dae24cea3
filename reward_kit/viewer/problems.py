# SPDX-License-Identifier: Apache-2.0
"""What can go wrong while somebody looks: each has a code, an HTTP status, and a message that says what to do."""

from __future__ import annotations

from reward_kit.errors import RewardKitError

__all__ = ["Gone", "NotAllowed", "NotThere", "Unreadable", "ViewerError", "WrongRequest"]


class ViewerError(RewardKitError):
    """Something that the page is told instead of an answer."""

    code = "error"
    status = 500


class WrongRequest(ViewerError):
    """The address asks for what there is not: an unknown column, a number that is none."""

    code = "wrong_request"
    status = 400


class NotThere(ViewerError):
    """There is no such run, sample or record."""

    code = "not_there"
    status = 404


class Gone(ViewerError):
    """It was there when the server started, and is no longer."""

    code = "gone"
    status = 410


class Unreadable(ViewerError):
    """The files are damaged, or changed while they were read."""

    code = "unreadable"
    status = 422


class NotAllowed(ViewerError):
    """Who asks may not do this."""

    code = "not_allowed"
    status = 403
