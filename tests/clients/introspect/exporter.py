"""The names of the figures that the Prometheus exporter reads, but for those of single settings and databases.

Usage: exporter.py DSN
"""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    address = "127.0.0.1:%d" % free.getsockname()[1]
exporter = subprocess.Popen(
    ["prometheus-postgres-exporter", "--web.listen-address=" + address, "--log.level=error"],
    env=dict(os.environ, DATA_SOURCE_NAME=sys.argv[1] + "?sslmode=disable"), stderr=subprocess.STDOUT)
try:
    deadline = time.monotonic() + 60
    while True:
        try:
            text = urllib.request.urlopen(f"http://{address}/metrics").read().decode()
            break
        except OSError:
            assert time.monotonic() < deadline and exporter.poll() is None, "the exporter does not answer"
finally:
    exporter.terminate()
    exporter.wait()
figures = {m[1] for m in re.finditer(r"^(pg_\w+)", text, re.M)}
print("\n".join(sorted(f for f in figures if not f.startswith("pg_settings_"))))
settings = {f for f in figures if f.startswith("pg_settings_")}
print(len(settings) > 200, "pg_settings_shared_buffers_bytes" in settings, "pg_settings_work_mem_bytes" in settings)
for name in "pg_up", "pg_exporter_last_scrape_error":
    print(name, re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)", text, re.M))
