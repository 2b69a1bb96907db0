//! Tables whose columns stand in USING. A column that was renamed since, or one that was added, must not change what
//! USING means: such a table is printed with names for all its columns, those of USING as they were.

use pg_query::{NodeEnum, protobuf as pb};

use catalog::definition::quote_ident;

use super::Printer;
use crate::bind::scope::NsItem;
use crate::expr::Expr;

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
        needed.then(|| {
            let mut names: Vec<String> = Vec::with_capacity(wanted.len());
            for (at, name) in wanted.iter().enumerate() {
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
        Some(names.iter().map(|n| quote_ident(n)).collect::<Vec<_>>().join(", "))
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
