//! ALTER TABLE … ALTER COLUMN: how a column is kept (STORAGE), and its parameters.

use base::{Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use crate::column_keeping::ColumnKeeping;

use super::define::def_value;
use super::inner;

/// The word of a command.
pub(crate) fn def_word(cmd: &pb::AlterTableCmd) -> String {
    match inner(&cmd.def) {
        Some(NodeEnum::String(word)) => word.sval.clone(),
        _ => String::new(),
    }
}

/// STORAGE as `pg_attribute.attstorage` has it.
///
/// # Errors
/// `22023`
pub(crate) fn storage_letter(word: &str) -> Result<char> {
    Ok(match word.to_ascii_lowercase().as_str() {
        "plain" => 'p',
        "external" => 'e',
        "extended" => 'x',
        "main" => 'm',
        _ => base::bail!(INVALID_PARAMETER_VALUE, "invalid storage type \"{word}\""),
    })
}

/// SET and RESET of a column's parameters.
///
/// # Errors
/// `22023` for those that there aren't and values out of their bounds.
pub(crate) fn column_options(nodes: &[pb::Node], set: bool) -> Result<ColumnKeeping> {
    let (mut given, mut reset) = (Vec::new(), Vec::new());
    for node in nodes {
        let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
        let name = def.defname.clone();
        if !matches!(name.as_str(), "n_distinct" | "n_distinct_inherited") {
            base::bail!(INVALID_PARAMETER_VALUE, "unrecognized parameter \"{name}\"");
        }
        if !set {
            reset.push(name);
            continue;
        }
        let value = def_value(def).unwrap_or_else(|| "true".to_owned());
        let Ok(number) = value.trim().parse::<f64>() else {
            base::bail!(
                INVALID_PARAMETER_VALUE,
                "invalid value for floating point option \"{name}\": {value}"
            );
        };
        if number < -1.0 || number.is_nan() {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "value {value} out of bounds for option \"{name}\""
            )
            .detail("Valid values are between \"-1.000000\" and \"179769313486231570814527423731704356798070567525844996598917476803157260780028538760589558632766878171540458953514382464234321326889464182768467546703537516986049910576551282076245490090389328944075868508455133942304583236903222948165808559332123347747977.000000\"."));
        }
        given.push((name, value));
    }
    Ok(ColumnKeeping::Options { set: given, reset })
}
