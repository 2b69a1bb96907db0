//! ispell and hunspell dictionaries.
use crate::dictionary::Norms;
use crate::options::Options;
use base::{Result, err};
/// The dictionary.
pub struct Ispell;
impl Ispell {
    /// From its options.
    pub fn make(_options: &Options) -> Result<Ispell> {
        Err(err!(FEATURE_NOT_SUPPORTED, "ispell dictionaries are not supported"))
    }
    /// The base forms of a word.
    pub fn lexize(&self, _word: &str) -> Result<Norms> {
        Ok(None)
    }
}
