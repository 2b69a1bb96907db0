"""A wheel with the program and its documents inside: build.py VERSION PROGRAM BOOK FOLDER.

A wheel is a zip file with a record of its files (PyPI's binary distribution format); this one needs no build backend. Its tag names
the oldest C library that the program runs with, read from the symbols that it asks for.
"""

import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def platform(program: str) -> str:
    """manylinux_X_Y_x86_64 of the newest symbol of the C library among those that the program asks for."""
    symbols = subprocess.run(["objdump", "-T", program], check=True, capture_output=True, text=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d+\.\d+)", symbols)}
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_x86_64"


def metadata(version: str) -> str:
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as readme:
        text = readme.read()
    return (
        "Metadata-Version: 2.1\n"
        "Name: threadgres\n"
        f"Version: {version}\n"
        "Summary: A database server that speaks PostgreSQL, for applications' tests: no installation, no daemon\n"
        "License: Apache-2.0\n"
        "Requires-Python: >=3.9\n"
        "Classifier: Framework :: Pytest\n"
        "Classifier: Operating System :: POSIX :: Linux\n"
        "Classifier: Topic :: Database :: Database Engines/Servers\n"
        "Classifier: Typing :: Typed\n"
        "Description-Content-Type: text/markdown\n"
        f"\n{text}"
    )


ENTRY_POINTS = """[console_scripts]
threadgres = threadgres.__main__:main

[pytest11]
threadgres = threadgres.pytest_plugin
"""


def build(version: str, program: str, book: str, folder: str) -> str:
    tag = f"py3-none-{platform(program)}"
    info = f"threadgres-{version}.dist-info"
    path = os.path.join(folder, f"threadgres-{version}-{tag}.whl")
    stamp = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    wheel = f"Wheel-Version: 1.0\nGenerator: threadgres\nRoot-Is-Purelib: false\nTag: {tag}\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:

        def add(name: str, content: bytes, mode: int = 0o644) -> None:
            entry = zipfile.ZipInfo(name, stamp)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            out.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.writerow([name, f"sha256={digest}", len(content)])

        def add_file(name: str, source: str, mode: int = 0o644) -> None:
            with open(source, "rb") as file:
                add(name, file.read(), mode)

        package = os.path.join(HERE, "threadgres")
        for name in sorted(os.listdir(package)):
            if name.endswith((".py", ".typed")) and name != "_version.py":
                add_file(f"threadgres/{name}", os.path.join(package, name))
        add("threadgres/_version.py", f'"""Made by the build."""\n\n__version__ = "{version}"\n'.encode())
        add_file("threadgres/bin/threadgres", program, 0o755)
        for at, folders, files in os.walk(book):
            folders.sort()
            for name in sorted(files):
                path_in_book = os.path.relpath(os.path.join(at, name), book)
                add_file(f"threadgres/share/doc/threadgres/html/{path_in_book}", os.path.join(at, name))
        add_file(f"{info}/LICENSE", os.path.join(HERE, "../../LICENSE"))
        add(f"{info}/METADATA", metadata(version).encode())
        add(f"{info}/WHEEL", wheel.encode())
        add(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
        rows.writerow([f"{info}/RECORD", "", ""])
        out.writestr(zipfile.ZipInfo(f"{info}/RECORD", stamp), record.getvalue())
    return path


if __name__ == "__main__":
    build(*sys.argv[1:])
