# SPDX-License-Identifier: Apache-2.0
"""A real Ray cluster of three nodes on this machine. Run by `make test-cluster`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.nodes import Nodes

if os.environ.get("REWARD_KIT_TEST_CLUSTER") != "1":
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What Ray leaves open or deprecated is not ours to mend; a loaded machine takes its time."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """Three nodes; each test leaves three."""
    with Nodes() as made:
        yield made
