# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the engine on Ray keeps working. What it measures is not judged here."""

from __future__ import annotations

from tests.test_benchmarks import WITH_A_CLUSTER, prints_its_table


def test_it_prints_its_table() -> None:
    (name,) = WITH_A_CLUSTER
    prints_its_table(name)
