//! The text and binary forms of `pg_snapshot` and `txid_snapshot`, which are kept as their text:
//! `xmin:xmax:xip,xip,…`.

use base::Result;

use super::invalid_syntax;

/// The transactions that were visible at some time, by their ids.
pub struct XidSnapshot {
    /// All below have ended.
    pub xmin: u64,
    /// This and all above had not begun.
    pub xmax: u64,
    /// Those between that were running, in order.
    pub running: Vec<u64>,
}

impl XidSnapshot {
    /// Reads one.
    ///
    /// # Errors
    /// `22P02`.
    pub fn parse(text: &str) -> Result<XidSnapshot> {
        XidSnapshot::read(text).ok_or_else(|| invalid_syntax("pg_snapshot", text))
    }

    fn read(text: &str) -> Option<XidSnapshot> {
        let number = |s: &str| {
            let digits = s.trim_start_matches(|c: char| c.is_ascii_whitespace());
            digits.parse::<u64>().ok().filter(|v| i64::try_from(*v).is_ok())
        };
        let mut parts = text.splitn(3, ':');
        let (xmin, xmax) = (number(parts.next()?)?, number(parts.next()?)?);
        let list = parts.next()?;
        if xmin == 0 || xmax == 0 || xmin > xmax {
            return None;
        }
        let mut running: Vec<u64> = Vec::new();
        for part in list.split(',').filter(|_| !list.is_empty()) {
            let xid = number(part)?;
            match running.last() {
                Some(last) if *last == xid => continue,
                Some(last) if *last > xid => return None,
                _ if xid < xmin || xid >= xmax => return None,
                _ => running.push(xid),
            }
        }
        Some(XidSnapshot { xmin, xmax, running })
    }

    /// Whether the transaction had ended.
    pub fn sees(&self, xid: u64) -> bool {
        xid < self.xmin || xid < self.xmax && self.running.binary_search(&xid).is_err()
    }

    /// The text.
    pub fn text(&self) -> String {
        let running: Vec<String> = self.running.iter().map(u64::to_string).collect();
        format!("{}:{}:{}", self.xmin, self.xmax, running.join(","))
    }
}
