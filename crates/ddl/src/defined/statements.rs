//! Statements about objects of the further kinds.

use base::{Error, Result, err};
use catalog::AclKind;
use catalog::system::named;
use exec::context::ExecContext;
use exec::rights;
use sql::define_statement::{DefineStatement, DefineTarget};

use super::{cast, method, operator, statistics, text_search};
use crate::defined::place::full;
use crate::defined::{
    DefinedTarget, class_of, create_conversion, create_language, extension_named, find, rename,
    require_owner, set_owner, set_schema,
};
use crate::depend::drop_items;
use crate::item::Item;
use crate::notice;

/// Runs the statement.
///
/// # Errors
/// Whatever it raises.
pub fn run(statement: &DefineStatement, cx: &mut ExecContext<'_>) -> Result<()> {
    match statement {
        DefineStatement::CreateOperator(def) => operator::create(def, cx),
        DefineStatement::AlterOperator { operator, restrict, join } => {
            operator::alter(operator, restrict.as_ref(), join.as_ref(), cx)
        }
        DefineStatement::CreateCast(def) => cast::create(def, cx),
        DefineStatement::CreateFamily { name, method } => {
            crate::defined::class::create_family(name, method, cx).map(|_| ())
        }
        DefineStatement::CreateClass(def) => crate::defined::class::create(def, cx),
        DefineStatement::AlterFamily { name, method, add, items } => {
            crate::defined::class::alter_family(name, method, *add, items, cx)
        }
        DefineStatement::CreateConversion { name, from, to, function, default } => {
            create_conversion(name, (from, to), function, *default, cx)
        }
        DefineStatement::CreateMethod { name, kind, handler } => {
            method::create(name, *kind, handler, cx)
        }
        DefineStatement::CreateStatistics(def) => statistics::create(def, cx),
        DefineStatement::AlterStatistics { target, rows, if_exists } => {
            statistics::set_target(target, *rows, *if_exists, cx)
        }
        DefineStatement::CreateTextSearch(kind, name, options) => {
            text_search::create(*kind, name, options, cx)
        }
        DefineStatement::AlterDictionary(name, changes) => {
            text_search::alter_dictionary(name, changes, cx)
        }
        DefineStatement::AlterConfiguration(name, change) => {
            text_search::alter_config(name, change, cx)
        }
        DefineStatement::CreateLanguage { name, replace, handler } => {
            create_language(name, *replace, handler.as_ref(), cx)
        }
        DefineStatement::CreateTransform { language, .. } => match named::language(language) {
            None => Err(err!(UNDEFINED_OBJECT, "language \"{language}\" does not exist")),
            Some(_) => Err(Error::unsupported("CREATE TRANSFORM")),
        },
        DefineStatement::Drop { targets, if_exists, cascade } => {
            drop(targets, *if_exists, *cascade, cx)
        }
        DefineStatement::Rename(target, to) => rename(target, to, cx),
        DefineStatement::SetSchema(target, to) => set_schema(target, to, cx),
        DefineStatement::Owner(target, role) => set_owner(target, role, cx),
        DefineStatement::SecurityLabel(provider) => Err(match provider {
            Some(name) => {
                err!(INVALID_PARAMETER_VALUE, "security label provider \"{name}\" is not loaded")
            }
            None => err!(INVALID_PARAMETER_VALUE, "no security label providers have been loaded"),
        }),
        DefineStatement::DependsOn(extension) => match extension_named(extension, cx) {
            None => Err(err!(UNDEFINED_OBJECT, "extension \"{extension}\" does not exist")),
            Some(_) => Err(Error::unsupported("ALTER … DEPENDS ON EXTENSION")),
        },
    }
}

fn drop(
    targets: &[DefineTarget],
    if_exists: bool,
    cascade: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mut items = Vec::new();
    for wanted in targets {
        if let DefineTarget::Class(_, method) | DefineTarget::Family(_, method) = wanted
            && cx.catalog_tx.view().access_method_named(method).is_none()
        {
            // IF EXISTS is about the class.
            base::bail!(UNDEFINED_OBJECT, "access method \"{method}\" does not exist");
        }
        let found = match find(wanted, cx) {
            Ok(found) => found,
            Err(error) if if_exists => {
                let message = match wanted {
                    DefineTarget::Missing(message, _) => message.clone(),
                    DefineTarget::Operator(operator)
                        if error.code() == base::sqlstate::UNDEFINED_FUNCTION =>
                    {
                        let name = full(&operator.name);
                        format!("operator {name} does not exist, skipping")
                    }
                    _ => format!("{}, skipping", error.message()),
                };
                notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
                continue;
            }
            Err(error) => return Err(error),
        };
        let view = cx.catalog_tx.view();
        let of_schema = match &found {
            DefinedTarget::Own(own) => own.schema(),
            DefinedTarget::BuiltIn(_) => None,
        };
        let owns_schema = of_schema
            .is_some_and(|schema| rights::of(cx, &view).owns(cx.role, AclKind::Schema, schema));
        if !owns_schema {
            require_owner(wanted, &found, cx)?;
        }
        match found {
            DefinedTarget::Own(own) => {
                let item = Item::Defined(own.oid());
                if !items.contains(&item) {
                    items.push(item);
                }
            }
            DefinedTarget::BuiltIn(id) => {
                let class = class_of(wanted);
                let names = catalog::system::reg::Names {
                    catalog: &view,
                    path: cx.search_path,
                    database: None,
                };
                let address = catalog::system::address::Address { class, object: id, column: 0 };
                let what = names.identify(address).map_or_else(String::new, |i| i.description);
                base::bail!(
                    DEPENDENT_OBJECTS_STILL_EXIST,
                    "cannot drop {what} because it is required by the database system"
                );
            }
        }
    }
    drop_items(cx, &items, cascade)
}
