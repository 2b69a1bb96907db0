//! Tables whose columns stand in USING. A column that was renamed since, or one that was added, must not change what
//! USING means: such a table is printed with names for all its columns, those of USING as they were.
//!
//! Joins with an alias: columns that their tables have got since must not take the names of those that the query means,
//! nor move them: then the alias has a list of names.
//!
//! ```text
//!   (t1 JOIN t2 USING (b)) j           t1 (a, b) gets a column c, and t2 (b, c) has one:
//!   j.c is t2's                        (t1 JOIN t2 USING (b)) j(b, a, c_1, c)
//! ```

use pg_query::{NodeEnum, protobuf as pb};

use catalog::definition::quote_ident;

use super::{JoinNames, Printer};
use crate::bind::record::address;
use crate::bind::scope::{NsColumn, NsItem};
use crate::expr::Expr;
use crate::logical::Col;

/// A table's name in FROM, and the names of its columns.
type Pinned = Vec<(String, Vec<String>)>;

/// A table in FROM with the columns of all USING around it.
struct Leaf<'n> {
    range: &'n pb::RangeVar,
    using: Vec<String>,
}

impl Printer<'_, '_> {
    /// The tables of a FROM clause that need names for their columns.
    pub(super) fn pinned(&self, items: &[NsItem], from: &[pb::Node]) -> Pinned {
        let mut leaves = Vec::new();
        from.iter().for_each(|node| self.leaves(node, &[], &mut leaves));
        self.names_of(items, leaves)
    }

    /// The same of the tables inside a join with an alias.
    pub(super) fn pinned_in(&self, items: &[NsItem], join: &pb::JoinExpr) -> Pinned {
        let mut leaves = Vec::new();
        self.sides_of(join, &[], &mut leaves);
        self.names_of(items, leaves)
    }

    fn leaves<'n>(&self, node: &'n pb::Node, around: &[String], out: &mut Vec<Leaf<'n>>) {
        match &node.node {
            Some(NodeEnum::RangeVar(range)) if !around.is_empty() => {
                out.push(Leaf { range, using: around.to_vec() });
            }
            Some(NodeEnum::JoinExpr(join)) if join.alias.is_none() => {
                self.sides_of(join, around, out);
            }
            _ => {}
        }
    }

    fn sides_of<'n>(&self, join: &'n pb::JoinExpr, around: &[String], out: &mut Vec<Leaf<'n>>) {
        let mut using = around.to_vec();
        using.extend(self.using(join));
        for side in [&join.larg, &join.rarg].into_iter().flatten() {
            self.leaves(side, &using, out);
        }
    }

    fn names_of(&self, items: &[NsItem], leaves: Vec<Leaf<'_>>) -> Pinned {
        let mut out = Pinned::new();
        for leaf in leaves {
            let alias = leaf.range.alias.as_ref();
            let name = alias.map_or(leaf.range.relname.as_str(), |a| &a.aliasname);
            let Some(item) = items.iter().find(|i| i.name.as_deref() == Some(name)) else {
                continue;
            };
            if let Some(names) = self.names_of_item(item, &leaf.using) {
                out.push((name.to_owned(), names));
            }
        }
        out
    }

    /// Names for a table's columns; None: those of the catalog will do.
    fn names_of_item(&self, item: &NsItem, using: &[String]) -> Option<Vec<String>> {
        let (old, new) = (self.binder.cx.catalog.table(item.oid)?, self.naming.table(item.oid)?);
        let merged = |name: &str| using.iter().any(|n| n == name);
        let mut wanted = Vec::with_capacity(item.columns.len());
        let mut needed = false;
        for column in &item.columns {
            let now = match &column.expr {
                Expr::Column(col, _) => self.column_name(item.oid, &column.name, *col),
                _ => column.name.clone(),
            };
            needed |= now != column.name && (merged(&now) || merged(&column.name));
            wanted.push(if merged(&column.name) { column.name.clone() } else { now });
        }
        let own = wanted.len();
        let known = old.columns.len();
        let added = new.live_columns().filter(|(n, _)| usize::from(*n) > known);
        wanted.extend(added.map(|(_, column)| column.name.clone()));
        needed |= wanted[own..].iter().any(|name| merged(name));
        let gone = |at: usize| match item.columns.get(at).map(|c| &c.expr) {
            Some(Expr::Column(col, _)) => self.is_dropped(*col),
            _ => false,
        };
        needed.then(|| {
            let mut names: Vec<String> = Vec::with_capacity(wanted.len());
            for (at, name) in wanted.iter().enumerate() {
                if gone(at) {
                    names.push(String::new());
                    continue;
                }
                let is_merged = at < own && item.columns[at].name == *name && merged(name);
                let taken = |n: &str, names: &[String]| {
                    names.iter().any(|other| other == n) || (merged(n) && !is_merged)
                };
                let (mut unlike, mut n) = (name.clone(), 1);
                while taken(&unlike, &names) {
                    unlike = format!("{name}_{n}");
                    n += 1;
                }
                names.push(unlike);
            }
            names
        })
    }

    /// Gives the innermost level such names.
    pub(super) fn pin(&self, pinned: Pinned) {
        if let Some(frame) = self.frames.borrow_mut().last_mut() {
            frame.pinned = pinned;
        }
    }

    /// The list of names of a table's columns in the innermost level, if it has one.
    pub(super) fn pinned_columns(&self, table: &str) -> Option<String> {
        let frames = self.frames.borrow();
        let (_, names) = frames.last()?.pinned.iter().find(|(name, _)| name == table)?;
        // Columns that are gone have no name.
        let names = names.iter().filter(|name| !name.is_empty());
        Some(names.map(|n| quote_ident(n)).collect::<Vec<_>>().join(", "))
    }

    /// The name of a column that USING of a FULL JOIN merges, where no other column of the level has it.
    pub(super) fn merged(&self, e: &Expr) -> Option<String> {
        let frames = self.frames.borrow();
        let items = &frames.last()?.select.items;
        let plain = items.iter().filter(|i| i.cols_visible).flat_map(|i| &i.columns);
        let own = items.iter().filter(|i| i.name.is_none() && i.cols_visible);
        let found = own.flat_map(|i| &i.columns).find(|c| crate::walk::same(&c.expr, e))?;
        let others = plain.filter(|c| c.name == found.name).count();
        (others == 1).then(|| quote_ident(&found.name))
    }
}

fn column(e: &Expr) -> Option<Col> {
    match e {
        Expr::Column(col, _) => Some(*col),
        _ => None,
    }
}

impl Printer<'_, '_> {
    /// The joins with aliases among FROM items, but for those inside of a join with an alias. `items`: the names that
    /// the level has.
    pub(super) fn aliased_joins<'n>(
        &self,
        items: &[NsItem],
        from: impl IntoIterator<Item = &'n pb::Node>,
    ) -> Vec<JoinNames> {
        let mut out = Vec::new();
        let mut next: Vec<&pb::Node> = from.into_iter().collect();
        while let Some(node) = next.pop() {
            let Some(NodeEnum::JoinExpr(join)) = &node.node else { continue };
            let Some(alias) = &join.alias else {
                next.extend([&join.larg, &join.rarg].into_iter().flatten().map(|n| &**n));
                continue;
            };
            let item = items.iter().find(|i| i.name.as_deref() == Some(&alias.aliasname));
            if let Some(item) = item {
                out.push(self.join_names(join, alias, item));
            }
        }
        out
    }

    fn join_names(&self, join: &pb::JoinExpr, alias: &pb::Alias, item: &NsItem) -> JoinNames {
        let mut merged = Vec::new();
        self.merged_columns(join, &mut merged);
        let name = |(at, c): (usize, &NsColumn)| match column(&c.expr) {
            Some(col) if at >= alias.colnames.len() && !merged.contains(&c.name) => {
                let origin = self.binder.vars[usize::from(col)].origin;
                self.column_name(origin.map_or(0, |(table, _)| table), &c.name, col)
            }
            _ => c.name.clone(),
        };
        let known: Vec<String> = item.columns.iter().enumerate().map(name).collect();
        // Which of the known columns stands at each place; None: one that was added.
        let mut places: Vec<(Option<usize>, String)> =
            known.iter().enumerate().map(|(at, name)| (Some(at), name.clone())).collect();
        let inside = self.record.joins.get(&address(join)).map_or(&[][..], Vec::as_slice);
        let mut end = 0;
        for table in inside {
            let own = |at: &(Option<usize>, String)| {
                let col = at.0.and_then(|at| column(&item.columns[at].expr));
                col.is_some() && table.columns.iter().any(|c| column(&c.expr) == col)
            };
            end = places.iter().rposition(own).map_or(end, |at| at + 1);
            for name in self.added_to(table.oid) {
                places.insert(end, (None, name));
                end += 1;
            }
        }
        let gone = |at: usize| column(&item.columns[at].expr).is_some_and(|c| self.is_dropped(c));
        places.retain(|(at, name)| at.is_none_or(|at| merged.contains(name) || !gone(at)));
        let mut sorted: Vec<&String> = places.iter().map(|(_, name)| name).collect();
        sorted.sort();
        let twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        if alias.colnames.is_empty() && !twice {
            return JoinNames { alias: alias.aliasname.clone(), names: known, list: None };
        }
        let mut names = known.clone();
        let mut list: Vec<String> = Vec::with_capacity(places.len());
        for (at, name) in &places {
            let given = |n: &String| at.is_none() && known.contains(n);
            let (mut unlike, mut n) = (name.clone(), 1);
            while list.contains(&unlike) || given(&unlike) {
                unlike = format!("{name}_{n}");
                n += 1;
            }
            if let Some(at) = at {
                names[*at].clone_from(&unlike);
            }
            list.push(unlike);
        }
        JoinNames { alias: alias.aliasname.clone(), names, list: Some(list) }
    }

    /// The names that USING of a join merges, and of those inside without an alias.
    fn merged_columns(&self, join: &pb::JoinExpr, out: &mut Vec<String>) {
        out.extend(self.using(join));
        for side in [&join.larg, &join.rarg].into_iter().flatten() {
            if let Some(NodeEnum::JoinExpr(inner)) = &side.node
                && inner.alias.is_none()
            {
                self.merged_columns(inner, out);
            }
        }
    }

    /// The list of names for the columns of a table with an alias that has some: all that it has now.
    pub(super) fn columns_of_table(&self, alias: &pb::Alias) -> String {
        let frames = self.frames.borrow();
        let items = frames.last().map_or(&[][..], |f| &f.select.items);
        let item = items.iter().find(|i| i.name.as_deref() == Some(&alias.aliasname));
        let Some(item) = item else { return Self::columns_of_alias(Some(alias)) };
        let mut names: Vec<String> = Vec::with_capacity(item.columns.len());
        for (at, c) in item.columns.iter().enumerate() {
            match column(&c.expr) {
                Some(col) if self.is_dropped(col) => {}
                Some(col) if at >= alias.colnames.len() => {
                    names.push(self.column_name(item.oid, &c.name, col));
                }
                _ => names.push(c.name.clone()),
            }
        }
        for name in self.added_to(item.oid) {
            let (mut unlike, mut n) = (name.clone(), 1);
            while names.contains(&unlike) {
                unlike = format!("{name}_{n}");
                n += 1;
            }
            names.push(unlike);
        }
        let names: Vec<String> = names.iter().map(|name| quote_ident(name)).collect();
        format!("({})", names.join(", "))
    }

    /// Whether a column of a table is gone in the catalog that names come from.
    pub(super) fn is_dropped(&self, col: Col) -> bool {
        let origin = self.binder.vars[usize::from(col)].origin;
        origin.is_some_and(|(table, number)| {
            let table = self.naming.table(table);
            table.and_then(|t| t.columns.get(usize::from(number) - 1)).is_some_and(|c| c.dropped)
        })
    }

    /// The columns that a table has got since the query was bound.
    fn added_to(&self, table: u32) -> Vec<String> {
        let (Some(old), Some(new)) =
            (self.binder.cx.catalog.table(table), self.naming.table(table))
        else {
            return Vec::new();
        };
        let known = old.columns.len();
        let added = new.live_columns().filter(|(n, _)| usize::from(*n) > known);
        added.map(|(_, column)| column.name.clone()).collect()
    }
}
