//! `pg_mcv_list_items`: the items of a value of `pg_mcv_list`, which is text here: a JSON array of
//! `[values, frequency, base frequency]`.

use std::sync::Arc;

use base::Result;

use crate::datum::{Datum, Shape, Text};
use crate::json;
use crate::oids;

use super::{Body, NamedBody};

fn items(list: &str) -> Result<Vec<Datum>> {
    let names = [
        ("index", oids::INT4),
        ("values", base::Oid(1009)),
        ("nulls", base::Oid(1000)),
        ("frequency", oids::FLOAT8),
        ("base_frequency", oids::FLOAT8),
    ];
    let columns = names.iter().map(|(name, ty)| (Text::from(*name), *ty)).collect();
    let shape = Arc::new(Shape { ty: oids::RECORD, columns });
    let share = |text: Option<&&str>| {
        let share = text.and_then(|t| t.trim().parse().ok());
        share.map_or(Datum::Null, Datum::Float8)
    };
    let mut out = Vec::new();
    for (n, item) in json::items(list)?.into_iter().enumerate() {
        let parts = json::items(item)?;
        let (mut values, mut nulls) = (Vec::new(), Vec::new());
        for value in json::items(parts.first().copied().unwrap_or("[]"))? {
            let text = json::plain_text(value)?;
            nulls.push(Datum::Bool(text.is_none()));
            values.push(text.map_or(Datum::Null, |t| Datum::text(&t)));
        }
        let row = vec![
            Datum::Int4(n as i32),
            Datum::array(oids::TEXT, values),
            Datum::array(oids::BOOL, nulls),
            share(parts.get(1)),
            share(parts.get(2)),
        ];
        out.push(Datum::record(shape.clone(), row));
    }
    Ok(out)
}

pub(super) fn bodies() -> Vec<NamedBody> {
    vec![("pg_mcv_list_items", Body::Set(|a, _| items(a[0].as_str())))]
}
