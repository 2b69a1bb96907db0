//! Foreign data: what its statements say, bound as far as the grammar goes.

use std::sync::{Arc, Mutex, PoisonError};

use base::{Oid, Result, err};
use catalog::{Snapshot, Table};

use crate::expr::Expr;
use crate::name::Name;
use crate::plan::{Scan, ScanColumn};
use crate::role::RoleRef;

/// The change of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionAction {
    /// ADD, or nothing.
    Add,
    /// SET.
    Set,
    /// DROP.
    Drop,
}

/// An option in OPTIONS (…).
#[derive(Clone, Debug, PartialEq)]
pub struct OptionChange {
    /// The change.
    pub action: OptionAction,
    /// Its name.
    pub name: String,
    /// Its value; empty with DROP.
    pub value: String,
}

/// HANDLER or VALIDATOR.
#[derive(Clone, Debug)]
pub struct WrapperFunction {
    /// VALIDATOR; else HANDLER.
    pub validator: bool,
    /// The function; None: NO HANDLER, NO VALIDATOR.
    pub function: Option<Name>,
    /// Where it stands, in characters from 1.
    pub position: u32,
}

/// The server and the options of CREATE FOREIGN TABLE.
#[derive(Clone, Debug)]
pub struct ForeignClause {
    /// SERVER.
    pub server: String,
    /// OPTIONS.
    pub options: Vec<OptionChange>,
}

/// Which tables IMPORT FOREIGN SCHEMA takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// All.
    All,
    /// LIMIT TO.
    LimitTo,
    /// EXCEPT.
    Except,
}

/// IMPORT FOREIGN SCHEMA.
#[derive(Clone, Debug)]
pub struct Import {
    /// FROM SERVER.
    pub server: String,
    /// The schema there.
    pub remote: String,
    /// INTO.
    pub local: String,
    /// Which tables.
    pub kind: ImportKind,
    /// The tables that LIMIT TO or EXCEPT lists.
    pub tables: Vec<String>,
    /// OPTIONS.
    pub options: Vec<OptionChange>,
}

impl Import {
    /// Whether a table of the remote schema is wanted.
    pub fn wants(&self, table: &str) -> bool {
        match self.kind {
            ImportKind::All => true,
            ImportKind::LimitTo => self.tables.iter().any(|t| t == table),
            ImportKind::Except => !self.tables.iter().any(|t| t == table),
        }
    }
}

/// A statement about foreign data.
#[derive(Clone, Debug)]
pub enum ForeignStatement {
    /// CREATE FOREIGN DATA WRAPPER.
    CreateWrapper {
        /// Name.
        name: String,
        /// HANDLER, VALIDATOR.
        functions: Vec<WrapperFunction>,
        /// OPTIONS.
        options: Vec<OptionChange>,
    },
    /// ALTER FOREIGN DATA WRAPPER.
    AlterWrapper {
        /// Name.
        name: String,
        /// HANDLER, VALIDATOR.
        functions: Vec<WrapperFunction>,
        /// OPTIONS.
        options: Vec<OptionChange>,
    },
    /// CREATE SERVER.
    CreateServer {
        /// Name.
        name: String,
        /// TYPE.
        kind: Option<String>,
        /// VERSION.
        version: Option<String>,
        /// FOREIGN DATA WRAPPER.
        wrapper: String,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// OPTIONS.
        options: Vec<OptionChange>,
    },
    /// ALTER SERVER.
    AlterServer {
        /// Name.
        name: String,
        /// VERSION, when it was said; the inner None: NULL.
        version: Option<Option<String>>,
        /// OPTIONS.
        options: Vec<OptionChange>,
    },
    /// CREATE USER MAPPING.
    CreateMapping {
        /// FOR.
        role: RoleRef,
        /// SERVER.
        server: String,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// OPTIONS.
        options: Vec<OptionChange>,
    },
    /// ALTER USER MAPPING.
    AlterMapping {
        /// FOR.
        role: RoleRef,
        /// SERVER.
        server: String,
        /// OPTIONS.
        options: Vec<OptionChange>,
    },
    /// DROP USER MAPPING.
    DropMapping {
        /// FOR.
        role: RoleRef,
        /// SERVER.
        server: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// RENAME TO of a server, else of a wrapper.
    Rename {
        /// It is a server.
        server: bool,
        /// Name.
        name: String,
        /// The new one.
        to: String,
    },
    /// DROP SERVER, else DROP FOREIGN DATA WRAPPER.
    Drop {
        /// They are servers.
        server: bool,
        /// Which.
        names: Vec<String>,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
    },
    /// IMPORT FOREIGN SCHEMA.
    Import(Import),
}

impl ForeignStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            ForeignStatement::CreateWrapper { .. } => "CREATE FOREIGN DATA WRAPPER",
            ForeignStatement::AlterWrapper { .. } => "ALTER FOREIGN DATA WRAPPER",
            ForeignStatement::CreateServer { .. } => "CREATE SERVER",
            ForeignStatement::AlterServer { .. } => "ALTER SERVER",
            ForeignStatement::CreateMapping { .. } => "CREATE USER MAPPING",
            ForeignStatement::AlterMapping { .. } => "ALTER USER MAPPING",
            ForeignStatement::DropMapping { .. } => "DROP USER MAPPING",
            ForeignStatement::Rename { server: true, .. } => "ALTER SERVER",
            ForeignStatement::Rename { .. } => "ALTER FOREIGN DATA WRAPPER",
            ForeignStatement::Drop { server: true, .. } => "DROP SERVER",
            ForeignStatement::Drop { .. } => "DROP FOREIGN DATA WRAPPER",
            ForeignStatement::Import(_) => "IMPORT FOREIGN SCHEMA",
        }
    }
}

/// Whether a condition over a foreign table's columns means the same on its server.
pub type Ships = fn(&Expr) -> bool;

static SHIPS: Mutex<Vec<(&str, Ships)>> = Mutex::new(Vec::new());

/// Says which conditions a wrapper's code (as [`code_of`] calls it) leaves to the server, when this server starts.
pub fn register(code: &'static str, ships: Ships) {
    SHIPS.lock().unwrap_or_else(PoisonError::into_inner).push((code, ships));
}

/// Which conditions the code takes; None: none.
pub fn ships(code: &str) -> Option<Ships> {
    let all = SHIPS.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|(known, _)| *known == code).map(|(_, ships)| *ships)
}

/// The code behind a foreign table: its wrapper's handler as `library/symbol`.
///
/// # Errors
/// `55000` for a wrapper without a handler.
pub fn code_of(catalog: &Snapshot, table: &Table) -> Result<Arc<str>> {
    let server = table.foreign.as_ref().and_then(|f| catalog.foreign_server(f.server));
    let Some(server) = server else {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a foreign table", table.name));
    };
    code_of_wrapper(catalog, server.wrapper)
}

/// The same of a wrapper.
///
/// # Errors
/// As [`code_of`].
pub fn code_of_wrapper(catalog: &Snapshot, wrapper: u32) -> Result<Arc<str>> {
    let wrapper = catalog.wrapper(wrapper);
    let handler = wrapper.and_then(|w| catalog.function(w.handler));
    let Some(handler) = handler else {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "foreign-data wrapper \"{}\" has no handler",
            wrapper.map_or("", |w| w.name.as_str())
        ));
    };
    let library = types::extension::library_name(&handler.library);
    Ok(format!("{library}/{}", handler.body).into())
}

/// A scan without the conditions that the server takes, and these over all of the table's columns.
pub fn left_to_server(mut scan: Scan, code: &str) -> (Scan, Vec<Expr>) {
    let Some(ships) = ships(code) else { return (scan, Vec::new()) };
    let (mut all, mut remote, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(filter) = scan.filter.take() {
        crate::walk::conjuncts(filter, &mut all);
    }
    for condition in all {
        let mut used = Vec::new();
        crate::walk::columns_of(&condition, &mut used);
        let number = |at: u16| match scan.columns.get(usize::from(at)) {
            Some(ScanColumn::Attr(n)) => Some(*n - 1),
            _ => None,
        };
        if !ships(&condition) || used.iter().any(|at| number(*at).is_none()) {
            kept.push(condition);
            continue;
        }
        let types: Vec<(u16, Oid)> = typed_columns(&condition);
        let moved = |at: u16| {
            let ty = types.iter().find(|(known, _)| *known == at).map(|(_, ty)| *ty)?;
            Some(Expr::Column(number(at)?, ty))
        };
        remote.push(crate::walk::substitute(condition, &moved));
    }
    scan.filter = match kept.len() {
        0 | 1 => kept.pop(),
        _ => Some(Expr::And(kept)),
    };
    (scan, remote)
}

/// The columns of an expression with their types.
pub(crate) fn typed_columns(e: &Expr) -> Vec<(u16, Oid)> {
    fn add(e: &Expr, out: &mut Vec<(u16, Oid)>) {
        if let Expr::Column(at, ty) = e {
            out.push((*at, *ty));
        }
        crate::walk::for_children(e, &mut |child| add(child, out));
    }
    let mut out = Vec::new();
    add(e, &mut out);
    out
}
