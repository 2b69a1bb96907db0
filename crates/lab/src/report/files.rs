//! Pixels, and files that are whole or not there.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

use crate::{Error, Result};

/// Pixels for one unit of a plot.
const SHARPNESS: f32 = 2.0;

/// The letters of PNG plots are in the program, so that they look the same everywhere and need no
/// font on the machine.
static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans_condensed::regular().to_vec());
    fonts.load_font_data(dejavu::sans_condensed::bold().to_vec());
    let family = fonts.faces().next().and_then(|f| f.families.first()).map(|f| f.0.clone());
    if let Some(family) = family {
        fonts.set_sans_serif_family(family);
    }
    Arc::new(fonts)
});

/// A plot as PNG.
///
/// # Errors
/// A plot that is too large for memory; none for plots made here.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    let options = usvg::Options { fontdb: Arc::clone(&FONTS), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| Error::new(format!("plot: {e}")))?;
    let size = tree.size();
    let (width, height) = (size.width() * SHARPNESS, size.height() * SHARPNESS);
    let mut pixels = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| Error::new("plot: no memory for its pixels"))?;
    let transform = Transform::from_scale(SHARPNESS, SHARPNESS);
    resvg::render(&tree, transform, &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| Error::new(format!("plot: {e}")))
}

/// Writes all files, or none: each beside its place first, and only when all are whole are they
/// renamed, in their order. A file that was there before stays until then.
///
/// # Errors
/// Names the file that could not be written.
pub fn write_all(files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
    let mut beside: Vec<PathBuf> = Vec::new();
    let written = files.iter().try_for_each(|(path, bytes)| {
        let partial = partial(path);
        beside.push(partial.clone());
        write(&partial, bytes).map_err(|e| Error::file(path, e))
    });
    let renamed = written.and_then(|()| {
        files.iter().zip(&beside).try_for_each(|((path, _), partial)| {
            fs::rename(partial, path).map_err(|e| Error::file(path, e))
        })
    });
    if renamed.is_err() {
        for partial in beside {
            // What isn't there any more needs no removal.
            let _ = fs::remove_file(partial);
        }
    }
    renamed
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_or_none() {
        let dir = std::env::temp_dir().join(format!("lab-report-files-{}", std::process::id()));
        let (first, second) = (dir.join("a/first"), dir.join("second"));
        write_all(&[(first.clone(), b"old".to_vec())]).unwrap();
        // A folder where the second file's neighbour should be.
        fs::create_dir_all(dir.join("second.partial")).unwrap();
        let files = [(first.clone(), b"new".to_vec()), (second.clone(), b"new".to_vec())];
        let error = write_all(&files).unwrap_err();
        assert!(error.to_string().contains("second"), "{error}");
        assert_eq!(fs::read(&first).unwrap(), b"old");
        assert!(!dir.join("a/first.partial").exists());
        fs::remove_dir(dir.join("second.partial")).unwrap();
        write_all(&files).unwrap();
        assert_eq!(fs::read(&first).unwrap(), b"new");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn letters_are_drawn_without_a_font_on_the_machine() {
        let plot = |text: &str| {
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"90\" height=\"30\">\
                 <text x=\"5\" y=\"20\" style=\"font-family:system-ui,sans-serif\">{text}</text></svg>"
            )
        };
        let (empty, full) = (png(&plot("")).unwrap(), png(&plot("Abg")).unwrap());
        let dark = |png: &[u8]| {
            let pixels = Pixmap::decode_png(png).unwrap();
            pixels.pixels().iter().filter(|p| p.alpha() > 0).count()
        };
        assert_eq!(dark(&empty), 0);
        assert!(dark(&full) > 100, "{}", dark(&full));
    }
}
