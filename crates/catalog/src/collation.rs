//! Collations: those that initdb makes, and those that users made.
//!
//! The locales that PostgreSQL's initdb finds in ICU are listed in `system/facts/collations.txt`. The library knows
//! orders of its own for fewer languages than that list has; all others have the root's, as in ICU.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use base::{Error, err};
use types::{TypeIo, oids};

use crate::object::ids::{COLLATION_C, COLLATION_DEFAULT, PG_CATALOG, SUPERUSER};
use crate::object::{Collation, Column, Id, IndexColumn, KeyCollation, Table, UserTypeKind};
use crate::snapshot::Snapshot;
use crate::system::facts::icu_locales;

/// UTF-8, as `collencoding` has it.
pub const UTF8: i32 = 6;

struct BuiltIn {
    all: Vec<Arc<Collation>>,
    by_oid: HashMap<Id, usize>,
    by_name: HashMap<String, usize>,
}

fn built_in() -> &'static BuiltIn {
    static ALL: OnceLock<BuiltIn> = OnceLock::new();
    ALL.get_or_init(|| {
        let of_libc = |(oid, name, locale, encoding): (Id, &str, &str, i32)| Collation {
            oid,
            name: name.to_owned(),
            provider: if locale.is_empty() { 'd' } else { 'c' },
            libc: (!locale.is_empty()).then(|| (locale.to_owned(), locale.to_owned())),
            encoding,
            ..Collation::default()
        };
        let libc = [
            (COLLATION_DEFAULT, "default", "", -1),
            (COLLATION_C, "C", "C", -1),
            (951, "POSIX", "POSIX", -1),
            (12340, "ucs_basic", "C", UTF8),
            (12341, "C.utf8", "C.utf8", UTF8),
        ];
        let of_icu = |(oid, locale): (Id, &str)| Collation {
            oid,
            name: format!("{locale}-x-icu"),
            provider: 'i',
            icu_locale: Some(locale.to_owned()),
            version: Some(types::collation::VERSION.to_owned()),
            encoding: -1,
            ..Collation::default()
        };
        let all = libc.into_iter().map(of_libc).chain(icu_locales().map(of_icu));
        let fixed =
            |c| Collation { schema: PG_CATALOG, owner: SUPERUSER, deterministic: true, ..c };
        let all: Vec<Arc<Collation>> = all.map(|c| Arc::new(fixed(c))).collect();
        let places = || all.iter().enumerate();
        let by_oid = places().map(|(at, c)| (c.oid, at)).collect();
        let by_name = places().map(|(at, c)| (c.name.clone(), at)).collect();
        BuiltIn { all, by_oid, by_name }
    })
}

/// The collation that values of a built-in type have by themselves; of its elements for an array; 0:
/// none.
pub fn of_built_in(t: &TypeIo) -> Id {
    let element = TypeIo::get(t.element).filter(|_| t.category == b'A');
    match element.as_deref().unwrap_or(t) {
        t if t.oid == oids::NAME => COLLATION_C,
        t if t.category == b'S' && t.oid != oids::CHAR => COLLATION_DEFAULT,
        _ => 0,
    }
}

impl Snapshot {
    /// A collation by id.
    pub fn collation(&self, id: Id) -> Option<&Arc<Collation>> {
        let built_in = built_in();
        match built_in.by_oid.get(&id) {
            Some(at) => built_in.all.get(*at),
            None => self.collations.get(&id),
        }
    }

    /// A collation by schema and name.
    pub fn collation_in(&self, schema: Id, name: &str) -> Option<&Arc<Collation>> {
        let mut mine = self.collations.values();
        mine.find(|c| c.schema == schema && c.name == name).or_else(|| {
            let at = built_in().by_name.get(name).filter(|_| schema == PG_CATALOG)?;
            built_in().all.get(*at)
        })
    }

    /// A collation by name along the search path, or in the named schema.
    pub fn collation_named(
        &self,
        path: &[Id],
        schema: Option<&str>,
        name: &str,
    ) -> Option<&Arc<Collation>> {
        match schema {
            Some(schema) => self.collation_in(self.schema_named(schema)?.oid, name),
            None => {
                let first = (!path.contains(&PG_CATALOG)).then_some(PG_CATALOG).into_iter();
                first.chain(path.iter().copied()).find_map(|s| self.collation_in(s, name))
            }
        }
    }

    /// A collation's name, with its schema where the search path doesn't lead to it.
    pub fn shown_collation(&self, path: &[Id], id: Id) -> Option<String> {
        let c = self.collation(id)?;
        let first = self.collation_named(path, None, &c.name);
        Some(match first.is_some_and(|f| f.oid == id) {
            true => types::func::quote_ident(&c.name),
            false => {
                let schema = self.schema(c.schema).map_or("", |s| s.name.as_str());
                let quote = types::func::quote_ident;
                format!("{}.{}", quote(schema), quote(&c.name))
            }
        })
    }

    /// `42704` for a collation that isn't there, `3F000` for its schema.
    pub fn missing_collation(&self, schema: Option<&str>, name: &str) -> Error {
        let name = match schema {
            Some(schema) if self.schema_named(schema).is_none() => {
                return err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist");
            }
            Some(schema) => format!("{schema}.{name}"),
            None => name.to_owned(),
        };
        err!(UNDEFINED_OBJECT, "collation \"{name}\" for encoding \"UTF8\" does not exist")
    }

    /// All collations.
    pub fn collations(&self) -> impl Iterator<Item = &Arc<Collation>> {
        built_in().all.iter().chain(self.user_collations())
    }

    /// Those that users made.
    pub fn user_collations(&self) -> impl Iterator<Item = &Arc<Collation>> {
        self.collations.values()
    }

    /// The collation that values of a type have by themselves; 0: none.
    pub fn type_collation(&self, ty: Id) -> Id {
        match self.user_type(ty).map(|t| &t.kind) {
            Some(UserTypeKind::Domain { base, collation, .. }) => match *collation {
                0 => self.type_collation(*base),
                own => own,
            },
            Some(_) => 0,
            None => match TypeIo::get(base::Oid(ty)) {
                Some(t) => match t.element.0 {
                    element if t.category == b'A' && self.user_type(element).is_some() => {
                        self.type_collation(element)
                    }
                    _ => of_built_in(&t),
                },
                None => 0,
            },
        }
    }

    /// A collation as an index over values of a type keeps it: not, when it is the type's own and
    /// compares bytes.
    pub fn key_collation(&self, id: Id, ty: Id) -> Option<Box<KeyCollation>> {
        let found = self.collation(id)?;
        let usual = found.icu_locale.is_none() && id == self.type_collation(ty);
        (!usual).then(|| Box::new(KeyCollation::of(found)))
    }

    /// A table's column, from 1, as an index's key.
    pub fn column_key(&self, table: &Table, number: u16) -> IndexColumn {
        let column = table.columns.get(usize::from(number) - 1);
        let collation = column.and_then(|c| self.key_collation(self.column_collation(c), c.ty));
        IndexColumn { column: number, collation, ..IndexColumn::default() }
    }

    /// A column's collation: its own, or its type's.
    pub fn column_collation(&self, column: &Column) -> Id {
        if column.collation != 0 { column.collation } else { self.type_collation(column.ty) }
    }
}
