"""The queries of TPC-H in DuckDB: duckdb.py FOLDER THREADS

FOLDER holds a file TABLE.csv for each table, TABLES.sql that makes them, and NUMBER.sql for each query. Prints a line for
each query: its number and the best of three times in seconds. Answers are fetched whole, as the servers' clients do.
"""

import pathlib
import sys
import time

# This file has the module's name.
sys.path.pop(0)
import duckdb  # noqa: E402

folder, threads = pathlib.Path(sys.argv[1]), sys.argv[2]
connection = duckdb.connect(str(folder / "duckdb"))
connection.execute(f"SET threads = {threads}")
connection.execute((folder / "TABLES.sql").read_text())
for file in sorted(folder.glob("*.csv")):
    columns = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ? ORDER BY ordinal_position",
        [file.stem],
    ).fetchall()
    # Values of char(n) come padded, and here they would stay so.
    values = ", ".join(f"rtrim({c})" if t == "VARCHAR" else c for c, t in columns)
    types = ", ".join(f"'{c}': '{t}'" for c, t in columns)
    connection.execute(
        f"INSERT INTO {file.stem} SELECT {values} FROM read_csv('{file}', header = false, columns = {{{types}}})"
    )
    file.unlink()
connection.execute("ANALYZE")
for file in sorted(folder.glob("[0-9]*.sql")):
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        for statement in file.read_text().split(";"):
            if statement.strip():
                connection.execute(statement).fetchall()
        best = min(best, time.perf_counter() - begin)
    print(int(file.stem), best, flush=True)
