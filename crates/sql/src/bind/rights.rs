//! What a statement needs the right to do, collected while it is bound and checked when it is planned.
//!
//! A plan belongs to a version of the catalog and to a role (both are part of the plan cache's key),
//! and rights are part of the catalog: so a check at planning holds for as long as the plan is used,
//! and running costs nothing.
//!
//! A table needs one [`Need`] for each place where it stands in the statement. A missing right on the
//! whole table may be made up for by rights on the columns that are used.

use base::Result;
use catalog::acl::{self, privilege};
use catalog::{AclKind, Rights, Table, TableKind};

use crate::expr::Expr;
use crate::logical::Col;

use super::Binder;

/// The use of a table.
#[derive(Debug)]
pub(crate) struct Need {
    /// The table.
    pub table: u32,
    /// Its name, for the error.
    name: String,
    /// As the error calls it.
    word: &'static str,
    /// Its first column's number and how many there are, system columns included.
    cols: (Col, usize),
    /// Rights on the table.
    pub required: u16,
    /// Columns that are written, from 1.
    pub written: Vec<u16>,
    /// In whose name: the session's role, or the owner of the view that the use stands in.
    role: u32,
}

impl Binder<'_> {
    /// Notes the use of a table: reading, until [`Binder::need_at`] says otherwise.
    pub(crate) fn need(&mut self, table: &Table, base: Col, count: usize) {
        let system = catalog::system::by_oid(base::Oid(table.oid));
        let word = match table.kind {
            TableKind::View => "view",
            TableKind::Materialized => "materialized view",
            TableKind::System if system.is_some_and(|s| s.is_view) => "view",
            _ => "table",
        };
        let role = self.acting;
        self.needs.push(Need {
            table: table.oid,
            name: table.name.clone(),
            word,
            cols: (base, count),
            required: privilege::SELECT,
            written: Vec::new(),
            role,
        });
    }

    /// The use whose columns begin at this number.
    pub(crate) fn need_at(&mut self, base: Col) -> Option<&mut Need> {
        self.needs.iter_mut().find(|n| n.cols.0 == base)
    }

    /// The use whose columns begin at this number is a change: what it needs instead of reading.
    pub(crate) fn need_change(&mut self, base: Col, required: u16, written: Vec<u16>) {
        if let Some(need) = self.need_at(base) {
            need.required = required;
            need.written = written;
        }
    }

    /// The use whose columns begin at this number is also such a change.
    pub(crate) fn need_more(&mut self, base: Col, required: u16, written: &[u16]) {
        if let Some(need) = self.need_at(base) {
            need.required |= required;
            need.written.extend_from_slice(written);
        }
    }

    /// Notes that a column's value is used.
    pub(crate) fn note_read(&mut self, expr: &Expr) {
        if self.unseen == 0
            && let Expr::Column(col, _) = expr
        {
            self.vars[usize::from(*col)].read = true;
        }
    }

    /// Notes a call of a function that not everybody may call.
    pub(crate) fn note_call(&mut self, function: base::Oid) {
        if self.checks
            && (acl::is_restricted(function.0)
                || self.cx.catalog.acl(AclKind::Function, function.0, 0).is_some())
        {
            self.called.push(function);
        }
    }

    /// `42501` unless the role may look into a schema that the statement names.
    pub(crate) fn check_schema(&self, name: &str, position: u32) -> Result<()> {
        if !self.checks || self.view_depth > 0 {
            return Ok(());
        }
        let Some(schema) = self.cx.catalog.schema_named(name) else { return Ok(()) };
        let rights = self.rights();
        let may = rights.require(self.cx.role, AclKind::Schema, schema.oid, privilege::USAGE, name);
        may.map_err(|e| e.at(position))
    }

    pub(crate) fn rights(&self) -> Rights<'_> {
        Rights::new(self.cx.catalog, self.cx.database)
    }

    /// Checks everything that was noted.
    ///
    /// # Errors
    /// `42501`.
    pub(crate) fn check_rights(&self) -> Result<()> {
        let session = self.cx.role;
        if !self.checks && self.needs.iter().all(|n| n.role == session) {
            return Ok(());
        }
        let rights = self.rights();
        for need in &self.needs {
            if !self.is_met(&rights, need) {
                return Err(acl::denied(need.word, &need.name));
            }
        }
        for function in &self.called {
            let own = self.cx.catalog.function(function.0).map(|f| f.name.as_str());
            let name = own.or(types::func::function(*function).map(|f| f.name)).unwrap_or_default();
            rights.require(session, AclKind::Function, function.0, privilege::EXECUTE, name)?;
        }
        Ok(())
    }

    fn is_met(&self, rights: &Rights<'_>, need: &Need) -> bool {
        if rights.is_superuser(need.role) {
            return true;
        }
        let (base, count) = (usize::from(need.cols.0), need.cols.1);
        let read: Vec<u16> = (0..count)
            .filter(|n| self.vars.get(base + n).is_some_and(|v| v.read))
            .map(|n| n as u16 + 1)
            .collect();
        let required = need.required | if read.is_empty() { 0 } else { privilege::SELECT };
        let held = rights.held(need.role, AclKind::Table, need.table).privileges;
        let missing = required & !held;
        if missing == 0 {
            return true;
        }
        let by_column = privilege::SELECT | privilege::INSERT | privilege::UPDATE;
        if missing & !by_column != 0 {
            return false;
        }
        let has = |column: u16, bit: u16| {
            rights.held_on_column(need.role, need.table, column).privileges & bit != 0
        };
        let columns = |bit: u16, used: &[u16]| match used {
            // No column in particular: a right on any will do.
            [] => (1..=count as u16).any(|n| has(n, bit)),
            used => used.iter().all(|n| has(*n, bit)),
        };
        [
            (privilege::SELECT, &read),
            (privilege::INSERT, &need.written),
            (privilege::UPDATE, &need.written),
        ]
        .into_iter()
        .all(|(bit, used)| missing & bit == 0 || columns(bit, used))
    }
}
