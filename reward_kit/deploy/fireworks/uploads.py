# SPDX-License-Identifier: Apache-2.0
"""Bringing one file to Fireworks: ask for a signed address, send the bytes there, have them checked."""

from __future__ import annotations

from reward_kit.deploy.fireworks.api import FireworksAPI, PlatformAPIError, Progress

__all__ = ["upload"]


def upload(api: FireworksAPI, owner: str, filename: str, content: bytes, progress: Progress | None = None) -> None:
    """Send the file that belongs to `owner`, a full name such as `accounts/me/datasets/train`. Safe to repeat."""
    size = len(content)
    endpoint = api.post(f"{owner}:getUploadEndpoint", {"filenameToSize": {filename: str(size)}})
    url = (endpoint.get("filenameToSignedUrls") or {}).get(filename)
    if not url:
        raise PlatformAPIError(f"Fireworks gives no address to send {filename!r} to. Run the same command again.")
    headers = {"Content-Type": "application/octet-stream", "X-Goog-Content-Length-Range": f"{size},{size}"}
    api.put_signed(url, content, headers, progress or _nobody)
    api.post(f"{owner}:validateUpload", {})


def _nobody(_: int, __: int) -> None:
    """Nobody wants to know how far it is."""
