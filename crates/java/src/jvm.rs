//! The one JVM of the process, and its threads as JNI sees them.
//!
//! ```text
//!   load ──► library ──► JNI_CreateJavaVM ──► Boot (defined by JNI) ──► Bridge: call, interrupt, forget, ended
//!   a thread of the pool: attach ──► Attached::call(job) ──► bytes           Bridge.request ──► `Asks::ask`
//! ```
//!
//! * Nothing is linked: the library is opened at the first need, and never closed.
//! * Only threads that were made for it run Java: a coroutine's stack is not what a JVM takes a stack for.
//! * The JVM takes the signals of its threads' faults for itself (it makes its checks for null and its safe points of
//!   them) and hands those of others to the handlers that were there before; it leaves all other signals alone
//!   (`-Xrs`).
//! * A JVM that ends would end the process. Ends in its beginning, and ends that Java code asks for, are kept waiting
//!   for ever by [`on_exit`]; the JVM counts as dead from then on.
//!
//! Source: Java Native Interface Specification, chapters 4 and 5.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc;

use base::{Error, Result, err};
use jni_sys as sys;

use crate::locate::Found;
use crate::{classes, compile};

/// The version of JNI that is asked for.
const VERSION: sys::jint = sys::JNI_VERSION_1_8;

/// The stack of the thread that starts the JVM.
const STARTER_STACK_BYTES: usize = 8 << 20;

/// The JVM's states: being made, made, ended.
const MAKING: u8 = 0;
const RUNNING: u8 = 1;
const ENDED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(MAKING);

/// Called when Java code has ended the JVM.
static ON_END: std::sync::OnceLock<fn()> = std::sync::OnceLock::new();

/// The answerer of what Java asks on a thread of the pool.
pub trait Asks {
    /// Gives the answer to a question to `answered`, if anybody is there to answer. Meanwhile jobs may be run on the
    /// thread.
    fn ask(&self, question: Vec<u8>, thread: OnThread, answered: &mut dyn FnMut(&[u8]));
}

thread_local! {
    static ASKED: RefCell<Option<(Box<dyn Asks>, OnThread)>> = const { RefCell::new(None) };
}

/// How a JVM is made.
pub struct Options {
    /// Its library.
    pub found: Found,
    /// `-Xmx`, in MB.
    pub heap_mb: i64,
    /// Options of the user's, separated by blanks.
    pub more: String,
    /// See [`Jvm`].
    pub on_end: fn(),
}

/// The JVM.
pub struct Jvm {
    vm: *mut sys::JavaVM,
    bridge: sys::jclass,
    call: sys::jmethodID,
    interrupt: sys::jmethodID,
    forget: sys::jmethodID,
    ended: sys::jmethodID,
}

// SAFETY: the JVM's own pointer, a global reference and method ids may be used by all threads (JNI, chapter 5:
// "The JavaVM interface pointer", "Global references"); the rest of JNI is reached by an `Attached` of one thread.
unsafe impl Send for Jvm {}
// SAFETY: as above.
unsafe impl Sync for Jvm {}

/// Whether Java code has ended the JVM.
pub fn has_ended() -> bool {
    STATE.load(Ordering::Acquire) == ENDED
}

/// The JVM is about to end the process. It never returns, so that it doesn't.
extern "system" fn on_exit(_code: sys::jint) {
    stay();
}

/// The JVM ends because of a fault, for which the process has to end, or because it could not begin.
extern "system" fn on_abort() {
    if STATE.load(Ordering::Acquire) == MAKING {
        stay();
    }
}

fn stay() {
    STATE.store(ENDED, Ordering::Release);
    if let Some(told) = ON_END.get() {
        told();
    }
    loop {
        std::thread::park();
    }
}

fn arguments(options: &Options) -> Vec<String> {
    let version = options.found.version.unwrap_or(11);
    let mut out = vec![
        format!("-Xmx{}m", options.heap_mb),
        "-Xrs".to_owned(),
        "-XX:-UsePerfData".to_owned(),
        "-Djava.awt.headless=true".to_owned(),
    ];
    if (18..24).contains(&version) {
        out.push("-Djava.security.manager=allow".to_owned());
    }
    if version >= 22 {
        out.push("--enable-native-access=ALL-UNNAMED".to_owned());
    }
    out.extend(options.more.split_whitespace().map(str::to_owned));
    out
}

/// Loads and starts the JVM, on a thread of its own. It is called once.
///
/// # Errors
/// `58P01` when the library can't be loaded; `58000` when the JVM does not start, with what it says.
pub fn start(options: Options) -> Result<Jvm> {
    if has_ended() {
        return Err(not_started("It has ended, and can be started again only with the server."));
    }
    let _ = ON_END.set(options.on_end);
    let (tell, told) = mpsc::channel();
    let starter = std::thread::Builder::new().name("java starter".to_owned());
    let starter = starter.stack_size(STARTER_STACK_BYTES).spawn(move || {
        without_signal_stack();
        // A starter that the JVM wants to end stays for ever in `on_exit`.
        let _ = tell.send(create(&options));
    });
    starter.map_err(|error| Error::io("could not start a thread for Java", &error))?;
    loop {
        match told.recv_timeout(std::time::Duration::from_millis(20)) {
            Ok(made) => {
                if made.is_ok() {
                    STATE.store(RUNNING, Ordering::Release);
                }
                return made;
            }
            Err(mpsc::RecvTimeoutError::Timeout) if !has_ended() => {}
            Err(_) => {
                return Err(not_started(
                    "It ended in its beginning; the server's log has what it said.",
                ));
            }
        }
    }
}

fn not_started(detail: impl Into<String>) -> Error {
    err!(SYSTEM_ERROR, "the Java virtual machine did not start").detail(detail)
}

fn create(options: &Options) -> Result<Jvm> {
    let path: &Path = &options.found.library;
    let unusable = |error: libloading::Error| {
        err!(UNDEFINED_FILE, "could not load \"{}\": {error}", path.display())
    };
    type Create = unsafe extern "system" fn(
        *mut *mut sys::JavaVM,
        *mut *mut c_void,
        *mut c_void,
    ) -> sys::jint;
    // SAFETY: the library is a JVM's, whose constructors make nothing that others see; it stays for ever.
    let library = unsafe { libloading::Library::new(path) }.map_err(unusable)?;
    // SAFETY: the symbol has this type by the specification.
    let make: Create = unsafe { *library.get::<Create>(b"JNI_CreateJavaVM\0").map_err(unusable)? };
    std::mem::forget(library);
    let texts = arguments(options);
    let mut kept = Vec::new();
    for text in &texts {
        kept.push(
            CString::new(text.as_str()).map_err(|_| not_started("An option has a zero byte."))?,
        );
    }
    let option = |text: &CStr, extra: *mut c_void| sys::JavaVMOption {
        optionString: text.as_ptr().cast_mut(),
        extraInfo: extra,
    };
    let mut list: Vec<sys::JavaVMOption> =
        kept.iter().map(|text| option(text, ptr::null_mut())).collect();
    list.push(option(c"exit", on_exit as *mut c_void));
    list.push(option(c"abort", on_abort as *mut c_void));
    let mut init = sys::JavaVMInitArgs {
        version: VERSION,
        nOptions: list.len() as sys::jint,
        options: list.as_mut_ptr(),
        ignoreUnrecognized: false,
    };
    let (mut vm, mut env) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: all pointers are to live values of the types that the specification names.
    let result = unsafe { make(&raw mut vm, &raw mut env, (&raw mut init).cast()) };
    if result != sys::JNI_OK {
        return Err(not_started(format!(
            "JNI_CreateJavaVM gave {result} with the options {}.",
            texts.join(" ")
        )));
    }
    let env = Env(env.cast());
    let jvm = env.prepare(vm);
    // SAFETY: this thread is attached, by having made the JVM, and has no frames of Java left.
    unsafe { ((**vm).v1_4.DetachCurrentThread)(vm) };
    jvm
}

/// Switches off the alternative stack that the standard library gives each thread for its handler of faults: it is
/// too small for a JVM's, which has its own ways with the end of a stack.
fn without_signal_stack() {
    let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the thread is not on that stack; the standard library tells its own by its address when it ends.
    unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) };
}

/// JNI's functions for the running thread.
#[derive(Clone, Copy)]
pub(crate) struct Env(pub(crate) *mut sys::JNIEnv);

/// Calls a function of JNI's table.
macro_rules! jni {
    ($env:expr, $name:ident $(, $arg:expr)*) => {
        // The table is the JVM's and lives as long; each call says what else must hold.
        ((**$env.0).v1_6.$name)($env.0 $(, $arg)*)
    };
}
pub(crate) use jni;

impl Env {
    /// The exception that is pending, which is taken away, in words.
    pub(crate) fn exception(self) -> Option<String> {
        // SAFETY: these may be called with an exception pending; the reference is used before it is deleted.
        unsafe {
            let thrown = jni!(self, ExceptionOccurred);
            if thrown.is_null() {
                return None;
            }
            jni!(self, ExceptionClear);
            let class = jni!(self, GetObjectClass, thrown);
            let method = jni!(
                self,
                GetMethodID,
                class,
                c"toString".as_ptr(),
                c"()Ljava/lang/String;".as_ptr()
            );
            let text = jni!(self, CallObjectMethodA, thrown, method, ptr::null());
            jni!(self, ExceptionClear);
            let said = self.text(text);
            jni!(self, DeleteLocalRef, text);
            jni!(self, DeleteLocalRef, class);
            jni!(self, DeleteLocalRef, thrown);
            Some(said)
        }
    }

    fn text(self, string: sys::jstring) -> String {
        if string.is_null() {
            return "an exception".to_owned();
        }
        // SAFETY: the reference is to a string; its characters are copied before they are released.
        unsafe {
            let length = jni!(self, GetStringLength, string);
            let mut units = vec![0u16; usize::try_from(length).unwrap_or(0)];
            jni!(self, GetStringRegion, string, 0, length, units.as_mut_ptr());
            String::from_utf16_lossy(&units)
        }
    }

    pub(crate) fn checked<R>(self, value: R, doing: &str) -> Result<R> {
        match self.exception() {
            None => Ok(value),
            Some(said) => Err(not_started(format!("{doing}: {said}"))),
        }
    }

    pub(crate) fn method(
        self,
        class: sys::jclass,
        name: &CStr,
        signature: &CStr,
    ) -> Result<sys::jmethodID> {
        // SAFETY: the reference is to a class, the texts end with a zero.
        let found =
            unsafe { jni!(self, GetStaticMethodID, class, name.as_ptr(), signature.as_ptr()) };
        self.checked(found, "a method is missing")
    }

    pub(crate) fn class(self, name: &CStr) -> Result<sys::jclass> {
        // SAFETY: the text ends with a zero.
        let found = unsafe { jni!(self, FindClass, name.as_ptr()) };
        self.checked(found, "a class is missing")
    }

    pub(crate) fn object(
        self,
        class: sys::jclass,
        method: sys::jmethodID,
        args: &[sys::jvalue],
    ) -> Result<sys::jobject> {
        // SAFETY: the method is the class's, and static; the callers give as many values as it takes, of its types.
        let given = unsafe { jni!(self, CallStaticObjectMethodA, class, method, args.as_ptr()) };
        self.checked(given, "a call failed")
    }

    /// A new array of Java's with these bytes; null, with an exception pending, when there is no memory.
    fn bytes(self, from: &[u8]) -> sys::jbyteArray {
        let Ok(length) = sys::jsize::try_from(from.len()) else { return ptr::null_mut() };
        // SAFETY: the region is the whole array.
        unsafe {
            let array = jni!(self, NewByteArray, length);
            if !array.is_null() {
                jni!(self, SetByteArrayRegion, array, 0, length, from.as_ptr().cast());
            }
            array
        }
    }

    /// A copy of an array of Java's.
    pub(crate) fn copied(self, array: sys::jbyteArray) -> Vec<u8> {
        // SAFETY: the reference is to an array of bytes, and the region is all of it.
        unsafe {
            let length = jni!(self, GetArrayLength, array);
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            jni!(self, GetByteArrayRegion, array, 0, length, bytes.as_mut_ptr().cast());
            bytes
        }
    }

    /// Brings the bridge's classes in, and connects it.
    fn prepare(self, vm: *mut sys::JavaVM) -> Result<Jvm> {
        let made;
        let (boot, others) = match classes::BOOT.is_empty() {
            false => (classes::BOOT, classes::OTHERS),
            true => {
                made = compile::compiled(self)?;
                (&made.0[..], &made.1[..])
            }
        };
        let loaders = self.class(c"java/lang/ClassLoader")?;
        let system = self.method(loaders, c"getSystemClassLoader", c"()Ljava/lang/ClassLoader;")?;
        let loader = self.object(loaders, system, &[])?;
        let length = boot.len() as sys::jsize;
        // SAFETY: the bytes are a class file's, which the JVM verifies.
        let boot = unsafe {
            jni!(
                self,
                DefineClass,
                c"threadgres/Boot".as_ptr(),
                loader,
                boot.as_ptr().cast(),
                length
            )
        };
        let boot = self.checked(boot, "the first class can't be defined")?;
        let start = self.method(boot, c"start", c"([B)Ljava/lang/Class;")?;
        let packed = self.checked(self.bytes(others), "no memory")?;
        let bridge = self.object(boot, start, &[sys::jvalue { l: packed }])?;
        let native = sys::JNINativeMethod {
            name: c"request".as_ptr().cast_mut(),
            signature: c"([B)[B".as_ptr().cast_mut(),
            fnPtr: request as *mut c_void,
        };
        // SAFETY: the function has the type that the signature says.
        unsafe { jni!(self, RegisterNatives, bridge, &raw const native, 1) };
        self.checked((), "the bridge can't be connected")?;
        // SAFETY: a local reference to a class.
        let bridge = unsafe { jni!(self, NewGlobalRef, bridge) };
        let start = self.method(bridge, c"start", c"()V")?;
        // SAFETY: the method is static and takes nothing.
        unsafe { jni!(self, CallStaticVoidMethodA, bridge, start, ptr::null()) };
        self.checked((), "the bridge can't be started")?;
        Ok(Jvm {
            vm,
            bridge,
            call: self.method(bridge, c"call", c"(JJ[B)[B")?,
            interrupt: self.method(bridge, c"interrupt", c"(JJ)V")?,
            forget: self.method(bridge, c"forget", c"(I)V")?,
            ended: self.method(bridge, c"ended", c"(J)V")?,
        })
    }
}

/// `Bridge.request`: asks whoever the thread works for.
extern "system" fn request(
    env: *mut sys::JNIEnv,
    _class: sys::jclass,
    question: sys::jbyteArray,
) -> sys::jbyteArray {
    let env = Env(env);
    // A panic must not unwind into Java's frames.
    let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let question = env.copied(question);
        let mut answer = ptr::null_mut();
        ASKED.with_borrow(|asked| {
            if let Some((asked, thread)) = asked {
                asked.ask(question, *thread, &mut |bytes| answer = env.bytes(bytes));
            }
        });
        answer
    }));
    asked.unwrap_or(ptr::null_mut())
}

/// The running thread as one of the JVM's.
#[derive(Clone, Copy)]
pub struct OnThread {
    jvm: &'static Jvm,
    env: Env,
}

/// The same until this is dropped.
pub struct Attached(pub OnThread);

impl Jvm {
    /// Makes the running thread one of the JVM's. `asks` answers what is asked on it.
    ///
    /// # Errors
    /// `53000` when the JVM refuses.
    pub fn attach(&'static self, name: &str, asks: Option<Box<dyn Asks>>) -> Result<Attached> {
        without_signal_stack();
        let name = CString::new(name).unwrap_or_default();
        let mut args = sys::JavaVMAttachArgs {
            version: VERSION,
            name: name.as_ptr().cast::<c_char>().cast_mut(),
            group: ptr::null_mut(),
        };
        let mut env = ptr::null_mut();
        // SAFETY: the JVM lives; all pointers are to live values of the types that the specification names.
        let result = unsafe {
            ((**self.vm).v1_4.AttachCurrentThreadAsDaemon)(
                self.vm,
                &raw mut env,
                (&raw mut args).cast(),
            )
        };
        if result != sys::JNI_OK {
            return Err(err!(INSUFFICIENT_RESOURCES, "Java takes no more threads ({result})"));
        }
        let thread = OnThread { jvm: self, env: Env(env.cast()) };
        ASKED.set(asks.map(|asks| (asks, thread)));
        Ok(Attached(thread))
    }
}

impl OnThread {
    /// Runs a job; None when Java had no memory even for saying so.
    pub fn call(&self, lane: i64, serial: i64, job: &[u8]) -> Option<Vec<u8>> {
        let job = self.env.bytes(job);
        if job.is_null() {
            self.env.exception();
            return None;
        }
        let args = [sys::jvalue { j: lane }, sys::jvalue { j: serial }, sys::jvalue { l: job }];
        let (bridge, call) = (self.jvm.bridge, self.jvm.call);
        // SAFETY: the method is static and takes these; local references are deleted after their last use.
        unsafe {
            let done = jni!(self.env, CallStaticObjectMethodA, bridge, call, args.as_ptr());
            jni!(self.env, DeleteLocalRef, job);
            if self.env.exception().is_some() || done.is_null() {
                return None;
            }
            let out = self.env.copied(done);
            jni!(self.env, DeleteLocalRef, done);
            Some(out)
        }
    }

    fn void(&self, method: sys::jmethodID, args: &[sys::jvalue]) {
        // SAFETY: the callers below give what the method takes.
        unsafe { jni!(self.env, CallStaticVoidMethodA, self.jvm.bridge, method, args.as_ptr()) };
        self.env.exception();
    }

    /// Interrupts a thread of the pool, if it is still at this call.
    pub fn interrupt(&self, lane: i64, serial: i64) {
        self.void(self.jvm.interrupt, &[sys::jvalue { j: lane }, sys::jvalue { j: serial }]);
    }

    /// Drops a routine or loader.
    pub fn forget(&self, number: i32) {
        self.void(self.jvm.forget, &[sys::jvalue { i: number }]);
    }

    /// The thread of this number leaves the pool.
    pub fn ended(&self, lane: i64) {
        self.void(self.jvm.ended, &[sys::jvalue { j: lane }]);
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        drop(ASKED.take());
        // SAFETY: this thread is attached and has no frames of Java.
        unsafe { ((**self.0.jvm.vm).v1_4.DetachCurrentThread)(self.0.jvm.vm) };
    }
}
