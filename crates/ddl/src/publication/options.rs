//! The options of publications and subscriptions: each is given once, and is known.

use base::{Result, err};
use sql::publication::StreamOption;

/// The value of an option that is on or off.
///
/// # Errors
/// `42601`.
pub fn boolean(option: &StreamOption) -> Result<bool> {
    let Some(value) = &option.value else { return Ok(true) };
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(err!(SYNTAX_ERROR, "{} requires a Boolean value", option.name)),
    }
}

/// The value of an option that is a text.
///
/// # Errors
/// `42601` when it has none.
pub fn text(option: &StreamOption) -> Result<&str> {
    match &option.value {
        Some(value) => Ok(value),
        None => Err(err!(SYNTAX_ERROR, "{} requires a parameter", option.name)),
    }
}

/// `42601` for an option that stands twice. Called for each option with those before it.
///
/// # Errors
/// See above.
pub fn expect_once(before: &[StreamOption], option: &StreamOption) -> Result<()> {
    if before.iter().any(|other| other.name == option.name) {
        return Err(err!(SYNTAX_ERROR, "conflicting or redundant options").at(option.position));
    }
    Ok(())
}

/// The actions of `publish`: insert, update, delete, truncate.
///
/// # Errors
/// `42601`.
fn actions(option: &StreamOption) -> Result<[bool; 4]> {
    const WORDS: [&str; 4] = ["insert", "update", "delete", "truncate"];
    let mut out = [false; 4];
    let list = text(option)?;
    for word in list.split(',').map(str::trim).filter(|_| !list.trim().is_empty()) {
        let word = word.to_ascii_lowercase();
        if word.is_empty() || word.contains(char::is_whitespace) {
            base::bail!(SYNTAX_ERROR, "invalid list syntax in parameter \"publish\"");
        }
        match WORDS.iter().position(|known| *known == word) {
            Some(at) => out[at] = true,
            None => base::bail!(
                SYNTAX_ERROR,
                "unrecognized value for publication option \"publish\": \"{word}\""
            ),
        }
    }
    Ok(out)
}

/// The options of a publication.
#[derive(Default)]
pub struct PublicationOptions {
    /// `publish`.
    pub actions: Option<[bool; 4]>,
    /// `publish_via_partition_root`.
    pub via_root: Option<bool>,
}

impl PublicationOptions {
    /// Reads them.
    ///
    /// # Errors
    /// `42601`.
    pub fn read(options: &[StreamOption]) -> Result<PublicationOptions> {
        let mut out = PublicationOptions::default();
        for (n, option) in options.iter().enumerate() {
            match option.name.as_str() {
                "publish" => {
                    expect_once(&options[..n], option)?;
                    out.actions = Some(actions(option)?);
                }
                "publish_via_partition_root" => {
                    expect_once(&options[..n], option)?;
                    out.via_root = Some(boolean(option)?);
                }
                name => {
                    return Err(err!(
                        SYNTAX_ERROR,
                        "unrecognized publication parameter: \"{name}\""
                    ));
                }
            }
        }
        Ok(out)
    }
}
