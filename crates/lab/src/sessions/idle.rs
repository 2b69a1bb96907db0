//! Sessions that have done something and now do nothing.

use crate::driver::connection::Stream;
use crate::driver::{Address, Connection};
use crate::{Error, Result};

/// What each has prepared and run.
const SELECT: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = $1";

/// Open sessions; dropped: they say good-bye.
pub struct Idle(#[allow(dead_code, reason = "kept open")] Vec<Stream>);

impl Idle {
    /// Opens so many, one after the other; each prepares a select, runs it, and sets something.
    ///
    /// # Errors
    /// One of them fails.
    pub fn open(address: &Address, count: u32) -> Result<Idle> {
        let one = |n: u32| {
            let mut connection = Connection::open(address)?;
            connection.prepared("idle", SELECT, &(n + 1).to_string())?;
            connection.query("SET work_mem = '8MB'")?;
            Ok(connection.into_stream())
        };
        let streams = (0..count).map(|n| {
            one(n).map_err(|failure: crate::driver::Failure| {
                Error::new(format!("idle session {} of {count}: {failure}", n + 1))
            })
        });
        streams.collect::<Result<Vec<Stream>>>().map(Idle)
    }
}
