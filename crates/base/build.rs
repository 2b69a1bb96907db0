//! Turns the tables of this crate into Rust: SQLSTATEs, wait events, settings and fault points.

use std::{collections::HashSet, env, fmt::Write as _, fs, path::Path};

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    for (table, target, generate) in [
        ("errcodes.txt", "sqlstate.rs", errcodes as fn(&str) -> String),
        ("waits.txt", "waits.rs", waits),
        ("settings.txt", "settings.rs", settings),
        ("faults.txt", "faults.rs", faults),
    ] {
        println!("cargo:rerun-if-changed={table}");
        let text = fs::read_to_string(table).expect("the table is part of the crate");
        fs::write(Path::new(&out).join(target), generate(&text)).expect("OUT_DIR is writable");
    }
}

fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'))
}

fn errcodes(text: &str) -> String {
    let (mut consts, mut names, mut all) = (String::new(), String::new(), String::new());
    let mut seen = HashSet::new();
    for row in rows(text) {
        let mut words = row.split_whitespace();
        let (code, class, name) =
            (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let lower = name.to_lowercase();
        let condition = words.next().unwrap_or(&lower);
        writeln!(
            consts,
            "/// SQLSTATE `{code}`.\npub const {name}: SqlState = SqlState(*b\"{code}\");"
        )
        .unwrap();
        // Only errors can be raised and caught by name.
        if class == "E" && condition != "-" {
            writeln!(all, "    (\"{condition}\", {name}),").unwrap();
        }
        if seen.insert(code.to_owned()) {
            writeln!(names, "    (SqlState(*b\"{code}\"), \"{lower}\"),").unwrap();
        }
    }
    format!(
        "{consts}\n/// Every code with its condition name.\npub const CONDITION_NAMES: &[(SqlState, &str)] = &[\n{names}];\n\n/// Every condition that PL/pgSQL knows, with its code.\npub const CONDITIONS: &[(&str, SqlState)] = &[\n{all}];\n"
    )
}

fn waits(text: &str) -> String {
    let (mut variants, mut table) = (String::new(), String::new());
    for row in rows(text) {
        let (kind, rest) = row.split_once(char::is_whitespace).unwrap();
        let (name, description) = rest.trim().split_once(char::is_whitespace).unwrap();
        let variant = format!("{kind}{}{}", name[..1].to_uppercase(), &name[1..]);
        writeln!(variants, "    /// {}\n    {variant},", description.trim()).unwrap();
        writeln!(table, "    WaitInfo {{ event: WaitEvent::{variant}, kind: \"{kind}\", name: \"{name}\", description: {:?} }},", description.trim()).unwrap();
    }
    format!(
        "/// What a task or thread waits for; one variant a row of `waits.txt`.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n#[repr(u8)]\npub enum WaitEvent {{\n{variants}}}\n\n/// Every wait event, in the order of the enum.\npub const WAITS: &[WaitInfo] = &[\n{table}];\n"
    )
}

fn settings(text: &str) -> String {
    let (mut ids, mut defs) = (String::new(), String::new());
    let mut all: Vec<Vec<&str>> =
        rows(text).map(|row| row.splitn(9, '|').map(str::trim).collect()).collect();
    all.sort_by_key(|row| row[0].to_lowercase());
    for (i, row) in all.iter().enumerate() {
        let [name, kind, default, min, max, unit, context, group, description] = row[..] else {
            panic!("a row of settings.txt has not nine fields: {row:?}")
        };
        let default = if default == "''" { "" } else { default };
        let (kind, value) = if kind == "bool" {
            ("Kind::Bool".to_owned(), format!("Const::Bool({})", default == "on"))
        } else if kind == "int" {
            (format!("Kind::Int {{ min: {min}, max: {max} }}"), format!("Const::Int({default})"))
        } else if kind == "real" {
            (
                format!("Kind::Real {{ min: {min}f64, max: {max}f64 }}"),
                format!("Const::Real({default}f64)"),
            )
        } else if kind == "string" {
            ("Kind::String".to_owned(), format!("Const::Str({default:?})"))
        } else {
            let list =
                kind.strip_prefix("enum(").and_then(|k| k.strip_suffix(')')).expect("a type");
            let words: Vec<&str> = list.split(',').collect();
            assert!(words.contains(&default), "{name}: the default is no member");
            (format!("Kind::Enum(&{words:?})"), format!("Const::Str({default:?})"))
        };
        let unit = if unit == "-" {
            "Unit::None".to_owned()
        } else {
            match unit {
                "8kB" => "Unit::Pages".to_owned(),
                u => format!("Unit::{}{}", u[..1].to_uppercase(), &u[1..]),
            }
        };
        let words = context.split('-').map(|w| format!("{}{}", w[..1].to_uppercase(), &w[1..]));
        let context = format!("Context::{}", words.collect::<String>());
        writeln!(
            ids,
            "/// {description}\npub const {}: SettingId = SettingId({i});",
            name.to_uppercase().replace('.', "_")
        )
        .unwrap();
        writeln!(defs, "    SettingDef {{ name: {name:?}, kind: {kind}, default: {value}, unit: {unit}, context: {context}, group: {group:?}, description: {description:?} }},").unwrap();
    }
    format!(
        "{ids}\n/// Every setting, sorted by name without case.\npub const SETTINGS: &[SettingDef] = &[\n{defs}];\n"
    )
}

fn faults(text: &str) -> String {
    let (mut variants, mut table) = (String::new(), String::new());
    for row in rows(text) {
        let fields: Vec<&str> = row.splitn(3, '|').map(str::trim).collect();
        let [name, section, description] = fields[..] else {
            panic!("a row of faults.txt has not three fields: {row:?}")
        };
        let critical = match section {
            "critical" => true,
            "statement" => false,
            other => panic!("{name}: unknown section {other}"),
        };
        let words = name.split('_').map(|w| format!("{}{}", w[..1].to_uppercase(), &w[1..]));
        let variant = words.collect::<String>();
        writeln!(variants, "    /// {description}\n    {variant},").unwrap();
        writeln!(table, "    FaultInfo {{ fault: Fault::{variant}, name: {name:?}, critical: {critical}, description: {description:?} }},").unwrap();
    }
    format!(
        "/// A fault point; one variant a row of `faults.txt`.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n#[repr(u8)]\npub enum Fault {{\n{variants}}}\n\n/// Every fault point, in the order of the enum.\npub const FAULTS: &[FaultInfo] = &[\n{table}];\n"
    )
}
