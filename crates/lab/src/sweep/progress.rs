//! A sweep's progress display: a bar on a terminal, a line for each point in any case.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::Error;
use crate::results::Point;

/// Progress on standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Over so many points.
    pub fn new(points: usize) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress { bar: None };
        }
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len}, {eta} left: {msg}");
        let bar = ProgressBar::new(points as u64);
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Progress { bar: Some(bar) }
    }

    /// This point is being measured.
    pub fn begin(&self, label: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(label.to_owned());
        }
    }

    /// It is measured.
    pub fn done(&self, label: &str, point: &Point) {
        let mut line = format!("{label}: {:.0} tps, mean {:.0} µs", point.tps, point.latency.mean);
        if let Some((_, us)) = point.latency.percentiles.iter().find(|(p, _)| *p == 99.0) {
            line.push_str(&format!(", 99 % under {us} µs"));
        }
        for (code, count) in &point.errors {
            line.push_str(&format!(", {count} errors {code}"));
        }
        self.line(&line);
    }

    /// It failed.
    pub fn failed(&self, label: &str, error: &Error) {
        self.line(&format!("{label}: {error}"));
    }

    /// It is left out.
    pub fn skip(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => {
                bar.println(line);
                bar.inc(1);
            }
            None => eprintln!("{line}"),
        }
    }

    /// Nothing more comes.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
