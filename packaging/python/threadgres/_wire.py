"""The few messages of PostgreSQL's protocol that make and drop databases, so that this package needs no driver."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator


def run(host: str, port: int, user: str, database: str, sql: str) -> list[list[str | None]]:
    """Connects as a client that needs no password, runs statements, returns their rows."""
    with socket.create_connection((host, port)) as connection:
        parameters = b"".join(part.encode() + b"\0" for part in ("user", user, "database", database))
        head = struct.pack("!ii", 9 + len(parameters), 3 << 16)
        connection.sendall(head + parameters + b"\0")
        messages = _messages(connection)
        _until_ready(messages)
        text = sql.encode() + b"\0"
        connection.sendall(b"Q" + struct.pack("!i", 4 + len(text)) + text)
        rows = _until_ready(messages)
        connection.sendall(b"X" + struct.pack("!i", 4))
        return rows


def _messages(connection: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    with connection.makefile("rb") as stream:
        while head := stream.read(5):
            yield head[:1], stream.read(struct.unpack("!i", head[1:])[0] - 4)


def _until_ready(messages: Iterator[tuple[bytes, bytes]]) -> list[list[str | None]]:
    rows: list[list[str | None]] = []
    failure = ""
    for kind, body in messages:
        if kind == b"Z":
            break
        if kind == b"D":
            rows.append(_row(body))
        elif kind == b"E":
            failure = _message(body)
        elif kind == b"R" and body != struct.pack("!i", 0):
            raise RuntimeError("the server asks for a password")
    else:
        failure = failure or "the server has closed the connection"
    if failure:
        raise RuntimeError(failure)
    return rows


def _row(body: bytes) -> list[str | None]:
    count, at, row = struct.unpack("!h", body[:2])[0], 2, []
    for _ in range(count):
        length = struct.unpack("!i", body[at : at + 4])[0]
        at += 4
        row.append(None if length < 0 else body[at : at + length].decode())
        at += max(length, 0)
    return row


def _message(body: bytes) -> str:
    fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
    return f"{fields.get(b'M', 'unknown error')} ({fields.get(b'C', '')})"
