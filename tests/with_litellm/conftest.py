# SPDX-License-Identifier: Apache-2.0
"""Our requests and prices beside litellm's, and models asked through it. Run by `make test-litellm`.

Elsewhere these are not collected: litellm is no part of .venv, as it fixes versions of packages that we use.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("litellm") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What litellm warns of is not ours to mend."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))
