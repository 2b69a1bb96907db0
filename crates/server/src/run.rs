//! The life of the server's process: start, serve, stop.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::settings::{publish_live, setting};
use base::{Error, Lsn, Result, WaitEvent};
use catalog::Catalog;
use exec::Engine;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sched::Workers;
use sd_notify::NotifyState;
use storage::Storage;
use txn::TxnManager;

use crate::archive_recovery::After;
use crate::client_auth::ClientAuth;
use crate::config::{Config, Overrides};
use crate::http::endpoint::address;
use crate::init::{self, InitOptions};
use crate::listener::Listener;
use crate::postmaster::Status;
use crate::server::Server;
use crate::signals::{self, Stop};
use crate::standby::{self, Standby};
use crate::{
    archive_recovery, control, directory, held, http, listener, log, postmaster, prewarmer,
    primary, resize, saved_statistics, supervisor, wait_sampler,
};

/// Serves a data directory (a missing or empty one is initialised first) until it is told to stop.
/// Listens where the settings say, unless listening sockets were inherited. `accept_loss_from`: where the log is
/// damaged, if what was committed after that may be lost.
///
/// # Errors
/// Everything that can be wrong before the server is ready, one clear line each; then nothing has
/// been touched.
pub fn serve(dir: &Path, overrides: Overrides, accept_loss_from: Option<Lsn>) -> Result<()> {
    signals::block()?;
    signals::report_sent_faults()?;
    crate::packages::register();
    let inherited = listener::inherited()?;
    let own_sockets = inherited.is_empty();
    let new = control::is_new(dir)?;
    let mut config = Config::load(dir, overrides)?;
    config.accept_loss_from = accept_loss_from;
    if !new {
        directory::check(dir)?;
        control::check_free(dir)?;
    }
    let listeners = if own_sockets { listener::open(&config.values.settings)? } else { inherited };
    let page = address(&config.values.settings)?.map(http::open).transpose()?;
    publish_live(&config.values.settings);
    logical::record::enable(config.values.settings.str(setting::WAL_LEVEL) == "logical");
    raise_descriptor_limit(config.values.settings.int(setting::MAX_CONNECTIONS) as u64);
    if new {
        init::init(dir, &InitOptions::default())?;
    }
    install_panic_hook();
    let settings = config.values.settings.clone();
    postmaster::begin(dir, &settings)?;
    let served = recover_and_serve(dir, config, listeners, page, own_sockets);
    postmaster::end(dir, &settings);
    served
}

/// The part of [`serve`] during which tools see that a server runs.
fn recover_and_serve(
    dir: &Path,
    config: Config,
    listeners: Vec<Listener>,
    page: Option<TcpListener>,
    own_sockets: bool,
) -> Result<()> {
    if archive_recovery::recover(dir, &config.values.settings)? == After::Shutdown {
        return Ok(());
    }
    let (server, socket_paths) = start(dir, config)?;
    listener::check_reach(&listeners, &server.engine.catalog.shared().current())?;
    if let Some(page) = page {
        server.http.start(&server, page);
    }
    for listener in &listeners {
        listener.listen()?;
    }
    for listener in listeners {
        listener::start(&server, listener)?;
    }
    control::write_address(dir, &server.values().0.settings);
    say_ready(&server);
    let is_ready = server.standby.is_ready();
    postmaster::tell(dir, if is_ready { Status::Ready } else { Status::Standby });
    let result = until_stopped(&server);
    if own_sockets {
        remove_sockets(&socket_paths);
    }
    result
}

/// Opens the layers from below upwards; the paths are those of the Unix sockets that the settings name.
/// Nobody listens yet: [`serve`] does more, and tests that look into the server do this.
///
/// # Errors
/// Faults of the directory; `publish_live` comes before.
pub fn start(dir: &Path, config: Config) -> Result<(Arc<Server>, Vec<PathBuf>)> {
    crate::packages::register();
    // A fault of the rules is said before the directory is opened.
    ClientAuth::load(dir, &config.values.settings)?;
    let txn = TxnManager::new(dir);
    let options = storage::Options {
        accept_loss_from: config.accept_loss_from,
        follows: standby::is_standby(dir),
        ..storage::Options::from_settings()
    };
    let storage = Storage::recover_with(dir, txn.participant(None), options)?;
    let follows = standby::is_standby(dir);
    standby::forget_promotion_request(dir);
    let oldest = standby::saved_oldest(dir, storage.wal.flushed());
    match follows {
        true => txn.attach_following(&storage, oldest),
        false => txn.attach(&storage),
    }
    let catalog = Catalog::open(&storage, &txn)?;
    let standby = match follows {
        true => Standby::following(storage.wal.flushed(), oldest.is_some()),
        false => Standby::default(),
    };
    let settings = &config.values.settings;
    let workers = Workers::start(settings.int(setting::WORKERS) as usize)?;
    let port = settings.int(setting::PORT) as u16;
    let directories = listener::socket_directories(settings);
    let sockets = directories.iter().map(|d| listener::socket_path(Path::new(d), port)).collect();
    let server = Arc::new(Server::new(
        Engine {
            storage,
            txn,
            catalog,
            languages: languages(),
            plans: Default::default(),
            routines: Default::default(),
            stored_plans: Default::default(),
            calls: &exec::CALLS,
            utilities: &ddl::Statements,
        },
        workers,
        config,
        standby,
    )?);
    held::listen(&server);
    server.resizer.start(&server, resize::work);
    saved_statistics::restore(&server);
    server.statistics.start(&server, saved_statistics::work);
    server.prewarmer.start(&server, prewarmer::work);
    if follows {
        log::info("entering standby mode");
        server.applier.start(&server, standby::apply::work);
        server.receiver.start(&server, standby::receiver::work);
    } else {
        primary::start(&server);
    }
    wait_sampler::start(&server);
    server.alerter.start(&server, crate::alerts::work);
    server.exporter.start(&server, crate::telemetry::work);
    Ok((server, sockets))
}

/// The languages of functions. Those whose engines this program was built without refuse their functions in words.
fn languages() -> exec::language::Languages {
    let mut languages = exec::language::Languages::default();
    languages.register(Arc::new(plpgsql::PlPgSql));
    #[cfg(feature = "javascript")]
    languages.register(Arc::new(javascript::JavaScript));
    #[cfg(not(feature = "javascript"))]
    languages.register(Arc::new(exec::absent_language::AbsentLanguage("javascript")));
    #[cfg(feature = "wasm")]
    languages.register(Arc::new(wasm::Wasm));
    #[cfg(not(feature = "wasm"))]
    languages.register(Arc::new(exec::absent_language::AbsentLanguage("wasm")));
    languages.register(Arc::new(java::Java));
    languages.register(Arc::new(exec::native::C));
    languages
}

/// One line: how to connect.
fn say_ready(server: &Server) {
    let (values, _) = server.values();
    let settings = &values.settings;
    let port = settings.int(setting::PORT);
    let addresses = settings.str(setting::LISTEN_ADDRESSES);
    let host = match addresses.split(',').next().map(str::trim).filter(|a| !a.is_empty()) {
        Some(address) => address.to_owned(),
        None => settings
            .str(setting::UNIX_SOCKET_DIRECTORIES)
            .split(',')
            .next()
            .unwrap_or("")
            .to_owned(),
    };
    println!("threadgres is ready: psql -h {host} -p {port} -U postgres postgres");
    supervisor::tell_manager(&[NotifyState::Ready]);
    if let Some(address) = server.http.address() {
        println!(
            "what it does: http://{address}/ (with the password in {})",
            http::login::token_file(server.engine.storage.dir()).display()
        );
    }
}

/// Ten thousand clients need ten thousand descriptors: takes all that the system allows.
pub(crate) fn raise_descriptor_limit(connections: u64) {
    const OWN: u64 = 2000;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    if soft < hard {
        // A limit that can't be raised is warned of below.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    if hard < connections + OWN {
        log::write(
            log::Level::Warning,
            0,
            format_args!(
                "the system allows {hard} open files: fewer than max_connections = {connections} needs; \
                 raise the limit (ulimit -n) or lower max_connections"
            ),
        );
    }
}

/// Panics go to the log with their stack; the boundary that catches them says where they end.
fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let stack = std::backtrace::Backtrace::force_capture();
        let thread = std::thread::current();
        let text = format!("{info}\n\tTHREAD:  {}", thread.name().unwrap_or("unnamed"));
        let short = text.clone();
        // The functions' names are looked up on a thread of its own: what that keeps in memory for the
        // next time, some 50 MB, is no session's.
        let write = move || log::write(log::Level::Panic, 0, format_args!("{text}\n{stack}"));
        match std::thread::Builder::new().name("stack".to_owned()).spawn(write) {
            Ok(writer) => drop(writer.join()),
            Err(_) => log::write(log::Level::Panic, 0, short),
        }
    }));
}

/// Waits for the order to stop and obeys. A stronger order may follow a weaker one.
fn until_stopped(server: &Arc<Server>) -> Result<()> {
    let mut stop = signals::wait(server);
    server.stop_admitting();
    postmaster::tell(server.engine.storage.dir(), Status::Stopping);
    log::info(format_args!("received {stop:?} shutdown request"));
    if stop != Stop::Immediate {
        stop = drain(server, stop);
    }
    if stop == Stop::Immediate {
        server.engine.storage.abandon();
        return Ok(());
    }
    server.receiver.stop();
    server.applier.stop();
    server.autovacuum.stop();
    server.subscriber.stop();
    server.partitions.stop();
    server.archiver.stop();
    server.resizer.stop();
    server.statistics.stop();
    server.alerter.stop();
    server.exporter.stop();
    server.prewarmer.stop();
    server.profiler.thread.stop();
    server.http.stop();
    server.workers.shutdown();
    saved_statistics::save(server);
    prewarmer::save(server);
    if !server.standby.follows() {
        server.engine.catalog.sequences.flush()?;
    }
    server.engine.storage.shutdown()?;
    log::info("the database system is shut down");
    Ok(())
}

/// Waits until all sessions have ended.
fn drain(server: &Arc<Server>, mut stop: Stop) -> Stop {
    let (send, orders) = std::sync::mpsc::channel();
    let listening = server.clone();
    sched::spawn_thread("signals", move || while send.send(signals::wait(&listening)).is_ok() {});
    let mut told = Instant::now() - Duration::from_secs(60);
    while server.sessions.connections() > 0 {
        if stop == Stop::Fast && told.elapsed() > Duration::from_secs(1) {
            // Again and again: a session may have begun to wait just after it was told.
            server.sessions.terminate_all(&server.workers);
            told = Instant::now();
        }
        let wait = || orders.recv_timeout(Duration::from_millis(10));
        if let Ok(order) = sched::io_wait(WaitEvent::IPCShutdownDrain, wait) {
            stop = stop.max(order);
        }
        if stop == Stop::Immediate {
            break;
        }
    }
    stop
}

fn remove_sockets(paths: &[PathBuf]) {
    for path in paths {
        // The next start cleans up what can't be removed.
        let _ = std::fs::remove_file(path);
    }
}

/// An error as the command line prints it: one line, with what to do.
pub fn explain(error: &Error) -> String {
    let fields = error.fields();
    let mut line = fields.message.clone();
    if let Some(detail) = &fields.detail {
        line += &format!(" ({detail})");
    }
    if let Some(hint) = &fields.hint {
        line += &format!("; {hint}");
    }
    line.replace('\n', " ")
}
