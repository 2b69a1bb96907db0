//! Properties of each type. The built-in ones stand in `table/types.txt`, which has PostgreSQL's
//! facts, read once.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use base::Oid;

use crate::datum::Text;
use crate::{oids, user};

/// The facts about a type (a row of `pg_type`).
#[derive(Clone, Debug)]
pub struct TypeIo {
    /// Its oid.
    pub oid: Oid,
    /// Internal name (`int4`).
    pub name: Text,
    /// Name as `format_type` prints it (`integer`).
    pub sql_name: Text,
    /// The array type over it.
    pub array: Oid,
    /// Element type when it is an array (int2vector and oidvector are).
    pub element: Oid,
    /// `typlen`: bytes, -1 variable, -2 cstring.
    pub len: i16,
    /// `typcategory`.
    pub category: u8,
    /// `typispreferred`.
    pub preferred: bool,
    /// Whether it passes by value in PostgreSQL (`typbyval`), for the catalog.
    pub by_value: bool,
    /// `typalign`.
    pub align: u8,
}

/// A type that was looked up.
#[derive(Clone, Debug)]
pub enum TypeRef {
    /// One of the table's.
    BuiltIn(&'static TypeIo),
    /// One that a user made.
    User(Arc<user::UserType>),
}

impl Deref for TypeRef {
    type Target = TypeIo;
    fn deref(&self) -> &TypeIo {
        match self {
            TypeRef::BuiltIn(io) => io,
            TypeRef::User(user) => &user.io,
        }
    }
}

struct Index {
    rows: Vec<TypeIo>,
    /// Position in `rows` by oid; `NONE` where there is no type.
    by_oid: Vec<u16>,
    by_name: HashMap<&'static str, u16>,
}

const NONE: u16 = u16::MAX;

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut rows: Vec<TypeIo> = lines().map(row).collect();
        rows.sort_by_key(|r| r.oid);
        let top = rows.iter().map(|r| r.oid.0 as usize + 1).max().unwrap_or(0);
        let mut by_oid = vec![NONE; top];
        for (i, r) in rows.iter().enumerate() {
            by_oid[r.oid.0 as usize] = i as u16;
        }
        let name = |l: &'static str| {
            let mut fields = l.split('\t');
            let oid: usize = fields.next()?.parse().ok()?;
            Some((fields.next()?, *by_oid.get(oid)?))
        };
        let by_name = lines().filter_map(name).collect();
        Index { rows, by_oid, by_name }
    })
}

fn lines() -> impl Iterator<Item = &'static str> {
    crate::open::tables(include_str!("../table/types.txt"), |p| p.types)
        .flat_map(str::lines)
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
}

fn row(line: &'static str) -> TypeIo {
    let f: Vec<&'static str> = line.split('\t').collect();
    let number = |i: usize| f[i].parse::<i64>().expect("the table is checked by a test");
    let oid = |i: usize| Oid(number(i) as u32);
    let letter = |i: usize| f[i].as_bytes()[0];
    TypeIo {
        oid: oid(0),
        name: f[1].into(),
        sql_name: f[2].into(),
        array: oid(3),
        element: oid(4),
        len: number(5) as i16,
        category: letter(6),
        preferred: f[7] == "t",
        by_value: f[8] == "t",
        align: letter(9),
    }
}

impl TypeIo {
    /// The type with this oid: a built-in one, or one that the running task knows of
    /// ([`crate::user`]).
    pub fn get(oid: Oid) -> Option<TypeRef> {
        if user::is_user(oid) {
            return user::get(oid).map(TypeRef::User);
        }
        let index = index();
        let at = *index.by_oid.get(oid.0 as usize)?;
        index.rows.get(usize::from(at)).map(TypeRef::BuiltIn)
    }

    /// By internal name.
    pub fn by_name(name: &str) -> Option<&'static TypeIo> {
        let index = index();
        index.by_name.get(name).map(|i| &index.rows[usize::from(*i)])
    }

    /// All, by oid.
    pub fn all() -> &'static [TypeIo] {
        &index().rows
    }

    /// Element type of a true array type (not of int2vector and oidvector).
    pub fn array_element(oid: Oid) -> Option<Oid> {
        let t = TypeIo::get(oid)?;
        let vector = oid == oids::INT2VECTOR || oid == oids::OIDVECTOR;
        (t.element != Oid::INVALID && !vector).then_some(t.element)
    }
}

/// Whether a type's text depends on nothing but the value: no setting, no catalog.
pub fn writes_immutably(ty: Oid) -> bool {
    let ty = crate::user::base_type(ty, -1).0;
    !(super::is_reg(ty)
        || crate::user::is_user(ty)
        || TypeIo::get(ty)
            .is_none_or(|t| matches!(t.category, b'A' | b'R' | b'E') && !is_vector(ty))
        || matches!(
            ty,
            oids::DATE
                | oids::INTERVAL
                | oids::MONEY
                | oids::TIMESTAMP
                | oids::TIMESTAMPTZ
                | oids::RECORD
        ))
}

/// Whether what a text means as a value of a type depends on nothing else.
pub fn reads_immutably(ty: Oid) -> bool {
    !matches!(ty, oids::TIME | oids::TIMETZ) && !crate::user::is_user(ty) && writes_immutably(ty)
}

fn is_vector(ty: Oid) -> bool {
    matches!(ty, oids::INT2VECTOR | oids::OIDVECTOR)
}
