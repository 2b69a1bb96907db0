"""A Threadgres server for applications and their tests.

    with threadgres.temporary() as server:
        connection = psycopg.connect(server.dsn)

The server is the program that comes with this package.
"""

from __future__ import annotations

from ._server import Database, Server, StartError, program, temporary
from ._version import __version__

__all__ = ["Database", "Server", "StartError", "__version__", "program", "temporary"]
