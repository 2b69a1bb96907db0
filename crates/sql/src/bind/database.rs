//! CREATE, ALTER and DROP DATABASE.

use base::{Error, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::encodings::{self, Encoding};

use super::Binder;
use super::define::def_value;
use crate::database::{DatabaseOptions, DatabaseStatement, NewDatabase};

impl Binder<'_> {
    /// Statements about databases; None for others.
    pub(crate) fn database_statement(&self, node: &NodeEnum) -> Result<Option<DatabaseStatement>> {
        Ok(Some(match node {
            NodeEnum::CreatedbStmt(s) => DatabaseStatement::Create {
                name: s.dbname.clone(),
                options: Box::new(self.new_database(&s.options)?),
            },
            NodeEnum::DropdbStmt(s) => DatabaseStatement::Drop {
                name: s.dbname.clone(),
                if_exists: s.missing_ok,
                force: !s.options.is_empty(),
            },
            NodeEnum::AlterDatabaseStmt(s) => self.alter_database(s)?,
            NodeEnum::AlterDatabaseRefreshCollStmt(s) => {
                DatabaseStatement::RefreshCollation { name: s.dbname.clone() }
            }
            NodeEnum::RenameStmt(s) if s.rename_type == pb::ObjectType::ObjectDatabase as i32 => {
                DatabaseStatement::Rename { from: s.subname.clone(), to: s.newname.clone() }
            }
            _ => return Ok(None),
        }))
    }

    /// Each option once.
    fn once<'a>(&self, nodes: &'a [pb::Node]) -> Result<Vec<&'a pb::DefElem>> {
        let mut out: Vec<&pb::DefElem> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            if out.iter().any(|known| known.defname == def.defname) {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options")
                    .at(self.at(def.location)));
            }
            out.push(def);
        }
        Ok(out)
    }

    /// An option that CREATE and ALTER share; false for others.
    fn common_option(&self, def: &pb::DefElem, into: &mut DatabaseOptions) -> Result<bool> {
        let name = def.defname.as_str();
        if !matches!(name, "is_template" | "allow_connections" | "connection_limit") {
            return Ok(false);
        }
        // DEFAULT says nothing.
        let Some(value) = def_value(def) else { return Ok(true) };
        let flag = || {
            base::settings::parse_bool(&value)
                .ok_or_else(|| err!(SYNTAX_ERROR, "{name} requires a Boolean value"))
        };
        match name {
            "is_template" => into.template = Some(flag()?),
            "allow_connections" => into.connect = Some(flag()?),
            _ => {
                let limit: i32 = value.parse().map_err(|_| {
                    err!(SYNTAX_ERROR, "connection_limit requires an integer value")
                })?;
                if limit < -1 {
                    base::bail!(INVALID_PARAMETER_VALUE, "invalid connection limit: {limit}");
                }
                into.connection_limit = Some(limit);
            }
        }
        Ok(true)
    }

    fn unknown_option(&self, def: &pb::DefElem) -> Error {
        err!(SYNTAX_ERROR, "option \"{}\" not recognized", def.defname).at(self.at(def.location))
    }

    fn new_database(&self, nodes: &[pb::Node]) -> Result<NewDatabase> {
        let mut new = NewDatabase::default();
        let (mut locale, mut encoding, mut oid) = (None, None, None);
        for def in self.once(nodes)? {
            let value = def_value(def);
            match def.defname.as_str() {
                "owner" => new.owner = value,
                "template" => new.template = value,
                "strategy" => new.strategy = value,
                "tablespace" => new.tablespace = value,
                "encoding" => encoding = Some(def),
                "locale" => locale = value,
                "lc_collate" => new.collate = value,
                "lc_ctype" => new.ctype = value,
                "icu_locale" => new.icu_locale = value,
                "locale_provider" => match value.as_deref() {
                    Some("icu") => new.icu = true,
                    None | Some("libc") => {}
                    Some(other) => base::bail!(
                        INVALID_OBJECT_DEFINITION,
                        "unrecognized locale provider: {other}"
                    ),
                },
                // There is nothing to keep the version of.
                "collation_version" => {}
                "oid" => oid = value.and_then(|v| v.parse::<u32>().ok()),
                "location" => new.location = Some(self.at(def.location)),
                _ if self.common_option(def, &mut new.options)? => {}
                _ => return Err(self.unknown_option(def)),
            }
        }
        if let Some(oid) = oid {
            if oid < base::Oid::FIRST_USER.0 {
                let first = base::Oid::FIRST_USER.0;
                base::bail!(
                    INVALID_PARAMETER_VALUE,
                    "OIDs less than {first} are reserved for system objects"
                );
            }
            return Err(Error::unsupported("CREATE DATABASE with an OID"));
        }
        if let Some(def) = encoding {
            self.check_encoding(def)?;
        }
        new.collate = new.collate.or_else(|| locale.clone());
        new.ctype = new.ctype.or(locale);
        Ok(new)
    }

    fn check_encoding(&self, def: &pb::DefElem) -> Result<()> {
        let Some(value) = def_value(def) else { return Ok(()) };
        let found = match value.parse::<i32>() {
            Ok(code) => encodings::of_number(code)
                .map(|(name, _)| name)
                .ok_or_else(|| err!(UNDEFINED_OBJECT, "{code} is not a valid encoding code")),
            Err(_) => Encoding::find(&value)
                .map(Encoding::name)
                .ok_or_else(|| err!(UNDEFINED_OBJECT, "{value} is not a valid encoding name")),
        };
        let name = found.map_err(|error| error.at(self.at(def.location)))?;
        if name == Encoding::UTF8.name() {
            return Ok(());
        }
        Err(Error::unsupported(format!("a database with encoding {name}")))
    }

    fn alter_database(&self, s: &pb::AlterDatabaseStmt) -> Result<DatabaseStatement> {
        let (name, mut options) = (s.dbname.clone(), DatabaseOptions::default());
        for def in self.once(&s.options)? {
            if def.defname == "tablespace" {
                let tablespace = def_value(def).unwrap_or_default();
                if s.options.len() > 1 {
                    let message = "option \"tablespace\" cannot be specified with other options";
                    return Err(err!(FEATURE_NOT_SUPPORTED, "{message}").at(self.at(def.location)));
                }
                return Ok(DatabaseStatement::SetTablespace { name, tablespace });
            }
            if !self.common_option(def, &mut options)? {
                return Err(self.unknown_option(def));
            }
        }
        Ok(DatabaseStatement::Alter { name, options })
    }
}
