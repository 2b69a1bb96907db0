//! The built-in types: `table/types.txt`, which has PostgreSQL's facts, read once.

use std::collections::HashMap;
use std::sync::OnceLock;

use base::Oid;

use crate::oids;

/// What is known about a built-in type (a row of `pg_type`).
#[derive(Clone, Copy)]
pub struct TypeIo {
    /// Its oid.
    pub oid: Oid,
    /// Internal name (`int4`).
    pub name: &'static str,
    /// Name as `format_type` prints it (`integer`).
    pub sql_name: &'static str,
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
        let rows: Vec<TypeIo> = include_str!("../table/types.txt")
            .lines()
            .filter(|l| !l.starts_with('#'))
            .map(row)
            .collect();
        let top = rows.iter().map(|r| r.oid.0 as usize + 1).max().unwrap_or(0);
        let mut by_oid = vec![NONE; top];
        let mut by_name = HashMap::new();
        for (i, r) in rows.iter().enumerate() {
            by_oid[r.oid.0 as usize] = i as u16;
            by_name.insert(r.name, i as u16);
        }
        Index { rows, by_oid, by_name }
    })
}

fn row(line: &'static str) -> TypeIo {
    let f: Vec<&'static str> = line.split('\t').collect();
    let number = |i: usize| f[i].parse::<i64>().expect("the table is checked by a test");
    let oid = |i: usize| Oid(number(i) as u32);
    let letter = |i: usize| f[i].as_bytes()[0];
    TypeIo {
        oid: oid(0),
        name: f[1],
        sql_name: f[2],
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
    /// The type with this oid (arrays of built-in types included).
    pub fn get(oid: Oid) -> Option<&'static TypeIo> {
        let index = index();
        let at = *index.by_oid.get(oid.0 as usize)?;
        index.rows.get(usize::from(at))
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
