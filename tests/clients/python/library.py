"""A small lending library over psycopg 3: it makes its tables, fills them, asks, fails and recovers.

Each test is one thing that applications do with the driver; they run in order, on one database.
Usage: library.py DSN
"""

import datetime
import decimal
import sys
import threading
import uuid

import psycopg
from psycopg import errors, sql
from psycopg.rows import class_row, dict_row, namedtuple_row
from psycopg.types.json import Jsonb

DSN = sys.argv[1] if len(sys.argv) > 1 else "postgresql://postgres@127.0.0.1:5432/postgres"

TABLES = """
DROP TABLE IF EXISTS loan, book, reader;
CREATE TABLE reader (id int PRIMARY KEY, name text NOT NULL, since date DEFAULT current_date);
CREATE TABLE book (
    id bigint PRIMARY KEY, title text NOT NULL UNIQUE, price numeric(8, 2) CHECK (price >= 0),
    pages smallint, weight real, ratio double precision, lent bool NOT NULL DEFAULT false,
    cover bytea, code uuid, bought timestamptz);
CREATE TABLE loan (
    book bigint REFERENCES book (id), reader int REFERENCES reader (id) ON DELETE CASCADE,
    taken timestamp NOT NULL, PRIMARY KEY (book, reader));
"""


class Book:
    def __init__(self, id, title):
        self.id, self.title = id, title


def makes_tables(c):
    c.execute(TABLES)
    assert c.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    c.commit()
    with c.cursor() as cur:
        cur.execute("SELECT count(*) FROM book")
        assert cur.fetchone() == (0,)
        assert cur.description[0].name == "count" and cur.description[0].type_code == 20


VALUES = (
    1, "Ada's \"notes\" \\ ä€😀", decimal.Decimal("12.50"), 300, 0.5, 1 / 3, True,
    b"\x00\xffcover", uuid.UUID("12345678-1234-5678-1234-567812345678"),
    datetime.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=datetime.timezone.utc),
)


def values_of_all_types_come_back(c):
    c.execute("INSERT INTO book VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", VALUES)
    for binary in (False, True):
        row = c.execute("SELECT * FROM book WHERE id = %s", (1,), binary=binary).fetchone()
        assert row == VALUES, (binary, row)
        nothing = c.execute("SELECT %s::int, %s::text", (None, None), binary=binary).fetchone()
        assert nothing == (None, None)
    # The parameters in binary, too.
    for value, cast in [(7, "int8"), (True, "bool"), (1.5, "float8"), (b"\x01\x00", "bytea"),
                        (VALUES[8], "uuid"), (VALUES[9], "timestamptz"),
                        (datetime.date(1999, 12, 31), "date"), (decimal.Decimal("-0.001"), "numeric"),
                        (datetime.datetime(2001, 1, 1, 1, 1, 1), "timestamp"),
                        (datetime.time(23, 59, 59, 5), "time"), ("text", "text"),
                        (datetime.timedelta(days=3, seconds=5), "interval")]:
        row = c.execute(f"SELECT %b::{cast}", (value,), binary=True).fetchone()
        assert row == (value,), (cast, row)
    c.commit()


def arrays_and_json_come_back(c):
    for binary in (False, True):
        row = c.execute("SELECT %s::int[], %s::text[]", ([1, 2, None], ["a,b", '"', None]),
                        binary=binary).fetchone()
        assert row == ([1, 2, None], ["a,b", '"', None]), row
    row = c.execute("SELECT id FROM book WHERE id = ANY(%s)", ([1, 5],)).fetchall()
    assert row == [(1,)]
    document = {"a": [1, None, "x"], "b": {"c": 1.5}}
    for binary in (False, True):
        row = c.execute("SELECT %s::jsonb", (Jsonb(document),), binary=binary).fetchone()
        assert row == (document,), row
    c.commit()


def rows_have_many_shapes(c):
    with c.cursor(row_factory=dict_row) as cur:
        assert cur.execute("SELECT id, lent FROM book").fetchone() == {"id": 1, "lent": True}
    with c.cursor(row_factory=namedtuple_row) as cur:
        assert cur.execute("SELECT title AS name FROM book").fetchone().name == VALUES[1]
    with c.cursor(row_factory=class_row(Book)) as cur:
        assert cur.execute("SELECT id, title FROM book").fetchone().id == 1
    c.commit()


def many_rows_at_once(c):
    with c.cursor() as cur:
        cur.executemany("INSERT INTO reader (id, name) VALUES (%s, %s)",
                        [(n, f"reader {n}") for n in range(1, 101)])
        assert cur.rowcount == 100
        cur.executemany("INSERT INTO book (id, title) VALUES (%s, %s) RETURNING id",
                        [(n, f"book {n}") for n in range(2, 5)], returning=True)
        got = []
        while True:
            got.append(cur.fetchone()[0])
            if not cur.nextset():
                break
        assert got == [2, 3, 4]
    c.commit()


def statements_are_prepared_after_some_use(c):
    for n in range(20):
        row = c.execute("SELECT name FROM reader WHERE id = %s", (n % 100 + 1,)).fetchone()
        assert row == (f"reader {n % 100 + 1}",)
    prepared = c.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()[0]
    assert prepared >= 1, prepared
    # A table that changes under a prepared statement.
    for n in range(7):
        c.execute("SELECT * FROM reader WHERE id = 1", prepare=True)
    c.commit()
    c.execute("ALTER TABLE reader ADD COLUMN email text")
    c.commit()
    try:
        c.execute("SELECT * FROM reader WHERE id = 1", prepare=True)
    except errors.FeatureNotSupported as e:
        assert "cached plan must not change result type" in str(e)
        c.rollback()
        c.execute("DEALLOCATE ALL")
        c.prepared_max = 0
        c.prepared_max = 100
    c.rollback()


def errors_say_what_is_wrong(c):
    cases = [
        ("INSERT INTO book (id, title) VALUES (2, 'again')", errors.UniqueViolation, "book_pkey"),
        ("INSERT INTO book (id, title, price) VALUES (9, 'x', -1)", errors.CheckViolation,
         "book_price_check"),
        ("INSERT INTO loan VALUES (99, 1, now())", errors.ForeignKeyViolation, "loan_book_fkey"),
        ("INSERT INTO book (id) VALUES (9)", errors.NotNullViolation, None),
        ("SELECT 1 / 0", errors.DivisionByZero, None),
        ("SELECT * FROM nowhere", errors.UndefinedTable, None),
        ("SELEC 1", errors.SyntaxError, None),
    ]
    for text, kind, constraint in cases:
        try:
            c.execute(text)
        except kind as e:
            assert e.diag.constraint_name == constraint, (text, e.diag.constraint_name)
            assert e.diag.severity_nonlocalized == "ERROR"
        else:
            raise AssertionError(f"{text} did not fail")
        try:
            c.execute("SELECT 1")
        except errors.InFailedSqlTransaction:
            pass
        else:
            raise AssertionError("a failed transaction goes on")
        c.rollback()
        assert c.execute("SELECT 1").fetchone() == (1,)
        c.rollback()


def transactions_nest(c):
    with c.transaction():
        c.execute("INSERT INTO loan VALUES (1, 1, now())")
        try:
            with c.transaction():
                c.execute("INSERT INTO loan VALUES (1, 1, now())")
        except errors.UniqueViolation:
            pass
        with c.transaction(force_rollback=True):
            c.execute("DELETE FROM loan")
        c.execute("INSERT INTO loan VALUES (2, 1, now())")
    assert c.execute("SELECT count(*) FROM loan").fetchone() == (2,)
    c.execute("DELETE FROM reader WHERE id = 1")
    assert c.execute("SELECT count(*) FROM loan").fetchone() == (0,)
    c.rollback()


def pipelines(c):
    with c.pipeline() as p:
        first = c.execute("INSERT INTO reader (id, name) VALUES (%s, %s) RETURNING id", (200, "p"))
        second = c.execute("SELECT name FROM reader WHERE id = %s", (200,))
        p.sync()
        third = c.cursor()
        third.executemany("UPDATE reader SET name = %s WHERE id = %s", [("q", 200), ("r", 200)])
        fourth = c.execute("SELECT name FROM reader WHERE id = 200")
    assert (first.fetchone(), second.fetchone()) == ((200,), ("p",))
    assert fourth.fetchone() == ("r",)
    c.rollback()
    # What follows an error in a pipeline is skipped; afterwards all is well.
    try:
        with c.pipeline():
            c.execute("INSERT INTO reader (id, name) VALUES (201, 'x')")
            c.execute("SELECT 1 / %s::int", (0,))
            c.execute("INSERT INTO reader (id, name) VALUES (202, 'y')")
    except errors.DivisionByZero:
        pass
    else:
        raise AssertionError("the pipeline's error was lost")
    c.rollback()
    assert c.execute("SELECT count(*) FROM reader WHERE id > 200").fetchone() == (0,)
    c.rollback()


def copies_in_and_out(c):
    with c.cursor() as cur:
        with cur.copy("COPY book (id, title, price, lent) FROM STDIN") as copy:
            for n in range(1000, 1500):
                copy.write_row((n, f"tab\t and \\ {n}", decimal.Decimal(n) / 100, n % 2 == 0))
        assert cur.rowcount == 500
        with cur.copy("COPY book (id, title, cover) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int8", "text", "bytea"])
            for n in range(2000, 2100):
                copy.write_row((n, f"binary {n}", None if n % 3 else bytes([n % 256])))
        rows = []
        with cur.copy("COPY (SELECT id, title, price FROM book WHERE id BETWEEN 1000 AND 1002 "
                      "ORDER BY id) TO STDOUT") as copy:
            copy.set_types(["int8", "text", "numeric"])
            rows.extend(copy.rows())
        assert rows[1] == (1001, "tab\t and \\ 1001", decimal.Decimal("10.01")), rows
        with cur.copy("COPY (SELECT id, cover FROM book WHERE id IN (2000, 2001) ORDER BY id) "
                      "TO STDOUT (FORMAT BINARY)") as copy:
            copy.set_types(["int8", "bytea"])
            rows = list(copy.rows())
        assert rows == [(2000, None), (2001, b"\xd1")], rows
        with cur.copy("COPY reader (id, name) FROM STDIN (FORMAT CSV)") as copy:
            copy.write('300,"a, ""b"""\n')
        assert cur.execute("SELECT name FROM reader WHERE id = 300").fetchone() == ('a, "b"',)
    c.commit()
    try:
        with c.cursor().copy("COPY book (id, title) FROM STDIN") as copy:
            copy.write_row(("no number", "x"))
    except errors.InvalidTextRepresentation as e:
        assert e.diag.context.startswith("COPY book, line 1, column id"), e.diag.context
    c.rollback()
    try:
        with c.cursor().copy("COPY book (id, title) FROM STDIN") as copy:
            copy.write_row((3000, "x"))
            raise KeyError("the application gives up")
    except KeyError:
        pass
    c.rollback()
    assert c.execute("SELECT count(*) FROM book WHERE id = 3000").fetchone() == (0,)
    c.rollback()


def cursors_on_the_server(c):
    with c.cursor(name="all books") as cur:
        cur.itersize = 50
        cur.execute("SELECT id FROM book WHERE id >= %s ORDER BY id", (1000,))
        assert [row[0] for row in cur][:3] == [1000, 1001, 1002]
    with c.cursor(name="back", scrollable=True) as cur:
        cur.execute("SELECT id FROM book WHERE id BETWEEN 1000 AND 1009 ORDER BY id")
        cur.scroll(5)
        assert cur.fetchone() == (1005,)
        cur.scroll(-3)
        assert cur.fetchmany(2) == [(1003,), (1004,)]
    with c.cursor(name="kept", withhold=True) as cur:
        cur.execute("SELECT id FROM book WHERE id BETWEEN 1000 AND 1002 ORDER BY id")
        c.commit()
        assert cur.fetchall() == [(1000,), (1001,), (1002,)]
    c.commit()
    with c.cursor() as cur:
        ids = [row[0] for row in cur.stream("SELECT id FROM book WHERE id < 5 ORDER BY id")]
        assert ids == [1, 2, 3, 4]
    c.commit()


def isolation_and_read_only(c):
    c.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    assert c.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
    c.rollback()
    c.isolation_level, c.read_only = None, True
    try:
        c.execute("DELETE FROM book")
    except errors.ReadOnlySqlTransaction:
        pass
    else:
        raise AssertionError("a read-only transaction wrote")
    c.rollback()
    c.read_only = None


def two_who_write_the_same_row(c):
    with psycopg.connect(DSN) as other:
        for one in (c, other):
            one.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            one.execute("SELECT 1 FROM reader WHERE id = 2")
        c.execute("UPDATE reader SET name = 'first' WHERE id = 2")
        c.commit()
        try:
            other.execute("UPDATE reader SET name = 'second' WHERE id = 2")
        except errors.SerializationFailure:
            other.rollback()
        else:
            raise AssertionError("a lost update")
        other.execute("UPDATE reader SET name = 'second' WHERE id = 2")
        c.isolation_level = None
        c.execute("SET lock_timeout = '50ms'")
        c.commit()
        try:
            c.execute("UPDATE reader SET name = 'third' WHERE id = 2")
        except errors.LockNotAvailable:
            c.rollback()
        c.execute("RESET lock_timeout")
        c.commit()


def a_statement_is_cancelled(c):
    pid = c.info.backend_pid
    failed = []

    def sleep():
        try:
            c.execute("SELECT pg_sleep(600)")
        except errors.QueryCanceled:
            failed.append(True)

    thread = threading.Thread(target=sleep)
    thread.start()
    with psycopg.connect(DSN, autocommit=True) as other:
        while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'",
                            (pid,)).fetchone() is None:
            pass
    c.cancel_safe()
    thread.join()
    assert failed == [True]
    c.rollback()


def others_are_notified(c):
    with psycopg.connect(DSN, autocommit=True) as listener:
        listener.execute("LISTEN lent")
        c.execute("SELECT pg_notify('lent', %s)", ("book 7",))
        c.commit()
        for notice in listener.notifies(timeout=30, stop_after=1):
            assert (notice.channel, notice.payload) == ("lent", "book 7")
            break
        else:
            raise AssertionError("nobody was told")


def notices_arrive(c):
    seen = []
    c.add_notice_handler(lambda diag: seen.append((diag.severity_nonlocalized, diag.sqlstate)))
    c.execute("DROP TABLE IF EXISTS never_was")
    c.rollback()
    assert seen == [("NOTICE", "00000")], seen


def names_are_composed(c):
    name = 'odd "name'
    table = sql.Identifier(name)
    c.execute(sql.SQL("CREATE TABLE {} (a int, {} text)").format(table, sql.Identifier("SELECT")))
    c.execute(sql.SQL("INSERT INTO {} VALUES ({}, {})").format(table, sql.Literal(5), "it's"))
    assert c.execute(sql.SQL("SELECT * FROM {}").format(table)).fetchone() == (5, "it's")
    c.rollback()


def two_phases_are_refused_or_work(c):
    xid = c.xid(1, "gtrid", "bqual")
    try:
        c.tpc_begin(xid)
        c.execute("INSERT INTO reader (id, name) VALUES (400, 'two phases')")
        c.tpc_prepare()
        c.tpc_rollback()
    except (errors.FeatureNotSupported, errors.ObjectNotInPrerequisiteState, psycopg.NotSupportedError):
        c.close()


def a_lost_connection_is_noticed(c):
    lost = psycopg.connect(DSN)
    with psycopg.connect(DSN, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (lost.info.backend_pid,))
    try:
        while True:
            lost.execute("SELECT 1")
    except (errors.AdminShutdown, psycopg.OperationalError):
        assert lost.broken
    with psycopg.connect(DSN) as again:
        assert again.execute("SELECT 1").fetchone() == (1,)


TESTS = [
    makes_tables, values_of_all_types_come_back, arrays_and_json_come_back, rows_have_many_shapes,
    many_rows_at_once, statements_are_prepared_after_some_use, errors_say_what_is_wrong,
    transactions_nest, pipelines, copies_in_and_out, cursors_on_the_server, isolation_and_read_only,
    two_who_write_the_same_row, a_statement_is_cancelled, others_are_notified, notices_arrive,
    names_are_composed, two_phases_are_refused_or_work, a_lost_connection_is_noticed,
]


def main():
    import traceback

    failed = 0
    for test in TESTS:
        try:
            with psycopg.connect(DSN) as c:
                test(c)
        except Exception:
            failed += 1
            print(f"{test.__name__}:")
            traceback.print_exc(limit=-3, file=sys.stdout, chain=False)
    print(f"psycopg: {len(TESTS) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
