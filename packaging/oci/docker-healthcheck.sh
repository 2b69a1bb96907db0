#!/bin/sh
# Healthy: the server takes connections over TCP, which it does not before its first start's scripts are done.
exec pg_isready --quiet --host 127.0.0.1 --port "${PGPORT:-5432}" --username "${POSTGRES_USER:-postgres}" --dbname postgres
