"""What pg_activity asks: its own queries, while one session blocks another.

Usage: pg_activity.py DSN
"""

import sys
import threading
import time

import psycopg
from pgactivity import data

dsn = sys.argv[1]
holder, waiter = psycopg.connect(dsn), psycopg.connect(dsn)
holder.execute("UPDATE author SET name = 'held' WHERE id = 1")


def wait():
    try:
        waiter.execute("UPDATE author SET name = 'late' WHERE id = 1")
    except psycopg.Error as error:
        print(error.sqlstate)


waiting = threading.Thread(target=wait, daemon=True)
waiting.start()

at = holder.info
asked = data.Data.pg_connect(host=at.host, port=at.port, user=at.user, database=at.dbname)
deadline = time.monotonic() + 60
while not asked.pg_get_waiting():
    assert time.monotonic() < deadline, "nobody waits"
info = asked.pg_get_server_information(None)
print(asked.pg_version.split('.')[0], info.max_connections > 10, info.autovacuum_workers is not None, info.total >= 3)
mine = (holder.info.backend_pid, waiter.info.backend_pid)
for mode in 1, 2, 3:
    for process in sorted(asked.pg_get_activities(mode), key=lambda p: p.pid):
        if process.pid in mine:
            print(mode, mine.index(process.pid), process.state, process.wait, process.query, process.database)
    print(sorted(mine.index(p.pid) for p in asked.pg_get_waiting(mode)), sorted(mine.index(p.pid) for p in asked.pg_get_blocking(mode)))
for p in asked.pg_get_waiting():
    print(p.mode, p.type, p.relation, p.state, p.query)
for p in asked.pg_get_blocking():
    print(p.mode, p.type, p.relation, p.state, p.query)
print(asked.pg_get_temporary_file(), asked.pg_get_wal_senders(), asked.pg_get_wal_receivers(), asked.pg_get_replication_slots())
print(asked.pg_cancel_backend(waiter.info.backend_pid))
waiting.join()
print(asked.pg_terminate_backend(holder.info.backend_pid))
