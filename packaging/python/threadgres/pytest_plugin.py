"""The fixtures for pytest; the package's entry point makes them known."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from ._server import Database, Server, temporary

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def threadgres_server() -> Iterator[Server]:
    """A server that all tests of the run share."""
    with temporary() as server:
        yield server


@pytest.fixture
def threadgres(threadgres_server: Server) -> Iterator[Database]:
    """An empty database of this test's own."""
    name = f"test_{next(_numbers)}"
    yield threadgres_server.create_database(name)
    threadgres_server.drop_database(name)
