//! Privileges that a statement needs, collected while it is bound and checked when it is planned.
//!
//! A plan belongs to a version of the catalog and to a role (both are part of the plan cache's key),
//! and rights are part of the catalog: so a check at planning holds for as long as the plan is used,
//! and running costs nothing.
//!
//! A relation needs one [`Need`] for each place where it stands in the statement. A missing right on
//! the whole of it may be made up for by rights on the columns that are used.
//!
//! ```text
//!   UPDATE v SET b = 1 WHERE a = 2         v = SELECT a, b, c FROM t
//!
//!     caller needs  UPDATE (b), SELECT (a) of v
//!     owner of v needs  UPDATE (b) of t; and, as something is read of v, SELECT (a, b, c) of t
//! ```
//! A view is the caller's to use, and what its query uses is its owner's (with `security_invoker` the
//! caller's). A change through it needs the same of what is below; but reading there only if something
//! is read of the view.

use std::sync::Arc;

use base::Result;
use catalog::acl::{self, privilege};
use catalog::{AclKind, Rights, Sequence, Table, TableKind};

use crate::expr::Expr;
use crate::logical::{Col, TableRel};
use crate::plan::ScanColumn;

use super::Binder;
use super::scope::NsColumn;

/// The use of a table, view or sequence.
#[derive(Debug)]
pub(crate) struct Need {
    /// What the rights are kept under.
    kind: AclKind,
    object: u32,
    /// Its name, for the error.
    name: String,
    /// As the error calls it.
    word: &'static str,
    columns: Columns,
    /// Rights on the whole.
    pub required: u16,
    /// Columns that INSERT gives values, from 1.
    inserted: Vec<u16>,
    /// Columns that UPDATE sets.
    updated: Vec<u16>,
    /// In whose name: the session's role, or the owner of the view that the use stands in.
    role: u32,
    /// The use of the view that this one, a change, goes through.
    through: Option<usize>,
}

/// Which columns there are, and how it is known what is read of them.
#[derive(Debug)]
enum Columns {
    /// A table's: the first one's number and how many there are, system columns included.
    Own(Col, usize),
    /// A view's, which stand for others: how many there are, and those that are read, from 1.
    Shown(usize, Vec<u16>),
}

impl Need {
    /// The oid of what is used.
    pub fn object(&self) -> u32 {
        self.object
    }

    /// In whose name it is.
    pub fn role(&self) -> u32 {
        self.role
    }

    /// Adds a change of these columns.
    fn add(&mut self, required: u16, written: impl Iterator<Item = u16> + Clone) {
        self.required |= required;
        for (bit, columns) in
            [(privilege::INSERT, &mut self.inserted), (privilege::UPDATE, &mut self.updated)]
        {
            if required & bit != 0 {
                columns.extend(written.clone());
            }
        }
    }
}

/// A view that rows are changed through.
pub(crate) struct Level {
    /// Its use.
    pub need: usize,
    /// The table's column that each of its columns is, if it is one.
    pub cols: Vec<Option<Col>>,
}

impl Level {
    /// The number of its column that is the table's.
    fn shows(&self, target: &TableRel, n: u16) -> Option<u16> {
        let col = target.col(ScanColumn::Attr(n));
        self.cols.iter().position(|c| *c == Some(col)).map(|at| at as u16 + 1)
    }
}

/// What a message about rights calls a relation.
pub(crate) fn kind_word(table: &Table) -> &'static str {
    let system = catalog::system::by_oid(base::Oid(table.oid));
    match table.kind {
        TableKind::View => "view",
        TableKind::Materialized => "materialized view",
        TableKind::Foreign => "foreign table",
        TableKind::System if system.is_some_and(|s| s.is_view) => "view",
        _ => "table",
    }
}

impl Binder<'_> {
    /// Notes the use of a table: reading, until [`Binder::need_at`] says otherwise.
    pub(crate) fn need(&mut self, table: &Table, base: Col, count: usize) {
        self.note_need(table, Columns::Own(base, count));
    }

    /// Notes the use of a view; which one it is.
    pub(crate) fn need_view(&mut self, view: &Table) -> usize {
        self.note_need(view, Columns::Shown(view.columns.len(), Vec::new()));
        self.needs.len() - 1
    }

    fn note_need(&mut self, table: &Table, columns: Columns) {
        let word = kind_word(table);
        self.needs.push(Need {
            kind: AclKind::Table,
            object: table.oid,
            name: table.name.clone(),
            word,
            columns,
            required: privilege::SELECT,
            inserted: Vec::new(),
            updated: Vec::new(),
            role: self.acting,
            through: None,
        });
    }

    /// The use noted last is that of a sequence.
    pub(crate) fn need_sequence(&mut self, sequence: &Sequence) {
        if let Some(need) = self.needs.last_mut() {
            need.kind = AclKind::Sequence;
            need.object = sequence.oid;
            need.name.clone_from(&sequence.name);
            need.word = "sequence";
        }
    }

    /// The use noted last is that of a function whose rows are a computed table's: it needs the right to
    /// call it, and no other.
    pub(crate) fn need_call_instead(&mut self, name: &str, args: usize) {
        self.needs.pop();
        let known = types::func::functions_named(name).iter();
        let known = known.map(|f| (f.oid, f.args.len())).chain(
            catalog::system::facts::named(name).into_iter().map(|id| {
                (base::Oid(id), catalog::system::facts::argument_types(id).map_or(0, |a| a.len()))
            }),
        );
        let function = known.into_iter().find(|(_, count)| *count == args);
        if let Some((oid, _)) = function {
            self.note_call(oid);
        }
    }

    /// What a view's query uses: its owner does, or the session's role.
    pub(crate) fn within_view<R>(
        &mut self,
        view: &Arc<Table>,
        f: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let inside = if view.is_security_invoker() { self.cx.role } else { view.owner };
        let acting = std::mem::replace(&mut self.acting, inside);
        let result = f(self);
        self.acting = acting;
        result
    }

    /// The use whose columns begin at this number.
    pub(crate) fn need_at(&mut self, base: Col) -> Option<&mut Need> {
        self.needs.iter_mut().find(|n| matches!(n.columns, Columns::Own(b, _) if b == base))
    }

    /// The use whose columns begin at this number is a change: what it needs instead of reading.
    pub(crate) fn need_change(&mut self, base: Col, required: u16, written: &[u16]) {
        if let Some(need) = self.need_at(base) {
            need.required = 0;
            need.add(required, written.iter().copied());
        }
    }

    /// The use noted at this place, if it is of this object, needs no right by itself.
    pub(crate) fn need_nothing(&mut self, at: usize, object: u32) {
        if let Some(need) = self.needs.get_mut(at).filter(|need| need.object == object) {
            need.required = 0;
        }
    }

    /// As [`Binder::need_change`], of a table and of the views that it is changed through.
    pub(crate) fn need_change_through(
        &mut self,
        levels: &[Level],
        target: &TableRel,
        required: u16,
        written: &[u16],
    ) {
        for level in levels {
            let shown = |n: &u16| level.shows(target, *n);
            let need = &mut self.needs[level.need];
            need.required = 0;
            need.add(required, written.iter().filter_map(shown));
        }
        self.need_change(target.base, required, written);
    }

    /// The same for a change that is one more of the statement's.
    pub(crate) fn need_more_through(
        &mut self,
        levels: &[Level],
        target: &TableRel,
        required: u16,
        written: &[u16],
    ) {
        for level in levels {
            let shown = |n: &u16| level.shows(target, *n);
            self.needs[level.need].add(required, written.iter().filter_map(shown));
        }
        self.need_more(target.base, required, written);
    }

    /// The use whose columns begin at this number is also such a change.
    pub(crate) fn need_more(&mut self, base: Col, required: u16, written: &[u16]) {
        if let Some(need) = self.need_at(base) {
            need.add(required, written.iter().copied());
        }
    }

    /// The columns that the statement gives values in the table whose columns begin at this number.
    pub(crate) fn written(&mut self, base: Col) -> Vec<u16> {
        let Some(need) = self.need_at(base) else { return Vec::new() };
        need.inserted.iter().chain(&need.updated).copied().collect()
    }

    /// The use whose columns begin at this number, or else the one noted last, is a change through a
    /// view.
    pub(crate) fn need_below(&mut self, use_of: Option<Col>, view: usize) {
        let need = match use_of {
            Some(base) => self.need_at(base),
            None => self.needs.last_mut(),
        };
        if let Some(need) = need {
            need.through = Some(view);
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

    /// Notes that the value of a column that FROM offers is used.
    pub(crate) fn note_column(&mut self, column: &NsColumn) {
        self.note_read(&column.expr);
        if let Some((need, number)) = column.of
            && self.unseen == 0
            && let Columns::Shown(_, read) = &mut self.needs[need].columns
            && !read.contains(&number)
        {
            read.push(number);
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
        if !self.checks || self.cx.trusted || self.view_depth > 0 {
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
        let trusted = |need: &Need| self.cx.trusted && need.role == session;
        for need in self.needs.iter().filter(|n| !trusted(n)) {
            if !self.is_met(&rights, need) {
                return Err(acl::denied(need.word, &need.name));
            }
        }
        self.check_calls()
    }

    /// Checks the functions that are called.
    ///
    /// # Errors
    /// `42501`.
    pub(crate) fn check_calls(&self) -> Result<()> {
        for function in &self.called {
            let own = self.cx.catalog.function(function.0).map(|f| f.name.as_str());
            let builtin = || catalog::system::facts::function_name(function.0).unwrap_or("");
            let name = own.unwrap_or_else(builtin);
            let (role, kind) = (self.cx.role, AclKind::Function);
            if self.cx.catalog.function(function.0).is_some_and(|f| f.procedure)
                && !self.rights().may(role, kind, function.0, privilege::EXECUTE)
            {
                return Err(catalog::acl::denied("procedure", name));
            }
            self.rights().require(role, kind, function.0, privilege::EXECUTE, name)?;
        }
        Ok(())
    }

    /// Whether the statement reads anything of a table that it changes.
    pub(crate) fn reads_of(&mut self, target: &TableRel) -> bool {
        let is_it = |n: &&Need| matches!(n.columns, Columns::Own(b, _) if b == target.base);
        let Some(need) = self.needs.iter().find(is_it) else { return false };
        self.reads(need, &self.read_of(need))
    }

    /// The columns that are read, from 1.
    fn read_of(&self, need: &Need) -> Vec<u16> {
        match &need.columns {
            Columns::Own(base, count) => (0..*count)
                .filter(|n| self.vars.get(usize::from(*base) + n).is_some_and(|v| v.read))
                .map(|n| n as u16 + 1)
                .collect(),
            Columns::Shown(_, read) => read.clone(),
        }
    }

    /// Whether the use needs SELECT.
    fn reads(&self, need: &Need, read: &[u16]) -> bool {
        if need.required & privilege::SELECT != 0 {
            return true;
        }
        match need.through {
            None => !read.is_empty(),
            Some(view) => {
                let view = &self.needs[view];
                self.reads(view, &self.read_of(view))
            }
        }
    }

    fn is_met(&self, rights: &Rights<'_>, need: &Need) -> bool {
        if rights.is_superuser(need.role) {
            return true;
        }
        let read = self.read_of(need);
        let select = if self.reads(need, &read) { privilege::SELECT } else { 0 };
        let held = rights.held(need.role, need.kind, need.object).privileges;
        let missing = (need.required | select) & !held;
        if missing == 0 {
            return true;
        }
        let by_column = privilege::SELECT | privilege::INSERT | privilege::UPDATE;
        if missing & !by_column != 0 {
            return false;
        }
        let count = match &need.columns {
            Columns::Own(_, count) | Columns::Shown(count, _) => *count,
        };
        let has = |column: u16, bit: u16| {
            rights.held_on_column(need.role, need.object, column).privileges & bit != 0
        };
        let columns = |bit: u16, used: &[u16]| match used {
            // No column in particular: a right on any will do.
            [] => (1..=count as u16).any(|n| has(n, bit)),
            used => used.iter().all(|n| has(*n, bit)),
        };
        [
            (privilege::SELECT, &read),
            (privilege::INSERT, &need.inserted),
            (privilege::UPDATE, &need.updated),
        ]
        .into_iter()
        .all(|(bit, used)| missing & bit == 0 || columns(bit, used))
    }
}
