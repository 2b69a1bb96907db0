//! The disk below the data directory, as the system counts it: so that a disk that others keep busy can be told from
//! one that is slow by itself.

use std::os::linux::fs::MetadataExt;
use std::path::Path;

use super::slice::{Count, Slice};

/// Bytes of a sector in `/proc/diskstats`, whatever the disk's.
const SECTOR: u64 = 512;

/// Bytes read and written, and the time at work in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Reading {
    bytes: u64,
    busy_us: u64,
    own_bytes: u64,
}

/// See the module's documentation.
pub(super) struct Disk {
    /// Its numbers, major and minor.
    device: Option<(u64, u64)>,
    then: Reading,
}

impl Disk {
    /// The disk of a directory. On a file system without one (in memory, over the network) nothing is counted.
    pub fn of(dir: &Path) -> Disk {
        let device = std::fs::metadata(dir).ok().map(|meta| {
            let device = meta.st_dev();
            (nix::sys::stat::major(device), nix::sys::stat::minor(device))
        });
        let mut disk = Disk { device, then: Reading::default() };
        disk.then = disk.read();
        disk
    }

    fn read(&self) -> Reading {
        let text = |path| std::fs::read_to_string(path).unwrap_or_default();
        let of_disk = self.device.and_then(|device| of_device(&text("/proc/diskstats"), device));
        let Some((bytes, busy_us)) = of_disk else { return Reading::default() };
        Reading { bytes, busy_us, own_bytes: of_process(&text("/proc/self/io")) }
    }

    /// Gives the slice what was read and written since the last look.
    pub fn look(&mut self, slice: &mut Slice) {
        let now = self.read();
        let then = std::mem::replace(&mut self.then, now);
        slice.set(Count::DiskBytes, now.bytes.saturating_sub(then.bytes));
        slice.set(Count::DiskBytesOwn, now.own_bytes.saturating_sub(then.own_bytes));
        slice.set(Count::DiskBusyUs, now.busy_us.saturating_sub(then.busy_us));
    }
}

/// Bytes and time at work of a device in `/proc/diskstats`.
fn of_device(text: &str, (major, minor): (u64, u64)) -> Option<(u64, u64)> {
    text.lines().find_map(|line| {
        // major minor name reads merged sectors ms writes merged sectors ms under-way ms-at-work …
        let mut words = line.split_whitespace();
        let mut number = || words.next()?.parse::<u64>().ok();
        if (number()?, number()?) != (major, minor) {
            return None;
        }
        let numbers: Vec<u64> = words.skip(1).map_while(|word| word.parse().ok()).collect();
        Some(((numbers.get(2)? + numbers.get(6)?) * SECTOR, numbers.get(9)? * 1000))
    })
}

/// Bytes that went from and to disks for this process: `/proc/self/io`.
fn of_process(text: &str) -> u64 {
    let value = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    value("read_bytes:") + value("write_bytes:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_understood() {
        let text = "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n 254       0 vda 100 0 20 7 300 1 40 9 0 55 60 0 0\n";
        assert_eq!(of_device(text, (254, 0)), Some((60 * 512, 55_000)));
        assert_eq!(of_device(text, (254, 1)), None);
        assert_eq!(of_process("rchar: 5\nread_bytes: 40\nwrite_bytes: 2\ncancelled: 1\n"), 42);
    }
}
