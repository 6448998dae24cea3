# SPDX-License-Identifier: Apache-2.0
"""Who we say we are to a reward's server: an API key, a Google ID token, an AWS signature; and a client certificate.

Each kind gives the headers of one request to one address. They are worked out for that address and sent nowhere else:
redirects are never followed, and every credential is remembered, so that no message, file or log shows it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import re
import ssl
import time
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from reward_kit.auth import get_fireworks_api_key, is_loopback, is_private_host, resolve_endpoint_key
from reward_kit.config_models import RemoteRewardConfig
from reward_kit.errors import AuthError, ConfigError, needs_extra
from reward_kit.http.blocking import ask
from reward_kit.http.faults import HttpFault
from reward_kit.http.transport import note_sent
from reward_kit.redaction import mask, remember, sent

__all__ = ["SignIn", "sign_in_for", "tls_for"]

_RENEWED_BEFORE = 300.0
"""Seconds before a token's end from which on another one is fetched."""
_UNKNOWN_LIFETIME = 600.0
_FETCH_SECONDS = 10.0
_OK = 200


class SignIn(Protocol):
    """Gives the headers by which a server knows us."""

    async def headers(self, method: str, url: str, data: bytes) -> Mapping[str, str]:
        """Those of one request. What cannot be had is an `AuthError` that says what to set."""
        ...


def sign_in_for(endpoint: str, settings: RemoteRewardConfig, *, inherited_key: bool = False) -> SignIn:
    """The way to sign in that the settings name. `inherited_key`: Fireworks' key, which a server here may be sent."""
    if settings.sign_in == "none":
        return _ByHeaders({})
    key = resolve_endpoint_key(endpoint, settings.api_key_env)
    if key is None and inherited_key and is_loopback(urlsplit(endpoint).hostname or ""):
        key = get_fireworks_api_key()  # it does not leave this machine
    if settings.sign_in == "key":
        return _ByHeaders({} if key is None else {"Authorization": f"Bearer {_sendable(key)}"})
    if urlsplit(endpoint).scheme != "https" and not is_private_host(urlsplit(endpoint).hostname or ""):
        raise AuthError(f"The credentials for {mask(endpoint)!r} would be sent unencrypted. Use https://.")
    beside = {} if key is None else {"X-Api-Key": _sendable(key)}
    if settings.sign_in == "google":
        return _ByGoogle(settings.audience or _origin(endpoint), beside)
    return _ByAws(endpoint, settings, beside)


def tls_for(settings: RemoteRewardConfig) -> ssl.SSLContext | None:
    """What proves to the server who we are, and to us who it is; None: as everywhere else."""
    if settings.client_cert_file is None and settings.ca_file is None:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        if settings.client_cert_file is not None:
            context.load_cert_chain(settings.client_cert_file, settings.client_key_file)
    except (OSError, ssl.SSLError) as error:
        raise AuthError(
            f"The certificates in `reward.remote` cannot be read: {mask(str(error))}. Give PEM files that exist, and a "
            "key without a passphrase."
        ) from None
    return context


def _origin(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc}"


def _sendable(key: str) -> str:
    if not (key.isascii() and key.isprintable()):
        raise AuthError("The API key holds characters that cannot be sent, such as a line break. Copy it again.")
    return key


# ── an API key ───────────────────────────────────────────────────────────────────────────────────────────────────────


class _ByHeaders:
    """Sends the same headers each time."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        note_sent(headers)

    async def headers(self, method: str, url: str, data: bytes) -> Mapping[str, str]:
        return self._headers


# ── Google ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class _ByGoogle:
    """Sends an ID token, which is fetched again before it ends."""

    def __init__(self, audience: str, beside: Mapping[str, str]) -> None:
        self._audience = audience
        self._beside = beside
        self._token = ""
        self._until = float("-inf")
        self._fetching = asyncio.Lock()

    async def headers(self, method: str, url: str, data: bytes) -> Mapping[str, str]:
        async with self._fetching:  # many requests begin at once, and one token serves them all
            if time.time() > self._until - _RENEWED_BEFORE:
                self._token = await asyncio.to_thread(_google_token, self._audience)
                sent(self._token)
                self._until = _end_of(self._token)
        return {**self._beside, "Authorization": f"Bearer {self._token}"}


def _google_token(audience: str) -> str:
    if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return _token_of_service_account(audience)
    return _token_of_machine(audience)


def _token_of_service_account(audience: str) -> str:
    with needs_extra("A Google ID token of a service account", "gcp"):
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request as GoogleRequest
        from google.oauth2.id_token import fetch_id_token
    try:
        return str(fetch_id_token(GoogleRequest(), audience))  # type: ignore[no-untyped-call]
    except (GoogleAuthError, OSError, ValueError) as error:
        raise AuthError(
            f"Google gave no ID token for {audience!r}: {mask(str(error))}. Check the file that "
            "GOOGLE_APPLICATION_CREDENTIALS names: it must be a service account's."
        ) from None


def _token_of_machine(audience: str) -> str:
    """The token of the service account that this machine, or this Cloud Run service, runs as."""
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    path = "computeMetadata/v1/instance/service-accounts/default/identity"
    url = f"http://{host}/{path}?audience={quote(audience, safe='')}&format=full"
    try:
        reply = ask("GET", url, headers={"Metadata-Flavor": "Google"}, seconds=_FETCH_SECONDS, proxied=False)
        if reply.status == _OK:
            return reply.data.decode("ascii").strip()
        why = f"the metadata server answered {reply.status}"
    except (HttpFault, ValueError):
        why = "there is no metadata server here"
    raise AuthError(
        f"There is no Google ID token for {audience!r}: {why}. Set GOOGLE_APPLICATION_CREDENTIALS to a service "
        "account's file, or run this where a service account is attached."
    )


def _end_of(token: str) -> float:
    """When the token ends. Nobody here checks its signature: that is for the server."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return time.time() + _UNKNOWN_LIFETIME


# ── AWS ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

_FUNCTION_URL = re.compile(r"\.lambda-url\.([a-z0-9-]+)\.on\.aws$")
_GATEWAY = re.compile(r"\.execute-api\.([a-z0-9-]+)\.amazonaws\.com$")


class _ByAws:
    """Signs each request with SigV4. The credentials are found as AWS' own tools find them, and renewed by botocore."""

    def __init__(self, endpoint: str, settings: RemoteRewardConfig, beside: Mapping[str, str]) -> None:
        with needs_extra("A signature for AWS", "aws"):
            from botocore.session import Session
        session = Session()
        host = urlsplit(endpoint).hostname or ""
        function, gateway = _FUNCTION_URL.search(host), _GATEWAY.search(host)
        found = function or gateway
        region = settings.aws_region or (found and found[1]) or session.get_config_variable("region")
        if not region:
            raise ConfigError(f"The AWS region of {host!r} is not known. Set `reward.remote.aws_region`.")
        self._region: str = region
        self._service = settings.aws_service or ("execute-api" if gateway else "lambda")
        self._session = session
        self._beside = beside
        self._credentials: Any = None

    async def headers(self, method: str, url: str, data: bytes) -> Mapping[str, str]:
        return await asyncio.to_thread(self._signed, method, url, data)

    def _signed(self, method: str, url: str, data: bytes) -> Mapping[str, str]:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError

        try:
            self._credentials = self._credentials or self._session.get_credentials()
            if self._credentials is None:
                raise AuthError("There are no AWS credentials. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret.")
            frozen = self._credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise AuthError(f"The AWS credentials cannot be read: {mask(str(error))}. Sign in again.") from None
        remember(frozen.secret_key)
        sent(frozen.token)
        request = AWSRequest(method, url, headers=dict(self._beside), data=data)
        SigV4Auth(frozen, self._service, self._region).add_auth(request)
        return dict(request.headers.items())
