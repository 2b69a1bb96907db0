//! Plots as pixels.

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

/// A plot as PNG; `None` in a program that was built without the feature `pixels`.
///
/// # Errors
/// A plot that is too large for memory; none for plots made here.
pub fn png(svg: &str) -> Result<Option<Vec<u8>>> {
    let options = usvg::Options { fontdb: Arc::clone(&FONTS), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| Error::new(format!("plot: {e}")))?;
    let size = tree.size();
    let (width, height) = (size.width() * SHARPNESS, size.height() * SHARPNESS);
    let mut pixels = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| Error::new("plot: no memory for its pixels"))?;
    let transform = Transform::from_scale(SHARPNESS, SHARPNESS);
    resvg::render(&tree, transform, &mut pixels.as_mut());
    pixels.encode_png().map(Some).map_err(|e| Error::new(format!("plot: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_drawn_without_a_font_on_the_machine() {
        let plot = |text: &str| {
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"90\" height=\"30\">\
                 <text x=\"5\" y=\"20\" style=\"font-family:system-ui,sans-serif\">{text}</text></svg>"
            )
        };
        let (empty, full) = (png(&plot("")).unwrap().unwrap(), png(&plot("Abg")).unwrap().unwrap());
        let dark = |png: &[u8]| {
            let pixels = Pixmap::decode_png(png).unwrap();
            pixels.pixels().iter().filter(|p| p.alpha() > 0).count()
        };
        assert_eq!(dark(&empty), 0);
        assert!(dark(&full) > 100, "{}", dark(&full));
    }
}
