# SPDX-License-Identifier: Apache-2.0
"""An address where there is no cluster."""

from __future__ import annotations

import socket

import pytest

from reward_kit.config_models import EngineConfig
from reward_kit.errors import ClusterError
from reward_kit.execution.ray_engine.cluster import open_cluster

pytest.importorskip("ray", reason="needs the extra `ray`")


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "[::1]:{}"])
def test_an_address_where_nobody_listens_is_said_at_once(form: str) -> None:
    with socket.socket() as taken:  # bound, and not listening: nobody else gets the port meanwhile
        taken.bind(("127.0.0.1", 0))
        address = form.format(taken.getsockname()[1])
        refused = pytest.raises(ClusterError, match=r"No Ray cluster can be reached at .* Correct `engine.address`")
        with refused, open_cluster(EngineConfig(name="ray", address=address)):
            pass
