//! USAGE of types. [`types_of`] is the one table that says which statements ask for it, and for which types; a query
//! asks for none.

use base::{Oid, Result};
use catalog::AclKind;
use catalog::acl::privilege::USAGE;
use exec::context::ExecContext;
use exec::rights;
use sql::define_statement::DefineStatement;
use sql::type_statement::{AlterComposite, TypeStatement};
use sql::utility::{AlterTable, ColumnDef, Utility};

/// `42501` for a type whose USAGE the session's role lacks.
///
/// # Errors
/// See above.
pub fn check(utility: &Utility, cx: &mut ExecContext<'_>) -> Result<()> {
    require(types_of(utility), cx)
}

/// The same for the steps of an ALTER TABLE.
///
/// # Errors
/// `42501`.
pub fn check_steps(steps: &[AlterTable], cx: &mut ExecContext<'_>) -> Result<()> {
    let of_step = |step: &AlterTable| match step {
        AlterTable::AddColumn { column, .. } => Some(column.ty),
        AlterTable::SetType { ty, .. } => Some(*ty),
        _ => None,
    };
    require(steps.iter().filter_map(of_step).collect(), cx)
}

/// The types whose USAGE a statement asks for.
fn types_of(utility: &Utility) -> Vec<Oid> {
    let of_columns = |columns: &[ColumnDef]| columns.iter().map(|c| c.ty).collect::<Vec<Oid>>();
    match utility {
        Utility::CreateTable { columns, of_type, .. } => {
            let mut types = of_columns(columns);
            types.push(Oid(*of_type));
            types
        }
        Utility::CreateView { columns, .. } => of_columns(columns),
        Utility::CreateTableAs { query, .. } => query.columns.iter().map(|c| c.ty).collect(),
        Utility::CreateRoutine(def) => {
            let mut types: Vec<Oid> = def.function.args.iter().map(|a| Oid(a.ty)).collect();
            types.push(Oid(def.function.result));
            types
        }
        Utility::Type(statement) => match statement {
            TypeStatement::CreateDomain(def) => vec![def.base],
            TypeStatement::CreateRange(def) => def.subtype.into_iter().collect(),
            TypeStatement::CreateComposite { columns, .. } => of_columns(columns),
            TypeStatement::AlterComposite { steps, .. } => {
                let of_step = |step: &AlterComposite| match step {
                    AlterComposite::Add(column) => Some(column.ty),
                    AlterComposite::Type { ty, .. } => Some(*ty),
                    AlterComposite::Drop { .. } => None,
                };
                steps.iter().filter_map(of_step).collect()
            }
            _ => Vec::new(),
        },
        Utility::Define(DefineStatement::CreateCast(def)) => vec![def.source, def.target],
        _ => Vec::new(),
    }
}

fn require(types: Vec<Oid>, cx: &mut ExecContext<'_>) -> Result<()> {
    for ty in types {
        // Arrays have the rights of their elements.
        let element = types::TypeIo::get(ty).map_or(Oid::INVALID, |io| io.element);
        let asked = if element == Oid::INVALID { ty } else { element };
        if types::user::is_user(asked) {
            let name = types::io::format_type(asked, -1);
            rights::require(cx, AclKind::Type, asked.0, USAGE, &name)?;
        }
    }
    Ok(())
}
