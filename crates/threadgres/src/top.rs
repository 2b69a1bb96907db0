//! `threadgres top`: the status page in a terminal. Live with q to leave, or (`--once`, and wherever
//! the output is not a terminal) printed once as plain text.
//!
//! [`source`] fetches what `/api/now.json` holds, by HTTP or by SQL; [`screen`] makes lines of it;
//! here they are put on the terminal.

mod screen;
mod source;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{self, ClearType};
use crossterm::{cursor, event, execute, queue};
use screen::{Line, Sample};
use source::Source;

const HELP: &str = "\
threadgres top: what a server does, live (q: leave; --once: print it and exit)

Usage:
  threadgres top -D DIR [-d SECONDS] [--once]
  threadgres top --url postgres://HOST[:PORT] | http://[USER:PASSWORD@]HOST[:PORT] [-d SECONDS] [--once]
      By HTTP it says who asks: a role with the rights of pg_monitor; with -D DIR besides, whoever may
      read that directory's threadgres.http_token
";
/// Width of what is printed where there is no terminal.
const PLAIN_WIDTH: usize = 160;

struct Options {
    url: String,
    /// Of the data directory, for HTTP.
    token: Option<String>,
    delay: Duration,
    once: bool,
}

/// Runs the command; `args` are those after its name.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let result = match parse(args) {
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Some(options)) => show(&options),
        Err(message) => Err(format!("{message}; see threadgres top --help")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("threadgres top: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the options; None: only help is wanted.
fn parse(args: impl Iterator<Item = OsString>) -> Result<Option<Options>, String> {
    let mut args = args.map(|a| a.into_string().map_err(|a| format!("{a:?} is not valid UTF-8")));
    let (mut url, mut dir, mut delay, mut once) = (None, None::<String>, 1.0, false);
    while let Some(arg) = args.next().transpose()? {
        let mut value = || args.next().transpose()?.ok_or(format!("option {arg} needs a value"));
        match arg.as_str() {
            "-h" | "--help" => return Ok(None),
            "--once" => once = true,
            "--url" => url = Some(value()?),
            "-D" => dir = Some(value()?),
            "-d" => {
                let text = value()?;
                let seconds = text.parse::<f64>().ok().filter(|s| (0.1..=3600.0).contains(s));
                delay = seconds.ok_or(format!("-d {text}: from 0.1 to 3600 seconds"))?;
            }
            other => return Err(format!("unknown option \"{other}\"")),
        }
    }
    let mut token = None;
    let url = match (url, dir) {
        (Some(url), None) => url,
        (Some(url), Some(dir)) => {
            let path = server::http::login::token_file(Path::new(&dir));
            let text = std::fs::read_to_string(&path);
            token = Some(text.map_err(|e| format!("{}: {e}", path.display()))?.trim().to_owned());
            url
        }
        (None, Some(dir)) => {
            let address = server::control::address(Path::new(&dir));
            address.map_err(|e| server::run::explain(&e))?
        }
        (None, None) => return Err("which server? -D DIR or --url URL".to_owned()),
    };
    Ok(Some(Options { url, token, delay: Duration::from_secs_f64(delay), once }))
}

fn show(options: &Options) -> Result<(), String> {
    let mut source = Source::open(&options.url, options.token.as_deref())?;
    let first = source.fetch()?;
    if options.once || !std::io::stdout().is_terminal() {
        // Rates need two samples.
        std::thread::sleep(options.delay);
        let lines = screen::lines(&source.fetch()?, Some(&first), PLAIN_WIDTH);
        let text: String = lines.iter().map(|l| l.text.trim_end().to_owned() + "\n").collect();
        // Whoever closes the pipe has read enough.
        let _ = std::io::stdout().write_all(text.as_bytes());
        return Ok(());
    }
    let terminal = Terminal::enter().map_err(|e| e.to_string())?;
    let result = live(&mut source, first, options.delay);
    drop(terminal);
    result
}

/// Shows samples until somebody leaves. A server that does not answer is asked again.
fn live(source: &mut Source, first: Sample, delay: Duration) -> Result<(), String> {
    let mut samples = (None, first);
    let mut trouble = None;
    loop {
        let drawn = draw(&samples.1, samples.0.as_ref(), trouble.as_deref());
        drawn.map_err(|e| e.to_string())?;
        if leave(delay).map_err(|e| e.to_string())? {
            return Ok(());
        }
        match source.fetch() {
            Ok(sample) => {
                samples = (Some(std::mem::replace(&mut samples.1, sample)), samples.1);
                trouble = None;
            }
            Err(message) => trouble = Some(message),
        }
    }
}

/// Waits for the next turn; true when a key says to leave.
fn leave(delay: Duration) -> std::io::Result<bool> {
    let until = Instant::now() + delay;
    while event::poll(until.saturating_duration_since(Instant::now()))? {
        match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => {
                let interrupt = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(true),
                    KeyCode::Char('c') if interrupt => return Ok(true),
                    _ => {}
                }
            }
            // Another size: drawn anew at once.
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}

fn draw(now: &Sample, before: Option<&Sample>, trouble: Option<&str>) -> std::io::Result<()> {
    let (width, height) = terminal::size()?;
    let mut lines = screen::lines(now, before, usize::from(width));
    if let Some(trouble) = trouble {
        lines.insert(0, Line { text: format!("no answer: {trouble}"), strong: true });
    }
    let mut out = std::io::stdout().lock();
    for row in 0..height {
        queue!(out, cursor::MoveTo(0, row), terminal::Clear(ClearType::CurrentLine))?;
        if let Some(line) = lines.get(usize::from(row)) {
            let look = if line.strong { Attribute::Bold } else { Attribute::Reset };
            let text: String = line.text.chars().take(usize::from(width)).collect();
            queue!(out, SetAttribute(look), Print(text), SetAttribute(Attribute::Reset))?;
        }
    }
    out.flush()
}

/// The terminal as a screen, until it is dropped.
struct Terminal;

impl Terminal {
    fn enter() -> std::io::Result<Terminal> {
        terminal::enable_raw_mode()?;
        let terminal = Terminal;
        execute!(std::io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(terminal)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // There is nobody left to tell of an error.
        let _ = execute!(std::io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(line: &str) -> Result<Option<Options>, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_are_read() {
        let options = get("--url http://localhost -d 0.5 --once").unwrap().unwrap();
        assert_eq!((options.url.as_str(), options.once), ("http://localhost", true));
        assert_eq!(options.delay, Duration::from_millis(500));
        for (line, word) in [("", "-D"), ("--url", "value"), ("-d x --url y", "-d x"), ("-x", "-x")]
        {
            assert!(get(line).err().unwrap().contains(word), "{line}");
        }
    }
}
