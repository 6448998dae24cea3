# SPDX-License-Identifier: Apache-2.0
"""S3 for the tests of this folder: one server, a bucket for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.loopback.object_store import ObjectStore, environment, object_store


@pytest.fixture(scope="session")
def s3_server() -> Iterator[ObjectStore]:
    with object_store() as store:
        yield store


@pytest.fixture
def s3(s3_server: ObjectStore) -> Iterator[ObjectStore]:
    with environment(s3_server):
        s3_server.new_bucket()
        yield s3_server
