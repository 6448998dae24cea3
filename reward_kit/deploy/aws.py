# SPDX-License-Identifier: Apache-2.0
"""Requests to AWS, by boto3: the same credentials, profiles and endpoints as every other tool of AWS uses."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from typing import Any

from reward_kit.deploy.carry_out import MissingThing
from reward_kit.deploy.plan import Action, Request
from reward_kit.errors import AuthError, DeployError, needs_extra
from reward_kit.redaction import mask

__all__ = ["AwsHands", "aws_client"]

_WAIT = "wait:"
_AGAIN_SECONDS = 60.0
_AGAIN_PAUSE = 2.0


def aws_client(service: str, region: str | None) -> Any:
    """A client of a service. Where no region is known, a `DeployError` says how to name one."""
    with needs_extra("AWS", "aws"):
        import boto3
        from botocore.exceptions import BotoCoreError, NoRegionError
    try:
        # A session of its own: boto3's shared one would keep the credentials of whoever asked first.
        return boto3.Session().client(service, region_name=region or os.environ.get("AWS_REGION") or None)
    except NoRegionError:
        raise DeployError("No region of AWS is named. Give --aws-region, or set AWS_REGION.") from None
    except BotoCoreError as error:
        raise DeployError(f"AWS cannot be used: {error}. Check its configuration.") from None


class AwsHands:
    """Does requests whose service is one of AWS."""

    def __init__(self, region: str | None, files: Mapping[str, bytes], *, again_pause: float = _AGAIN_PAUSE) -> None:
        """`files` holds the bytes of what a request names as `$file`."""
        self._region = region
        self._files = files
        self._pause = again_pause
        self._clients: dict[str, Any] = {}

    def do(self, action: Action, _: Mapping[str, str]) -> Any:
        """Ask, and again for a while where one part of AWS has not heard of another; see `Hands`."""
        assert isinstance(action, Request)
        deadline = time.monotonic() + _AGAIN_SECONDS
        while True:
            try:
                return self._ask(action)
            except _Again as reason:
                if time.monotonic() >= deadline:
                    raise DeployError(str(reason)) from None
                time.sleep(self._pause)

    def _ask(self, action: Request) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, WaiterError

        client = self._client(action.service)
        parameters = self._with_files(action.parameters)
        try:
            if action.operation.startswith(_WAIT):
                return client.get_waiter(action.operation.removeprefix(_WAIT)).wait(**parameters)
            return getattr(client, action.operation)(**parameters)
        except ClientError as error:
            return _refused(action, error)
        except NoCredentialsError:
            raise AuthError(
                "AWS needs credentials and none were found. Run `aws configure`, or set AWS_PROFILE or "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            ) from None
        except WaiterError as error:
            raise DeployError(f"{action.service} is not ready: {mask(str(error))}") from None
        except BotoCoreError as error:
            raise DeployError(f"{action.service} cannot be reached: {mask(str(error))}") from None

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = aws_client(service, self._region)
        return self._clients[service]

    def _with_files(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            if "$file" in value:
                return self._files[value["$file"]]
            return {name: self._with_files(held) for name, held in value.items()}
        return [self._with_files(held) for held in value] if isinstance(value, list) else value


class _Again(Exception):
    """The service may say yes a moment later."""


def _refused(action: Request, error: Any) -> None:
    """What a refusal means for this request."""
    code = error.response.get("Error", {}).get("Code", "")
    words = (
        f"{action.service} refuses {action.operation} ({code}): {error.response.get('Error', {}).get('Message', '')}"
    )
    if action.missing and re.fullmatch(action.missing, code):
        raise MissingThing(words)
    if action.fine and re.fullmatch(action.fine, code):
        return
    if action.again and re.search(action.again, words):
        raise _Again(mask(words))
    raise DeployError(mask(words))
