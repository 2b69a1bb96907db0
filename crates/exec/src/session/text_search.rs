//! Functions of text search that run a query of the user's: `ts_stat`, and `ts_rewrite` by a table.

use std::collections::BTreeMap;

use base::{Result, err};
use textsearch::query::TsQuery;
use textsearch::rewrite::rewrite;
use textsearch::vector::TsVector;
use types::func::SessionFunction as F;
use types::{Datum, FunctionRow, Text, oids};

use crate::run::Run;
use crate::session::args::text_at;
use crate::spi;

/// Functions of this file.
///
/// # Errors
/// The query's.
pub fn call(
    function: F,
    row: &'static FunctionRow,
    args: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Option<Datum>> {
    Ok(Some(match (function, args) {
        (F::TsStat, [_]) => statistics(row, text_at(args, 0), 0, run)?,
        (F::TsStat, [_, _]) => {
            let weights = text_at(args, 1).chars().map(|c| match c.to_ascii_uppercase() {
                'A' => 8,
                'B' => 4,
                'C' => 2,
                'D' => 1,
                _ => 0,
            });
            let weights = weights.fold(0, |all, one| all | one);
            statistics(row, text_at(args, 0), weights, run)?
        }
        (F::TsqueryRewriteQuery, [query, _]) => rewritten(query.as_open(), text_at(args, 1), run)?,
        _ => return Ok(None),
    }))
}

/// In how many documents each lexeme is, and how often; with `weights` (bits from D to A) places of these count
/// only.
fn statistics(
    function: &'static FunctionRow,
    text: &str,
    weights: u8,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    let mut counts: BTreeMap<Text, (i32, i32)> = BTreeMap::new();
    let wrong = || err!(INVALID_PARAMETER_VALUE, "ts_stat query must return one tsvector column");
    let role = run.cx.role;
    spi::query_as(role, text, run.cx, &mut |row| {
        let vector = match row {
            [Datum::Null] => return Ok(()),
            [Datum::Open(open)] => open.get::<TsVector>().ok_or_else(wrong)?,
            _ => return Err(wrong()),
        };
        for lexeme in &vector.lexemes {
            sched::check_interrupts()?;
            let entries = match weights {
                0 => lexeme.positions.len().max(1),
                _ => lexeme.positions.iter().filter(|p| weights >> p.weight() & 1 == 1).count(),
            };
            if entries > 0 {
                let count = counts.entry(lexeme.word.clone()).or_default();
                count.0 += 1;
                count.1 = count.1.saturating_add(entries as i32);
            }
        }
        Ok(())
    })?;
    let row = |(word, (documents, entries)): (Text, (i32, i32))| {
        let fields = vec![Datum::Text(word), Datum::Int4(documents), Datum::Int4(entries)];
        super::objects::record(function, fields)
    };
    Ok(Datum::array(oids::RECORD, counts.into_iter().map(row).collect()))
}

/// A query after every replacement that the rows of another one name.
fn rewritten(query: &TsQuery, text: &str, run: &mut Run<'_, '_>) -> Result<Datum> {
    let wrong =
        || err!(INVALID_PARAMETER_VALUE, "ts_rewrite query must return two tsquery columns");
    let mut result = query.clone();
    let role = run.cx.role;
    spi::query_as(role, text, run.cx, &mut |row| {
        let (target, substitute) = match row {
            [Datum::Open(a), Datum::Open(b)] => {
                (a.get::<TsQuery>().ok_or_else(wrong)?, b.get::<TsQuery>().ok_or_else(wrong)?)
            }
            [Datum::Null, _] | [_, Datum::Null] => return Ok(()),
            _ => return Err(wrong()),
        };
        result = rewrite(&result, target, substitute)?;
        Ok(())
    })?;
    Ok(Datum::open(result))
}
