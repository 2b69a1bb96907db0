#!/bin/sh
# drizzle-kit writes a schema of what it finds.
# Usage: drizzle.sh DSN, in the folder with node_modules and drizzle.config.js
set -eu
rm -rf drizzle
DSN=$1 npx --no-install drizzle-kit introspect --config drizzle.config.js >&2
cat drizzle/schema.ts
