# SPDX-License-Identifier: Apache-2.0
"""Our adapters in the packages they are for. Run by `make test-frameworks`; elsewhere these are not collected."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("verifiers") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What these packages warn of is not ours to mend."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))
