# SPDX-License-Identifier: Apache-2.0
"""A shop's database as an agent's world."""

from __future__ import annotations

from pathlib import Path

from reward_kit.agent import ResourceEnvironment

HERE = Path(__file__).parent


class Shop(ResourceEnvironment):
    """Every episode has a copy of the shop's database, and may do to it what it likes."""

    def __init__(self) -> None:
        super().__init__(
            "SQLResource",
            {"schema_file": str(HERE / "schema.sql"), "seed_data_file": str(HERE / "data.sql"), "timeout": 5},
        )
