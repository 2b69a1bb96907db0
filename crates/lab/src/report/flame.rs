//! Flame graphs of the servers' stacks.

use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Palette};
use inferno::flamegraph::{self, Options};

use super::gather::{Load, slug};
use super::sentences::title;
use crate::sweep::stacks::ROOTS;
use crate::{Error, Result};

/// A picture that is a document of its own, with its own script.
pub struct Flame {
    /// For file and anchor.
    pub id: String,
    /// What it is of.
    pub title: String,
    /// The document.
    pub svg: String,
    /// Its height in pixels.
    pub height: u32,
}

/// What a flame graph is of: the first frame of its stacks, the beginning of its anchor, and a part of its title.
const KINDS: [(&str, &str, &str); 2] =
    [(ROOTS[0].1, "flame", "on the processors"), (ROOTS[1].1, "flame-waits", "waits")];

/// Two for each target whose stacks are known, of its largest number of clients with such: what it
/// did on the processors, and what it waited for. Stacks with other roots are one picture.
///
/// # Errors
/// Stacks that are none.
pub fn all(load: &Load) -> Result<Vec<Flame>> {
    let mut out = Vec::new();
    for curve in &load.curves {
        let last = curve.counts.iter().rev();
        let Some((clients, stacks)) =
            last.filter_map(|c| Some((c.clients, c.stacks.as_deref()?))).next()
        else {
            continue;
        };
        for (lines, unit, id, what) in parts(stacks) {
            let target = title(&curve.target);
            let title = format!("{target}{what}, {}, {clients} clients", load.name());
            let svg =
                draw(&lines, unit).map_err(|e| Error::new(format!("stacks of {title}: {e}")))?;
            out.push(Flame {
                id: format!("{id}-{}-{}", slug(&curve.target), load.slug()),
                height: height(&svg).unwrap_or(600),
                svg,
                title,
            });
        }
    }
    Ok(out)
}

/// The stacks of each picture with the unit of their weights, an anchor and a part of the title.
fn parts(stacks: &str) -> Vec<(Vec<&str>, &'static str, &'static str, String)> {
    let lines: Vec<&str> = stacks.lines().filter(|line| !line.trim().is_empty()).collect();
    let of = |root: &str, line: &str| line.strip_prefix(root).is_some_and(|r| r.starts_with(';'));
    let mut out = Vec::new();
    for (root, id, what) in KINDS {
        let chosen: Vec<&str> = lines.iter().copied().filter(|line| of(root, line)).collect();
        if !chosen.is_empty() {
            out.push((chosen, "µs", id, format!(" {what}")));
        }
    }
    let known = |line: &&str| KINDS.iter().any(|(root, ..)| of(root, line));
    let rest: Vec<&str> = lines.iter().copied().filter(|line| !known(line)).collect();
    if !rest.is_empty() {
        let id = if out.is_empty() { "flame" } else { "flame-other" };
        out.push((rest, "samples", id, String::new()));
    }
    out
}

fn draw(stacks: &[&str], unit: &str) -> Result<String, String> {
    let mut options = Options::default();
    options.title = " ".into();
    options.colors = Palette::Basic(BasicPalette::Orange);
    options.bgcolors = Some(BackgroundColor::Flat((255, 255, 255).into()));
    options.hash = true;
    options.count_name = unit.into();
    options.font_type = "system-ui, sans-serif".into();
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, stacks.iter().copied(), &mut svg)
        .map_err(|e| e.to_string())?;
    String::from_utf8(svg).map_err(|e| e.to_string())
}

fn height(svg: &str) -> Option<u32> {
    let from = svg.find("<svg")?;
    let rest = &svg[from..];
    let rest = &rest[rest.find(" height=\"")? + 9..];
    rest[..rest.find('"')?].parse().ok()
}

/// The document as an address that needs no network.
#[must_use]
pub fn address(svg: &str) -> String {
    let mut out = String::with_capacity(svg.len() * 5 / 4);
    out.push_str("data:image/svg+xml,");
    for byte in svg.bytes() {
        match byte {
            b'%' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'&' | b'`' | 0..=0x1f | 0x7f.. => {
                out.push('%');
                let digit = |d: u8| char::from(b"0123456789ABCDEF"[usize::from(d)]);
                out.push(digit(byte >> 4));
                out.push(digit(byte & 15));
            }
            other => out.push(char::from(other)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_become_a_picture() {
        let svg = draw(&["main;run;read 30", "main;run;write 70"], "samples").unwrap();
        assert!(svg.contains("write (70"), "{svg}");
        assert!(height(&svg).unwrap() > 100);
        assert!(draw(&["no weight here"], "samples").is_err());
    }

    #[test]
    fn work_and_waits_are_two_pictures() {
        let stacks = "on CPU;run 3\nwaiting;Lock:relation 5\non CPU;read 4\n";
        let of: Vec<_> = parts(stacks).into_iter().map(|(lines, _, id, _)| (id, lines)).collect();
        let expected = [
            ("flame", vec!["on CPU;run 3", "on CPU;read 4"]),
            ("flame-waits", vec!["waiting;Lock:relation 5"]),
        ];
        assert_eq!(of, expected);
        assert_eq!(parts("main;run 1\n")[0].2, "flame");
    }
}
