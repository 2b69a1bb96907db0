//! The HTTP endpoint while it listens.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use base::settings::{Settings, setting};
use base::{Error, Result, err};
use sched::SpinLock;

/// Where the settings want the endpoint; None: nowhere.
///
/// # Errors
/// `0A000` for an address that other machines can reach, `22023` for one that isn't an address.
pub fn address(settings: &Settings) -> Result<Option<SocketAddr>> {
    let port = settings.int(setting::HTTP_PORT) as u16;
    if port == 0 {
        return Ok(None);
    }
    let name = settings.str(setting::HTTP_ADDRESS);
    let name = if name == "localhost" { "127.0.0.1" } else { name };
    let ip: IpAddr = name.parse().map_err(|_| {
        err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"http_address\": \"{name}\"")
            .hint("use 127.0.0.1, ::1 or localhost")
    })?;
    if !ip.is_loopback() {
        return Err(Error::unsupported(format_args!(
            "serving HTTP on {ip}, which other machines can reach, while what is sent is \
             not encrypted,"
        ))
        .hint("use 127.0.0.1, ::1 or localhost, and a tunnel (ssh -L) from elsewhere"));
    }
    Ok(Some(SocketAddr::new(ip, port)))
}

/// The running endpoint, and where it listens.
#[derive(Default)]
pub struct Endpoint {
    pub(super) running: SpinLock<Option<Running>>,
}

pub(super) struct Running {
    pub(super) address: SocketAddr,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) thread: JoinHandle<()>,
}
