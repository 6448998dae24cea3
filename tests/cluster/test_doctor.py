# SPDX-License-Identifier: Apache-2.0
"""`reward-kit doctor` tells whether Ray works: one of its own, a cluster, and an address where there is none."""

from __future__ import annotations

import pytest

from reward_kit.execution.ray_engine.probe import probe_ray
from tests.cluster.nodes import Nodes


def test_a_ray_of_its_own_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    works, detail = probe_ray()
    assert works, detail
    assert "an actor on a Ray of its own (1 nodes) answered" in detail


def test_a_cluster_answers_and_one_that_is_not_there_is_told(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    works, detail = probe_ray()
    assert works and "(3 nodes)" in detail
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    works, detail = probe_ray()
    assert not works and detail
