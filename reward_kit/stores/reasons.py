# SPDX-License-Identifier: Apache-2.0
"""Why a store did not do what it was asked, in words, and whether asking again may help.

Each store has errors of its own. Most come through fsspec as an `OSError` that says enough; the others are recognised
by their names, so that no store's package is imported to explain another store's error.
"""

from __future__ import annotations

import errno

from reward_kit.errors import StorageError, message_of
from reward_kit.redaction import mask

__all__ = ["StoreError", "store_error"]

_NO_CREDENTIALS = frozenset(
    {"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError", "LocalTokenNotFoundError",
     "ProfileNotFound", "TokenRetrievalError", "UnauthorizedSSOTokenError", "RefreshError", "CredentialRetrievalError"}
)  # fmt: skip
_DENIED_STATUS = frozenset({401, 403})
_MISSING_STATUS = 404
_LONGEST = 300


class StoreError(StorageError):
    """A store did not do what it was asked. The message is a clause, `why`: whoever asked says what to do."""

    def __init__(self, why: str, *, transient: bool = False, missing: bool = False, exists: bool = False) -> None:
        """Say `why`; whether asking again may help; whether there is no such object; whether there is one already."""
        super().__init__(why)
        self.transient = transient
        self.missing = missing
        self.exists = exists


def store_error(error: BaseException) -> StoreError:  # noqa: PLR0911 - one kind of error per return
    """The error of a store's package as one of ours."""
    if isinstance(error, StoreError):
        return error
    message = _message(error)
    if isinstance(error, FileExistsError):
        return StoreError(f"it exists already: {message}", exists=True)
    status = _status_of(error)
    if isinstance(error, FileNotFoundError) or status == _MISSING_STATUS:
        if "bucket" in message.lower():
            return StoreError("there is no such bucket", missing=True)
        return StoreError("there is no such object or bucket", missing=True)
    if type(error).__name__ in _NO_CREDENTIALS or "gcloud auth" in message:
        return StoreError(f"no usable credentials were found: {message}")
    if isinstance(error, PermissionError) or status in _DENIED_STATUS:
        return StoreError(
            f"the store refuses access, because rights are missing or the credentials are wrong: {message}"
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(f"there is no room left: {message}")
    if isinstance(error, ValueError | TypeError | NotImplementedError) and not isinstance(error, OSError):
        return StoreError(f"{type(error).__name__}: {message}")
    return StoreError(message, transient=True)


def _message(error: BaseException) -> str:
    text = " ".join(mask(message_of(error)).split()).rstrip(".")
    return text[:_LONGEST] if text != "no message" else type(error).__name__


def _status_of(error: BaseException) -> int | None:
    """The status of the HTTP answer, as gcsfs (`code`), aiohttp (`status`) and requests (`response`) tell it."""
    response = getattr(error, "response", None)
    for told in (getattr(error, "code", None), getattr(error, "status", None), getattr(response, "status_code", None)):
        try:
            return int(told)  # type: ignore[arg-type]  # gcsfs tells some as texts
        except (TypeError, ValueError):
            continue
    return None
