//! An analysis as text for a terminal.

use std::fmt::Write;

use super::analysis::{Analysis, Fit, Model};
use super::interval::Quantity;

/// A number with four significant digits, in plain notation where that is short.
#[must_use]
pub fn number(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    if x.is_infinite() {
        return "∞".to_owned();
    }
    if x.is_nan() {
        return "?".to_owned();
    }
    let digits = x.abs().log10().floor() as i32;
    if (-3..4).contains(&digits) {
        let places = (3 - digits).clamp(0, 6) as usize;
        let text = format!("{x:.places$}");
        if !text.contains('.') {
            return text;
        }
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    if (4..12).contains(&digits) {
        return grouped(x.round());
    }
    format!("{x:.2e}")
}

/// A whole number with its thousands apart (by a no-break space).
fn grouped(x: f64) -> String {
    let digits = format!("{x:.0}");
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 && digits.as_bytes()[i - 1] != b'-' {
            out.push('\u{a0}');
        }
        out.push(digit);
    }
    out
}

/// A probability, not more exact than it means.
#[must_use]
pub fn probability(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// A share of one in per cent, with two significant digits.
#[must_use]
pub fn percent(x: f64) -> String {
    if !x.is_finite() {
        return number(x);
    }
    let x = 100.0 * x;
    let small = (1.0 - x.abs().log10().floor()).clamp(0.0, 5.0) as usize;
    let places = if x == 0.0 || x.abs() >= 9.95 { 0 } else { small };
    let text = format!("{x:.places$}");
    let short =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} %")
}

/// An estimate and its interval.
#[must_use]
pub fn quantity(q: &Quantity, show: impl Fn(f64) -> String) -> String {
    if q.is_known() {
        format!("{} ({} … {})", show(q.estimate), show(q.low), show(q.high))
    } else {
        show(q.estimate)
    }
}

/// What the best fit says, as a sentence.
#[must_use]
pub fn verdict(analysis: &Analysis) -> String {
    let Some(fit) = analysis.best() else { return "No model can be fitted.".to_owned() };
    if let Some(why) = fit.meaningless {
        return format!(
            "No law describes this curve: {} comes nearest, but {why}. Its parameters mean nothing.",
            fit.model.name()
        );
    }
    let part = |name: &str, q: &Option<Quantity>, show: fn(f64) -> String| {
        q.as_ref().map(|q| format!("{name} {}", quantity(q, show))).unwrap_or_default()
    };
    match fit.model {
        Model::Linear => {
            format!("Throughput grows in proportion to N: {} each.", quantity(&fit.scale, number))
        }
        Model::Amdahl => format!(
            "Amdahl's law fits best: {}, {}.",
            part("serial part", &fit.serial, percent),
            part("throughput levels off at", &fit.peak, number),
        ),
        Model::Usl => format!(
            "The universal scalability law fits best: {}, {}; {} at {}.",
            part("serial part", &fit.serial, percent),
            part("coherency cost", &fit.coherency, number),
            part("most throughput", &fit.peak, number),
            part("N* =", &fit.knee, number),
        ),
    }
}

/// The whole analysis.
#[must_use]
pub fn text(analysis: &Analysis) -> String {
    let mut out = String::new();
    // Writing into a string does not fail.
    let _ = write_text(&mut out, analysis);
    out
}

fn write_text(out: &mut String, analysis: &Analysis) -> std::fmt::Result {
    let series = &analysis.series;
    writeln!(out, "{}", series.name)?;
    writeln!(out, "  {}", describe(analysis))?;
    writeln!(out, "\n  {}\n", verdict(analysis))?;
    let mut table = vec![row(&[
        "model",
        "throughput of one",
        "serial part a",
        "coherency b",
        "R²",
        "AICc",
        "weight",
        "",
    ])];
    for (i, fit) in analysis.fits.iter().enumerate() {
        table.push(model_row(fit, analysis.chosen == Some(i)));
    }
    write_table(out, &table)?;
    if let Some(best) = analysis.best() {
        writeln!(out)?;
        write_table(out, &residual_rows(analysis, best))?;
        writeln!(out)?;
        write_table(out, &prediction_rows(analysis))?;
    }
    if !analysis.warnings.is_empty() {
        writeln!(out, "\n  Mind:")?;
        for warning in &analysis.warnings {
            write_folded(out, &warning.text)?;
        }
    }
    Ok(())
}

/// How many counts, from where to where, how often.
#[must_use]
pub fn describe(analysis: &Analysis) -> String {
    let all = &analysis.series.observations;
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return String::new() };
    let most = all.iter().map(|o| o.repetitions).max().unwrap_or(1);
    let least = all.iter().map(|o| o.repetitions).min().unwrap_or(1);
    let often = match (least, most) {
        (1, 1) => "once each".to_owned(),
        (a, b) if a == b => format!("{a} times each"),
        (a, b) => format!("{a} to {b} times each"),
    };
    let on = analysis.series.cores.map(|c| format!(", on {c} cores")).unwrap_or_default();
    let (from, to) = (number(first.n), number(last.n));
    format!(
        "{} counts of {} from {from} to {to}, {often}{on}; intervals are 95 %",
        all.len(),
        analysis.series.unit.name()
    )
}

fn model_row(fit: &Fit, chosen: bool) -> Vec<String> {
    let show = |q: &Option<Quantity>, f: fn(f64) -> String| {
        q.as_ref().map_or_else(|| "-".to_owned(), |q| quantity(q, f))
    };
    let optional = |x: Option<f64>, f: fn(f64) -> String| x.map_or_else(|| "-".to_owned(), f);
    vec![
        format!("{}{}", fit.model.name(), if chosen { " *" } else { "" }),
        quantity(&fit.scale, number),
        show(&fit.serial, percent),
        show(&fit.coherency, number),
        format!("{:.4}", fit.r_squared),
        optional(fit.aicc, |x| format!("{x:.1}")),
        optional(fit.weight, percent),
        if fit.meaningless.is_some() { "meaningless" } else { "" }.to_owned(),
    ]
}

fn residual_rows(analysis: &Analysis, best: &Fit) -> Vec<Vec<String>> {
    let unit = analysis.series.unit.name();
    let fitted = format!("{} curve", best.model.name());
    let mut rows = vec![row(&[unit, "measured", "± of one", &fitted, "residual", "of it"])];
    for (o, residual) in analysis.series.observations.iter().zip(&best.residuals) {
        rows.push(vec![
            number(o.n),
            number(o.throughput),
            o.deviation.map_or_else(|| "-".to_owned(), number),
            number(o.throughput - residual),
            number(*residual),
            format!("{:+.1} %", 100.0 * residual / o.throughput),
        ]);
    }
    rows
}

fn prediction_rows(analysis: &Analysis) -> Vec<Vec<String>> {
    let mut head = vec![format!("predicted at {}", analysis.series.unit.name())];
    head.extend(analysis.fits.iter().map(|f| f.model.name().to_owned()));
    let mut rows = vec![head];
    for (i, n) in super::analysis::PREDICTED.iter().enumerate() {
        let mut row = vec![number(*n)];
        row.extend(analysis.fits.iter().map(|f| quantity(&f.predictions[i].1, number)));
        rows.push(row);
    }
    rows
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|c| (*c).to_owned()).collect()
}

/// Columns as wide as their widest cell, the first to the left, the others to the right.
fn write_table(out: &mut String, rows: &[Vec<String>]) -> std::fmt::Result {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|i| width(i).unwrap_or(0)).collect();
    for row in rows {
        let mut line = String::new();
        for (i, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[i] - cell.chars().count());
            if i == 0 {
                write!(line, "  {cell}{pad}")?;
            } else {
                write!(line, "   {pad}{cell}")?;
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// One point of a list, lines of at most about 96 characters.
fn write_folded(out: &mut String, text: &str) -> std::fmt::Result {
    let mut line = String::from("  -");
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() > 96 {
            writeln!(out, "{line}")?;
            line = String::from("   ");
        }
        write!(line, " {word}")?;
    }
    writeln!(out, "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        let shown = [0.0, 1.0, 96.5196, 1884.2, 123_456.7, 0.000_104_4, f64::INFINITY, 0.02773];
        let text: Vec<String> = shown.into_iter().map(number).collect();
        let expected = ["0", "1", "96.52", "1884", "123\u{a0}457", "1.04e-4", "∞", "0.02773"];
        assert_eq!(text, expected);
        assert_eq!(percent(0.0277), "2.8 %");
        assert_eq!(percent(0.0016), "0.16 %");
        assert_eq!(percent(0.5), "50 %");
    }
}
