# SPDX-License-Identifier: Apache-2.0
"""Commands of `gcloud`, which brings Google's credentials, projects and builds with it."""

from __future__ import annotations

from reward_kit.deploy.plan import Command

__all__ = ["NOT_FOUND", "gcloud"]

NOT_FOUND = "NOT_FOUND|not found|could not be found|cannot find|does not exist"
"""How `gcloud` says that something is not there."""


def gcloud(*words: str, project: str, stdin: str | None = None, missing: str = "", follow: bool = False) -> Command:
    """A command that asks the person nothing."""
    return Command(
        argv=("gcloud", *words, f"--project={project}", "--quiet"), stdin=stdin, missing=missing, follow=follow
    )
