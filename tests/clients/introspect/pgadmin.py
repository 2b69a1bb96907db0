"""pgAdmin's own queries: those of its templates that only read, with the objects of setup.sql.

pgAdmin asks the catalog by templates that its package holds (several hundred files). Each that reads is rendered as pgAdmin
does for a server of version 15 and run; the output has a line a query: its columns and, of short lists, the
values that no server numbers as it likes. Usage: pgadmin.py FOLDER DSN, where FOLDER holds the
unpacked package.
"""

import pathlib
import re
import sys

import jinja2
import psycopg

folder, dsn = pathlib.Path(sys.argv[1]), sys.argv[2]
VERSION = 150000
READS = {
    "properties", "nodes", "node", "count", "get_oid", "stats", "acl", "get_schema", "get_name", "get_types", "get_parent",
    "variables", "coll_stats", "get_collations", "get_out_types", "get_languages", "get_definition", "get_tables",
    "get_position", "get_columns", "dependents", "dependencies", "view_id", "is_catalog", "get_access_methods",
    "functions", "get_variables", "get_ctypes", "get_constraints", "get_constraint_cols", "defacl", "get_enabled_triggers",
    "get_op_class", "get_am", "get_tablespaces", "get_encodings", "get_relations", "get_type_category", "get_subtypes",
    "get_triggerfunctions", "get_columns_for_table", "get_parent_oid", "get_cols", "get_indices", "get_oid_with_transaction",
    "get_inherits", "get_tables_for_constraints", "get_attach_tables", "get_function_ddl", "backend_support", "locks",
    "sessions", "prepared", "config", "dashboard_stats", "session_stats", "tps_stats", "role_dependencies", "oid", "fetch",
    "schema", "table", "view", "sequence", "get_view_name", "validate", "get_catalogs", "get_databases", "get_all_owners",
}
SKIPPED = re.compile(r"/(ppas|tests?|pgagent|edb\w*|gpdb\w*|packages|synonyms|compound_triggers|dbms_job\w*|debugger|pga_job\w*|resource_groups|directories|subscriptions|publications|replica_nodes|pgd_\w+|fts_\w+|grant_wizard|maintenance|user_info|replication_slots|db_search|search_objects)/|/\d\.\d_plus/")

PUBLIC = "'public'::regnamespace"
IDS = {
    "did": "(SELECT oid FROM pg_database WHERE datname = current_database())", "scid": PUBLIC, "tid": "'book'::regclass",
    "vid": "'cheap'::regclass", "fnid": "'add(int, int)'::regprocedure", "seid": "'tickets'::regclass",
    "foid": "'isbn'::regtype", "doid": "'isbn'::regtype", "idx": "'book_author'::regclass", "rgid": "10", "rid": "10",
    "lid": "(SELECT oid FROM pg_language WHERE lanname = 'plpgsql')", "tsid": "1663", "coid": "'\"C\"'::regcollation",
    "trid": "(SELECT oid FROM pg_trigger WHERE tgname = 'noted')", "plid": "(SELECT oid FROM pg_policy)",
    "eid": "(SELECT oid FROM pg_extension)", "clid": "2", "ptid": "'measured_2024'::regclass", "opid": "'+(int4, int4)'::regoperator",
    "exid": "0", "fid": "0", "fsid": "0", "umid": "0", "etid": "0", "cid": "(SELECT oid FROM pg_constraint WHERE conname = 'named')",
}
BY_PATH = {
    "/types/": {"tid": "'mood'::regtype"}, "/foreign_key/": {"cid": "(SELECT oid FROM pg_constraint WHERE conname = 'book_author_fkey')", "fkid": "(SELECT oid FROM pg_constraint WHERE conname = 'book_author_fkey')"},
    "/index_constraint/": {"cid": "'book_title_key'::regclass"}, "/casts/": {"cid": "(SELECT oid FROM pg_cast WHERE castsource = 23 AND casttarget = 20)"},
    "/check_constraint/": {"tid": "'author'::regclass"}, "/row_security_policies/": {"tid": "'loan'::regclass"},
    "/partitions/": {"tid": "'measured'::regclass"}, "/aggregates/": {"agid": "'sum(int4)'::regprocedure"},
    "/domain_constraints/": {"coid": "(SELECT oid FROM pg_constraint WHERE contypid = 'isbn'::regtype)", "cid": "(SELECT oid FROM pg_constraint WHERE contypid = 'isbn'::regtype)"},
    "/trigger_functions/": {"fnid": "'noted()'::regprocedure"}, "/mviews/": {"vid": "'counted'::regclass"},
    "/operators/": {"opid": "'+(int4, int4)'::regoperator"}, "/columns/": {"tid": "'book'::regclass"},
}

# Columns that hang on how the server was set up, or name what only PostgreSQL has.
OWN = {"hastoasttable", "datcollate", "datctype", "tgname_oid"}


class Missing(jinja2.ChainableUndefined):
    """What a template asks for and is not given."""

    def __int__(self):
        return 0


def quoted(value, *_):
    return "'" + str(value).replace("'", "''") + "'"


def ident(*names):
    names = [n for n in names if n and not isinstance(n, jinja2.Undefined)]
    return ".".join(n if re.fullmatch(r"[a-z_][a-z0-9_]*", str(n)) else '"%s"' % str(n).replace('"', '""') for n in names)


def templates():
    """The files that pgAdmin takes for this version: below a `*_plus` folder the newest that is not too new."""
    found = {}
    for path in sorted(folder.rglob("*.sql")):
        name = str(path.relative_to(folder))
        if path.stem not in READS or SKIPPED.search("/" + name):
            continue
        age = re.search(r"/(?:(\d+)_plus|default)/", name)
        major = int(age[1] or 0) if age else 0
        if major * 10000 > VERSION:
            continue
        key = re.sub(r"/(\d+_plus|default)/", "/", name)
        if key not in found or found[key][0] <= major:
            found[key] = (major, path)
    return {key: path for key, (_, path) in sorted(found.items())}


def render(path, key, values):
    roots = [p for p in path.parents if p.name == "templates"][:1]
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader([str(r) for r in roots] + [str(p) for p in folder.rglob("templates")]), undefined=Missing,
        extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])
    env.filters.update(qtIdent=lambda c, *more: ident(*([c] if isinstance(c, (str, jinja2.Undefined)) else []), *more), qtLiteral=quoted,
                       qtTypeIdent=lambda c, *more: ident(*more or [c]))
    return env.from_string(path.read_text()).render(**values)


def main():
    c = psycopg.connect(dsn, autocommit=True)
    number = lambda text: c.execute(f"SELECT ({text})::oid::bigint").fetchone()[0]
    base = {name: number(text) for name, text in IDS.items()}
    base.update(conn=None, show_sys_objects=False, show_sysobj=False, show_system_objects=False, datlastsysoid=16383,
                last_system_oid=16383, schema="public", nspname="public", table="book", name="book", relname="book", data={},
                schema_name="public", view_name="cheap", table_name="book", column="title", id=base["tid"], _=str, version=VERSION)
    ran = 0
    for key, path in templates().items():
        values = dict(base)
        for part, more in BY_PATH.items():
            if part in "/" + key:
                values.update({name: number(text) for name, text in more.items()})
        short = re.sub(r"browser/server_groups/servers/|/templates/[\w/]*?sql/", "", key)
        try:
            text = render(path, key, values)
        except Exception:  # a template that needs what only pgAdmin has
            continue
        if not re.match(r"\s*(/\*.*?\*/|--[^\n]*\n|\s)*\(?(SELECT|WITH)\b", text, re.S | re.I):
            continue
        try:
            found = c.execute(text.replace("%%", "%"))
            # The language that only this server has.
            rows = [row for row in found.fetchall() if "javascript" not in row]
        except psycopg.errors.SyntaxError:  # needs what isn't given
            print(short, "syntax")
            continue
        except psycopg.Error as error:
            print(short, error.sqlstate, str(error).splitlines()[0])
            continue
        ran += 1
        columns = ",".join(f"{d.name}:{d.type_code}" for d in found.description)
        # Lists of what the server has or does differ from server to server.
        if len(rows) > 12 or re.search(r"stats|dashboard|locks|depende|ctype|variables", key):
            print(short, columns)
            continue
        print(short, columns, len(rows))
        steady = [i for i, d in enumerate(found.description)
                  if d.type_code in (16, 18, 19, 21, 25, 1009, 1034, 1043) and d.name not in OWN]
        for line in sorted(" ".join(str(row[i]) for i in steady) for row in rows):
            print("   ", line)
    print(ran, "queries")


main()
