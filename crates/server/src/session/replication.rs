//! Commands of replication connections (`replication=true` or `database` in the start-up
//! packet; manual, "Streaming Replication Protocol").
//!
//! | command | answer |
//! |---|---|
//! | `IDENTIFY_SYSTEM` | the directory's identity, its timeline, how far the log is durable, the database |
//! | `SHOW name` | a setting; `data_directory_mode` and `wal_segment_size` as pg_basebackup reads them |
//! | `BASE_BACKUP (…)` | the directory as a tar stream with its manifest |
//! | `START_REPLICATION` | the log: [`super::stream`], [`super::physical`] |
//! | `REWIND_BEGIN`, `_PAGES`, `_END` | what differs from another directory: [`super::rewind`] |
//! | `CREATE_`, `DROP_`, `READ_REPLICATION_SLOT` | [`super::physical`] |
//!
//! A connection with `replication=database` takes SQL besides.

use base::settings::setting;
use base::{Error, Oid, Result, err};
use types::oids;

use super::SessionState;
use super::base_backup::{self, Options};

/// The kind of connection that the client asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Replication {
    /// A session like any other.
    #[default]
    No,
    /// `replication=true`: commands only.
    Physical,
    /// `replication=database`: commands and SQL.
    Database,
}

impl Replication {
    /// The parameter of the start-up packet.
    ///
    /// # Errors
    /// `22023` for what is neither a boolean nor `database`.
    pub(super) fn parse(value: &str) -> Result<Replication> {
        match value.to_ascii_lowercase().as_str() {
            "database" => Ok(Replication::Database),
            "true" | "on" | "yes" | "1" => Ok(Replication::Physical),
            "false" | "off" | "no" | "0" => Ok(Replication::No),
            _ => Err(err!(
                INVALID_PARAMETER_VALUE,
                "invalid value for parameter \"replication\": \"{value}\""
            )
            .hint("Valid values are: \"false\", 0, \"true\", 1, \"database\".")
            .fatal()),
        }
    }
}

/// A column of an answer, and its type.
pub(super) type Column = (&'static str, Oid);

/// Commands whose words are known, but that are not here.
const ABSENT: [&str; 1] = ["UPLOAD_MANIFEST"];

fn absent(what: &str) -> Error {
    Error::unsupported(what)
}

impl SessionState {
    /// Runs the string if it is a command of a replication connection; says whether it was.
    pub(super) fn replication_command(&mut self, text: &str, after: &[u8]) -> Result<bool> {
        if self.replication == Replication::No {
            return Ok(false);
        }
        let text = text.trim().trim_end_matches(';').trim_end();
        let end = text.find(|c: char| !c.is_ascii_alphabetic() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        if self.replication == Replication::Database
            && self.logical_command(&word.to_ascii_uppercase(), rest, after)?
        {
            if !self.exports_slot {
                self.end_implicit()?;
            }
            return Ok(true);
        }
        match word.to_ascii_uppercase().as_str() {
            "IDENTIFY_SYSTEM" => self.identify_system()?,
            "BASE_BACKUP" => {
                let options = Options::parse(rest)?;
                self.base_backup(&options)?;
                wire::response::complete(&mut self.out.get_mut().buffer, "BASE_BACKUP");
            }
            "REWIND_BEGIN" | "REWIND_PAGES" | "REWIND_END" => {
                if !self.may_replicate() {
                    return Err(base_backup::denied());
                }
                match word.to_ascii_uppercase().as_str() {
                    "REWIND_BEGIN" => self.rewind_begin()?,
                    "REWIND_PAGES" => self.rewind_pages(rest)?,
                    _ => self.rewind_end()?,
                }
            }
            "SHOW" if self.replication == Replication::Physical => {
                self.show_setting(rest.trim())?
            }
            "START_REPLICATION" => {
                self.start_physical(rest, after)?.ok_or_else(|| absent("a change stream"))?;
            }
            "CREATE_REPLICATION_SLOT" => {
                self.create_physical_slot(rest)?.ok_or_else(|| absent("a change stream's slot"))?;
            }
            "TIMELINE_HISTORY" => self.timeline_history(rest)?,
            "DROP_REPLICATION_SLOT" => self.drop_slot(rest)?,
            "READ_REPLICATION_SLOT" => self.read_slot(rest)?,
            other if ABSENT.contains(&other) => return Err(Error::unsupported(other)),
            _ if self.replication == Replication::Database => return Ok(false),
            _ => return Err(err!(SYNTAX_ERROR, "syntax error at or near \"{word}\"")),
        }
        self.end_implicit()?;
        Ok(true)
    }

    /// The end of a command.
    pub(super) fn complete_command(&mut self, tag: &str) {
        wire::response::complete(&mut self.out.get_mut().buffer, tag);
    }

    fn identify_system(&mut self) -> Result<()> {
        let storage = &self.server.engine.storage;
        let database = match self.replication {
            Replication::Database => Some(self.database.0.to_string()),
            _ => None,
        };
        let row = vec![
            Some(storage.system_id().to_string()),
            Some(storage.timeline().to_string()),
            Some(storage.wal.flushed().to_string()),
            database,
        ];
        let columns = [
            ("systemid", oids::TEXT),
            ("timeline", oids::INT4),
            ("xlogpos", oids::TEXT),
            ("dbname", oids::TEXT),
        ];
        self.answer_table(&columns, &[row]);
        wire::response::complete(&mut self.out.get_mut().buffer, "IDENTIFY_SYSTEM");
        Ok(())
    }

    fn show_setting(&mut self, name: &str) -> Result<()> {
        let value = match name.to_ascii_lowercase().as_str() {
            "data_directory_mode" => "0700".to_owned(),
            "wal_segment_size" => match self.settings.get().int(setting::WAL_SEGMENT_SIZE) {
                bytes if bytes % (1 << 30) == 0 => format!("{}GB", bytes >> 30),
                bytes => format!("{}MB", bytes >> 20),
            },
            other => self.settings.show(other)?,
        };
        self.answer_table(&[("setting", oids::TEXT)], &[vec![Some(value)]]);
        wire::response::complete(&mut self.out.get_mut().buffer, "SHOW");
        Ok(())
    }

    /// Writes a result of text columns.
    pub(super) fn answer_table(&mut self, columns: &[Column], rows: &[Vec<Option<String>>]) {
        use wire::rows::{self, Field};
        let buffer = &mut self.out.get_mut().buffer;
        let field = |(name, ty): &Column| Field {
            name,
            table: Oid(0),
            column: 0,
            ty: *ty,
            len: match *ty {
                oids::INT4 => 4,
                oids::OID => 4,
                oids::INT8 => 8,
                _ => -1,
            },
            typmod: -1,
            binary: false,
        };
        rows::description(buffer, columns.iter().map(field));
        for row in rows {
            let start = rows::begin_row(buffer, row.len());
            for value in row {
                match value {
                    Some(text) => rows::value(buffer, text.as_bytes()),
                    None => rows::null(buffer),
                }
            }
            rows::end_row(buffer, start);
        }
    }

    fn base_backup(&mut self, options: &Options) -> Result<()> {
        if !self.may_replicate() {
            return Err(base_backup::denied());
        }
        base_backup::run(self, options)
    }

    fn may_replicate(&mut self) -> bool {
        let role = self.settings.identity.login.0;
        self.catalog_tx.published().role(role).is_some_and(|r| r.superuser || r.replication)
    }

    /// `42501` for a role that may not open such a connection.
    pub(super) fn check_replication(&mut self) -> Result<()> {
        if self.replication == Replication::No || self.may_replicate() {
            return Ok(());
        }
        Err(base_backup::denied().fatal())
    }
}
