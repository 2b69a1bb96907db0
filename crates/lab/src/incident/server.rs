//! A server for one part, on a directory that goes with it.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::Client;
use crate::servers::free_port;
use crate::{Error, Result};

/// See the module.
pub struct Server {
    child: Child,
    dir: PathBuf,
    /// Where it listens on loopback.
    pub port: u16,
}

impl Server {
    /// Starts this program as a server with these settings (`name=value`).
    ///
    /// # Errors
    /// It does not start.
    pub fn start(settings: &[String]) -> Result<Server> {
        let port = free_port()?;
        // A directory that an earlier run left behind may have the same port in its name.
        let name = format!("threadgres-incident-{}-{port}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let program = std::env::current_exe().map_err(|e| Error::new(e.to_string()))?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--allow-root", "--single-process", "-p", &port.to_string(), "-D"])
            .arg(&dir);
        for setting in settings {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|e| Error::new(format!("start a server: {e}")))?;
        let mut server = Server { child, dir, port };
        server.await_ready()?;
        Ok(server)
    }

    fn await_ready(&mut self) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Error::new(format!("the server ended with {status}")));
            }
            if Instant::now() > until {
                return Err(Error::new("the server did not listen within a minute"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection to it.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect(&self) -> Result<Client> {
        Client::connect(self.port)
    }
}

impl Server {
    /// Kills it; its connections break.
    pub fn end(&mut self) {
        // Its directory goes as well, so nothing is worth an orderly end; and a starved INSERT would
        // not let it have one.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
