//! Estimates by extended statistics: what conditions about several columns keep together, how many groups several columns
//! make, and statistics of expressions.
//!
//! A condition about columns and expressions of one object is looked up among its most common combinations; what is
//! left over is estimated by columns. Equalities on columns that decide each other count once
//! (`P(a, b) = P(a) · (f + (1 − f) · P(b))` where `a => b` holds for the share `f` of the rows). Objects that cover more
//! conditions come first. The rules are those of PostgreSQL's manual, chapter "Multivariate Statistics Examples".

use std::rc::Rc;

use catalog::object::{ColumnStats, ExtendedData};
use types::Datum;
use types::func::CallTypes;

use crate::expr::Expr;
use crate::logical::TableRel;
use crate::plan::ScanColumn;
use crate::walk;

use super::Planner;

/// What statistics are about: a column, from 1, or an expression over a row in table order.
#[derive(Clone)]
enum Attribute {
    Column(u16),
    Computed(Expr),
}

impl Attribute {
    fn is(&self, other: &Attribute) -> bool {
        match (self, other) {
            (Attribute::Column(a), Attribute::Column(b)) => a == b,
            (Attribute::Computed(a), Attribute::Computed(b)) => walk::same(a, b),
            _ => false,
        }
    }
}

/// A statistics object of a table, bound.
pub(crate) struct Object {
    attributes: Vec<Attribute>,
    /// Its place among the table's data.
    data: usize,
    /// Values of the common combinations, once somebody asked.
    common: std::cell::OnceCell<Option<Vec<Vec<Datum>>>>,
    types: Vec<base::Oid>,
}

impl Object {
    /// The place of an attribute.
    fn place(&self, of: &Attribute) -> Option<usize> {
        self.attributes.iter().position(|a| a.is(of))
    }

    /// The place of an attribute by the number that data has for it.
    fn numbered(&self, n: i16) -> Option<usize> {
        let columns = self.attributes.iter().filter(|a| matches!(a, Attribute::Column(_))).count();
        match u16::try_from(n) {
            Ok(n) => self.place(&Attribute::Column(n)),
            Err(_) => Some(columns + usize::from(n.unsigned_abs()) - 1),
        }
    }
}

/// A table's extended statistics and those of its indexes' expressions.
#[derive(Default)]
pub(crate) struct Extended {
    objects: Vec<Object>,
    /// Expressions of indexes, with their places among the table's statistics.
    keys: Vec<(Expr, usize)>,
}

/// Which attributes a condition is about, all of them; what kind of condition it is decides who can use it.
struct Use {
    /// Place of the condition in its list.
    at: usize,
    attributes: Vec<Attribute>,
}

impl Planner<'_> {
    /// A table's extended statistics, bound; None where there are none.
    fn extended(&self, table: u32) -> Option<Rc<Extended>> {
        if let Some(known) = self.extended.borrow().get(&table) {
            return known.clone();
        }
        let found = self.bind_extended(table).map(Rc::new);
        self.extended.borrow_mut().insert(table, found.clone());
        found
    }

    fn bind_extended(&self, id: u32) -> Option<Extended> {
        let stats = self.cx.catalog.stats(id)?;
        if stats.extended.is_empty() && stats.keys.is_empty() {
            return None;
        }
        let table = self.cx.catalog.table(id)?;
        let bind = |texts: &[&str]| crate::stored::row_expressions(self.cx, table, texts).ok();
        let mut out = Extended::default();
        for (data, found) in stats.extended.iter().enumerate() {
            let Some(object) = self.cx.catalog.statistics_object(found.statistics) else {
                continue;
            };
            let texts: Vec<&str> = object.expressions.iter().map(|e| e.sql.as_str()).collect();
            let Some(bound) = bind(&texts) else { continue };
            let columns = object.columns.iter().map(|n| Attribute::Column(*n));
            let of_column = |n: &u16| base::Oid(table.columns[usize::from(*n) - 1].ty);
            let computed = object.expressions.iter().map(|e| base::Oid(e.ty));
            out.objects.push(Object {
                attributes: columns.chain(bound.into_iter().map(Attribute::Computed)).collect(),
                data,
                common: std::cell::OnceCell::new(),
                types: object.columns.iter().map(of_column).chain(computed).collect(),
            });
        }
        for (place, key) in stats.keys.iter().enumerate() {
            let Some(index) = self.cx.catalog.index(key.index) else { continue };
            let of = index.columns.get(usize::from(key.place));
            let Some(sql) = of.and_then(|c| c.expression.as_ref()).map(|e| e.sql.as_str()) else {
                continue;
            };
            let bound = bind(&[sql]).and_then(|mut b| b.pop());
            out.keys.extend(bound.map(|e| (e, place)));
        }
        Some(out)
    }

    /// An expression over a table as its statistics have it: over a row in table order, with the values of literals. None
    /// when other columns are in it, or none.
    fn over_row(&self, table: &TableRel, e: &Expr) -> Option<Expr> {
        self.row_form(e, &|col| match table.column(col)? {
            ScanColumn::Attr(n) => Some(n),
            _ => None,
        })
    }

    fn row_form(&self, e: &Expr, number: &dyn Fn(u16) -> Option<u16>) -> Option<Expr> {
        Some(match e {
            Expr::Column(col, ty) => Expr::Column(number(*col)? - 1, *ty),
            Expr::Param(n, ty) => Expr::Const(self.known.get(*n as usize)?.clone()?, *ty),
            other => {
                let mut whole = true;
                let moved = walk::map_children(other.clone(), &mut |c| {
                    Ok(self.row_form(&c, number).unwrap_or_else(|| {
                        whole = false;
                        c
                    }))
                });
                moved.ok().filter(|_| whole)?
            }
        })
    }

    fn attribute(&self, table: &TableRel, e: &Expr) -> Option<Attribute> {
        match super::selectivity::plain_column(e).and_then(|c| table.column(c)) {
            Some(ScanColumn::Attr(n)) => Some(Attribute::Column(n)),
            Some(_) => None,
            None if !walk::has_columns(e) => None,
            None => self.over_row(table, e).map(Attribute::Computed),
        }
    }

    /// What is known of an expression over a table, by extended statistics or by an index.
    pub fn expression_stats(&self, table: &TableRel, e: &Expr) -> Option<&ColumnStats> {
        let id = table.table.oid;
        let extended = self.extended(id)?;
        let e = self.over_row(table, e)?;
        self.stats_of_row_form(id, &extended, &e)
    }

    fn stats_of_row_form(&self, id: u32, extended: &Extended, e: &Expr) -> Option<&ColumnStats> {
        let stats = self.cx.catalog.stats(id)?;
        for object in &extended.objects {
            let columns = object.attributes.iter().filter(|a| matches!(a, Attribute::Column(_)));
            let first = columns.count();
            let is = |a: &Attribute| matches!(a, Attribute::Computed(own) if walk::same(own, e));
            if let Some(at) = object.attributes.iter().position(is) {
                let found = stats.extended.get(object.data)?.expressions.get(at - first);
                if found.is_some() {
                    return found;
                }
            }
        }
        let (_, place) = extended.keys.iter().find(|(own, _)| walk::same(own, e))?;
        Some(&stats.keys.get(*place)?.stats)
    }

    /// Share of a table's rows that conditions keep as far as extended statistics know, and which conditions they have
    /// used. `any`: rows are kept that satisfy one of them.
    pub fn extended_share(
        &self,
        table: &TableRel,
        conditions: &[Expr],
        any: bool,
    ) -> Option<(f64, Vec<usize>)> {
        if conditions.len() < 2 {
            return None;
        }
        let extended = self.extended(table.table.oid)?;
        let stats = self.cx.catalog.stats(table.table.oid)?;
        let mut used = Vec::new();
        let mut share = if any { 0.0 } else { 1.0 };
        // By common combinations.
        let uses: Vec<Use> = (0..conditions.len())
            .filter_map(|at| {
                let mut attributes = Vec::new();
                self.attributes(table, &conditions[at], &mut attributes)
                    .then_some(Use { at, attributes })
            })
            .collect();
        loop {
            let open: Vec<&Use> = uses.iter().filter(|u| !used.contains(&u.at)).collect();
            let has_list = |o: &&Object| !stats.extended[o.data].common.is_empty();
            let Some(object) = best(extended.objects.iter().filter(has_list), &open) else { break };
            let covered = open.iter().filter(|u| covers(object, u));
            let covered: Vec<&&Use> = covered.collect();
            let of_list = self.common_share(table, object, conditions, &covered, any);
            used.extend(covered.iter().map(|u| u.at));
            match of_list {
                Some(kept) if any => share = share + kept - share * kept,
                Some(kept) => share *= kept,
                None => return None,
            }
        }
        if !any {
            share *= self.dependent_share(table, &extended, conditions, &mut used);
        }
        (!used.is_empty()).then_some((share.clamp(0.0, 1.0), used))
    }

    /// Adds what a condition is about, if statistics can answer it alone: comparisons with known values, tests for NULL,
    /// and what AND, OR and NOT make of such.
    fn attributes(&self, table: &TableRel, e: &Expr, out: &mut Vec<Attribute>) -> bool {
        let mut add = |e: &Expr| match self.attribute(table, e) {
            Some(found) => {
                if !out.iter().any(|a| a.is(&found)) {
                    out.push(found);
                }
                true
            }
            None => false,
        };
        match e {
            Expr::And(items) | Expr::Or(items) => {
                items.iter().all(|item| self.attributes(table, item, out))
            }
            Expr::Not(inner) => self.attributes(table, inner, out),
            Expr::IsNull { arg, .. } => add(arg),
            Expr::Column(_, types::oids::BOOL) => add(e),
            Expr::Call { function, args, .. } => match &**args {
                [a, b]
                    if super::selectivity::comparison_name(function).is_some()
                        || walk::is_operator(function, "<>") =>
                {
                    match (self.estimated(a), self.estimated(b)) {
                        (None, Some(_)) => add(a),
                        (Some(_), None) => add(b),
                        _ => false,
                    }
                }
                _ => *e_type(e) == types::oids::BOOL && self.computes_bool(table, e) && add(e),
            },
            Expr::ArrayOp { left, array, .. } => self.array_items(array).is_some() && add(left),
            Expr::Case { ty: types::oids::BOOL, .. } => self.computes_bool(table, e) && add(e),
            _ => false,
        }
    }

    /// Whether an expression that gives a truth value is one that statistics are about.
    fn computes_bool(&self, table: &TableRel, e: &Expr) -> bool {
        self.expression_stats(table, e).is_some()
    }

    /// The items of an array as far as they are known.
    pub fn array_items(&self, array: &Expr) -> Option<Vec<Datum>> {
        match array {
            Expr::Array { items, .. } => items.iter().map(|i| self.estimated(i)).collect(),
            Expr::Relabel(inner, _) => self.array_items(inner),
            e => match self.estimated(e)? {
                Datum::Array(a) => Some(a.items.clone()),
                _ => None,
            },
        }
    }

    /// The common combinations of an object as values.
    fn common_values<'o>(
        &self,
        object: &'o Object,
        data: &ExtendedData,
    ) -> Option<&'o Vec<Vec<Datum>>> {
        let value = |(text, ty): (&Option<String>, &base::Oid)| match text {
            None => Some(Datum::Null),
            Some(text) => types::io::input(*ty, -1, text, self.cx.format).ok(),
        };
        let read = || {
            let row = |values: &Vec<Option<String>>| {
                values.iter().zip(&object.types).map(value).collect()
            };
            data.common.iter().map(|item| row(&item.values)).collect()
        };
        object.common.get_or_init(read).as_ref()
    }

    /// Share of the rows by an object's common combinations, and by columns for the others.
    fn common_share(
        &self,
        table: &TableRel,
        object: &Object,
        conditions: &[Expr],
        covered: &[&&Use],
        any: bool,
    ) -> Option<f64> {
        let data = &self.cx.catalog.stats(table.table.oid)?.extended[object.data];
        let values = self.common_values(object, data)?;
        let total: f64 = data.common.iter().map(|i| i.frequency).sum();
        let matching = |e: &Expr| -> Option<Vec<bool>> {
            values
                .iter()
                .map(|row| Some(self.holds(table, object, e, row)? == Some(true)))
                .collect()
        };
        let sums = |matched: &[bool]| {
            let kept = data.common.iter().zip(matched).filter(|(_, m)| **m).map(|(i, _)| i);
            kept.fold((0.0, 0.0), |(f, b), i| (f + i.frequency, b + i.base_frequency))
        };
        let combine = |simple: f64, (kept, base): (f64, f64)| {
            let other = (simple - base).clamp(0.0, 1.0).min((1.0 - total).max(0.0));
            (kept + other).clamp(0.0, 1.0)
        };
        if !any {
            let list: Vec<Expr> = covered.iter().map(|u| conditions[u.at].clone()).collect();
            let simple = self.by_columns(table, &list);
            let mut all = vec![true; values.len()];
            for e in &list {
                for (kept, now) in all.iter_mut().zip(matching(e)?) {
                    *kept &= now;
                }
            }
            return Some(combine(simple, sums(&all)));
        }
        let mut share = 0.0;
        let mut before = vec![false; values.len()];
        for u in covered {
            let e = &conditions[u.at];
            let simple = self.by_columns(table, std::slice::from_ref(e));
            let matched = matching(e)?;
            let own = match u.attributes.len() {
                1 => simple,
                _ => combine(simple, sums(&matched)),
            };
            let both: Vec<bool> = matched.iter().zip(&before).map(|(a, b)| *a && *b).collect();
            let overlap = combine(simple * share, sums(&both));
            share = (share + own - overlap).clamp(0.0, 1.0);
            for (seen, now) in before.iter_mut().zip(matched) {
                *seen |= now;
            }
        }
        Some(share)
    }

    /// Whether a condition holds for a combination (Some(None): NULL); None: that can't be found out.
    fn holds(
        &self,
        table: &TableRel,
        object: &Object,
        e: &Expr,
        row: &[Datum],
    ) -> Option<Option<bool>> {
        let value = |e: &Expr| -> Option<Datum> {
            match self.estimated(e) {
                Some(known) => Some(known),
                None => Some(row[object.place(&self.attribute(table, e)?)?].clone()),
            }
        };
        let truth = |value: Datum| match value {
            Datum::Bool(b) => Some(Some(b)),
            Datum::Null => Some(None),
            _ => None,
        };
        match e {
            Expr::And(items) => {
                let mut all = Some(true);
                for item in items.iter() {
                    match self.holds(table, object, item, row)? {
                        Some(true) => {}
                        Some(false) => return Some(Some(false)),
                        None => all = None,
                    }
                }
                Some(all)
            }
            Expr::Or(items) => {
                let mut any = Some(false);
                for item in items.iter() {
                    match self.holds(table, object, item, row)? {
                        Some(true) => return Some(Some(true)),
                        Some(false) => {}
                        None => any = None,
                    }
                }
                Some(any)
            }
            Expr::Not(inner) => Some(self.holds(table, object, inner, row)?.map(|b| !b)),
            Expr::IsNull { arg, negated } => Some(Some(value(arg)?.is_null() != *negated)),
            Expr::ArrayOp { function, left, array, all } => {
                let own = value(left)?;
                let items = self.array_items(array)?;
                let types = [left.ty(), element_type(array)];
                let mut out = Some(*all);
                for item in items {
                    match self.compare(function, [own.clone(), item], types)? {
                        Some(found) if found != *all => return Some(Some(found)),
                        Some(_) => {}
                        None => out = None,
                    }
                }
                Some(out)
            }
            Expr::Call { function, args, .. }
                if object.place(&self.attribute(table, e)?).is_none() =>
            {
                let [a, b] = &**args else { return None };
                self.compare(function, [value(a)?, value(b)?], [a.ty(), b.ty()])
            }
            e => truth(value(e)?),
        }
    }

    fn compare(
        &self,
        function: &types::func::FunctionRow,
        values: [Datum; 2],
        types: [base::Oid; 2],
    ) -> Option<Option<bool>> {
        if values.iter().any(Datum::is_null) {
            return Some(None);
        }
        let types = CallTypes { args: &types, result: types::oids::BOOL };
        match function.body.run(&values, types, self.cx.format)? {
            Ok(Datum::Bool(b)) => Some(Some(b)),
            Ok(_) => Some(None),
            Err(error) => {
                crate::prepare::keep_interrupt(&error);
                None
            }
        }
    }

    /// What functional dependencies say of equalities; conditions that they have used are added to `used`.
    fn dependent_share(
        &self,
        table: &TableRel,
        extended: &Extended,
        conditions: &[Expr],
        used: &mut Vec<usize>,
    ) -> f64 {
        let Some(stats) = self.cx.catalog.stats(table.table.oid) else { return 1.0 };
        // The attributes that are fixed, each with its conditions.
        let mut fixed: Vec<(Attribute, Vec<usize>)> = Vec::new();
        for (at, e) in conditions.iter().enumerate().filter(|(at, _)| !used.contains(at)) {
            let Some(found) = self.fixed_attribute(table, e) else { continue };
            match fixed.iter_mut().find(|(a, _)| a.is(&found)) {
                Some((_, list)) => list.push(at),
                None => fixed.push((found, vec![at])),
            }
        }
        if fixed.len() < 2 {
            return 1.0;
        }
        // (attributes that decide, the one that is decided, degree), by places among the fixed.
        let mut known: Vec<(Vec<usize>, usize, f64)> = Vec::new();
        for object in &extended.objects {
            for d in &stats.extended[object.data].dependencies {
                let place = |n: i16| {
                    let own = &object.attributes[object.numbered(n)?];
                    fixed.iter().position(|(a, _)| a.is(own))
                };
                let from: Option<Vec<usize>> = d.from.iter().map(|n| place(*n)).collect();
                if let (Some(from), Some(to)) = (from, place(d.to)) {
                    known.push((from, to, d.degree));
                }
            }
        }
        let mut open: Vec<usize> = (0..fixed.len()).collect();
        let mut chosen: Vec<&(Vec<usize>, usize, f64)> = Vec::new();
        loop {
            let fits = |d: &&(Vec<usize>, usize, f64)| {
                open.contains(&d.1) && d.0.iter().all(|n| open.contains(n))
            };
            let stronger = |a: &&(Vec<usize>, usize, f64), b: &&(Vec<usize>, usize, f64)| {
                a.0.len().cmp(&b.0.len()).then(a.2.total_cmp(&b.2))
            };
            let Some(strongest) = known.iter().filter(fits).max_by(stronger) else { break };
            chosen.push(strongest);
            open.retain(|n| *n != strongest.1);
        }
        if chosen.is_empty() {
            return 1.0;
        }
        let mut shares: Vec<Option<f64>> = vec![None; fixed.len()];
        for n in chosen.iter().flat_map(|d| d.0.iter().chain([&d.1])) {
            if shares[*n].is_none() {
                let list: Vec<Expr> =
                    fixed[*n].1.iter().map(|at| conditions[*at].clone()).collect();
                shares[*n] = Some(self.by_columns(table, &list));
                used.extend(&fixed[*n].1);
            }
        }
        for (from, to, degree) in chosen.iter().rev() {
            let deciding: f64 = from.iter().filter_map(|n| shares[*n]).product();
            let own = shares[*to].unwrap_or(1.0);
            let together = if deciding <= own { 1.0 } else { own / deciding };
            shares[*to] = Some(degree * together + (1.0 - degree) * own);
        }
        shares.iter().flatten().product::<f64>().clamp(0.0, 1.0)
    }

    /// The attribute that a condition fixes to one value or a few.
    fn fixed_attribute(&self, table: &TableRel, e: &Expr) -> Option<Attribute> {
        match e {
            Expr::Column(_, types::oids::BOOL) => self.attribute(table, e),
            Expr::Not(inner) if matches!(**inner, Expr::Column(..)) => self.attribute(table, inner),
            Expr::Call { function, args, .. } if walk::is_equality(function) => {
                let [a, b] = &**args else { return None };
                match (self.estimated(a), self.estimated(b)) {
                    (None, Some(_)) => self.attribute(table, a),
                    (Some(_), None) => self.attribute(table, b),
                    _ => None,
                }
            }
            Expr::ArrayOp { function, left, array, all: false } if walk::is_equality(function) => {
                self.array_items(array)?;
                self.attribute(table, left)
            }
            Expr::Or(items) => {
                let mut all = items.iter().map(|item| self.fixed_attribute(table, item));
                let first = all.next()??;
                all.all(|other| other.is_some_and(|o| o.is(&first))).then_some(first)
            }
            _ => None,
        }
    }

    /// How many different rows of some of a table's columns and expressions there are, as far as one object knows; and
    /// which it has counted. `numbers`: the columns' numbers in the table.
    pub fn extended_distinct(
        &self,
        table: u32,
        of: &[Expr],
        numbers: &dyn Fn(u16) -> Option<u16>,
    ) -> Option<(f64, Vec<usize>)> {
        let extended = self.extended(table)?;
        let stats = self.cx.catalog.stats(table)?;
        let attribute = |e: &Expr| match super::selectivity::plain_column(e) {
            Some(col) => numbers(col).map(Attribute::Column),
            None => self.row_form(e, numbers).map(Attribute::Computed),
        };
        let wanted: Vec<Option<Attribute>> = of.iter().map(attribute).collect();
        let shared = |object: &Object| -> Vec<(usize, usize)> {
            let place = |(n, a): (usize, &Option<Attribute>)| Some((n, object.place(a.as_ref()?)?));
            wanted.iter().enumerate().filter_map(place).collect()
        };
        let mut best: Option<(&Object, Vec<(usize, usize)>, (usize, usize))> = None;
        for object in
            extended.objects.iter().filter(|o| !stats.extended[o.data].distinct.is_empty())
        {
            let found = shared(object);
            let is_column =
                |p: &&(usize, usize)| matches!(object.attributes[p.1], Attribute::Column(_));
            let columns = found.iter().filter(is_column).count();
            let rank = (found.len() - columns, columns);
            if found.len() >= 2 && best.as_ref().is_none_or(|b| rank > b.2) {
                best = Some((object, found, rank));
            }
        }
        let (object, found, _) = best?;
        let mut places: Vec<usize> = found.iter().map(|p| p.1).collect();
        places.sort_unstable();
        let item = stats.extended[object.data].distinct.iter().find(|item| {
            let mut of =
                item.attributes.iter().filter_map(|n| object.numbered(*n)).collect::<Vec<_>>();
            of.sort_unstable();
            of == places
        })?;
        Some((item.count, found.into_iter().map(|p| p.0).collect()))
    }

    /// Whether statistics are about an expression of a table; `numbers` as above.
    pub fn has_stats_of(
        &self,
        table: u32,
        e: &Expr,
        numbers: &dyn Fn(u16) -> Option<u16>,
    ) -> Option<&ColumnStats> {
        let extended = self.extended(table)?;
        let e = self.row_form(e, numbers)?;
        self.stats_of_row_form(table, &extended, &e)
    }
}

/// Whether an object is about everything that a condition is about.
fn covers(object: &Object, of: &Use) -> bool {
    of.attributes.iter().all(|a| object.place(a).is_some())
}

/// The object that is about most of what conditions it covers are about, at least two attributes; of equals the smallest.
fn best<'o>(objects: impl Iterator<Item = &'o Object>, of: &[&Use]) -> Option<&'o Object> {
    let mut best: Option<(&Object, usize)> = None;
    for object in objects {
        let mut matched: Vec<usize> = Vec::new();
        for u in of.iter().filter(|u| covers(object, u)) {
            for place in u.attributes.iter().filter_map(|a| object.place(a)) {
                if !matched.contains(&place) {
                    matched.push(place);
                }
            }
        }
        let count = matched.len();
        let better = |(known, most): &(&Object, usize)| {
            count > *most || count == *most && object.attributes.len() < known.attributes.len()
        };
        if count >= 2 && best.as_ref().is_none_or(better) {
            best = Some((object, count));
        }
    }
    best.map(|(object, _)| object)
}

fn e_type(e: &Expr) -> &base::Oid {
    match e {
        Expr::Call { ty, .. } => ty,
        _ => &types::oids::VOID,
    }
}

fn element_type(array: &Expr) -> base::Oid {
    types::TypeIo::get(array.ty()).map_or(base::Oid::INVALID, |t| t.element)
}
