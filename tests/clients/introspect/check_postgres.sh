#!/bin/sh
# The actions of check_postgres that a server without replication has: their status words.
# Usage: check_postgres.sh DSN
set -u
url=${1#*@} && base=${url#*/} && address=${url%%/*}
for action in autovac_freeze backends bloat commitratio connection custom_query database_size dbstats \
    disabled_triggers hitratio index_size indexes_size last_analyze last_vacuum \
    prepared_txns query_runtime query_time relation_size sequence table_size timesync txn_idle \
    total_relation_size txn_time txn_wraparound version wal_files; do
    more=
    case $action in
    txn_wraparound) more="--warning=1000000000 --critical=2000000000" ;;
    autovac_freeze) more="--warning=99% --critical=100%" ;;
    commitratio | hitratio) more="--warning=0% --critical=0%" ;;
    custom_query) more="--query=SELECT\ 1\ AS\ result --warning=5 --critical=9 --valtype=integer" ;;
    database_size | index_size | indexes_size | relation_size | table_size | total_relation_size) more="--warning=9GB --critical=10GB" ;;
    disabled_triggers | prepared_txns | wal_files) more="--warning=100 --critical=200" ;;
    query_runtime) more="--warning=50s --critical=60s --queryname=cheap" ;;
    timesync | query_time | txn_time | txn_idle) more="--warning=50 --critical=60" ;;
    last_*) more="--warning=1d --critical=2d" ;;
    version) more="--critical=15" ;;
    esac
    printf '%s ' "$action"
    eval check_postgres --action="$action" --host="${address%:*}" --port="${address#*:}" --dbuser=postgres \
        --dbname="$base" "$more" 2>&1 | head -n 1 | cut -d ' ' -f 1-2 | sed 's/commits:.*//'
done
