# SPDX-License-Identifier: Apache-2.0
"""Sees that a wheel and an sdist hold the viewer's page: the build backend calls it before it packs.

The page is made by `make web` and is in no repository, but in every sdist: whoever builds from one needs no node. An
editable install needs none either. REWARD_KIT_WITHOUT_PAGE=1 builds a package whose `reward-kit view` has no page.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface[Any]):
    """Makes the page where it is missing and node is there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if (
            version == "editable"
            or (root / "reward_kit" / "viewer" / "static" / "index.html").is_file()
            or os.environ.get("REWARD_KIT_WITHOUT_PAGE") == "1"
        ):
            return
        if not all(map(shutil.which, ("node", "npm"))):
            raise SystemExit(
                "The viewer's page has not been built, and node and npm, which build it, are not installed. "
                "Install them and run `make web`, or set REWARD_KIT_WITHOUT_PAGE=1 to build a package without the page."
            )
        subprocess.run([root / "scripts" / "web.sh"], check=True)
