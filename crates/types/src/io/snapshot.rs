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

    /// Reads the binary form: the count of those that were running, `xmin`, `xmax`, those that were running.
    pub fn receive(bytes: &[u8]) -> Option<XidSnapshot> {
        let (count, rest) = bytes.split_first_chunk::<4>()?;
        let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
        let (numbers, []) = rest.as_chunks::<8>() else { return None };
        let number = |bytes: &[u8; 8]| u64::try_from(i64::from_be_bytes(*bytes)).ok();
        let [xmin, xmax, list @ ..] = numbers else { return None };
        let (xmin, xmax) = (number(xmin)?, number(xmax)?);
        if list.len() != count || xmin == 0 || xmin > xmax {
            return None;
        }
        let mut running: Vec<u64> = list.iter().map(number).collect::<Option<_>>()?;
        if !running.is_sorted() || running.iter().any(|xid| *xid < xmin || *xid >= xmax) {
            return None;
        }
        running.dedup();
        Some(XidSnapshot { xmin, xmax, running })
    }

    /// Appends the binary form; see [`XidSnapshot::receive`].
    pub fn send(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.running.len() as u32).to_be_bytes());
        for number in [self.xmin, self.xmax].iter().chain(&self.running) {
            out.extend_from_slice(&number.to_be_bytes());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_form_comes_back() {
        for text in ["10:20:10,14,15", "10:20:", "10:10:"] {
            let mut bytes = Vec::new();
            XidSnapshot::parse(text).unwrap().send(&mut bytes);
            assert_eq!(XidSnapshot::receive(&bytes).unwrap().text(), text);
            assert!(XidSnapshot::receive(&bytes[1..]).is_none());
        }
        let mut backward = Vec::new();
        XidSnapshot { xmin: 20, xmax: 10, running: Vec::new() }.send(&mut backward);
        assert!(XidSnapshot::receive(&backward).is_none());
    }
}
