//! The compiler and its modules, in common for the whole server, and the clock that interrupts what runs.
//!
//! A module is compiled once, whatever number of functions and sessions use it: modules are known by the digest of
//! their bytes. The clock ([`Ticker`]) counts wasmtime's epoch on while functions run; compiled code looks at the
//! epoch at each loop and call, and hands control back when it has changed.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::Thread;
use std::time::Duration;

use base::{Error, Result, WaitEvent, err};
use sha2::{Digest, Sha256};
use wasmtime::{Config, Engine, InstancePre, Linker, Module};

use crate::host::{self, Guest};
use crate::source::{self, Source};

/// Stack that a module's functions may use.
const WASM_STACK_BYTES: usize = 256 << 10;
/// The stack of a call, of which the rest is for the functions that it imports.
const CALL_STACK_BYTES: usize = 384 << 10;
/// The (virtual) stack of a compiler's thread.
const COMPILER_STACK_BYTES: usize = 64 << 20;
/// The epoch's length.
const TICK: Duration = Duration::from_millis(1);
/// Ticks without a call after which the clock stops.
const TICKS_IDLE: u32 = 100;
/// Modules that are kept although no function is compiled with them.
const MODULES_KEPT: usize = 64;
/// Types of functions whose loops over rows are kept.
const LOOPS_MAX: usize = 1000;
/// Frames of a back trace.
const FRAMES_MAX: usize = 20;

/// A compiled module.
pub struct Code {
    /// No other has it.
    pub number: u64,
    /// The module.
    pub module: Module,
    /// The module with its imports resolved.
    pub linked: InstancePre<Guest>,
}

/// The compiled modules by digest, and those that were used last.
#[derive(Default)]
struct Modules {
    known: HashMap<[u8; 32], Weak<Code>>,
    kept: Vec<Arc<Code>>,
    /// See [`crate::each`]: by text. There are few types of functions.
    loops: HashMap<String, Module>,
}

/// The one engine of the server.
pub struct Runtime {
    engine: Engine,
    linker: Linker<Guest>,
    modules: Mutex<Modules>,
    ticker: Ticker,
}

fn configured() -> wasmtime::Result<(Engine, Linker<Guest>)> {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(CALL_STACK_BYTES)
        .wasm_backtrace_max_frames(NonZeroUsize::new(FRAMES_MAX))
        .wasm_memory64(false)
        .wasm_multi_memory(false);
    let engine = Engine::new(&config)?;
    let linker = host::linker(&engine)?;
    Ok((engine, linker))
}

/// The engine, made at the first use: a server that runs no WebAssembly has neither its signal handlers nor its clock.
///
/// # Errors
/// `XX000` when this processor or system has no support.
pub fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    static MAKING: Mutex<()> = Mutex::new(());
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let no_engine = |error| Error::internal(format!("could not start WebAssembly: {error}"));
    let (engine, linker) = configured().map_err(no_engine)?;
    let ticker = Ticker::start(engine.clone())
        .map_err(|error| Error::io("could not start the clock of WebAssembly", &error))?;
    let modules = Mutex::default();
    Ok(RUNTIME.get_or_init(|| Runtime { engine, linker, modules, ticker }))
}

impl Runtime {
    /// The module that a source stands for, compiled by a thread of its own if nobody has yet.
    ///
    /// # Errors
    /// `42P13` with the compiler's words; those of reading a file.
    pub fn module(&self, source: &str) -> Result<Arc<Code>> {
        let source = source::parse(source)?;
        self.elsewhere(move || self.known_or_compiled(source))
    }

    /// The module of a loop over rows.
    ///
    /// # Errors
    /// `42P13` when there is no such type of functions.
    pub fn loop_of(&self, text: String) -> Result<Module> {
        let modules = || self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = modules().loops.get(&text) {
            return Ok(known.clone());
        }
        let made = self.elsewhere(|| Module::new(&self.engine, &text).map_err(|e| invalid(&e)))?;
        let mut modules = modules();
        if modules.loops.len() >= LOOPS_MAX {
            modules.loops.clear();
        }
        modules.loops.insert(text, made.clone());
        Ok(made)
    }

    fn elsewhere<R: Send>(&self, compile: impl FnOnce() -> Result<R> + Send) -> Result<R> {
        // Module and digest are made elsewhere, so that the worker goes on with others, and on a stack that is large
        // enough for a compiler. A panic of the compiler is an error of this statement alone.
        sched::blocking(WaitEvent::ExtensionExtension, move || {
            std::thread::scope(|scope| {
                let compiler = std::thread::Builder::new().name("wasm compiler".to_owned());
                let compiler = compiler.stack_size(COMPILER_STACK_BYTES);
                let compiler = compiler.spawn_scoped(scope, compile);
                let compiler =
                    compiler.map_err(|error| Error::io("could not start a compiler", &error))?;
                compiler.join().unwrap_or_else(|_| {
                    Err(Error::internal("the compiler of WebAssembly has failed"))
                })
            })
        })
    }

    fn known_or_compiled(&self, source: Source) -> Result<Arc<Code>> {
        let bytes = match source {
            Source::Module(bytes) => bytes,
            Source::File(path) => source::read(&in_library(path))?,
        };
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        if let Some(code) = self.find(&digest) {
            return Ok(code);
        }
        let module = Module::new(&self.engine, &bytes).map_err(|error| invalid(&error))?;
        let linked = self.linker.instantiate_pre(&module).map_err(|error| invalid(&error))?;
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let code = Arc::new(Code { number, module, linked });
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        modules.known.retain(|_, code| code.strong_count() > 0);
        modules.known.insert(digest, Arc::downgrade(&code));
        if modules.kept.len() >= MODULES_KEPT {
            modules.kept.remove(0);
        }
        modules.kept.push(code.clone());
        Ok(code)
    }

    fn find(&self, digest: &[u8; 32]) -> Option<Arc<Code>> {
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        modules.known.get(digest)?.upgrade()
    }

    /// Functions run: the clock goes.
    #[inline]
    pub fn note_running(&self) {
        self.ticker.note_running();
    }
}

/// `$libdir/x` is a file beside the extensions' own.
fn in_library(path: PathBuf) -> PathBuf {
    let Ok(rest) = path.strip_prefix("$libdir") else { return path };
    let mut rest = rest.to_owned();
    if rest.extension().is_none() {
        rest.set_extension("wasm");
    }
    let directories = catalog::extension::control_path();
    let mut files = directories.split(':').map(|directory| Path::new(directory).join(&rest));
    files.find(|file| file.is_file()).unwrap_or(path)
}

fn invalid(error: &wasmtime::Error) -> Error {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    let (first, rest) = causes.split_first().map_or(("", &[][..]), |(f, r)| (f.as_str(), r));
    let error = err!(INVALID_FUNCTION_DEFINITION, "invalid WebAssembly module: {first}");
    match rest.is_empty() {
        true => error,
        false => error.detail(rest.join("\n")),
    }
}

/// The thread that counts the epoch while functions run.
struct Ticker {
    /// A function has run since the last tick.
    running: &'static AtomicBool,
    parked: &'static AtomicBool,
    thread: Thread,
}

impl Ticker {
    fn start(engine: Engine) -> std::io::Result<Ticker> {
        static RUNNING: AtomicBool = AtomicBool::new(false);
        static PARKED: AtomicBool = AtomicBool::new(false);
        let clock = std::thread::Builder::new().name("wasm clock".to_owned());
        let clock = clock.stack_size(64 << 10).spawn(move || {
            let mut idle = 0;
            loop {
                std::thread::sleep(TICK);
                engine.increment_epoch();
                idle = if RUNNING.swap(false, Ordering::SeqCst) { 0 } else { idle + 1 };
                if idle < TICKS_IDLE {
                    continue;
                }
                // Whoever begins to run afterwards sees that the clock stands.
                PARKED.store(true, Ordering::SeqCst);
                while !RUNNING.load(Ordering::SeqCst) {
                    std::thread::park();
                }
                PARKED.store(false, Ordering::SeqCst);
                idle = 0;
            }
        })?;
        let thread = clock.thread().clone();
        Ok(Ticker { running: &RUNNING, parked: &PARKED, thread })
    }

    #[inline]
    fn note_running(&self) {
        if self.running.load(Ordering::Relaxed) {
            return;
        }
        self.running.store(true, Ordering::SeqCst);
        if self.parked.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }
}
