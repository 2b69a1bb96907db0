//! OPTIONS (…): ADD, SET and DROP, and what a validator says of the outcome.

use base::Result;
use catalog::Options;
use exec::context::ExecContext;
use exec::session::quote_identifier;
use sql::foreign::{OptionAction, OptionChange};
use types::foreign;
use types::func::quote_literal;

/// Options after a statement's changes, looked at by the validator (0: none). `of`: the catalog of the object that
/// has them.
///
/// # Errors
/// `42704` for SET or DROP of what isn't there, `42710` for ADD of what is; the validator's.
pub fn changed(
    old: &[(String, String)],
    changes: &[OptionChange],
    of: u32,
    validator: u32,
    cx: &mut ExecContext<'_>,
) -> Result<Options> {
    let mut out = old.to_vec();
    for change in changes {
        let at = out.iter().position(|(name, _)| *name == change.name);
        match (change.action, at) {
            (OptionAction::Add, None) => out.push((change.name.clone(), change.value.clone())),
            (OptionAction::Add, Some(_)) => {
                base::bail!(DUPLICATE_OBJECT, "option \"{}\" provided more than once", change.name)
            }
            (OptionAction::Set, Some(at)) => out[at].1.clone_from(&change.value),
            (OptionAction::Drop, Some(at)) => drop(out.remove(at)),
            (_, None) => base::bail!(UNDEFINED_OBJECT, "option \"{}\" not found", change.name),
        }
    }
    validate(&out, of, validator, cx)?;
    Ok(out)
}

fn validate(
    options: &[(String, String)],
    of: u32,
    validator: u32,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    match validator {
        0 => return Ok(()),
        id if id == foreign::VALIDATOR.0 => return foreign::validate(options, of),
        _ => {}
    }
    let view = cx.catalog_tx.view();
    let Some(function) = view.function(validator) else { return Ok(()) };
    let place = view.schema(function.schema).map_or("public", |s| s.name.as_str());
    let list: Vec<String> =
        options.iter().map(|(name, value)| quote_literal(&format!("{name}={value}"))).collect();
    let text = format!(
        "SELECT {}.{}(ARRAY[{}]::pg_catalog.text[], {of}::pg_catalog.oid)",
        quote_identifier(place),
        quote_identifier(&function.name),
        list.join(", ")
    );
    exec::spi::query(&text, cx, &mut |_| Ok(()))
}
