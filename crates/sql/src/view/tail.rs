//! The end of a query: LIMIT, OFFSET, and the locks that it takes.

use base::Result;
use catalog::definition::quote_ident;
use pg_query::{NodeEnum, protobuf as pb};

use super::{Here, Out, Printer, STD};
use crate::bind::inner;
use crate::bind::record::{Part, address};
use crate::expr::Expr;

impl Printer<'_, '_> {
    pub(super) fn limits(&self, stmt: &pb::SelectStmt, out: &mut Out) -> Result<()> {
        let ties = stmt.limit_option == pb::LimitOption::WithTies as i32;
        let limit = if ties { " FETCH FIRST " } else { " LIMIT " };
        let is_all = matches!(inner(&stmt.limit_count), Some(NodeEnum::AConst(c)) if c.isnull);
        for (part, word) in [(Part::Offset, " OFFSET "), (Part::Limit, limit)] {
            if is_all && part == Part::Limit {
                out.keyword(" LIMIT ", -STD, STD, 0);
                out.push("ALL");
                continue;
            }
            if let Some([e]) = self.record.exprs.get(&(address(stmt), part)).map(Vec::as_slice) {
                out.keyword(word, -STD, STD, 0);
                let text = self.limit(e);
                let plain = matches!(e, Expr::Const(..));
                match ties && part == Part::Limit {
                    true if plain => out.push(&format!("{text} ROWS WITH TIES")),
                    true => out.push(&format!("({text}) ROWS WITH TIES")),
                    false => out.push(&text),
                }
            }
        }
        Ok(())
    }

    pub(super) fn limit(&self, e: &Expr) -> String {
        match e {
            Expr::Const(types::Datum::Int8(n), _) if *n >= 0 => {
                if *n <= i64::from(i32::MAX) {
                    n.to_string()
                } else {
                    format!("'{n}'::bigint")
                }
            }
            e => {
                let names = Here::new(self, 0);
                self.printer(&names, 0).outer(e)
            }
        }
    }

    pub(super) fn locks(&self, stmt: &pb::SelectStmt, out: &mut Out) -> Result<()> {
        // As PostgreSQL: a clause for each table, with the strongest of what is said of it.
        let mut locked: Vec<(String, i32, i32)> = Vec::new();
        for node in &stmt.locking_clause {
            let Some(NodeEnum::LockingClause(clause)) = &node.node else { continue };
            let mut names = Vec::new();
            for node in &clause.locked_rels {
                if let Some(NodeEnum::RangeVar(range)) = &node.node {
                    names.push(range.relname.clone());
                }
            }
            if clause.locked_rels.is_empty() {
                stmt.from_clause.iter().for_each(|node| self.lockable(node, &mut names));
            }
            for name in names {
                match locked.iter_mut().find(|(known, ..)| *known == name) {
                    Some((_, strength, wait)) => {
                        *strength = clause.strength.max(*strength);
                        *wait = clause.wait_policy.max(*wait);
                    }
                    None => locked.push((name, clause.strength, clause.wait_policy)),
                }
            }
        }
        for (name, strength, wait) in locked {
            let (_, words) = crate::bind::select::lock_strength(strength);
            out.keyword(&format!(" {words}"), -STD, STD, 0);
            out.push(&format!(" OF {}", quote_ident(&self.refname(&name))));
            out.push(match pb::LockWaitPolicy::try_from(wait) {
                Ok(pb::LockWaitPolicy::LockWaitError) => " NOWAIT",
                Ok(pb::LockWaitPolicy::LockWaitSkip) => " SKIP LOCKED",
                _ => "",
            });
        }
        Ok(())
    }

    /// The tables and subqueries of a FROM item, by their names.
    fn lockable(&self, node: &pb::Node, out: &mut Vec<String>) {
        match &node.node {
            Some(NodeEnum::RangeVar(range)) => {
                let name = range.alias.as_ref().map_or(&range.relname, |a| &a.aliasname);
                let frames = self.frames.borrow();
                let items = frames.last().map_or(&[][..], |f| &f.select.items);
                if items.iter().any(|i| i.name.as_ref() == Some(name) && i.oid != 0) {
                    out.push(name.clone());
                }
            }
            Some(NodeEnum::RangeSubselect(sub)) => {
                out.extend(sub.alias.as_ref().map(|a| a.aliasname.clone()));
            }
            Some(NodeEnum::JoinExpr(join)) => {
                for side in [&join.larg, &join.rarg].into_iter().flatten() {
                    self.lockable(side, out);
                }
            }
            _ => {}
        }
    }
}
