#!/bin/bash
# The image's start. Variables and folders are those of PostgreSQL's official image:
#   POSTGRES_PASSWORD      the superuser's password, which a new directory needs
#   POSTGRES_USER          the superuser's name (postgres)
#   POSTGRES_DB            a database that is made at the first start (the superuser's name)
#   POSTGRES_INITDB_ARGS   options of threadgres init; those of initdb that say what is so anyhow are passed over
#   POSTGRES_HOST_AUTH_METHOD  how clients of other machines log in (scram-sha-256)
#   …_FILE                 a file that holds the value instead: POSTGRES_PASSWORD_FILE and so on
#   PGDATA                 the data directory
#   /docker-entrypoint-initdb.d  *.sh, *.sql, *.sql.gz, *.sql.xz, *.sql.zst, run in order at the first start
set -Eeuo pipefail

SOCKETS=/var/run/postgresql
SCRIPTS=/docker-entrypoint-initdb.d

say() { echo "threadgres: $*"; }

die() {
    echo "threadgres: $*" >&2
    exit 1
}

# from_file NAME DEFAULT: the variable NAME, or what the file that NAME_FILE names holds.
from_file() {
    local name=$1 file=$1_FILE value=$2
    if [ -n "${!name:-}" ] && [ -n "${!file:-}" ]; then
        die "$name and $file exclude each other"
    fi
    if [ -n "${!name:-}" ]; then
        value=${!name}
    elif [ -n "${!file:-}" ]; then
        [ -r "${!file}" ] || die "$file: cannot read ${!file}"
        value=$(<"${!file}")
    fi
    export "$name=$value"
    unset "$file"
}

read_variables() {
    from_file POSTGRES_PASSWORD ''
    from_file POSTGRES_USER postgres
    from_file POSTGRES_DB "$POSTGRES_USER"
    from_file POSTGRES_INITDB_ARGS ''
    : "${POSTGRES_HOST_AUTH_METHOD:=scram-sha-256}"
}

# As root: the directories are given to the server's user, as whom the rest runs.
become_user() {
    mkdir -p "$PGDATA" "$SOCKETS"
    chmod 3777 "$SOCKETS"
    chown postgres:postgres "$SOCKETS"
    find "$PGDATA" \! -user postgres -exec chown postgres:postgres {} +
    exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$0" "$@"
}

# Options for threadgres init, into INIT.
INIT=()
read_init_args() {
    local words=() word
    # Words as a shell would split them, quotes understood, nothing expanded.
    mapfile -t words < <(xargs -n 1 printf '%s\n' <<<"$POSTGRES_INITDB_ARGS")
    set -- "${words[@]}"
    while [ $# -gt 0 ]; do
        word=$1
        shift
        case $word in
        '') ;;
        -A | --auth | --auth-host | --auth-local) POSTGRES_HOST_AUTH_METHOD=${1-}; shift ;;
        --auth=* | --auth-host=*) POSTGRES_HOST_AUTH_METHOD=${word#*=} ;;
        -g | --allow-group-access) INIT+=("$word") ;;
        -k | --data-checksums | -N | --no-sync | --no-instructions | --auth-local=*) ;;
        -E | --encoding | --locale | --lc-collate | --lc-ctype | --locale-provider) check_locale "$word" "${1-}"; shift ;;
        --encoding=* | --locale=* | --lc-*=* | --locale-provider=*) check_locale "${word%%=*}" "${word#*=}" ;;
        *) die "POSTGRES_INITDB_ARGS: there is no option $word here" ;;
        esac
    done
    [ -z "${POSTGRES_INITDB_WALDIR:-}" ] || die "POSTGRES_INITDB_WALDIR: the log is in the data directory here; mount that"
}

# Every database is UTF8 and sorts by bytes unless a collation says otherwise.
check_locale() {
    case $1=${2,,} in
    -E=utf8 | -E=utf-8 | -E=unicode | --encoding=utf8 | --encoding=utf-8 | --encoding=unicode) ;;
    *=c | *=posix | *=c.utf8 | *=c.utf-8 | *=libc | *=icu) ;;
    --encoding=* | -E=*) die "POSTGRES_INITDB_ARGS: encoding $2: databases are UTF8 here" ;;
    *) say "warning: $1 $2 is passed over: databases sort by bytes here; name a collation where that matters" >&2 ;;
    esac
}

check_password() {
    if [ -n "$POSTGRES_PASSWORD" ]; then
        return
    fi
    [ "$POSTGRES_HOST_AUTH_METHOD" = trust ] || die "a new data directory needs a password for $POSTGRES_USER: set POSTGRES_PASSWORD
    (docker run -e POSTGRES_PASSWORD=...). POSTGRES_HOST_AUTH_METHOD=trust lets everybody in without one."
    say "warning: POSTGRES_HOST_AUTH_METHOD=trust: everybody who reaches the port is a superuser" >&2
    # The server does not open itself to others while no role has a password; nobody needs to know this one.
    POSTGRES_PASSWORD=$(od -An -N 32 -tx1 /dev/urandom | tr -d ' \n')
}

make_directory() {
    local password
    password=$(mktemp)
    printf '%s\n' "$POSTGRES_PASSWORD" >"$password"
    threadgres init -D "$PGDATA" --username "$POSTGRES_USER" --pwfile "$password" --auth trust "${INIT[@]}" >/dev/null ||
        { rm -f "$password"; exit 1; }
    rm -f "$password"
    printf '\nhost all all all %s\n' "$POSTGRES_HOST_AUTH_METHOD" >>"$PGDATA/pg_hba.conf"
}

# psql as the scripts call it: docker_process_sql is the official image's name.
docker_process_sql() {
    local database=("--dbname" "$POSTGRES_DB")
    PGHOST=$SOCKETS PGHOSTADDR= psql -v ON_ERROR_STOP=1 --no-password --no-psqlrc \
        --username "$POSTGRES_USER" "${database[@]}" "$@"
}

run_scripts() {
    local file
    for file in "$SCRIPTS"/*; do
        case $file in
        *.sh)
            say "running $file"
            # shellcheck disable=SC1090
            if [ -x "$file" ]; then "$file"; else . "$file"; fi
            ;;
        *.sql) say "running $file"; docker_process_sql -f "$file" ;;
        *.sql.gz) say "running $file"; gunzip -c "$file" | docker_process_sql ;;
        *.sql.xz) say "running $file"; xzcat "$file" | docker_process_sql ;;
        *.sql.zst) say "running $file"; zstd -dc "$file" | docker_process_sql ;;
        "$SCRIPTS/*") ;;
        *) say "passing over $file" ;;
        esac
    done
}

# A server that only this script reaches, for what is done once.
first_start() {
    local server
    threadgres serve --single-process -D "$PGDATA" -c listen_addresses= -k "$SOCKETS" &
    server=$!
    until pg_isready --quiet --host "$SOCKETS" --username "$POSTGRES_USER"; do
        kill -0 "$server" 2>/dev/null || die "the server did not start"
        sleep 0.1
    done
    if [ "$POSTGRES_DB" != postgres ]; then
        POSTGRES_DB=postgres docker_process_sql --set db="$POSTGRES_DB" <<<'CREATE DATABASE :"db";' >/dev/null
    fi
    export PGHOST=$SOCKETS PGUSER=$POSTGRES_USER PGDATABASE=$POSTGRES_DB PGPASSWORD=$POSTGRES_PASSWORD
    run_scripts
    unset PGHOST PGUSER PGDATABASE PGPASSWORD
    threadgres stop -D "$PGDATA" -m fast >/dev/null
    wait "$server" || die "the server did not stop as it should"
    say "the data directory is complete"
}

main() {
    # Options alone are the server's; postgres is another name of it.
    [ "${1:0:1}" != - ] || set -- threadgres "$@"
    case ${1-} in
    threadgres | postgres) ;;
    *) exec "$@" ;;
    esac
    case ${2-} in
    '' | -*) ;;
    # Another command of the program: threadgres check -D …
    *) shift; exec threadgres "$@" ;;
    esac
    case ${2-} in
    --help | --version) exec threadgres "$2" ;;
    esac
    [ "$(id -u)" != 0 ] || become_user "$@"
    shift
    if [ ! -s "$PGDATA/threadgres.control" ]; then
        read_variables
        read_init_args
        check_password
        make_directory
        first_start
    fi
    exec threadgres serve -D "$PGDATA" -h '*' -k "$SOCKETS" "$@"
}

# Read by another script, the functions are there and nothing runs.
[ "${BASH_SOURCE[0]}" != "$0" ] || main "$@"
