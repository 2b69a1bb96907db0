# A server for one tool: server_start makes a folder ($work) and serves in it on $port; it ends with the script.
work=$(mktemp -d /tmp/tools-XXXXXX)
chmod 755 "$work"
port=$BASE_PORT
PATH=$TOOLS:$PATH
PGHOST=127.0.0.1 PGPORT=$port PGUSER=postgres PGDATABASE=postgres
export PATH PGHOST PGPORT PGUSER PGDATABASE
server_start() {
    initdb -D "$work/data" -U postgres -A trust -N --no-instructions >"$work/initdb.log" 2>&1 &&
        pg_ctl start -w -s -D "$work/data" -l "$work/log" \
            -o "-p $port -h 127.0.0.1 -c unix_socket_directories='' -c http_port=0 $*"
}
server_end() {
    for data in "$work"/data "$work"/restored; do
        [ ! -e "$data/postmaster.pid" ] || pg_ctl stop -s -m immediate -D "$data"
    done
    [ -n "${KEEP:-}" ] || rm -rf "$work"
}
trap server_end EXIT
fail() {
    echo "$*" >&2
    exit 1
}
# Until a command succeeds, for a minute.
until_true() {
    for _ in $(seq 120); do
        "$@" >"$work/last" 2>&1 && return
        sleep 0.5
    done
    cat "$work/last" >&2
    return 1
}
