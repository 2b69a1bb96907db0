//! The classes of `java/` in the program: compiled when it was built, or their sources.

/// The class `threadgres.Boot`; empty where the program was built without a compiler for Java.
pub static BOOT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/boot.class"));

/// All others, as `Boot.start` takes them.
pub static OTHERS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.bin"));

/// All sources: path and text.
pub static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));
