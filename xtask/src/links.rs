//! The repository's documents as a web of links: every relative link leads to a file that is there and to a heading of it, every path of
//! a source file that a document names is one, and the book's table of contents names every page of `docs/`.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::root;

/// The book's table of contents.
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// Runs the checks over the documents that are given.
pub fn check(documents: &[PathBuf], findings: &mut Vec<String>) -> Result<(), String> {
    let mut anchors = Anchors::default();
    for path in documents {
        check_document(path, &mut anchors, findings)?;
    }
    check_summary(documents, findings)
}

/// The headings of documents as they are asked for.
#[derive(Default)]
struct Anchors(HashMap<PathBuf, Vec<String>>);

impl Anchors {
    fn has(&mut self, document: &Path, anchor: &str) -> bool {
        let known = self.0.entry(document.to_owned()).or_insert_with(|| {
            // A document that is not there has been found missing before.
            headings(&fs::read_to_string(document).unwrap_or_default())
        });
        known.iter().any(|a| a == anchor)
    }
}

/// The lines of a document that are not in fenced blocks, with their numbers.
pub fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((i + 1, line))
    })
}

/// The relative links of a line, and those within the page.
pub fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
}

/// The anchors of a document's headings, as the book and code hosts make them: lower case, without punctuation, with hyphens for spaces.
fn headings(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug = slug(title.trim());
        let same = out.iter().filter(|known| **known == slug).count();
        out.push(if same == 0 { slug } else { format!("{slug}-{same}") });
    }
    out
}

fn slug(title: &str) -> String {
    // Of a link the text is shown.
    let mut shown = String::new();
    for (i, part) in title.split("](").enumerate() {
        shown += if i == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) };
    }
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    shown.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn check_document(
    path: &Path,
    anchors: &mut Anchors,
    findings: &mut Vec<String>,
) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let folder = path.parent().unwrap_or(path);
    for (number, line) in prose(&text) {
        for link in targets(line) {
            let (file, anchor) = link.split_once('#').map_or((link, None), |(f, a)| (f, Some(a)));
            let target = if file.is_empty() { path.to_owned() } else { normal(&folder.join(file)) };
            if !target.exists() {
                findings.push(format!("{shown}:{number}: no {link}"));
            } else if anchor.is_some_and(|a| !anchors.has(&target, a)) {
                findings.push(format!("{shown}:{number}: {link}: no such heading"));
            }
        }
        for name in line.split('`').skip(1).step_by(2).filter(|n| is_source(n)) {
            if !root().join(name).exists() && !root().join("crates").join(name).exists() {
                findings.push(format!("{shown}:{number}: no {name}"));
            }
        }
    }
    Ok(())
}

/// Whether a word in a document is the path of a source file, from the root or from `crates`.
fn is_source(word: &str) -> bool {
    let path = word.chars().all(|c| c.is_ascii_alphanumeric() || "/_-.".contains(c));
    path && word.contains("/src/") && word.ends_with(".rs")
}

/// A path without `.` and `..`.
pub fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// The pages that the table of contents names, from the root, in its order.
pub fn pages() -> Result<Vec<PathBuf>, String> {
    let text = fs::read_to_string(root().join(SUMMARY)).map_err(|e| format!("{SUMMARY}: {e}"))?;
    // A heading of the contents without a page has an empty link.
    let links = text.lines().flat_map(targets).filter(|link| !link.is_empty());
    Ok(links.map(|link| normal(&Path::new("docs").join(link))).collect())
}

/// A page of `docs/` that the table of contents lacks would be in no book.
fn check_summary(documents: &[PathBuf], findings: &mut Vec<String>) -> Result<(), String> {
    let named = pages()?;
    for document in documents {
        let page = document.strip_prefix(root()).unwrap_or(document);
        if page.starts_with("docs")
            && page != Path::new(SUMMARY)
            && !named.iter().any(|n| n == page)
        {
            findings.push(format!("{}: {SUMMARY} does not name it", page.display()));
        }
    }
    for (i, page) in named.iter().enumerate() {
        if named[..i].contains(page) {
            findings.push(format!("{SUMMARY}: names {} twice", page.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_anchors_that_links_use() {
        let text = "# A title, of `code`\n```sh\n# not one\n```\n## [Link](x.md) & more\n## Twice\n## Twice\n#tag\n";
        assert_eq!(headings(text), ["a-title-of-code", "link--more", "twice", "twice-1"]);
    }

    #[test]
    fn links_of_a_line_are_found() {
        let line = "[a](b.md#c) and ![d](e.svg), not [f](https://example.org/)";
        assert_eq!(targets(line).collect::<Vec<_>>(), ["b.md#c", "e.svg"]);
        assert_eq!(normal(Path::new("docs/guide/../x.md")), Path::new("docs/x.md"));
    }
}
