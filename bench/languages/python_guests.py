"""Which Python could live beside a server of threads: start, memory and call of an interpreter in the process (what a
free-threaded build would be), of sub-interpreters with locks of their own, and of processes behind a pipe.

python3.13 bench/languages/python_guests.py [GUESTS]; a build without the lock (python3.13t) runs the first part with as
many threads as there are processors.
"""

import os
import subprocess
import sys
import threading
import time

GUESTS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
BODY = "def words(t):\n    return t.count(' ') + 1\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
SERVE = BODY + """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(b'%d\\n' % words(line.decode()))
    sys.stdout.buffer.flush()
"""
TEXT = "Some words of row 4711, of which there are a few"


def resident(pid="self"):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        sizes = dict(line.split(":") for line in f if line.startswith(("Pss", "Private_Dirty")))
    return int(sizes["Pss"].split()[0])


def timed(f, times=1):
    begun = time.perf_counter()
    for _ in range(times):
        f()
    return (time.perf_counter() - begun) / times * 1e6


def line(guest, what, value):
    print(f"{guest:16} {what:38} {value:10.1f}")


def in_process():
    names = {}
    exec(BODY, names)
    words, fib = names["words"], names["fib"]
    line("in process", "call, us", timed(lambda: words(TEXT), 100_000))
    line("in process", "fib(24), us", timed(lambda: fib(24)))

    def many():
        threads = [threading.Thread(target=fib, args=(24,)) for _ in range(os.cpu_count())]
        [t.start() for t in threads]
        [t.join() for t in threads]

    line("in process", f"fib(24) on {os.cpu_count()} threads at once, us", timed(many))
    line("in process", "has the lock", float(getattr(sys, "_is_gil_enabled", lambda: True)()))


def sub_interpreters():
    try:
        import _interpreters
    except ImportError:
        print("sub-interpreters: this Python has none with a lock of their own")
        return
    before, guests = resident(), []
    line("sub-interpreter", "start, us", timed(lambda: guests.append(_interpreters.create()), GUESTS))
    for guest in guests:
        _interpreters.exec(guest, BODY)
    line("sub-interpreter", "memory each, kB", (resident() - before) / GUESTS)
    call = f"words({TEXT!r})"
    line("sub-interpreter", "call by exec, us", timed(lambda: _interpreters.exec(guests[0], call), 2_000))

    def many():
        run = lambda guest: _interpreters.exec(guest, "fib(24)")
        threads = [threading.Thread(target=run, args=(g,)) for g in guests[: os.cpu_count()]]
        [t.start() for t in threads]
        [t.join() for t in threads]

    line("sub-interpreter", f"fib(24) on {os.cpu_count()} threads at once, us", timed(many))
    for guest in guests:
        _interpreters.destroy(guest)
    line("sub-interpreter", "left after their end, kB each", (resident() - before) / GUESTS)


def processes():
    guests = []

    def start():
        guest = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        guests.append(guest)
        ask(guest)

    def ask(guest):
        guest.stdin.write(TEXT.encode() + b"\n")
        guest.stdin.flush()
        return guest.stdout.readline()

    line("process", "start to first answer, us", timed(start, GUESTS))
    line("process", "memory each, kB", sum(resident(g.pid) for g in guests) / GUESTS)
    line("process", "call, us", timed(lambda: ask(guests[0]), 5_000))
    for guest in guests:
        guest.stdin.close()
        guest.wait()


print(sys.version.split("\n")[0])
in_process()
sub_interpreters()
processes()
