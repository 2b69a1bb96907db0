//! The machine that results come from.

use std::fs;

use jiff::Timestamp;

use crate::results::Environment;

/// What this machine and program are; files that can't be read leave their field empty.
pub fn environment(arguments: &[String]) -> Environment {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|l| l.starts_with(name));
        line.and_then(|l| l.split_once(':')).map(|(_, v)| v.trim().to_owned()).unwrap_or_default()
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let memory_kb: u64 = memory.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    Environment {
        started: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        lab: env!("CARGO_PKG_VERSION").to_owned(),
        cores: cores(),
        processor: field(&read("/proc/cpuinfo"), "model name"),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        memory: memory_kb * 1024,
        arguments: arguments.iter().map(|a| without_password(a)).collect(),
    }
}

/// Processors that this process may use.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// An argument with an address in it, its password left out.
fn without_password(argument: &str) -> String {
    let Some(at) = argument.find("://") else { return argument.to_owned() };
    let start = argument[..at].rfind('=').map_or(0, |i| i + 1);
    match argument[start..].parse::<crate::driver::Address>() {
        Ok(address) => format!("{}{}", &argument[..start], address.shown()),
        Err(_) => argument[..at].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_stay_out_of_results() {
        let text = "pg=postgres://u:secret@h:1/d";
        assert_eq!(without_password(text), "pg=postgres://u@h:1/d");
        assert!(!without_password("postgres://u:secret@h:x/").contains("secret"));
        assert_eq!(without_password("--init"), "--init");
        assert!(environment(&[]).cores > 0);
    }
}
