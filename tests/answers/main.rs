//! What statements answer, beside PostgreSQL where it can be asked. Each module is a topic.

#[path = "../support/mod.rs"]
mod support;

mod catalogs;
mod compatibility;
mod counted;
mod deparsed;
mod diff;
mod dump;
mod functions;
mod interval_partitions;
mod nested;
mod oracle;
mod parallel;
mod parallel_soak;
mod race;
mod random;
mod random_plpgsql;
mod redistribute;
mod shared_plans;
mod statistics;
mod tpch;
