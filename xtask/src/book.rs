//! The documents as a book: `cargo xtask book` lays them out for mdBook, runs it, and follows every link of the result.
//!
//! ```text
//!   docs/SUMMARY.md, the pages that it names, their pictures ─▶ target/book (links to other files become plain words)
//!     ─▶ mdbook ─▶ target/share/doc/threadgres/html: beside programs in target/PROFILE, which serve it under /docs
//! ```

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{links, root};

/// Where the pages are laid out.
const SOURCE: &str = "target/book";
/// Where the book is.
const BOOK: &str = "target/share/doc/threadgres/html";
/// The language of pages without code of their own.
const CONFIGURATION: &str = r#"[book]
title = "Threadgres"
language = "en"
src = "src"

[output.html]
no-section-label = true
default-theme = "light"
preferred-dark-theme = "navy"

[output.html.search]
limit-results = 40
use-boolean-and = true
boost-title = 3
"#;

/// Makes the book with the program `mdbook` that is given.
pub fn build(mdbook: &str) -> Result<(), String> {
    let pages = links::pages()?;
    let source = root().join(SOURCE);
    // What another run left may name pages that are gone.
    let _ = fs::remove_dir_all(&source);
    let _ = fs::remove_dir_all(root().join(BOOK));
    write(&source.join("book.toml"), CONFIGURATION)?;
    let summary = read(&root().join(links::SUMMARY))?;
    write(&source.join("src/SUMMARY.md"), &rebase(&summary))?;
    for page in &pages {
        let text = read(&root().join(page))?;
        let text = lay_out(page, &text, &pages, &source.join("src"))?;
        write(&source.join("src").join(page), &text)?;
    }
    let out = Command::new(mdbook)
        .arg("build")
        .arg("--dest-dir")
        .arg(root().join(BOOK))
        .arg(&source)
        .output()
        .map_err(|e| format!("{mdbook}: {e}"))?;
    let said = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() || said.contains("WARN") || said.contains("ERROR") {
        return Err(format!("mdbook: {said}"));
    }
    check()
}

/// Follows every link of the book.
pub fn check() -> Result<(), String> {
    let book = root().join(BOOK);
    let mut findings = Vec::new();
    let mut ids: HashMap<PathBuf, HashSet<String>> = HashMap::new();
    let files = html_files(&book)?;
    for file in &files {
        let text = read(file)?;
        let found = text.split(" id=\"").skip(1).filter_map(|r| r.split('"').next());
        ids.insert(file.clone(), found.map(str::to_owned).collect());
    }
    for file in &files {
        let text = read(file)?;
        let folder = file.parent().unwrap_or(file);
        let attributes = text.split(" href=\"").chain(text.split(" src=\"").skip(1)).skip(1);
        for link in attributes.filter_map(|rest| rest.split('"').next()) {
            // A page of errors is shown at any depth and has its links from the root.
            if link.contains("://") || link.starts_with("data:") || file.ends_with("404.html") {
                continue;
            }
            let (name, anchor) = link.split_once('#').map_or((link, ""), |(n, a)| (n, a));
            let target =
                if name.is_empty() { file.clone() } else { links::normal(&folder.join(name)) };
            let is_whole = match ids.get(&target) {
                Some(ids) => anchor.is_empty() || ids.contains(anchor),
                None => target.is_file(),
            };
            if !is_whole {
                let shown = file.strip_prefix(&book).unwrap_or(file).display().to_string();
                findings.push(format!("{shown}: {link} leads nowhere"));
            }
        }
    }
    findings.sort();
    findings.dedup();
    if findings.is_empty() {
        println!("{} pages in {BOOK}, every link followed", files.len());
        return Ok(());
    }
    Err(findings.join("\n"))
}

/// The table of contents has its links from `docs`; in the book they are from the root.
fn rebase(summary: &str) -> String {
    let mut out = String::new();
    for (i, part) in summary.split("](").enumerate() {
        if i > 0 {
            let (link, rest) = part.split_once(')').unwrap_or((part, ""));
            let page = links::normal(&Path::new("docs").join(link));
            let page = if link.is_empty() { String::new() } else { page.display().to_string() };
            out += &format!("]({page}){rest}");
        } else {
            out += part;
        }
    }
    out
}

/// A page as the book has it. Links to pages of the book stay, pictures come along, a link to a folder leads to its first page, and
/// other files of the repository are named without a link.
fn lay_out(page: &Path, text: &str, pages: &[PathBuf], out: &Path) -> Result<String, String> {
    let folder = page.parent().unwrap_or(Path::new(""));
    let up: String = folder.components().map(|_| "../").collect();
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at);
        let Some(end) = after.find(')') else { break };
        let link = &after[2..end];
        let file = link.split('#').next().unwrap_or_default();
        let target = links::normal(&folder.join(file));
        let within = links::targets(&after[..=end]).next().is_some();
        let is_page = file.is_empty() || pages.contains(&target);
        let replaced = match pages.iter().find(|p| p.starts_with(&target)) {
            // mdBook makes an index of each README, and leaves links to it as they are.
            _ if within && is_page && file.ends_with("README.md") => Some(format!(
                "]({}index.md{})",
                file.trim_end_matches("README.md"),
                &link[file.len()..]
            )),
            _ if !within || is_page => None,
            Some(first) => Some(format!("]({up}{})", first.display())),
            None if file.ends_with(".svg") => {
                let copied = out.join(&target);
                make_folder(&copied)?;
                fs::copy(root().join(&target), &copied).map_err(|e| format!("{file}: {e}"))?;
                None
            }
            None => Some(String::new()),
        };
        match replaced.as_deref() {
            // The words of the link stay, without its bracket.
            Some("") => match before.rfind('[') {
                Some(open) => result += &format!("{}{}", &before[..open], &before[open + 1..]),
                None => result += before,
            },
            Some(other) => result += &format!("{before}{other}"),
            None => result += &format!("{before}{}", &after[..=end]),
        }
        rest = &after[end + 1..];
    }
    Ok(result + rest)
}

fn html_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut out = Vec::new();
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            out.extend(html_files(&path)?);
        } else if path.extension().is_some_and(|e| e == "html") {
            out.push(path);
        }
    }
    Ok(out)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn make_folder(file: &Path) -> Result<(), String> {
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    make_folder(path)?;
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_become_words() {
        let pages = ["README.md", "docs/guide/a.md", "docs/guide/b.md"].map(PathBuf::from);
        let text = "[r](../../README.md#h) [a](b.md#x) [src](../../crates/x/src/lib.rs), [guide](../guide/) [w](https://e.org/) [top](#t)";
        let laid = lay_out(&pages[1], text, &pages, Path::new("/nowhere")).expect("no pictures");
        let want = "[r](../../index.md#h) [a](b.md#x) src, [guide](../../docs/guide/a.md) [w](https://e.org/) [top](#t)";
        assert_eq!(laid, want);
        assert_eq!(
            rebase("- [R](../README.md)\n- [A](guide/a.md)"),
            "- [R](README.md)\n- [A](docs/guide/a.md)"
        );
    }
}
