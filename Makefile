# Two commands do all the set-up on a fresh machine: `make run` serves, `make test` tests.
PORT ?= 5432
# The status page, http://127.0.0.1:8432/ (0: none).
HTTP_PORT ?= 8432
DATA ?= ./data
# Release builds are laid out by a profile that the repository keeps (docs/decisions/0010).
RELEASE = RUSTFLAGS="$(RUSTFLAGS) -Cprofile-use=$(CURDIR)/profile/threadgres.profdata -Cllvm-args=-no-pgo-warn-mismatch -Clink-arg=-Wl,-z,keep-text-section-prefix" cargo

# The same, for what `make run` builds.
QUICK = RUSTFLAGS="$(RUSTFLAGS) -Cprofile-use=$(CURDIR)/profile/threadgres.profdata -Cllvm-args=-no-pgo-warn-mismatch"

.PHONY: run release tools install-tools packages packages-test book test docs-test prometheus apps clients diff regress compatibility sqlsmith bench bench-plpgsql bench-languages examples bench-partitions bench-partitions-load bench-parallel bench-scale bench-search bench-vectors bench-snapshot bench-oltp bench-replication bench-bulk bench-catalog bench-churn bench-tpcc profile bench-watch bench-sessions bench-bystander bench-tpch race storm soak lab incident locks crash resize fuzz tidy docs loom shuttle

# Root must say that root is meant.
ALLOW_ROOT = $(if $(filter 0,$(shell id -u)),--allow-root)

# Built in minutes and a little slower than a release: see scripts/quick. FEATURES="wasm javascript pixels" adds what is left out.
run:
	@scripts/need build
	@$(QUICK) scripts/quick $(FEATURES)
	@mkdir -p $(dir $(DATA))
	exec target/quick/threadgres serve $(ALLOW_ROOT) -D $(DATA) -h 127.0.0.1 -p $(PORT) -c http_port=$(HTTP_PORT)

# The program as it is measured and packed: optimised as a whole, with every language; some 25 minutes.
release:
	@scripts/need build
	$(RELEASE) build --release -p threadgres

# A release, from one build, in target/packages: Debian packages, tarballs, an OCI image, a Python wheel, the bill of materials,
# checksums. Some of them, from a program that is there: make packages KINDS="deb wheel" PROGRAM=target/debug/threadgres
KINDS ?=
PROGRAM ?=
packages: $(if $(PROGRAM),,release) book
	@scripts/need build packages
	PROGRAM=$(or $(PROGRAM),target/release/threadgres) KINDS="$(KINDS)" packaging/build

# Installs, runs, upgrades and removes what make packages has made, in roots and containers of its own; as root.
packages-test:
	@scripts/need build clients packages packages-test
	KINDS="$(KINDS)" tests/packages/run

# The documents as a book, beside the programs in target/: the status page serves it under /docs.
book:
	@scripts/need build book
	cargo xtask book target/tools/bin/mdbook

# Everything, or one area: make test AREA=locks. make test AREA=list names the areas.
test:
	@scripts/need build clients browser isolation
	@AREA=$(AREA) scripts/test

# Every command of the README, the tutorial and the guide, as a newcomer would type it.
docs-test:
	@scripts/need build clients
	cargo test -p threadgres --test sessions -- docs:: --ignored --nocapture

# A real Prometheus reads a server by the rules and the dashboard of contrib/.
prometheus:
	@scripts/need build clients prometheus
	cargo test -p threadgres --test watching -- prometheus:: --include-ignored

# Every statement under tests/slt, on this server and on PostgreSQL 15: make diff DIFF=json
# Expectations are PostgreSQL's: make diff REWRITE=1 writes them anew (see tests/answers/diff.rs).
diff:
	@scripts/need build clients
	DIFF=$(DIFF) REWRITE=$(REWRITE) RECHECK=$(RECHECK) cargo test -p threadgres --test answers -- diff:: --nocapture

# PostgreSQL's own regression scripts on a PostgreSQL 15 (port REF) and on this server (port SUT), both of which must
# run already and trust user postgres; makes docs/reference/regress.md. The files that concern code inside the server:
REGRESS_FILES ?= create_table,create_index,create_view,create_misc,create_function_c,create_function_sql,create_procedure,create_type,create_aggregate,create_operator,create_cast,polymorphism,rangefuncs,domain,generated,triggers,updatable_views,rules,rowsecurity,alter_generic,plpgsql,event_trigger,foreign_data,returning
REF ?= 5433
SUT ?= $(PORT)
regress:
	@mkdir -p target
	scripts/regress/run $(REF) $(SUT) $(REGRESS_FILES) | tee target/regress.log
	scripts/regress/table < target/regress.log > docs/reference/regress.md

# Random statements for MINUTES: two thirds of them Debian's sqlsmith over a schema with data, the rest
# from the grammar of tests/answers/random.rs; then random PL/pgSQL programs (170 a minute) beside PostgreSQL.
# Fails on an internal error (XX000), a crash, or a program that PostgreSQL answers otherwise.
MINUTES ?= 60
sqlsmith:
	@scripts/need build clients sqlsmith
	cargo build --quiet -p threadgres
	scripts/sqlsmith target/debug/threadgres $$(($(MINUTES) * 40))
	RANDOM_SEED=$${RANDOM_SEED:-$$(date +%s%N)} RANDOM_SECONDS=$$(($(MINUTES) * 20)) cargo test -p threadgres --test answers -- random:: --nocapture
	RANDOM_SEED=$${RANDOM_SEED:-$$(date +%s)} RANDOM_PROGRAMS=$$(($(MINUTES) * 170)) cargo test -p threadgres --test answers -- random_plpgsql:: --nocapture

# The modules of examples/wasm, built by the compilers of Debian and npm and tried in a server.
examples:
	@scripts/need build examples
	examples/wasm/build
	cargo test -p threadgres --test languages -- wasm:: --ignored

# The same work in each language here and in PostgreSQL 15, in turns, some four minutes: make bench-languages. With PG and
# TG it takes servers that run already and trust user postgres: make bench-languages PG=5433 TG=5432
bench-languages:
	@scripts/need build clients languages
	$(RELEASE) build --release --quiet -p threadgres
	PG=$(PG) TG=$(TG) bench/with-servers bench/languages/run

# What of PostgreSQL 15 is here and what is missing, into docs/compatibility.md.
compatibility:
	@scripts/need build clients
	cargo test -p threadgres --test answers -- compatibility:: --ignored --nocapture

# Applications whose work is done by functions and triggers in the database (Procrastinate, Kinto, pg-boss, graphile-worker, MLflow),
# that migrate it (Flyway, Liquibase), follow its changes (Debezium), read and write it in parts (Spark) or take two databases for
# shards of one (ShardingSphere-JDBC, with two-phase commit),
# from their registries; what they print is compared with what they print on PostgreSQL 15. APPS: only these.
apps:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	tests/apps/run $(APPS)

# Small applications with the real drivers (psycopg, SQLAlchemy with Alembic, node-postgres, pgx, JDBC), and the programs
# that look at catalogs or watch a server (ActiveRecord, Sequelize, TypeORM, drizzle-kit, PostGraphile, pgAdmin's queries,
# pg_activity, check_postgres, the Prometheus exporter, PostgreSQL's own tools): tests/clients/run. Needs the registries of pip, npm, Go and Maven. Some of them: make clients CLIENTS="psycopg pgx"
clients:
	@scripts/need build clients drivers tools
	$(RELEASE) build --release --quiet -p threadgres
	tests/clients/run $(CLIENTS)

# What DBAs have beside a server (Patroni with etcd, Barman, PgBouncer, pgBackRest): tests/tools/run. Some of them:
# make tools TOOLS="patroni" FAILOVERS=20
tools:
	@scripts/need build clients managers
	$(RELEASE) build --release --quiet -p threadgres -p threadgres-postgresql-tools
	FAILOVERS=$(FAILOVERS) tests/tools/run $(TOOLS)

# PostgreSQL's names for cluster managers as links in a folder: make install-tools LINKS=/usr/local/lib/threadgres/bin
install-tools:
	@scripts/need build
	$(RELEASE) build --release --quiet -p threadgres -p threadgres-postgresql-tools
	target/release/threadgres-postgresql-tools --install $(LINKS)

# PL/pgSQL beside PostgreSQL 15; both servers run already: make bench-plpgsql PG=5433 TG=5432
bench-plpgsql:
	bench/plpgsql/run $(PG) $(TG) $(ROUNDS)

# tpcb-like beside one repeatable-read transaction that stays open, and alone, here and in PostgreSQL 15; both servers
# run already: make bench-snapshot PG=5433 TG=5432 SECONDS=300
SECONDS ?= 300
bench-snapshot:
	bench/snapshot/run $(PG) $(TG) $(SECONDS)

# sysbench's OLTP tests, beside PostgreSQL 15 in turns, about six minutes: make bench-oltp DURATION=20. Starts both servers
# itself; those that run already: PG=5433 TG=5432.
bench-oltp:
	@scripts/need build clients sysbench
	$(RELEASE) build --release --quiet -p threadgres
	PG=$(PG) TG=$(TG) bench/with-servers bench/oltp/run

# A primary alone, with an asynchronous and with a synchronous standby, and the standby's lag, beside PostgreSQL 15 in
# turns, about two minutes: make bench-replication DURATION=10. Starts all servers itself.
bench-replication:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	bench/replication/run

# What `make test` does in seconds, for hours: the checker of snapshots over a primary and two standbys with kills, pauses and
# promotions; kills under load with the clients' journal; a backup brought to many moments; a thousand sessions that ask for parallel
# plans, stop in the middle, fail, go away; random nested queries and counting functions beside PostgreSQL. Other sizes: make soak SOAK_TRANSACTIONS=10000 SOAK_KILLS=20 SOAK_POINTS=10 SOAK_SECONDS=60
SOAK_SECONDS ?= 600
SOAK_TRANSACTIONS ?= 100000
SOAK_FAULTS ?= 200
SOAK_KILLS ?= 200
SOAK_POINTS ?= 100
SOAK_STATEMENTS ?= 20000
soak:
	@scripts/need build clients
	REPLICAS_TRANSACTIONS=$(SOAK_TRANSACTIONS) REPLICAS_FAULTS=$(SOAK_FAULTS) REPLICAS_KILLS=$(SOAK_KILLS) ARCHIVE_POINTS=$(SOAK_POINTS) \
		$(RELEASE) test --release --quiet -p threadgres --test replication --test durability -- replicas:: archive:: --nocapture --test-threads 1
	SOAK_SECONDS=$(SOAK_SECONDS) cargo test -p threadgres --test answers -- parallel_soak:: --include-ignored --nocapture --test-threads 1
	seed=$$(date +%s); NESTED_SEED=$$seed NESTED_QUERIES=$(SOAK_STATEMENTS) COUNTED_SEED=$$seed COUNTED_STATEMENTS=$(SOAK_STATEMENTS) DEPARSED_SEED=$$seed DEPARSED_VIEWS=100000 \
		cargo test -p threadgres --test answers -- nested:: counted:: deparsed:: --nocapture --test-threads 1

# A queue, a staging table, random updates of an indexed column: work a second and sizes of files, alone and beside a snapshot
# that stays open, beside PostgreSQL 15 in turns, about twelve minutes: make bench-churn SECONDS_EACH=10. Servers as bench-oltp.
bench-churn:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	PG=$(PG) TG=$(TG) bench/with-servers bench/churn/run

# Queries over the system catalogs and pg_dump of a schema, beside PostgreSQL 15 in turns, about two minutes:
# make bench-catalog TABLES=10000 ROUNDS=2. Starts both servers itself; those that run already: PG=5433 TG=5432.
bench-catalog:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	PG=$(PG) TG=$(TG) bench/with-servers bench/catalog/run

# COPY, INSERT, CREATE INDEX, UPDATE, DELETE of many rows, in the same way: make bench-bulk ROWS=300000 ROUNDS=2
bench-bulk:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	PG=$(PG) TG=$(TG) bench/with-servers bench/bulk/run

# TPC-C, 4 and 20 warehouses, 8 and 64 clients, beside PostgreSQL 15 in turns, about ten minutes, half of it for
# loading. Shorter, or as procedures: make bench-tpcc TPCC="-w 4 -T 5 -M procedures"
bench-tpcc:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	target/release/threadgres lab tpcc $(TPCC)

# Select-only beside eight reports with helpers, and a report with 0, 1, 2 and 4 of them: make bench-parallel
bench-parallel:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	PG=$(PG) TG=$(TG) bench/with-servers bench/parallel/run

# A scan with an aggregate, a join and a sort over 1, 2, 4 and 8 workers, here and in PostgreSQL 15; then the simulator's
# answer for machines with more: make bench-scale
bench-scale:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	PG=$(PG) TG=$(TG) bench/with-servers bench/scale/run
	target/release/threadgres lab simulate --scenario morsels

# Builds of GIN and GiST indexes and searches by them beside PostgreSQL 15, some five minutes: make
# bench-search, ROWS=1000000 make bench-search
bench-search:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	PG=$(PG) TG=$(TG) bench/with-servers bench/search/run

# Recall and queries a second of HNSW over ROWS vectors beside the crate hnsw_rs in a plain program: make bench-vectors
bench-vectors:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	cargo build --release --quiet --manifest-path bench/search/vectors/Cargo.toml --target-dir target/vectors
	PG=$(PG) TG=$(TG) bench/with-servers bench/search/by-vectors

# Partitions by the thousand beside PostgreSQL 15; both servers run already: make bench-partitions PG=5433 TG=5432
bench-partitions:
	bench/partitions/run $(PG) $(TG)

# COPY of ten million rows into daily partitions, pgbench over 1,000 partitions, and what sessions hold that have read 1,000,
# beside PostgreSQL 15; some 15 minutes. Starts both servers itself; with room for the sessions, those that run: PG=5433 TG=5432
bench-partitions-load:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	PG=$(PG) TG=$(TG) CLIENTS=$${CLIENTS:-1300} bench/with-servers bench/partitions/load

# Side by side with PostgreSQL 15 and a server that does nothing; see bench/README.md.
bench:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	cargo xtask bench $(BENCH)

# The 22 queries of TPC-H beside PostgreSQL 15, about five minutes; shorter: make bench-tpch SCALE=0.1; beside DuckDB,
# too, by a Python that has its package: DUCKDB=python3 make bench-tpch
SCALE ?= 1
bench-tpch:
	@scripts/need build clients
	SCALE=$(SCALE) $(RELEASE) test --release --quiet -p threadgres --test answers -- tpch:: --ignored --nocapture

# Random queries over four ordinary tables beside PostgreSQL 15: ratios of times by class, and each query
# that takes more than twice PostgreSQL's. Others: make race SEED=2 QUERIES=5000
race:
	@scripts/need build clients
	QUERIES=$(QUERIES) SEED=$(SEED) $(RELEASE) test --release --quiet -p threadgres --test answers -- race:: --ignored --nocapture

# What sessions cost, idle and at work: one table, about ten minutes. Shorter: make bench-sessions SESSIONS=--quick
bench-sessions:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	target/release/threadgres lab sessions -o bench/results/sessions.md $(SESSIONS)

# For how long statements that work on much hold their worker, and the worst SELECT 1 beside one session and beside 50 that
# run each for BYSTANDER_SECONDS (0: no crowd), and how late it ends at its time-out (BYSTANDER_TIMEOUT ms). One of them: make bench-bystander BYSTANDER=json_agg
BYSTANDER_SECONDS ?= 2
bench-bystander:
	@scripts/need build clients
	BYSTANDER=$(BYSTANDER) BYSTANDER_SECONDS=$(BYSTANDER_SECONDS) $(RELEASE) test --release --quiet -p threadgres --test sessions -- bystander:: --ignored --nocapture

# The laboratory, all of it, in under ten minutes on two cores: loads on PostgreSQL 15 and Threadgres,
# fits, locks, simulator, and the report, which a test opens in a browser.
# Shorter points, another folder: make lab LAB=--quick LAB_DIR=/tmp/lab
LAB_DIR ?= lab
lab:
	@scripts/need build clients browser
	$(RELEASE) build --release --quiet -p threadgres
	target/release/threadgres lab all -o $(LAB_DIR) $(LAB)
	LAB_REPORT=$(abspath $(LAB_DIR))/report/index.html $(RELEASE) test --release --quiet -p threadgres --test watching -- lab:: --ignored

# The profile anew, after changes to what runs most: two builds' time.
profile:
	@scripts/need build clients profile
	scripts/profile

# What watching costs: everything on against everything off, in five alternating pairs.
bench-watch:
	@scripts/need build clients
	$(RELEASE) build --release --quiet -p threadgres
	cargo xtask bench watch $(WATCH)

# The starvation of the exclusive locker, and its cure: four parts of 40 seconds. Fails when a claim
# does not hold. make incident INCIDENT="--seconds 60 --output incident.jsonl"
incident:
	@scripts/need build
	$(RELEASE) build --release --quiet -p threadgres
	target/release/threadgres lab incident $(INCIDENT)

# 200,000 heavyweight locks held by 2,000 sessions at once, no setting changed.
locks:
	@scripts/need build
	$(RELEASE) build --release --quiet -p threadgres
	target/release/threadgres lab incident --locks

# The crash test with more rounds than `make test` has: make crash ROUNDS=500
crash:
	@scripts/need build clients
	CRASH_ROUNDS=$(or $(ROUNDS),200) cargo test -p threadgres --test durability -- crash:: --nocapture

# shared_buffers from 64 MB to 2 GB, 16 MB and 512 MB under a minute of load.
resize:
	@scripts/need build clients
	RESIZE_SECONDS=60 cargo test -p threadgres --test sessions -- resize:: --nocapture

# 100,000 clients that come and go, 10,000 that are killed, 10,000 at once; faults by the thousand and
# crashes by the hundred. The limit on open files must allow 10,200 (ulimit -n).
storm:
	@scripts/need build clients
	STORM_CONNECTS=100000 STORM_KILLS=10000 STORM_BURST=10000 FAULTS_EACH=100 FAULTS_CRASHES=30 \
		cargo test -p threadgres --test sessions --test durability -- storm:: faults:: --nocapture --test-threads 1

# What strangers send, invented by the million: the decoder of messages, the first packet, SCRAM, five
# minutes each. What a run finds worth trying stays in fuzz/work; what fails, in fuzz/artifacts.
# make fuzz FUZZ=frames FUZZ_SECONDS=3600
FUZZ ?= frames startup scram
FUZZ_SECONDS ?= 300
fuzz:
	@scripts/need build fuzz
	set -e; cd fuzz; for target in $(FUZZ); do \
		mkdir -p work/$$target; \
		cargo +nightly fuzz run $$target work/$$target corpus/$$target -- -max_total_time=$(FUZZ_SECONDS) -verbosity=0 -print_final_stats=1; \
	done

tidy:
	cargo xtask tidy

# Documents that are made from the tables.
docs:
	cargo xtask docs

# The model checks of the lightweight lock and of park and unpark.
loom:
	RUSTFLAGS="--cfg loom" cargo test -p sched --release --target-dir target/loom --test loom_lwlock --test loom_parking --test loom_tenure

# The locks with condition variables, cancellation and timeouts under many random schedules:
# make shuttle SCHEDULES=100000
shuttle:
	SHUTTLE_SCHEDULES=$(SCHEDULES) RUSTFLAGS="--cfg shuttle" cargo test -p sched --release --target-dir target/shuttle --test shuttle
