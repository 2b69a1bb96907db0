"""Servers that live as long as a block."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Union
from urllib.parse import quote

from ._wire import run

__all__ = ["Database", "Server", "StartError", "program", "root_option", "temporary"]

Setting = Union[str, int, float, bool]

#: Another process may take a free port before the server does.
_TRIES = 5


class StartError(RuntimeError):
    """The server did not start; the message ends with what it said."""


def program() -> pathlib.Path:
    """The path of the program that comes with this package."""
    return pathlib.Path(__file__).with_name("bin") / "threadgres"


def root_option() -> list[str]:
    """The option with which the program runs as root, for root."""
    return ["--allow-root"] if os.geteuid() == 0 else []


@dataclass(frozen=True)
class Database:
    """A database of a running server, and how to reach it."""

    host: str
    port: int
    user: str
    dbname: str
    socket_dir: str

    @property
    def dsn(self) -> str:
        """For psycopg and whatever else takes libpq's keywords."""
        return f"host={self.host} port={self.port} user={self.user} dbname={self.dbname}"

    @property
    def url(self) -> str:
        """The same as a URL, for SQLAlchemy, asyncpg, Django's dj-database-url and kin."""
        return f"postgresql://{quote(self.user)}@{self.host}:{self.port}/{quote(self.dbname)}"

    def execute(self, sql: str) -> list[list[str | None]]:
        """Runs statements and returns the rows of all of them as texts: for tests' set-up, without a driver.

        Raises RuntimeError with the server's message.
        """
        return run(self.host, self.port, self.user, self.dbname, sql)


@dataclass(frozen=True)
class Server(Database):
    """A running server; as a Database, its own ``postgres``."""

    data_dir: pathlib.Path
    log_file: pathlib.Path
    _process: subprocess.Popen[bytes] = field(repr=False, compare=False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """The log until now."""
        return self.log_file.read_text(errors="replace")

    def database(self, name: str) -> Database:
        """A database by its name, which need not be there."""
        return Database(self.host, self.port, self.user, name, self.socket_dir)

    def create_database(self, name: str, template: str | None = None) -> Database:
        """Makes a database."""
        copied = f" TEMPLATE {_quoted(template)}" if template else ""
        self.execute(f"CREATE DATABASE {_quoted(name)}{copied}")
        return self.database(name)

    def drop_database(self, name: str) -> None:
        """Drops a database; sessions that are still in it are ended."""
        self.execute(f"DROP DATABASE IF EXISTS {_quoted(name)} WITH (FORCE)")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _text(value: Setting) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


class _Ready:
    """The socket on which the server says that it is ready, as it says to systemd."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(0.05)

    def wait(self, process: subprocess.Popen[bytes], timeout: float) -> bool:
        """Whether the server is ready; not if it has ended or the time is over."""
        end = time.monotonic() + timeout
        while time.monotonic() < end and process.poll() is None:
            try:
                if b"READY=1" in self.socket.recv(4096):
                    return True
            except TimeoutError:
                continue
            except socket.timeout:  # Python 3.9 has two kinds.
                continue
        return False

    def close(self) -> None:
        self.socket.close()
        self.path.unlink(missing_ok=True)


def _start(directory: pathlib.Path, port: int, settings: Mapping[str, Setting], timeout: float) -> Server:
    data, log = directory / "data", directory / "log"
    command = [str(program()), "serve", "--single-process", "-D", str(data), "-h", "127.0.0.1", "-p", str(port)]
    command += ["-k", str(directory), *root_option()]
    for name, value in settings.items():
        command += ["-c", f"{name}={_text(value)}"]
    ready = _Ready(directory / "notify")
    try:
        with open(log, "ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "NOTIFY_SOCKET": str(ready.path)},
                start_new_session=True,
            )
        if ready.wait(process, timeout):
            return Server("127.0.0.1", port, "postgres", "postgres", str(directory), data, log, process)
        _stop(process)
        raise StartError(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")
    finally:
        ready.close()


def _stop(process: subprocess.Popen[bytes], timeout: float = 20) -> None:
    """A fast stop; a server that does not follow is killed: its data go anyway."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def temporary(
    *,
    settings: Mapping[str, Setting] | None = None,
    port: int | None = None,
    timeout: float = 60,
) -> Iterator[Server]:
    """A new server with empty databases, for as long as the block runs.

    ``settings`` are settings of the server by name, ``port`` is a port of 127.0.0.1 (a free one unless given), ``timeout`` the seconds
    that a start may take. Whoever connects from this machine is let in.
    """
    chosen: dict[str, Setting] = {"fsync": False, "synchronous_commit": False, "shared_buffers": "64MB", "http_port": 0}
    chosen.update(settings or {})
    with tempfile.TemporaryDirectory(prefix="threadgres-") as directory:
        for attempt in range(_TRIES):
            try:
                server = _start(pathlib.Path(directory), port or _free_port(), chosen, timeout)
                break
            except StartError as error:
                if port or attempt + 1 == _TRIES or "in use" not in str(error):
                    raise
        try:
            yield server
        finally:
            _stop(server._process)
