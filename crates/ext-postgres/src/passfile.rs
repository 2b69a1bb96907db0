//! Files of passwords, as libpq reads them (manual, section 34.16): the connection's `passfile`, else `PGPASSFILE`, else
//! `~/.pgpass`. The first line that fits gives the password; a file that others may read is passed over.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use logical::conninfo::Conninfo;

/// The password for a connection whose string has none; `database` is the name that lines have for it.
pub fn password(info: &Conninfo, database: &str) -> Option<String> {
    let path = match info.get("passfile").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => std::env::var_os("PGPASSFILE").map(PathBuf::from).or_else(default_file)?,
    };
    if !is_private(&path) {
        return None;
    }
    let text = std::fs::read_to_string(&path).ok()?;
    let host = info.get("host").or(info.get("hostaddr")).unwrap_or("localhost");
    // The socket of this machine goes by this name.
    let host = if host.starts_with('/') { "localhost" } else { host };
    let port = info.port().unwrap_or(5432).to_string();
    let user = info.get("user").unwrap_or("postgres");
    find(&text, [host, &port, database, user])
}

fn default_file() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| Path::new(&home).join(".pgpass"))
}

/// Whether it is a file that only its owner may read.
fn is_private(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.mode() & 0o077 == 0)
}

fn find(text: &str, wanted: [&str; 4]) -> Option<String> {
    let fits = |field: &str, wanted: &str| field == "*" || field == wanted;
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = split(line);
        let all = fields.len() == 5 && fields.iter().zip(wanted).all(|(f, w)| fits(f, w));
        all.then(|| fields[4].clone())
    })
}

/// The fields of a line: colons separate them, and a backslash takes the meaning from what follows.
fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let is_last = fields.len() == 5;
        match (c, fields.last_mut()) {
            (':', _) if !is_last => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(chars.next()),
            (c, Some(field)) => field.push(c),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# c\nother:*:*:*:no\n*:5433:replication:rep:a\\:b:c\n*:*:*:*:any\n";
        let get = |host, port, user| find(text, [host, port, "replication", user]);
        assert_eq!(get("h", "5433", "rep").as_deref(), Some("a:b:c"));
        assert_eq!(get("h", "5432", "rep").as_deref(), Some("any"));
        assert_eq!(get("other", "5433", "rep").as_deref(), Some("no"));
        assert_eq!(find("a:b:c", ["a", "b", "c", "d"]), None);
    }
}
