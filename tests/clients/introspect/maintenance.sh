#!/bin/sh
# PostgreSQL's own tools for upkeep, several jobs at once: vacuumdb, reindexdb, clusterdb, pg_dump -j and pg_restore -j.
# Usage: maintenance.sh DSN
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tools=/usr/lib/postgresql/15/bin
for words in "--analyze --jobs=3" "--analyze-in-stages" "--full --freeze --skip-locked" "--parallel=2 --table=book --verbose" \
    "--min-xid-age=1 --no-index-cleanup --no-truncate" "--analyze-only --table=book(title,price)"; do
    # shellcheck disable=SC2086
    "$tools/vacuumdb" $words -d "$1" >"$folder/out" 2>&1 && echo "vacuumdb $words" || { cat "$folder/out"; exit 1; }
done
"$tools/reindexdb" --jobs=2 --table=book --table=author -d "$1" && echo reindexdb
"$tools/reindexdb" --concurrently --index=book_author -d "$1" && echo reindexdb --concurrently
"$tools/reindexdb" --system -d "$1" && echo reindexdb --system
psql -qX "$1" -c 'CLUSTER book USING book_pkey'
"$tools/clusterdb" -d "$1" && echo clusterdb
"$tools/pg_dump" -j 3 -Fd -f "$folder/dump" "$1" && echo pg_dump -j
copy=${1%/*}/copied
"$tools/dropdb" --if-exists --maintenance-db="$1" copied
"$tools/createdb" --maintenance-db="$1" copied
"$tools/pg_restore" -j 3 --exit-on-error -d "$copy" "$folder/dump" && echo pg_restore -j
"$tools/pg_dump" -j 3 -Fd -f "$folder/again" "$copy"
for dump in dump again; do
    "$tools/pg_restore" -f - "$folder/$dump" | grep -v '^-- Dumped\|^\\\(un\)\?restrict' >"$folder/$dump.sql"
done
cmp "$folder/dump.sql" "$folder/again.sql" && echo the same dump
"$tools/pg_dumpall" -d "$1" --globals-only | grep -c '^CREATE ROLE postgres' && echo pg_dumpall
"$tools/pg_isready" -q -d "$1" && echo pg_isready
"$tools/pg_amcheck" --version >/dev/null && echo pg_amcheck is there
"$tools/dropdb" --maintenance-db="$1" copied
psql -qXAt "$1" -c 'SELECT count(*), sum(price) FROM book'
