//! CREATE and ALTER COLLATION.

use base::{Error, Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use crate::collation_statement::{CollationDef, CollationStatement};
use crate::utility::Name;

use super::define::def_value;
use super::{Binder, inner};

/// What may be said of a new collation.
const NAMES: [&str; 7] =
    ["from", "locale", "lc_collate", "lc_ctype", "provider", "deterministic", "version"];

impl Binder<'_> {
    /// A statement about collations; None when it is none.
    pub(crate) fn collation_statement(
        &mut self,
        node: &NodeEnum,
    ) -> Result<Option<CollationStatement>> {
        let is = |kind: i32| kind == pb::ObjectType::ObjectCollation as i32;
        let listed = |object: &Option<Box<pb::Node>>| match inner(object) {
            Some(NodeEnum::List(list)) => self.name_of_list(&list.items),
            _ => Name { schema: None, name: String::new(), position: 0, only: false },
        };
        Ok(Some(match node {
            NodeEnum::DefineStmt(s) if is(s.kind) => CollationStatement::Create {
                name: self.name_of_list(&s.defnames),
                if_not_exists: s.if_not_exists,
                definition: self.collation_definition(&s.definition)?,
            },
            NodeEnum::AlterCollationStmt(s) => {
                CollationStatement::Refresh(self.name_of_list(&s.collname))
            }
            NodeEnum::RenameStmt(s) if is(s.rename_type) => {
                CollationStatement::Rename(listed(&s.object), s.newname.clone())
            }
            NodeEnum::AlterObjectSchemaStmt(s) if is(s.object_type) => {
                CollationStatement::SetSchema(listed(&s.object), s.newschema.clone())
            }
            _ => return Ok(None),
        }))
    }

    fn collation_definition(&self, nodes: &[pb::Node]) -> Result<CollationDef> {
        let mut given: [Option<&pb::DefElem>; NAMES.len()] = [None; NAMES.len()];
        let redundant = || err!(SYNTAX_ERROR, "conflicting or redundant options");
        for node in nodes {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let Some(at) = NAMES.iter().position(|n| *n == def.defname) else {
                let name = &def.defname;
                return Err(err!(SYNTAX_ERROR, "collation attribute \"{name}\" not recognized")
                    .at(self.at(def.location)));
            };
            if given[at].replace(def.as_ref()).is_some() {
                return Err(redundant().at(self.at(def.location)));
            }
        }
        let value = |name: &str| {
            let at = NAMES.iter().position(|n| *n == name)?;
            def_value(given[at]?)
        };
        if let Some(from) = given[0] {
            if nodes.len() > 1 {
                return Err(
                    redundant().detail("FROM cannot be specified together with any other options.")
                );
            }
            let Some(NodeEnum::List(list)) = inner(&from.arg) else {
                return Err(Error::unsupported("this FROM of a collation"));
            };
            return Ok(CollationDef::Copy(self.name_of_list(&list.items)));
        }
        let locale = value("locale");
        let (mut collate, mut ctype) = (value("lc_collate"), value("lc_ctype"));
        if locale.is_some() && (collate.is_some() || ctype.is_some()) {
            return Err(redundant()
                .detail("LOCALE cannot be specified together with LC_COLLATE or LC_CTYPE."));
        }
        let deterministic = match value("deterministic") {
            Some(word) => base::settings::parse_bool(&word)
                .ok_or_else(|| err!(SYNTAX_ERROR, "deterministic requires a Boolean value"))?,
            None => true,
        };
        let is_icu = match value("provider").map(|p| p.to_ascii_lowercase()).as_deref() {
            None | Some("libc") => false,
            Some("icu") => true,
            Some(_) => {
                let name = value("provider").unwrap_or_default();
                return Err(err!(
                    INVALID_OBJECT_DEFINITION,
                    "unrecognized collation provider: {name}"
                ));
            }
        };
        let missing =
            |what: &str| err!(INVALID_OBJECT_DEFINITION, "parameter \"{what}\" must be specified");
        let version = value("version");
        if is_icu {
            let icu_locale = Some(locale.ok_or_else(|| missing("locale"))?);
            return Ok(CollationDef::Options { libc: None, icu_locale, deterministic, version });
        }
        if let Some(locale) = locale {
            (collate, ctype) = (Some(locale.clone()), Some(locale));
        }
        let collate = collate.ok_or_else(|| missing("lc_collate"))?;
        let ctype = ctype.ok_or_else(|| missing("lc_ctype"))?;
        if !deterministic {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "nondeterministic collations not supported with this provider"
            ));
        }
        let libc = Some((collate, ctype));
        Ok(CollationDef::Options { libc, icu_locale: None, deterministic, version })
    }
}
