//! Objects of text search: CREATE and ALTER. A template names code of the server or of an extension; a parser is the
//! server's own under another name.

use base::{Error, Oid, Result, err};
use catalog::object::ids;
use catalog::{
    AclKind, Defined, TextSearchConfig, TextSearchDictionary, TextSearchParser, TextSearchTemplate,
};
use exec::context::ExecContext;
use exec::rights;
use sql::define_statement::{DefineTarget, MappingChange, TextSearchKind, TextSearchValue};
use sql::utility::Name;
use textsearch::options::Options;
use textsearch::parser::KINDS;
use types::oids::{INT4, INTERNAL};
use types::user::TextSearch;

use super::{find, open, operator};
use crate::defined::place::{full, place, put, require_superuser, schemas_of};
use crate::notice;

/// The oid of an object of text search.
///
/// # Errors
/// `42704`, `3F000`.
fn oid_of(kind: TextSearchKind, name: &Name, cx: &mut ExecContext<'_>) -> Result<u32> {
    let target = DefineTarget::TextSearch(kind, Name { position: 0, ..name.clone() });
    find(&target, cx).map(|found| found.oid())
}

/// CREATE TEXT SEARCH ….
///
/// # Errors
/// Whatever it raises.
pub fn create(
    kind: TextSearchKind,
    name: &Name,
    options: &[(String, TextSearchValue)],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    match kind {
        TextSearchKind::Configuration => create_config(name, options, cx),
        TextSearchKind::Dictionary => create_dictionary(name, options, cx),
        TextSearchKind::Parser | TextSearchKind::Template => {
            let message = kind.words().1;
            require_superuser(cx, &format!("must be superuser to create {message}s"))?;
            match kind {
                TextSearchKind::Parser => create_parser(name, options, cx),
                _ => create_template(name, options, cx),
            }
        }
    }
}

/// A function of a template or parser: its oid, and the name of the code behind it.
fn method(name: &Name, args: &[Oid], cx: &mut ExecContext<'_>) -> Result<(u32, String)> {
    let found = operator::function(name, args, cx)?;
    if found.result != INTERNAL {
        return Err(err!(
            INVALID_OBJECT_DEFINITION,
            "function {} should return type internal",
            full(name)
        ));
    }
    let view = cx.catalog_tx.view();
    let code = match view.function(found.oid) {
        Some(own) if !own.library.is_empty() => {
            format!("{}/{}", types::extension::library_name(&own.library), own.body)
        }
        Some(own) => own.body.to_string(),
        None => name.name.clone(),
    };
    Ok((found.oid, code))
}

fn create_template(
    name: &Name,
    options: &[(String, TextSearchValue)],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let schema = place(cx, name, "text search template")?;
    let (mut init, mut lexize) = (None, None);
    for (option, value) in options {
        match option.as_str() {
            "init" => init = Some(method(&value.name, &[INTERNAL], cx)?),
            "lexize" => lexize = Some(method(&value.name, &[INTERNAL; 4], cx)?),
            _ => {
                return Err(err!(
                    SYNTAX_ERROR,
                    "text search template parameter \"{option}\" not recognized"
                ));
            }
        }
    }
    let (lexize, of_lexize) = lexize.ok_or_else(|| {
        err!(INVALID_OBJECT_DEFINITION, "text search template lexize method is required")
    })?;
    check_new(TextSearchKind::Template, schema, &name.name, cx)?;
    let (init, code) = init.unwrap_or((0, of_lexize));
    if !textsearch::dictionary::has_template(&code) {
        return Err(Error::unsupported(
            "a template of text search by other code than the server's",
        ));
    }
    let (oid, owner, name) = (crate::new_oid(cx, schema)?, ids::SUPERUSER, name.name.clone());
    put(
        cx,
        Defined::TextSearchTemplate(TextSearchTemplate {
            oid,
            name,
            schema,
            owner,
            init,
            lexize,
            code,
        }),
    )
}

fn create_parser(
    name: &Name,
    options: &[(String, TextSearchValue)],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let schema = place(cx, name, "text search parser")?;
    let methods: [(&str, &str, &[Oid]); 5] = [
        ("start", "prsd_start", &[INTERNAL, INT4]),
        ("gettoken", "prsd_nexttoken", &[INTERNAL; 3]),
        ("end", "prsd_end", &[INTERNAL]),
        ("headline", "prsd_headline", &[INTERNAL, INTERNAL, textsearch::query::TSQUERY]),
        ("lextypes", "prsd_lextype", &[INTERNAL]),
    ];
    let (mut functions, mut is_own) = ([0; 5], true);
    for (option, value) in options {
        let Some(at) = methods.iter().position(|m| m.0 == option) else {
            return Err(err!(
                SYNTAX_ERROR,
                "text search parser parameter \"{option}\" not recognized"
            ));
        };
        let (oid, code) = if option == "end" {
            let found = operator::function(&value.name, methods[at].2, cx)?;
            (found.oid, value.name.name.clone())
        } else {
            method(&value.name, methods[at].2, cx)?
        };
        functions[at] = oid;
        is_own &= code == methods[at].1;
    }
    for (at, (word, ..)) in methods.iter().enumerate() {
        if functions[at] == 0 && *word != "headline" {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "text search parser {word} method is required"
            ));
        }
    }
    check_new(TextSearchKind::Parser, schema, &name.name, cx)?;
    if !is_own {
        return Err(Error::unsupported("a parser of text search by other code than the server's"));
    }
    let (oid, owner, name) = (crate::new_oid(cx, schema)?, ids::SUPERUSER, name.name.clone());
    put(cx, Defined::TextSearchParser(TextSearchParser { oid, name, schema, owner, functions }))
}

/// `23505`, as PostgreSQL's catalog says it, when the name is taken.
fn check_new(
    kind: TextSearchKind,
    schema: u32,
    name: &str,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let place = view.schema(schema).map(|s| s.name.clone()).unwrap_or_default();
    if view.text_search_named(&[], kind.letter(), Some(&place), name).is_none() {
        return Ok(());
    }
    let (index, columns) = match kind {
        TextSearchKind::Configuration => ("pg_ts_config_cfgname_index", "cfgname, cfgnamespace"),
        TextSearchKind::Template => ("pg_ts_template_tmplname_index", "tmplname, tmplnamespace"),
        TextSearchKind::Parser => ("pg_ts_parser_prsname_index", "prsname, prsnamespace"),
        _ => ("pg_ts_dict_dictname_index", "dictname, dictnamespace"),
    };
    Err(err!(UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"{index}\"")
        .detail(format!("Key ({columns})=({name}, {schema}) already exists.")))
}

fn create_config(
    name: &Name,
    options: &[(String, TextSearchValue)],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let (mut parser, mut copy) = (None, None);
    for (option, value) in options {
        match option.as_str() {
            "parser" => parser = Some(oid_of(TextSearchKind::Parser, &value.name, cx)?),
            "copy" => copy = Some(oid_of(TextSearchKind::Configuration, &value.name, cx)?),
            _ => {
                return Err(err!(
                    SYNTAX_ERROR,
                    "text search configuration parameter \"{option}\" not recognized"
                ));
            }
        }
    }
    if parser.is_some() && copy.is_some() {
        return Err(err!(SYNTAX_ERROR, "cannot specify both PARSER and COPY options"));
    }
    let mut map = Vec::new();
    if let Some(copy) = copy
        && let Some(found) = types::user::text_search(types::oids::REGCONFIG, copy)
        && let TextSearch::Config { parser: of, map: tokens } = &*found
    {
        parser = Some(of.0);
        let ids = |ids: &[Oid]| ids.iter().map(|id| id.0).collect();
        map = tokens.iter().map(|(kind, list)| (*kind, ids(list))).collect();
    }
    let parser =
        parser.ok_or_else(|| err!(INVALID_OBJECT_DEFINITION, "text search parser is required"))?;
    let schema = place(cx, name, "text search configuration")?;
    check_new(TextSearchKind::Configuration, schema, &name.name, cx)?;
    let (oid, owner) = (crate::new_oid(cx, schema)?, cx.role);
    let name = name.name.clone();
    put(cx, Defined::TextSearchConfig(TextSearchConfig { oid, name, schema, owner, parser, map }))
}

/// Options as they stand in the catalog.
fn written(options: &[(String, String)]) -> String {
    let one = |(name, value): &(String, String)| {
        let name = types::func::quote_ident(name);
        let digits = value.strip_prefix('-').unwrap_or(value);
        match !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            true => format!("{name} = {value}"),
            false => format!("{name} = {}", types::func::quote_literal(value)),
        }
    };
    options.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn create_dictionary(
    name: &Name,
    options: &[(String, TextSearchValue)],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mut template = None;
    let mut rest = Vec::new();
    for (option, value) in options {
        match option.as_str() {
            "template" => template = Some(oid_of(TextSearchKind::Template, &value.name, cx)?),
            _ => rest.push((option.clone(), value.text.clone())),
        }
    }
    let template = template
        .ok_or_else(|| err!(INVALID_OBJECT_DEFINITION, "text search template is required"))?;
    textsearch::dictionary::make(Oid(template), &Options::of(rest.clone()))?;
    let schema = place(cx, name, "text search dictionary")?;
    check_new(TextSearchKind::Dictionary, schema, &name.name, cx)?;
    let (oid, owner) = (crate::new_oid(cx, schema)?, cx.role);
    let (name, options) = (name.name.clone(), written(&rest));
    put(
        cx,
        Defined::TextSearchDictionary(TextSearchDictionary {
            oid,
            name,
            schema,
            owner,
            template,
            options,
        }),
    )
}

/// ALTER TEXT SEARCH DICTIONARY.
///
/// # Errors
/// Whatever it raises.
pub fn alter_dictionary(
    name: &Name,
    changes: &[(String, Option<String>)],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let wanted = DefineTarget::TextSearch(TextSearchKind::Dictionary, name.clone());
    let Defined::TextSearchDictionary(mut found) = open(&wanted, cx)? else {
        return Err(Error::internal("a dictionary of another kind"));
    };
    let known = Options::parse(&found.options)?;
    let mut options: Vec<(String, String)> =
        known.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    for (option, value) in changes {
        options.retain(|(name, _)| name != option);
        if let Some(value) = value {
            options.push((option.clone(), value.clone()));
        }
    }
    textsearch::dictionary::make(Oid(found.template), &Options::of(options.clone()))?;
    found.options = written(&options);
    put(cx, Defined::TextSearchDictionary(found))
}

/// ALTER TEXT SEARCH CONFIGURATION … MAPPING.
///
/// # Errors
/// Whatever it raises.
pub fn alter_config(name: &Name, change: &MappingChange, cx: &mut ExecContext<'_>) -> Result<()> {
    let wanted = DefineTarget::TextSearch(TextSearchKind::Configuration, name.clone());
    let Defined::TextSearchConfig(mut found) = open(&wanted, cx)? else {
        return Err(Error::internal("a configuration of another kind"));
    };
    let mut ids = |names: &[Name]| -> Result<Vec<u32>> {
        names.iter().map(|n| oid_of(TextSearchKind::Dictionary, n, cx)).collect()
    };
    match change {
        MappingChange::Add(types, names) => {
            let dictionaries = ids(names)?;
            for (kind, _) in kinds(types)? {
                if found.map.iter().any(|(k, _)| *k == kind) {
                    return Err(err!(
                        UNIQUE_VIOLATION,
                        "duplicate key value violates unique constraint \"pg_ts_config_map_index\""
                    )
                    .detail(format!(
                        "Key (mapcfg, maptokentype, mapseqno)=({}, {kind}, 1) already exists.",
                        found.oid
                    )));
                }
                found.map.push((kind, dictionaries.clone()));
            }
        }
        MappingChange::Alter(types, names) => {
            let dictionaries = ids(names)?;
            for (kind, _) in kinds(types)? {
                found.map.retain(|(k, _)| *k != kind);
                found.map.push((kind, dictionaries.clone()));
            }
        }
        MappingChange::Replace(types, from, to) => {
            let replaced = ids(&[from.clone(), to.clone()])?;
            let wanted = kinds(types)?;
            for (kind, dictionaries) in &mut found.map {
                if wanted.is_empty() || wanted.iter().any(|(k, _)| k == kind) {
                    for id in dictionaries.iter_mut().filter(|id| **id == replaced[0]) {
                        *id = replaced[1];
                    }
                }
            }
        }
        MappingChange::Drop(types, if_exists) => {
            for (kind, name) in kinds(types)? {
                let before = found.map.len();
                found.map.retain(|(k, _)| *k != kind);
                if found.map.len() < before {
                    continue;
                }
                let message = format!("mapping for token type \"{name}\" does not exist");
                if !if_exists {
                    return Err(err!(UNDEFINED_OBJECT, "{message}"));
                }
                let message = format!("{message}, skipping");
                notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
            }
        }
    }
    found.map.sort_by_key(|(kind, _)| *kind);
    put(cx, Defined::TextSearchConfig(found))
}

/// Numbers of types of tokens, each with its name.
fn kinds(names: &[String]) -> Result<Vec<(i32, &str)>> {
    let mut out: Vec<(i32, &str)> = Vec::new();
    for name in names {
        let found = KINDS
            .iter()
            .find(|(_, alias, _)| alias == name)
            .ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "token type \"{name}\" does not exist"))?;
        if out.iter().all(|(kind, _)| *kind != found.0) {
            out.push((found.0, name));
        }
    }
    Ok(out)
}

/// Looks an object of text search up.
///
/// # Errors
/// `42704`, `3F000`.
pub(super) fn lookup(kind: TextSearchKind, name: &Name, cx: &mut ExecContext<'_>) -> Result<u32> {
    let view = cx.catalog_tx.view();
    schemas_of(&view, cx.search_path, name)?;
    let found =
        view.text_search_named(cx.search_path, kind.letter(), name.schema.as_deref(), &name.name);
    let missing = || err!(UNDEFINED_OBJECT, "{} \"{}\" does not exist", kind.words().1, full(name));
    found.ok_or_else(missing)
}

/// Parsers and templates have no owner but the superuser.
pub(super) fn require_owner(
    kind: TextSearchKind,
    id: u32,
    name: &Name,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    rights::require_owner(cx, AclKind::Defined, id, kind.words().1, &full(name))
}
