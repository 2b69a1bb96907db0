//! The state that all sessions share.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use base::settings::{ServerWide, publish_live, publish_server_wide, setting};
use base::{Error, Result, WaitEvent};
use exec::Engine;
use sched::lwlock::{parse_shared_limits, set_shared_limits};
use sched::{Mutex, Workers, clock};

use crate::background::Background;
use crate::client_auth::ClientAuth;
use crate::client_auth::failures::Failures;
use crate::config::{Config, Entry, Values};
use crate::counters::Counters;
use crate::history::History;
use crate::http::endpoint::Endpoint;
use crate::notify::Channels;
use crate::profiler::Profiler;
use crate::registry::Registry;

/// Sessions' secrets that a thread reads at a time.
const SECRETS: usize = 32;

thread_local! {
    static SPARE_SECRETS: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
}

#[inline(never)]
fn take_secret() -> Option<i32> {
    SPARE_SECRETS.with_borrow_mut(Vec::pop)
}

/// Keeps all but one, which it returns.
#[inline(never)]
fn keep_secrets(bytes: &[u8; 4 * SECRETS]) -> i32 {
    let (numbers, _) = bytes.as_chunks::<4>();
    let mut numbers = numbers.iter().map(|n| i32::from_ne_bytes(*n));
    let first = numbers.next().unwrap_or_default();
    SPARE_SECRETS.with_borrow_mut(|spare| spare.extend(numbers));
    first
}

/// Seconds from 1970-01-01 to 2000-01-01.
const EPOCH_SECONDS: i64 = 946_684_800;

/// Now, in microseconds since 2000-01-01 UTC.
pub fn now() -> i64 {
    at(clock::now_ns())
}

/// The same of a time that is about now.
pub fn at(ns: u64) -> i64 {
    (clock::wall_ns(ns) / 1000) as i64 - EPOCH_SECONDS * 1_000_000
}

/// A time in microseconds since 2000-01-01 UTC.
pub fn micros(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as i64 - EPOCH_SECONDS * 1_000_000
}

/// See the module's documentation.
pub struct Server {
    /// Storage, transactions, catalog.
    pub engine: Engine,
    /// All sessions.
    pub sessions: Registry,
    /// Those who run them.
    pub workers: Arc<Workers>,
    /// Channels and their listeners.
    pub channels: Channels,
    /// Snapshots for others to take over.
    pub exports: crate::exports::Exports,
    /// Transactions that are prepared.
    pub prepared: crate::prepared::PreparedTransactions,
    /// Gives the log's segments to the archive.
    pub archiver: Background,
    /// The archiver's counts.
    pub archived: crate::archived::Counts,
    /// Following another server.
    pub standby: crate::standby::Standby,
    /// Receives the log of the server that is followed.
    pub receiver: Background,
    /// Applies it.
    pub applier: Background,
    /// Those who send the log.
    pub senders: crate::senders::Senders,
    /// Counts of the changes and reads of each table.
    pub counters: Counters,
    /// The background vacuum.
    pub autovacuum: Background,
    /// Gives the server the size that the settings say.
    pub resizer: Background,
    /// Writes the statistics that outlive the server.
    pub statistics: Background,
    /// Reads pages at the start, and notes which are in memory.
    pub prewarmer: Background,
    /// Makes partitions by interval ahead of time and takes old ones away.
    pub partitions: Background,
    /// Begins workers of subscriptions.
    pub subscriber: Background,
    /// Those workers.
    pub subscriptions: crate::subscription::registry::Workers,
    /// The past, second by second.
    pub history: History,
    /// The profile of where the time goes.
    pub profiler: Profiler,
    /// Conditions that last.
    pub alerts: crate::alerts::board::Alerts,
    /// Looks at rules, and tells others of alerts.
    pub alerter: Background,
    /// Spans that wait to be sent.
    pub spans: crate::telemetry::spans::Spans,
    /// Posts metrics and spans.
    pub exporter: Background,
    /// The status page.
    pub http: Endpoint,
    /// When the server started.
    pub started: i64,
    /// Failed logins.
    pub failures: Failures,
    /// Makes what is shown to roles that there are not.
    pub mock_secret: [u8; 32],
    /// See [`Server::client_auth`].
    client_auth: Mutex<Arc<ClientAuth>>,
    config: Mutex<Config>,
    /// Grows with every reload, so that sessions notice.
    generation: AtomicU64,
    stopping: AtomicBool,
    random: File,
}

/// Makes the settings known to the layers below.
fn publish(config: &Config) {
    let settings = &config.values.settings;
    publish_live(settings);
    publish_server_wide(ServerWide { settings: settings.clone(), origins: config.origins.clone() });
    catalog::extension::set_control_path(settings.str(setting::EXTENSION_CONTROL_PATH));
    // It was checked when it was read.
    let limits = parse_shared_limits(settings.str(setting::LWLOCK_SHARED_LIMITS));
    set_shared_limits(&limits.unwrap_or_default());
    // As that was.
    let faults = base::faults::parse(settings.str(setting::DEBUG_FAULTS));
    base::faults::arm(&faults.unwrap_or_default());
}

impl Server {
    /// Puts the parts together.
    ///
    /// # Errors
    /// When there is no source of random numbers.
    pub fn new(
        engine: Engine,
        workers: Arc<Workers>,
        config: Config,
        standby: crate::standby::Standby,
    ) -> Result<Server> {
        publish(&config);
        let failed = |e| Error::io("open /dev/urandom", &e);
        let mut random = File::open("/dev/urandom").map_err(failed)?;
        let mut mock_secret = [0; 32];
        random.read_exact(&mut mock_secret).map_err(failed)?;
        let client_auth = ClientAuth::load(config.dir(), &config.values.settings)?;
        engine.txn.locks.set_log(crate::log::session);
        let senders = crate::senders::Senders::default();
        senders.configure(&config.values.settings, &engine.storage);
        let prepared = crate::prepared::PreparedTransactions::restored(&engine.catalog);
        Ok(Server {
            engine,
            sessions: Registry::default(),
            workers,
            channels: Channels::default(),
            exports: crate::exports::Exports::default(),
            prepared,
            standby,
            receiver: Background::new("walreceiver"),
            applier: Background::new("startup"),
            senders,
            archiver: Background::new("archiver"),
            archived: Default::default(),
            counters: Counters::default(),
            autovacuum: Background::new("autovacuum launcher"),
            resizer: Background::new("resizer"),
            statistics: Background::new("statistics writer"),
            prewarmer: Background::new("autoprewarm leader"),
            partitions: Background::new("partition maintenance"),
            subscriber: Background::new("logical replication launcher"),
            subscriptions: crate::subscription::registry::Workers::default(),
            history: History::default(),
            profiler: Profiler::default(),
            alerts: Default::default(),
            alerter: Background::new("alerts"),
            spans: Default::default(),
            exporter: Background::new("telemetry exporter"),
            http: Endpoint::default(),
            started: now(),
            failures: Failures::default(),
            mock_secret,
            client_auth: Mutex::new(WaitEvent::LWLockOther, Arc::new(client_auth)),
            config: Mutex::new(WaitEvent::LWLockOther, config),
            generation: AtomicU64::new(1),
            stopping: AtomicBool::new(false),
            random,
        })
    }

    /// The settings in force and their generation.
    pub fn values(&self) -> (Arc<Values>, u64) {
        let config = self.config.lock();
        (config.values.clone(), self.generation.load(Ordering::Acquire))
    }

    /// The settings' generation.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The rules of authentication.
    pub fn client_auth(&self) -> Arc<ClientAuth> {
        self.client_auth.lock().clone()
    }

    /// The data directory.
    pub fn directory(&self) -> std::path::PathBuf {
        self.config.lock().dir().to_owned()
    }

    /// The lines of the settings' files as they are now.
    ///
    /// # Errors
    /// As [`Config::file_entries`].
    pub fn file_entries(&self) -> Result<Vec<Entry>> {
        self.config.lock().file_entries()
    }

    /// Reads the settings' files again.
    ///
    /// # Errors
    /// As [`Config::reload`].
    pub fn reload(&self) -> Result<()> {
        if self.standby.follows()
            && crate::standby::is_promotion_requested(self.engine.storage.dir())
        {
            self.standby.ask_promotion()?;
        }
        let mut config = self.config.lock();
        config.reload()?;
        publish(&config);
        self.senders.configure(&config.values.settings, &self.engine.storage);
        // Rules that mean nothing let nobody in or out: the old ones stay.
        match ClientAuth::load(config.dir(), &config.values.settings) {
            Ok(client_auth) => *self.client_auth.lock() = Arc::new(client_auth),
            Err(error) => {
                crate::log::error(0, &error, None);
                crate::log::info("the rules of pg_hba.conf and the certificates stay as they were");
            }
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.history.note("setting", 0, "the settings' files were read again");
        self.resizer.wake();
        self.alerter.wake();
        self.exporter.wake();
        Ok(())
    }

    /// ALTER SYSTEM.
    ///
    /// # Errors
    /// As [`Config::alter_system`].
    pub fn alter_system(&self, name: Option<&str>, value: Option<&str>) -> Result<()> {
        self.config.lock().alter_system(name, value)?;
        let text = match (name, value) {
            (Some(name), Some(value)) => {
                format!("ALTER SYSTEM SET {name} = {}", sql::secrets::shown_setting(name, value))
            }
            (Some(name), None) => format!("ALTER SYSTEM RESET {name}"),
            (None, _) => "ALTER SYSTEM RESET ALL".to_owned(),
        };
        self.history.note("setting", 0, &text);
        Ok(())
    }

    /// Most sessions at a time.
    pub fn max_connections(&self) -> usize {
        base::settings::live_int(setting::MAX_CONNECTIONS) as usize
    }

    /// A secret for a session.
    pub fn secret(&self) -> i32 {
        take_secret().unwrap_or_else(|| {
            let mut bytes = [0; 4 * SECRETS];
            // The device doesn't fail for so few bytes; if it did, guessable secrets allow no more than to
            // cancel statements.
            let _ = (&self.random).read_exact(&mut bytes);
            keep_secrets(&bytes)
        })
    }

    /// Random bytes.
    ///
    /// # Errors
    /// When there are none.
    pub fn random<const N: usize>(&self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        let read = (&self.random).read_exact(&mut bytes);
        read.map_err(|e| Error::io("read /dev/urandom", &e))?;
        Ok(bytes)
    }

    /// Settings mean something else than before, without having changed: the standby has become a primary.
    pub fn renew_settings(&self) {
        let (values, _) = self.values();
        self.senders.configure(&values.settings, &self.engine.storage);
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.history.note("setting", 0, "the standby has become a primary");
    }

    /// No new sessions from here on.
    pub fn stop_admitting(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether the server is on its way down.
    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}
