//! Clients that connect, ask once and leave, as fast as they can.

use std::time::{Duration, Instant};

use crate::driver::{Address, Connection, Failure};
use crate::{Error, Result};

/// Rounds a second of so many clients together.
///
/// # Errors
/// A round that fails.
pub fn rate(address: &Address, clients: u32, time: Duration) -> Result<f64> {
    let began = Instant::now();
    let rounds = std::thread::scope(|scope| {
        let work = || scope.spawn(|| go_round(address, began + time));
        let clients: Vec<_> = (0..clients).map(|_| work()).collect();
        let mut rounds = 0;
        for client in clients {
            rounds += client.join().map_err(|_| Error::new("a client panicked"))??;
        }
        Ok::<u64, Error>(rounds)
    })?;
    Ok(rounds as f64 / began.elapsed().as_secs_f64())
}

fn go_round(address: &Address, until: Instant) -> Result<u64, Failure> {
    let mut rounds = 0;
    while Instant::now() < until {
        Connection::open(address)?.query("SELECT 1")?;
        rounds += 1;
    }
    Ok(rounds)
}
