# SPDX-License-Identifier: Apache-2.0
"""Where things are in a bundle, and what they are called: known to who makes it, and to who runs it."""

from __future__ import annotations

__all__ = ["KEY_VARIABLE", "MANIFEST", "PROJECT", "SECRETS_VARIABLE", "SERVE_FILE"]

MANIFEST = "bundle.json"
PROJECT = "project"
"""The folder that is the project: the reward runs in it."""
SERVE_FILE = "serve.json"
"""The settings of the server, as `reward-kit serve --config` reads them."""
KEY_VARIABLE = "RK_ENDPOINT_API_KEY"
"""The environment variable that holds the endpoint's key."""
SECRETS_VARIABLE = "REWARD_KIT_SECRETS"
"""Of a function of Lambda: JSON, environment variable → ARN of the secret that it is read from."""
