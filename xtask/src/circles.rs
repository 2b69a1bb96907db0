//! Circles of files: files of one crate that name each other in a loop are understood and moved together only.
//!
//! An arrow A → B means that A names a thing of B: by `use`, or by a path that begins with `crate`, `super`, `self` or a
//! module. A name that a module only hands on (`pub use`) counts for the file that defines it. Tests don't count. A
//! circle is a strongly connected part of that graph; its size is bounded by crate ([`BOUNDS`]), so that it stays cut.
//!
//! What this leaves out: methods of types that come by another file's value, and what macros make. Both are calls
//! without a name of the other file, so a reader isn't led there by an import either.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::root;

/// Files that the largest circle of a crate may have. Lower a bound as circles are cut; never raise it.
const BOUNDS: [(&str, usize); 5] =
    [("access", 19), ("exec", 18), ("sched", 35), ("sql", 73), ("types", 67)];

/// The bound of the crates that [`BOUNDS`] doesn't name.
const BOUND: usize = 8;

/// Prints each crate's circles of more than two files; with a crate's name, that crate's with all their arrows.
pub fn run(args: &[String]) -> Result<(), String> {
    for name in crates()? {
        if args.first().is_some_and(|wanted| *wanted != name) {
            continue;
        }
        let graph = Graph::read(&name)?;
        let circles = graph.circles();
        let sizes: Vec<String> = circles.iter().map(|c| c.len().to_string()).collect();
        println!("{name}: {} files; circles: {}", graph.files.len(), sizes.join(" "));
        if args.is_empty() {
            continue;
        }
        for circle in circles {
            println!("\ncircle of {} files", circle.len());
            for (from, to) in
                graph.arrows.keys().filter(|(a, b)| circle.contains(a) && circle.contains(b))
            {
                let names: Vec<&str> =
                    graph.arrows[&(*from, *to)].iter().map(String::as_str).collect();
                println!("  {} -> {}: {}", graph.files[*from], graph.files[*to], names.join(", "));
            }
        }
    }
    Ok(())
}

/// Adds a finding for each crate whose largest circle is above its bound.
pub fn check(findings: &mut Vec<String>) -> Result<(), String> {
    for name in crates()? {
        let bound = BOUNDS
            .iter()
            .find(|(crate_name, _)| *crate_name == name)
            .map_or(BOUND, |(_, bound)| *bound);
        let largest = Graph::read(&name)?.circles().first().map_or(0, Vec::len);
        if largest > bound {
            findings.push(format!(
                "crates/{name}: a circle of {largest} files, more than {bound}; `cargo xtask circles {name}` shows it"
            ));
        }
    }
    Ok(())
}

fn crates() -> Result<Vec<String>, String> {
    let folder = root().join("crates");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> =
        entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// A module: its file, its children, and the names that its `use` declarations bring.
#[derive(Default)]
struct Module {
    file: usize,
    children: BTreeSet<String>,
    defined: BTreeSet<String>,
    uses: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

/// The files of a crate and who names what of whom.
struct Graph {
    files: Vec<String>,
    arrows: BTreeMap<(usize, usize), BTreeSet<String>>,
}

impl Graph {
    fn read(name: &str) -> Result<Self, String> {
        let source = root().join("crates").join(name).join("src");
        let mut modules: BTreeMap<Vec<String>, Module> = BTreeMap::new();
        let (mut files, mut paths) = (Vec::new(), Vec::new());
        let mut pending = Vec::new();
        for start in ["lib.rs", "main.rs"] {
            if source.join(start).exists() {
                pending.push((Vec::<String>::new(), source.join(start)));
                break;
            }
        }
        while let Some((module, file)) = pending.pop() {
            let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            let words = without_tests(words_of(&text));
            let at = files.len();
            files.push(file.strip_prefix(&source).unwrap_or(&file).display().to_string());
            let mut entry = Module { file: at, ..Module::default() };
            for pair in words.windows(3).filter(|w| w[0] == "mod" && w[2] == ";") {
                if let Some(child) = file_of(&file, module.is_empty(), &pair[1]) {
                    entry.children.insert(pair[1].clone());
                    let mut path = module.clone();
                    path.push(pair[1].clone());
                    pending.push((path, child));
                }
            }
            let declared = declarations(&words);
            for (path, as_name) in &declared.uses {
                if as_name == "*" {
                    entry.globs.push(absolute(&module, &entry, path));
                } else {
                    let path = absolute(&module, &entry, path);
                    entry.uses.insert(as_name.clone(), path);
                }
            }
            entry.defined.clone_from(&declared.defined);
            paths.push((module.clone(), declared));
            modules.insert(module, entry);
        }
        let mut arrows: BTreeMap<(usize, usize), BTreeSet<String>> = BTreeMap::new();
        for (at, (module, declared)) in paths.iter().enumerate() {
            let entry = &modules[module];
            let named = declared.uses.iter().filter(|(_, name)| {
                // A name that is only handed on is not used here.
                !declared.handed_on.contains(name) || declared.mentioned.contains(name)
            });
            let named = named.filter(|(_, name)| name != "*").map(|(path, _)| path);
            let named = named.chain(&declared.inline).map(|path| absolute(module, entry, path));
            let unknown = declared
                .mentioned
                .iter()
                .filter(|word| !entry.defined.contains(*word) && !entry.uses.contains_key(*word));
            let through_globs = entry.globs.iter().flat_map(|glob| {
                unknown.clone().map(|word| [&glob[..], std::slice::from_ref(word)].concat())
            });
            let through_globs = through_globs.filter(|path| {
                let is_own = path.first().is_some_and(|p| p == "crate");
                is_own && resolve(&modules, path, 0).is_some_and(|(_, _, is_defined)| is_defined)
            });
            for path in named.chain(through_globs) {
                if path.first().is_none_or(|p| p != "crate") {
                    continue;
                }
                if let Some((to, last, _)) = resolve(&modules, &path, 0)
                    && to != at
                {
                    arrows.entry((at, to)).or_default().insert(last);
                }
            }
        }
        Ok(Self { files, arrows })
    }

    /// The strongly connected parts of two files or more, the largest first.
    fn circles(&self) -> Vec<Vec<usize>> {
        let reach: Vec<BTreeSet<usize>> =
            (0..self.files.len()).map(|from| self.reached(from)).collect();
        let (mut seen, mut out) = (BTreeSet::new(), Vec::new());
        for from in 0..self.files.len() {
            if seen.contains(&from) || !reach[from].contains(&from) {
                continue;
            }
            let circle: Vec<usize> =
                reach[from].iter().copied().filter(|to| reach[*to].contains(&from)).collect();
            seen.extend(circle.iter().copied());
            out.push(circle);
        }
        out.sort_by_key(|c| std::cmp::Reverse(c.len()));
        out
    }

    fn reached(&self, from: usize) -> BTreeSet<usize> {
        let (mut seen, mut pending) = (BTreeSet::new(), vec![from]);
        while let Some(at) = pending.pop() {
            for (_, to) in self.arrows.range((at, 0)..(at + 1, 0)).map(|(pair, _)| *pair) {
                if seen.insert(to) {
                    pending.push(to);
                }
            }
        }
        seen
    }
}

/// The file of a child module, if it has one of its own.
fn file_of(parent: &Path, is_root: bool, child: &str) -> Option<PathBuf> {
    let folder = if is_root || parent.ends_with("mod.rs") {
        parent.parent()?.to_owned()
    } else {
        parent.with_extension("")
    };
    let candidates = [folder.join(format!("{child}.rs")), folder.join(child).join("mod.rs")];
    candidates.into_iter().find(|p| p.exists())
}

/// A path from the crate's root: `["crate", ...]`; another crate's stays as it is.
fn absolute(module: &[String], entry: &Module, path: &[String]) -> Vec<String> {
    let mut base = vec!["crate".to_owned()];
    let mut rest = path;
    match path.first().map(String::as_str) {
        Some("crate") => rest = &path[1..],
        Some("self" | "super") => {
            base.extend(module.iter().cloned());
            while let Some(word) = rest.first().filter(|w| *w == "self" || *w == "super") {
                if word == "super" && base.len() > 1 {
                    base.pop();
                }
                rest = &rest[1..];
            }
        }
        Some(word) if entry.children.contains(word) => base.extend(module.iter().cloned()),
        _ => return path.to_vec(),
    }
    base.extend(rest.iter().cloned());
    base
}

/// The file that a path from the root leads to, the last word of the name in it, and whether the file defines that.
fn resolve(
    modules: &BTreeMap<Vec<String>, Module>,
    path: &[String],
    depth: usize,
) -> Option<(usize, String, bool)> {
    let mut module: Vec<String> = Vec::new();
    for (i, word) in path.iter().enumerate().skip(1) {
        let entry = modules.get(&module)?;
        if entry.children.contains(word) {
            module.push(word.clone());
            continue;
        }
        if entry.defined.contains(word) {
            return Some((entry.file, word.clone(), true));
        }
        if depth < 20 {
            if let Some(target) = entry.uses.get(word) {
                if target.first().is_none_or(|w| w != "crate") {
                    return None;
                }
                let target = [&target[..], &path[i + 1..]].concat();
                return resolve(modules, &target, depth + 1);
            }
            for glob in entry.globs.iter().filter(|g| g.first().is_some_and(|w| w == "crate")) {
                let target = [&glob[..], &path[i..]].concat();
                let found = resolve(modules, &target, depth + 1);
                if found.as_ref().is_some_and(|(_, _, is_defined)| *is_defined) {
                    return found;
                }
            }
        }
        return Some((entry.file, word.clone(), false));
    }
    Some((modules.get(&module)?.file, path.last()?.clone(), true))
}

/// What a file's `use` declarations and paths say.
#[derive(Default)]
struct Declared {
    /// Each path with the name that it gets here (`*` for all of a module).
    uses: Vec<(Vec<String>, String)>,
    /// Names that are declared with `pub`.
    handed_on: BTreeSet<String>,
    /// Words outside of `use` declarations.
    mentioned: BTreeSet<String>,
    /// Paths in code.
    inline: Vec<Vec<String>>,
    /// Names of items.
    defined: BTreeSet<String>,
}

/// Words before the name of an item.
const ITEMS: [&str; 10] =
    ["fn", "struct", "enum", "trait", "const", "static", "type", "union", "mod", "macro_rules"];

fn declarations(words: &[String]) -> Declared {
    let mut out = Declared::default();
    let (mut at, mut depth) = (0, 0_usize);
    while at < words.len() {
        let word = words[at].as_str();
        match word {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if word == "use" && words.get(at + 1).is_some_and(|w| w != "<") {
            let is_public = at > 0 && (words[at - 1] == "pub" || words[at - 1] == ")");
            let end = (at..words.len()).find(|i| words[*i] == ";").unwrap_or(words.len());
            let before = out.uses.len();
            tree(&words[at + 1..end], &[], &mut out.uses);
            if is_public {
                out.handed_on.extend(out.uses[before..].iter().map(|(_, name)| name.clone()));
            }
            at = end + 1;
            continue;
        }
        if !is_name(word) {
            at += 1;
            continue;
        }
        if depth == 0 && ITEMS.contains(&word) {
            let name = words[at + 1..].iter().take(2).find(|w| is_name(w) && *w != "mut");
            out.defined.extend(name.cloned());
        }
        out.mentioned.insert(word.to_owned());
        let mut path = vec![word.to_owned()];
        while words.get(at + 1).is_some_and(|w| w == "::")
            && words.get(at + 2).is_some_and(|w| is_name(w))
        {
            path.push(words[at + 2].clone());
            out.mentioned.insert(words[at + 2].clone());
            at += 2;
        }
        if path.len() > 1 {
            out.inline.push(path);
        }
        at += 1;
    }
    out
}

/// Takes a tree of `use` apart.
fn tree(words: &[String], base: &[String], out: &mut Vec<(Vec<String>, String)>) {
    let mut path = base.to_vec();
    let mut at = 0;
    while at < words.len() {
        match words[at].as_str() {
            "::" => {}
            "{" => {
                let (mut depth, mut from) = (0, at + 1);
                for i in at..words.len() {
                    match words[i].as_str() {
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        _ => {}
                    }
                    if (words[i] == "," && depth == 1) || depth == 0 {
                        if i > from {
                            tree(&words[from..i], &path, out);
                        }
                        from = i + 1;
                    }
                    if depth == 0 {
                        return;
                    }
                }
                return;
            }
            "as" => {
                let name = words.get(at + 1).cloned().unwrap_or_default();
                out.push((path, name));
                return;
            }
            "*" => {
                out.push((path, "*".to_owned()));
                return;
            }
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    let name = path.last().cloned().unwrap_or_default();
    out.push((path, name));
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Rust's text as words: names, `::`, and single characters; comments, strings and lifetimes are left out.
fn words_of(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at_is = |i: usize, c: char| chars.get(i) == Some(&c);
    let (mut out, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        let c = chars[i];
        if c == '/' && at_is(i + 1, '/') {
            while i < chars.len() && chars[i] != '\n' {
                i += 1;
            }
        } else if c == '/' && at_is(i + 1, '*') {
            while i < chars.len() && !(chars[i] == '*' && at_is(i + 1, '/')) {
                i += 1;
            }
            i += 2;
        } else if c == 'r' && raw_hashes(&chars, i).is_some() {
            let hashes = raw_hashes(&chars, i).unwrap_or(0);
            i += hashes + 2;
            while i < chars.len()
                && !(chars[i] == '"' && (0..hashes).all(|h| at_is(i + 1 + h, '#')))
            {
                i += 1;
            }
            i += hashes + 1;
        } else if c == '"' {
            i += 1;
            while i < chars.len() && chars[i] != '"' {
                i += if chars[i] == '\\' { 2 } else { 1 };
            }
            i += 1;
        } else if c == '\'' {
            let is_char = at_is(i + 1, '\\') || at_is(i + 2, '\'');
            i += 1;
            if is_char {
                while i < chars.len() && chars[i] != '\'' {
                    i += if chars[i] == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
        } else if c.is_alphabetic() || c == '_' {
            let from = i;
            while i < chars.len() && (chars[i].is_alphanumeric() || chars[i] == '_') {
                i += 1;
            }
            out.push(chars[from..i].iter().collect());
        } else if c == ':' && at_is(i + 1, ':') {
            out.push("::".to_owned());
            i += 2;
        } else {
            if !c.is_whitespace() {
                out.push(c.to_string());
            }
            i += 1;
        }
    }
    out
}

/// The number of `#` of a raw string that begins here.
fn raw_hashes(chars: &[char], at: usize) -> Option<usize> {
    let is_inside_name =
        at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_') && chars[at - 1] != 'b';
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    (!is_inside_name && chars.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

/// Leaves out items that are compiled for tests only.
fn without_tests(words: Vec<String>) -> Vec<String> {
    let mut out = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let is_cfg = ["#", "[", "cfg"]
            .iter()
            .enumerate()
            .all(|(i, w)| words.get(at + i).is_some_and(|x| x == w));
        let end = words[at..].iter().position(|w| w == "]").map_or(words.len(), |n| at + n + 1);
        let condition = &words[at..end];
        let has = |word: &str| condition.iter().any(|w| w == word);
        if !is_cfg || !has("test") || has("not") {
            out.push(words[at].clone());
            at += 1;
            continue;
        }
        let mut depth = 0;
        at = end;
        while at < words.len() {
            let word = words[at].as_str();
            at += 1;
            match word {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 && (word == ";" || word == "}") {
                break;
            }
        }
    }
    out
}
