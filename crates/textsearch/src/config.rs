//! Configurations: which dictionaries each type of token goes through.

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use types::io::FormatContext;
use types::oids;
use types::user::TextSearch;

use crate::dictionary::{self, Dictionary};
use crate::parser::KINDS;

/// A configuration as a call uses it; dictionaries are looked up when they are first needed.
pub struct Config {
    object: Arc<TextSearch>,
    /// By type of token.
    ready: Vec<Option<Dictionaries>>,
}

/// Dictionaries with their oids, in the order in which they are asked.
pub type Dictionaries = Arc<[(Oid, Arc<Dictionary>)]>;

/// The oid of the session's configuration.
///
/// # Errors
/// `42704`: there is none of that name.
pub fn current(cx: &FormatContext) -> Result<Oid> {
    let name = &cx.text_search_config;
    if name.is_empty() {
        return Err(err!(UNDEFINED_OBJECT, "text search configuration isn't set"));
    }
    types::user::object_named(oids::REGCONFIG, name).map(Oid)
}

impl Config {
    /// The configuration with an oid.
    ///
    /// # Errors
    /// Internal, when there is none.
    pub fn get(id: Oid) -> Result<Config> {
        let missing =
            || Error::internal(format!("cache lookup failed for text search configuration {id}"));
        let object = types::user::text_search(oids::REGCONFIG, id.0).ok_or_else(missing)?;
        match &*object {
            TextSearch::Config { .. } => Ok(Config { object, ready: Vec::new() }),
            _ => Err(missing()),
        }
    }

    /// The session's.
    ///
    /// # Errors
    /// As [`current`].
    pub fn default(cx: &FormatContext) -> Result<Config> {
        Config::get(current(cx)?)
    }

    /// The dictionaries of a type of token; none: such tokens are left out.
    ///
    /// # Errors
    /// Those of making them.
    pub fn dictionaries(&mut self, kind: i32) -> Result<Dictionaries> {
        if self.ready.is_empty() {
            self.ready = vec![None; KINDS.len() + 1];
        }
        let at = kind.clamp(0, KINDS.len() as i32) as usize;
        if let Some(ready) = &self.ready[at] {
            return Ok(ready.clone());
        }
        let TextSearch::Config { map, .. } = &*self.object else { return Ok(Arc::new([])) };
        let ids = map.iter().find(|(k, _)| *k == kind).map_or(&[][..], |(_, ids)| ids);
        let made: Result<Vec<_>> = ids.iter().map(|id| Ok((*id, dictionary::get(*id)?))).collect();
        let made: Dictionaries = made?.into();
        self.ready[at] = Some(made.clone());
        Ok(made)
    }
}
