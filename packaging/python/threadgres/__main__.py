"""``python -m threadgres``: the program; without arguments it serves ./threadgres-data."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from ._server import program, root_option

DATA = "threadgres-data"


def main() -> NoReturn:
    """Becomes the program."""
    arguments = sys.argv[1:]
    if not arguments:
        arguments = ["serve", "-D", DATA, "-h", "127.0.0.1", "-p", "5432", *root_option()]
        print(f"threadgres: serving ./{DATA}: psql -h 127.0.0.1 -U postgres postgres", file=sys.stderr, flush=True)
    path = str(program())
    os.execv(path, [path, *arguments])


if __name__ == "__main__":
    main()
