//! Flame graphs of the servers' stacks.

use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Palette};
use inferno::flamegraph::{self, Options};

use super::gather::{Load, slug};
use super::sentences::title;
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

/// One for each target whose stacks are known: those of its largest number of clients.
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
        if stacks.trim().is_empty() {
            continue;
        }
        let title = format!("{}, {}, {clients} clients", title(&curve.target), load.name());
        out.push(Flame {
            id: format!("flame-{}-{}", slug(&curve.target), load.slug()),
            svg: draw(stacks).map_err(|e| Error::new(format!("stacks of {title}: {e}")))?,
            title,
            height: 0,
        });
    }
    for flame in &mut out {
        flame.height = height(&flame.svg).unwrap_or(600);
    }
    Ok(out)
}

fn draw(stacks: &str) -> Result<String, String> {
    let mut options = Options::default();
    options.title = " ".into();
    options.colors = Palette::Basic(BasicPalette::Orange);
    options.bgcolors = Some(BackgroundColor::Flat((255, 255, 255).into()));
    options.hash = true;
    options.font_type = "system-ui, sans-serif".into();
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, stacks.lines(), &mut svg).map_err(|e| e.to_string())?;
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
        let svg = draw("main;run;read 30\nmain;run;write 70\n").unwrap();
        assert!(svg.contains("write (70"), "{svg}");
        assert!(height(&svg).unwrap() > 100);
        assert!(draw("no weight here").is_err());
    }
}
