//! Types that users made, and the types of tables' rows, as `types` wants to know them.

use std::sync::Arc;

use base::{Oid, Result};
use types::datum::Shape;
use types::func::{CastContext, CastMethod, CastRow};
use types::user::{Directory, TextSearch, UserKind, UserType};
use types::{Text, TypeIo};

use crate::object::{Column, Defined, Id, Table, UserTypeKind, ids};
use crate::snapshot::{Snapshot, TypeId};
use crate::system::reg::Names;

/// A view of the catalog with the schemas that names are searched in: a task's directory of types.
#[derive(Clone)]
pub struct TypeView {
    /// The catalog.
    pub catalog: Arc<Snapshot>,
    /// Schemas to search.
    pub path: Arc<[Id]>,
}

impl Directory for TypeView {
    fn get(&self, ty: Oid) -> Option<Arc<UserType>> {
        self.catalog.known_type(ty.0)
    }

    fn name(&self, ty: Oid) -> Option<String> {
        self.catalog.type_name(&self.path, ty.0)
    }

    fn cast(&self, source: Oid, target: Oid) -> Option<CastRow> {
        let own = self.catalog.cast(source.0, target.0)?;
        Some(CastRow {
            source,
            target,
            context: match own.context {
                'i' => CastContext::Implicit,
                'a' => CastContext::Assignment,
                _ => CastContext::Explicit,
            },
            method: match own.method {
                'f' => CastMethod::Function(Oid(own.function)),
                'i' => CastMethod::InOut,
                _ => CastMethod::Binary,
            },
        })
    }

    fn object_name(&self, kind: Oid, id: Id) -> Option<String> {
        Some(self.names().shown(kind, id))
    }

    fn object_named(&self, kind: Oid, text: &str) -> Option<Result<Id>> {
        Some(self.names().expect(kind, text))
    }

    fn text_search_parser(&self, name: &str) -> bool {
        let (schema, name) = match name.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, name),
        };
        self.catalog.text_search_named(&self.path, "p", schema, name).is_some()
    }

    fn text_search(&self, kind: Oid, id: Id) -> Option<Arc<TextSearch>> {
        match self.catalog.defined_by_oid(id).map(|d| &**d) {
            Some(Defined::TextSearchConfig(c)) => {
                let ids = |ids: &[Id]| ids.iter().map(|id| Oid(*id)).collect();
                let map = c.map.iter().map(|(kind, list)| (*kind, ids(list))).collect();
                Some(Arc::new(TextSearch::Config { parser: Oid(c.parser), map }))
            }
            Some(Defined::TextSearchDictionary(d)) => Some(Arc::new(TextSearch::Dictionary {
                template: Oid(d.template),
                options: d.options.as_str().into(),
            })),
            Some(Defined::TextSearchTemplate(t)) => {
                Some(Arc::new(TextSearch::Template { code: t.code.as_str().into() }))
            }
            Some(Defined::TextSearchParser(_)) => Some(Arc::new(TextSearch::Parser)),
            _ => crate::system::text_search::object(kind, id),
        }
    }
}

impl TypeView {
    fn names(&self) -> Names<'_> {
        Names { catalog: &self.catalog, path: &self.path, database: None }
    }
}

impl Snapshot {
    /// The facts known of a user's type, a table's row type, or an array type over one of them.
    pub fn known_type(&self, ty: Id) -> Option<Arc<UserType>> {
        let (both, array) = match self.type_id(ty)? {
            TypeId::User(id, array) => {
                let user = self.user_type(id)?;
                let both = user.known.0.get_or_init(|| {
                    let (io, kind) = self.describe(user);
                    with_array(io, kind, user.array)
                });
                (both, array)
            }
            TypeId::Row(id, array) => {
                let table = self.table(id)?;
                (table.known.0.get_or_init(|| row_type(table)), array)
            }
        };
        Some(both[usize::from(array)].clone())
    }

    fn describe(&self, user: &crate::UserType) -> (TypeIo, UserKind) {
        let io = plain(user.oid, &user.name, user.array);
        match &user.kind {
            UserTypeKind::Enum(labels) => {
                let mut labels: Vec<(u64, Text)> =
                    labels.iter().map(|l| (l.rank, l.name.as_str().into())).collect();
                labels.sort_by_key(|(rank, _)| *rank);
                let io = TypeIo { len: 4, category: b'E', by_value: true, align: b'i', ..io };
                (io, UserKind::Enum(labels))
            }
            UserTypeKind::Domain { base, typmod, .. } => {
                let kind = UserKind::Domain { base: Oid(*base), typmod: *typmod };
                let below = match self.known_type(*base) {
                    Some(user) => Some(user.io.clone()),
                    None => TypeIo::get(Oid(*base)).map(|io| TypeIo::clone(&io)),
                };
                let Some(below) = below else { return (io, kind) };
                let TypeIo { len, category, by_value, align, .. } = below;
                (TypeIo { len, category, by_value, align, ..io }, kind)
            }
            UserTypeKind::Composite(columns) => (io, composite(user.oid, columns)),
            UserTypeKind::Range(range) => {
                let below = self.known_type(range.subtype).map(|user| user.io.align);
                let align = below.or_else(|| TypeIo::get(Oid(range.subtype)).map(|io| io.align));
                let align = if align == Some(b'd') { b'd' } else { b'i' };
                let (subtype, multirange) = (Oid(range.subtype), Oid(range.multirange));
                let io = TypeIo { category: b'R', align, ..io };
                (io, UserKind::Range { subtype, multirange })
            }
            UserTypeKind::Multirange { range } => {
                let io = TypeIo { category: b'R', ..io };
                (io, UserKind::Multirange { range: Oid(*range) })
            }
            UserTypeKind::Base(base) => {
                let io = TypeIo {
                    len: base.length,
                    category: base.category as u8,
                    preferred: base.preferred,
                    by_value: base.by_value,
                    align: base.align as u8,
                    ..io
                };
                if base.open.is_empty() {
                    return (io, UserKind::Base { form: Oid(base.form) });
                }
                match types::extension::open_type(&base.open) {
                    Some(class) => (io, UserKind::Open(types::open::Class(class))),
                    // The code is gone: so are the values.
                    None => (TypeIo { category: b'P', ..io }, UserKind::Shell),
                }
            }
            UserTypeKind::Shell => (TypeIo { category: b'P', ..io }, UserKind::Shell),
        }
    }

    /// A type's name as `format_type` prints it, with its schema unless the path finds it.
    pub fn type_name(&self, path: &[Id], ty: Id) -> Option<String> {
        if let Some((schema, name, array)) = crate::system::facts::type_place(ty) {
            let name = types::func::quote_ident(name);
            let found = schema == ids::PG_CATALOG || path.contains(&schema);
            let schema = if found { "" } else { "information_schema." };
            return Some(format!("{schema}{name}{}", if array { "[]" } else { "" }));
        }
        let (schema, name) = match self.type_id(ty)? {
            TypeId::User(id, false) => {
                self.user_type(id).map(|user| (user.schema, user.name.as_str()))?
            }
            TypeId::Row(id, false) => {
                self.table(id).map(|table| (table.schema, table.name.as_str()))?
            }
            TypeId::User(id, true) => {
                return Some(self.type_name(path, id)? + "[]");
            }
            TypeId::Row(id, true) => {
                return Some(self.type_name(path, self.table(id)?.row_type[0])? + "[]");
            }
        };
        let quoted = types::func::quote_ident(name);
        let built_in = TypeIo::by_name(name).is_some();
        if !built_in && self.type_oid(path, None, name) == Some(ty) {
            return Some(quoted);
        }
        let schema = self.schema(schema).map(|s| types::func::quote_ident(&s.name));
        Some(schema.map_or(quoted.clone(), |schema| format!("{schema}.{quoted}")))
    }

    /// Whether the path finds the type by its name alone.
    pub fn type_is_visible(&self, path: &[Id], ty: Id) -> bool {
        let found = match self.type_id(ty) {
            Some(TypeId::User(id, array)) => self.user_type(id).map(|u| (&u.name, u.oid, array)),
            Some(TypeId::Row(id, array)) => self.table(id).map(|t| (&t.name, t.row_type[0], array)),
            None => {
                let place = crate::system::facts::type_place(ty);
                return place.is_some_and(|(s, ..)| s == ids::PG_CATALOG || path.contains(&s));
            }
        };
        found.is_some_and(|(name, oid, _)| self.type_oid(path, None, name) == Some(oid))
    }

    /// The schema, the owner and the name of a type (of an array type: with an underscore).
    pub fn type_place(&self, ty: Id) -> Option<(Id, Id, String)> {
        let (schema, owner, name, array) = match self.type_id(ty)? {
            TypeId::User(id, array) => {
                let user = self.user_type(id)?;
                (user.schema, user.owner, &user.name, array)
            }
            TypeId::Row(id, array) => {
                let table = self.table(id)?;
                (table.schema, table.owner, &table.name, array)
            }
        };
        let name = if array { array_name(name) } else { name.clone() };
        Some((schema, owner, name))
    }
}

/// The name of an array type.
pub fn array_name(name: &str) -> String {
    types::io::cut_name(&format!("_{name}")).to_owned()
}

fn plain(oid: Id, name: &str, array: Id) -> TypeIo {
    TypeIo {
        oid: Oid(oid),
        name: name.into(),
        sql_name: types::func::quote_name(name).into(),
        array: Oid(array),
        element: Oid::INVALID,
        len: -1,
        category: b'C',
        preferred: false,
        by_value: false,
        align: b'd',
    }
}

fn composite(ty: Id, columns: &[Column]) -> UserKind {
    let live = || columns.iter().enumerate().filter(|(_, c)| !c.dropped);
    let typmods = live().map(|(_, c)| c.typmod).collect();
    let places = live().map(|(n, _)| n as u16).collect();
    let columns = live().map(|(_, c)| (c.name.as_str().into(), Oid(c.ty))).collect();
    UserKind::Composite { shape: Arc::new(Shape { ty: Oid(ty), columns }), typmods, places }
}

fn row_type(table: &Table) -> [Arc<UserType>; 2] {
    let [row, array] = table.row_type;
    with_array(plain(row, &table.name, array), composite(row, &table.columns), array)
}

fn with_array(io: TypeIo, kind: UserKind, array: Id) -> [Arc<UserType>; 2] {
    let over = TypeIo {
        oid: Oid(array),
        name: array_name(&io.name).into(),
        sql_name: format!("{}[]", io.sql_name).into(),
        array: Oid::INVALID,
        element: io.oid,
        len: -1,
        category: b'A',
        preferred: false,
        by_value: false,
        align: if io.align == b'd' { b'd' } else { b'i' },
    };
    let over = UserType { io: over, kind: UserKind::Array };
    [Arc::new(UserType { io, kind }), Arc::new(over)]
}
