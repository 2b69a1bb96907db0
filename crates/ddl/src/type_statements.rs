//! Statements about types that users define, by kind.

use base::Result;
use exec::context::ExecContext;
use sql::type_statement::TypeStatement;

use crate::base_type;
use crate::composite;
use crate::domain;
use crate::user_types::{add_value, create_enum, rename, rename_value, set_schema};

/// Runs the statement.
///
/// # Errors
/// Whatever it raises.
pub fn run(statement: &TypeStatement, cx: &mut ExecContext<'_>) -> Result<()> {
    match statement {
        TypeStatement::CreateEnum { name, labels } => create_enum(cx, name, labels),
        TypeStatement::AddValue { name, label, if_not_exists, neighbor } => {
            add_value(cx, name, label, *if_not_exists, neighbor.as_ref())
        }
        TypeStatement::RenameValue { name, from, to } => rename_value(cx, name, from, to),
        TypeStatement::CreateShell(name) => base_type::create_shell(cx, name),
        TypeStatement::CreateBase(def) => base_type::create_base(cx, def),
        TypeStatement::SetBase(change) => base_type::set(cx, change),
        TypeStatement::CreateRange(def) => base_type::create_range(cx, def),
        TypeStatement::CreateDomain(def) => domain::create(cx, def),
        TypeStatement::AlterDomain { name, step } => domain::alter(cx, name, step),
        TypeStatement::CreateComposite { name, columns } => composite::create(cx, name, columns),
        TypeStatement::AlterComposite { name, steps, cascade } => {
            composite::alter(cx, name, steps, *cascade)
        }
        TypeStatement::RenameAttribute { name, from, to, cascade } => {
            composite::rename_attribute(cx, name, (from, to), *cascade)
        }
        TypeStatement::Rename { kind, name, to } => rename(cx, kind, name, to),
        TypeStatement::SetSchema { kind, name, to } => set_schema(cx, kind, name, to),
    }
}
