//! Listening sockets: TCP and Unix sockets. Other machines may reach the server only when some role has a
//! password ([`check_reach`]).
//!
//! The workers accept ([`sched::Workers::listen`]), each when it has time; a connection costs them little
//! until its first packet is there ([`Session::start`]). What every connection is to have (no delay of
//! small packets, keepalives, over loopback no pacing) the listening socket has, and the system passes it on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::settings::{Settings, setting};
use base::{Error, Result, err};
use listenfd::ListenFd;
use socket2::{Domain, SockAddr, Socket as RawSocket, Type};

use crate::connection::{Peer, Socket};
use crate::log;
use crate::server::{self, Server};
use crate::session::Session;

/// Connections that may wait to be accepted: all that the system lets (`net.core.somaxconn`).
const BACKLOG: i32 = 65_535;

/// One socket to listen on. It is bound first, so that a busy port is found before anything is
/// touched, and listens when the server is ready.
pub struct Listener {
    socket: RawSocket,
    unix: bool,
    /// The file of a Unix socket that this process made.
    path: Option<PathBuf>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that is left behind is cleaned up by the next start.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens every socket that the settings ask for.
///
/// # Errors
/// `0A000` for an address that others could reach, `55006` a busy port, I/O errors; nothing is left
/// open then.
pub fn open(settings: &Settings) -> Result<Vec<Listener>> {
    let port = settings.int(setting::PORT) as u16;
    let mut listeners = Vec::new();
    for address in addresses(settings.str(setting::LISTEN_ADDRESSES))? {
        match tcp(SocketAddr::new(address, port)) {
            Ok(listener) => listeners.push(listener),
            // A machine without IPv6 still has its "localhost".
            Err(e)
                if [Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED]
                    .map(IpAddr::V6)
                    .contains(&address)
                    && e.code() != base::sqlstate::OBJECT_IN_USE => {}
            Err(e) => return Err(e),
        }
    }
    for directory in socket_directories(settings) {
        listeners.push(unix(Path::new(&directory), port, &Access::of(settings)?)?);
    }
    if listeners.is_empty() {
        return Err(err!(
            CONFIG_FILE_ERROR,
            "there is nothing to listen on: set listen_addresses or unix_socket_directories"
        ));
    }
    Ok(listeners)
}

/// Sockets that whoever started this process opened for it (the supervisor, or systemd by socket
/// activation); none if there are none. Call before any thread is started.
///
/// # Errors
/// A descriptor that is no listening socket.
pub fn inherited() -> Result<Vec<Listener>> {
    let mut given = ListenFd::from_env();
    let mut listeners = Vec::new();
    for index in 0..given.len() {
        let tcp =
            given.take_tcp_listener(index).ok().flatten().map(|l| (RawSocket::from(l), false));
        let mut unix = || given.take_unix_listener(index);
        let (socket, unix) = match tcp {
            Some(listener) => listener,
            None => match unix() {
                Ok(Some(listener)) => (RawSocket::from(OwnedFd::from(listener)), true),
                Ok(None) => continue,
                Err(e) => return Err(Error::io("take over a listening socket", &e)),
            },
        };
        let blocking = socket.set_nonblocking(false);
        blocking.map_err(|e| Error::io("take over a listening socket", &e))?;
        listeners.push(Listener { socket, unix, path: None });
    }
    Ok(listeners)
}

/// The addresses that a list names.
fn addresses(list: &str) -> Result<Vec<IpAddr>> {
    let mut all = Vec::new();
    for name in base::settings::split_names(list).unwrap_or_default() {
        let addresses: Vec<IpAddr> = match name.as_str() {
            "localhost" => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            "*" => vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
            name => vec![name.parse().map_err(|_| {
                err!(INVALID_PARAMETER_VALUE, "invalid listen address \"{name}\"")
                    .hint("use an IP address, localhost or *")
            })?],
        };
        all.extend(addresses);
    }
    Ok(all)
}

/// Refuses sockets that other machines can reach while nobody has a password: then every rule that lets
/// them in would let in anybody.
///
/// # Errors
/// `F0000`.
pub fn check_reach(listeners: &[Listener], catalog: &catalog::Snapshot) -> Result<()> {
    let open = |l: &Listener| {
        let address = l.address()?.ip();
        (!address.is_loopback()).then_some(address)
    };
    let has_password = || catalog.roles().any(|r| r.login && r.password.is_some());
    match listeners.iter().find_map(open) {
        Some(address) if !has_password() => Err(err!(
            CONFIG_FILE_ERROR,
            "will not listen on {address}, which other machines can reach: no role has a password"
        )
        .hint(
            "listen on 127.0.0.1 first, give a role one (ALTER ROLE postgres PASSWORD '...'), and add \
             lines for other machines to pg_hba.conf",
        )),
        _ => Ok(()),
    }
}

fn tcp(address: SocketAddr) -> Result<Listener> {
    let bind = || {
        let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        std::io::Result::Ok(socket)
    };
    match bind() {
        Ok(socket) => Ok(Listener { socket, unix: false, path: None }),
        Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => Err(busy(&address.into())),
        Err(e) => Err(Error::io(format_args!("listen on {address}"), &e)),
    }
}

fn busy(address: &SockAddr) -> Error {
    let what = match address.as_socket() {
        Some(a) => format!("port {} on {}", a.port(), a.ip()),
        None => "the socket".to_owned(),
    };
    err!(OBJECT_IN_USE, "{what} is in use")
        .hint("stop what uses it, or choose another port with -p")
}

/// The folders of `unix_socket_directories`; SET quotes what is no plain name.
pub(crate) fn socket_directories(settings: &Settings) -> Vec<String> {
    let all = settings.str(setting::UNIX_SOCKET_DIRECTORIES).split(',');
    let plain = all.map(|d| d.trim().trim_matches('"').to_owned());
    plain.filter(|d| !d.is_empty()).collect()
}

/// The Unix socket's path in a directory.
pub fn socket_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

/// The rights of a Unix socket's file.
struct Access {
    mode: u32,
    group: Option<nix::unistd::Gid>,
}

impl Access {
    /// As the settings say.
    ///
    /// # Errors
    /// `22023` for a group that is none.
    fn of(settings: &Settings) -> Result<Access> {
        let mode = settings.int(setting::UNIX_SOCKET_PERMISSIONS) as u32;
        let group = match settings.str(setting::UNIX_SOCKET_GROUP) {
            "" => None,
            name => Some(group(name)?),
        };
        Ok(Access { mode, group })
    }
}

/// A group of the system by its name or number.
fn group(name: &str) -> Result<nix::unistd::Gid> {
    if let Ok(number) = name.parse() {
        return Ok(nix::unistd::Gid::from_raw(number));
    }
    let found = nix::unistd::Group::from_name(name).ok().flatten();
    found
        .map(|group| group.gid)
        .ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "group \"{name}\" does not exist"))
}

fn unix(directory: &Path, port: u16, access: &Access) -> Result<Listener> {
    let path = socket_path(directory, port);
    if path.exists() {
        if UnixStream::connect(&path).is_ok() {
            return Err(err!(OBJECT_IN_USE, "socket \"{}\" is in use", path.display())
                .hint("stop what uses it, or choose another port with -p"));
        }
        // Nobody listens: a server that was killed left it.
        let _ = std::fs::remove_file(&path);
    }
    let failed = |e| Error::io(format_args!("listen on socket \"{}\"", path.display()), &e);
    let bind = || {
        let socket = RawSocket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(&path)?)?;
        if let Some(group) = access.group {
            nix::unistd::chown(&path, None, Some(group))?;
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(access.mode))?;
        std::io::Result::Ok(socket)
    };
    let socket = bind().map_err(failed)?;
    Ok(Listener { socket, unix: true, path: Some(path) })
}

impl Listener {
    /// Takes connections from here on.
    ///
    /// # Errors
    /// `55006` when somebody else took the port since it was bound.
    pub fn listen(&self) -> Result<()> {
        let address = self.socket.local_addr();
        let address = address.map_err(|e| Error::io("ask for a socket's address", &e))?;
        self.socket.listen(BACKLOG).map_err(|_| busy(&address))
    }

    /// Its address and port, unless it is a Unix socket.
    fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    /// Gives the socket what all that it accepts is to have.
    fn prepare(&self) -> std::io::Result<()> {
        if let Some(own) = self.address() {
            self.socket.set_tcp_nodelay(true)?;
            self.socket.set_keepalive(true)?;
            if own.ip().is_loopback() {
                spare_congestion_control(&self.socket);
            }
        }
        self.socket.set_nonblocking(true)
    }

    /// The descriptor, for a process that is to inherit it.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Has the workers accept for as long as the process lives.
///
/// # Errors
/// When the system refuses to prepare the socket.
pub fn start(server: &Arc<Server>, listener: Listener) -> Result<()> {
    listener.prepare().map_err(|e| Error::io("prepare a listening socket", &e))?;
    let own = listener.address().filter(|a| !a.ip().is_unspecified()).map(|a| (a.ip(), a.port()));
    let fd = listener.socket.as_raw_fd();
    let acceptor =
        Acceptor { server: server.clone(), listener, own, complained: AtomicU64::new(0) };
    server.workers.listen(fd, Box::new(acceptor));
    Ok(())
}

/// Nothing congests the way to a client on the same machine. Where the system's default is an algorithm that
/// paces what is sent (bbr), it costs a thousand such clients some 4 % of their transactions; reno is in every
/// kernel and does least. Accepted sockets have it from the listening one.
pub(crate) fn spare_congestion_control(socket: &impl AsFd) {
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(socket).set_tcp_congestion(b"reno"); // without it all works as well
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

/// One listening socket's.
struct Acceptor {
    server: Arc<Server>,
    /// Keeps the socket open.
    listener: Listener,
    /// Its address, if it is one address.
    own: Option<(IpAddr, u16)>,
    /// When the log was last told that the system refuses (microseconds since 2000).
    complained: AtomicU64,
}

/// The log is told at most so often that nobody can be let in.
const COMPLAINT_US: u64 = 1_000_000;

impl sched::Acceptor for Acceptor {
    fn accepted(&self, socket: OwnedFd, from: Option<SocketAddr>) {
        // Those beyond the limit are told so; those far beyond it are not listened to.
        let server = &self.server;
        if server.sessions.connections() > server.max_connections() * 2 + 100 {
            return;
        }
        let socket = match self.listener.unix {
            true => Socket::Unix(socket.into()),
            false => Socket::Tcp(socket.into()),
        };
        let client = from.map(|a| (a.ip(), a.port()));
        let peer = Peer { client, server: self.own.or_else(|| socket.own_address()) };
        if let Err(error) = Session::start(server, socket, peer) {
            log::error(0, &error, None);
        }
    }

    fn refused(&self, error: &std::io::Error) {
        let now = server::now() as u64;
        let before = self.complained.fetch_max(now, Ordering::Relaxed);
        if now.saturating_sub(before) >= COMPLAINT_US {
            let text = format_args!("could not accept new connection: {error}");
            log::write(log::Level::Warning, 0, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_a_list() {
        assert_eq!(addresses("127.0.0.1, ::1").unwrap().len(), 2);
        assert_eq!(addresses("localhost").unwrap().len(), 2);
        assert_eq!(addresses("").unwrap().len(), 0);
        assert_eq!(addresses("*").unwrap().len(), 2);
        assert_eq!(addresses("nonsense").unwrap_err().code().as_str(), "22023");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_accepted_over_loopback_is_neither_delayed_nor_paced() {
        let listener = tcp((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        // Something else than what is expected, wherever the kernel has it and whatever its default is.
        let _ = listener.socket.set_tcp_congestion(b"cubic");
        listener.prepare().unwrap();
        listener.listen().unwrap();
        let _client = std::net::TcpStream::connect(listener.address().unwrap()).unwrap();
        let accepted = loop {
            match listener.socket.accept() {
                Ok((accepted, _)) => break accepted,
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(e) => panic!("{e}"),
            }
        };
        let algorithm = accepted.tcp_congestion().unwrap();
        assert!(algorithm.starts_with(b"reno"), "{algorithm:?}");
        assert!(accepted.tcp_nodelay().unwrap() && accepted.keepalive().unwrap());
    }

    #[test]
    fn a_dead_servers_socket_is_replaced_and_a_live_ones_is_not() {
        let dir = std::env::temp_dir().join(format!("threadgres-socket-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let access = Access { mode: 0o770, group: None };
        let first = unix(&dir, 1, &access).unwrap();
        let mode = std::fs::metadata(socket_path(&dir, 1)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o770);
        first.listen().unwrap();
        assert_eq!(unix(&dir, 1, &access).err().unwrap().code().as_str(), "55006");
        drop(first);
        drop(std::os::unix::net::UnixListener::bind(socket_path(&dir, 1)).unwrap());
        assert!(socket_path(&dir, 1).exists());
        unix(&dir, 1, &access).unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }
}
