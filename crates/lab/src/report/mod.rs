//! `lab report`: results as one page that needs nothing else, and each plot as SVG and PNG.
//!
//! ```text
//! results ─► gather (loads, targets, counts) ─► sweeps, others, flame: plots ─► page, files
//!                 └─► fit ─────────────────────────┘        │ chart, bars over axis
//!                                                           └ theme: colours by class
//! ```

mod axis;
mod bars;
mod chart;
mod files;
mod flame;
mod gather;
mod others;
mod page;
#[cfg_attr(not(feature = "pixels"), path = "no_pixels.rs")]
mod pixels;
mod sentences;
mod sweeps;
mod theme;

use std::path::{Path, PathBuf};

use crate::arguments::{Argument, Arguments};
use crate::fit::analysis::{Analysis, analyse};
use crate::fit::series::{self, Series, Unit};
use crate::{Error, Result};
use chart::Draw;
use flame::Flame;
use gather::{Curve, Load, Results};

/// What `threadgres lab report --help` prints.
pub const HELP: &str = "\
Writes results as one page of HTML that needs nothing else, and every plot beside
it as SVG and PNG.

Usage: threadgres lab report [OPTION]… FILE…

FILE is a results file of lab sweep, locks, simulate, incident or compare; several
are put together.

Options:
  -o, --output DIR   where index.html and plots/ go (default: lab-report)
      --plot FILE    write only the main plot, as .svg or .png
";

/// A picture with words.
pub struct Plot {
    /// For file and anchor.
    pub id: String,
    /// Above it.
    pub title: String,
    /// Below it.
    pub caption: String,
    /// The picture.
    pub drawing: Box<dyn Draw>,
}

/// What is drawn of one load.
struct LoadContent {
    name: String,
    slug: String,
    /// Throughput, ratio, latency.
    plots: Vec<Plot>,
    fit: Option<Plot>,
    /// One for each curve.
    analyses: Vec<Analysis>,
    waits: Option<Plot>,
    flames: Vec<Flame>,
}

/// All that is drawn.
struct Content {
    loads: Vec<LoadContent>,
    locks: Vec<Plot>,
    simulated: Vec<Plot>,
    simulated_fits: Vec<Analysis>,
    incident: Vec<Plot>,
}

/// Runs it.
///
/// # Errors
/// A wrong command line, results that can't be read, files that can't be written.
pub fn run(mut args: Arguments) -> Result<()> {
    let (mut inputs, mut output, mut plot) = (Vec::new(), PathBuf::from("lab-report"), None);
    while let Some(option) = args.option()? {
        match option {
            Argument::Long("output") | Argument::Short('o') => output = args.path()?,
            Argument::Long("plot") => plot = Some(args.path()?),
            Argument::Operand(file) => inputs.push(PathBuf::from(file)),
            other => return Err(other.unknown()),
        }
    }
    if inputs.is_empty() {
        return Err(Error::usage("which results file?"));
    }
    let mut records = Vec::new();
    for input in &inputs {
        records.extend(series::read_records(input)?);
    }
    let results = Results::new(records);
    match plot {
        Some(path) => main_plot(&results, &path),
        None => write_report(&results, &output),
    }
}

fn write_report(results: &Results, output: &Path) -> Result<()> {
    let content = content(results)?;
    let mut out = Vec::new();
    let folder = output.join("plots");
    for plot in content.plots() {
        let name = |ending: &str| folder.join(format!("{}.{ending}", plot.id));
        let svg = |css: &str| chart::file(&*plot.drawing, &plot.title, css);
        out.push((name("svg"), svg(&theme::plot_css()).into_bytes()));
        if let Some(pixels) = pixels::png(&svg(&theme::pixel_css()))? {
            out.push((name("png"), pixels));
        }
    }
    for flame in content.loads.iter().flat_map(|l| &l.flames) {
        out.push((folder.join(format!("{}.svg", flame.id)), flame.svg.clone().into_bytes()));
    }
    let page = output.join("index.html");
    out.push((page.clone(), page::page(results, &content).into_bytes()));
    files::write_all(&out)?;
    println!("{}\n{}", sentences::all(results).0, page.display());
    Ok(())
}

/// The throughput of the first load, or the first plot of whatever there is.
fn main_plot(results: &Results, path: &Path) -> Result<()> {
    let content = content(results)?;
    let plot = content.plots().next().ok_or("the results hold nothing to draw")?;
    let svg = |css: &str| chart::file(&*plot.drawing, &plot.title, css);
    let bytes = match path.extension().and_then(|e| e.to_str()) {
        Some("svg") => svg(&theme::plot_css()).into_bytes(),
        Some("png") => pixels::png(&svg(&theme::pixel_css()))?
            .ok_or("this program was built without pixels: name a file that ends in .svg")?,
        _ => return Err(Error::usage("--plot wants a name that ends in .svg or .png")),
    };
    files::write_all(&[(path.to_owned(), bytes)])
}

fn content(results: &Results) -> Result<Content> {
    let mut loads = Vec::new();
    for load in &results.loads {
        loads.push(load_content(results, load)?);
    }
    let content = Content {
        loads,
        locks: others::locks(&results.records),
        simulated: others::simulated(&results.records),
        simulated_fits: series::from_records(&results.records)
            .into_iter()
            .filter(|s| s.simulated)
            .map(analyse)
            .collect(),
        incident: others::incident(&results.records),
    };
    if content.plots().next().is_none() && others::lock_points(&results.records).next().is_none() {
        return Err(Error::new("the results hold no point, lock, simulation or incident"));
    }
    Ok(content)
}

fn load_content(results: &Results, load: &Load) -> Result<LoadContent> {
    let mut plots = vec![sweeps::throughput(load)];
    plots.extend(results.base().and_then(|base| sweeps::ratio(load, base)));
    plots.extend(sweeps::latency(load));
    let cores = results.environments.first().map(|e| e.cores).filter(|c| *c > 0);
    let analyses: Vec<Analysis> =
        load.curves.iter().map(|c| analyse(as_series(c, cores))).collect();
    let pairs: Vec<(&Curve, Analysis)> = load.curves.iter().zip(analyses.iter().cloned()).collect();
    Ok(LoadContent {
        name: load.name(),
        slug: load.slug(),
        plots,
        fit: sweeps::fits(load, &pairs),
        waits: sweeps::waits(load),
        flames: flame::all(load)?,
        analyses,
    })
}

fn as_series(curve: &Curve, cores: Option<u32>) -> Series {
    let pairs = curve.counts.iter().flat_map(|c| c.tps.iter().map(|x| (f64::from(c.clients), *x)));
    let measured: Vec<(f64, f64)> = pairs.filter(|(n, x)| *n >= 1.0 && *x > 0.0).collect();
    let mut series = Series::new(curve.target.clone(), Unit::Clients, &measured);
    series.cores = cores;
    series
}

impl Content {
    /// All plots, the main one first.
    fn plots(&self) -> impl Iterator<Item = &Plot> {
        self.loads
            .iter()
            .flat_map(|l| l.plots.iter().chain(&l.fit).chain(&l.waits))
            .chain(&self.incident)
            .chain(&self.locks)
            .chain(&self.simulated)
    }
}
