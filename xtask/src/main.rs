//! The project's own chores: `cargo xtask tidy | circles | docs | book | bench`.

mod bench;
mod book;
mod circles;
mod docs;
mod idle;
mod links;
mod tidy;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.first().map(String::as_str) {
        Some("tidy") => tidy::run(),
        Some("circles") => circles::run(&args[1..]),
        Some("docs") => docs::write(),
        Some("book") => book::build(args.get(1).map_or("mdbook", String::as_str)),
        Some("bench") if args.get(1).is_some_and(|a| a == "watch") => watch::run(&args[2..]),
        Some("bench") => bench::run(&args[1..]),
        _ => {
            Err("usage: cargo xtask tidy | circles [CRATE] | docs | book [MDBOOK] | bench [--quick] [--seconds N]"
                .to_owned())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's root folder.
fn root() -> std::path::PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.to_owned(), std::path::Path::to_owned)
}
