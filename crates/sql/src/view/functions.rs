//! Functions in FROM written back as SQL: `f(…) WITH ORDINALITY f(a, b)`, `ROWS FROM(…)`, `UNNEST(a, b)`, column
//! definition lists. PostgreSQL names all columns of a function, whether or not somebody named them.

use base::{Error, Result};
use catalog::definition::quote_ident;
use pg_query::{NodeEnum, protobuf as pb};

use super::{Out, Printer};
use crate::bind::ast;
use crate::bind::from::each_function;
use crate::bind::record::{Part, address};
use crate::expr::Expr;
use crate::print;

impl Printer<'_, '_> {
    /// A function, or several, in FROM.
    pub(super) fn range_function(&self, f: &pb::RangeFunction, out: &mut Out) -> Result<()> {
        let Some(calls) = self.record.exprs.get(&(address(f), Part::Call)) else {
            return self.computed_function(f, out);
        };
        let functions = each_function(f);
        let own: Vec<&[pb::Node]> = functions
            .iter()
            .map(|item| ast::list(item).get(1).map(ast::list).unwrap_or_default())
            .collect();
        if f.lateral {
            out.push("LATERAL ");
        }
        let list = match f.coldeflist.as_slice() {
            [] => own.first().copied().unwrap_or_default(),
            list => list,
        };
        let text = |call: &Expr| match looks_like_function(call) {
            true => self.expr(call, out.indent),
            // The grammar takes what looks like a function here, and CAST does.
            false => {
                let ty = self.type_text(call.ty(), -1);
                format!("CAST({} AS {ty})", self.expr(call, out.indent))
            }
        };
        let alone = calls.len() == 1 && (list.is_empty() || !f.ordinality);
        let arrays: Option<Vec<String>> =
            calls.iter().map(|c| unnested(c).map(|array| self.expr(array, out.indent))).collect();
        let shown = match (calls.as_slice(), arrays) {
            ([call], _) if alone => text(call),
            (_, Some(arrays)) => format!("UNNEST({})", arrays.join(", ")),
            _ => {
                let mut all = Vec::with_capacity(calls.len());
                for (n, call) in calls.iter().enumerate() {
                    let own = if calls.len() == 1 {
                        list
                    } else {
                        own.get(n).copied().unwrap_or_default()
                    };
                    let definitions = match own {
                        [] => String::new(),
                        own => format!(" AS {}", self.definitions(own, None)?),
                    };
                    all.push(format!("{}{definitions}", text(call)));
                }
                format!("ROWS FROM({})", all.join(", "))
            }
        };
        out.push(&shown);
        if f.ordinality {
            out.push(" WITH ORDINALITY");
        }
        let name = self.function_name(f);
        let columns = self.columns_of_item(&name);
        out.push(&format!(" {}", quote_ident(&self.refname(&name))));
        match list {
            [_, ..] if alone => out.push(&self.definitions(list, Some(&columns))?),
            _ => {
                let columns: Vec<String> = columns.iter().map(|c| quote_ident(c)).collect();
                out.push(&format!("({})", columns.join(", ")));
            }
        }
        Ok(())
    }

    /// A function of the server whose rows are a computed table's: its arguments are constants.
    fn computed_function(&self, f: &pb::RangeFunction, out: &mut Out) -> Result<()> {
        let node = f.functions.first().and_then(|item| ast::list(item).first());
        let Some(node) = node.and_then(|n| n.node.as_ref()) else {
            return Err(Error::unsupported("a view with this function in FROM"));
        };
        out.push(&crate::parse::deparse_expr(node)?);
        let name = self.function_name(f);
        let columns: Vec<String> =
            self.columns_of_item(&name).iter().map(|c| quote_ident(c)).collect();
        out.push(&format!(" {}({})", quote_ident(&self.refname(&name)), columns.join(", ")));
        Ok(())
    }

    /// The name that a function has in FROM.
    fn function_name(&self, f: &pb::RangeFunction) -> String {
        if let Some(alias) = &f.alias {
            return alias.aliasname.clone();
        }
        let first = f.functions.first().and_then(|item| ast::list(item).first());
        let node = first.and_then(|n| n.node.as_ref());
        node.map_or_else(String::new, crate::bind::select::column_name)
    }

    /// The names of all columns of a FROM item.
    fn columns_of_item(&self, name: &str) -> Vec<String> {
        let frames = self.frames.borrow();
        let items = frames.last().map_or(&[][..], |f| &f.select.items);
        let item = items.iter().find(|i| i.name.as_deref() == Some(name));
        item.map_or_else(Vec::new, |i| i.columns.iter().map(|c| c.name.clone()).collect())
    }

    /// `(a integer, b text)`; `names`: what the columns are called instead.
    fn definitions(&self, nodes: &[pb::Node], names: Option<&[String]>) -> Result<String> {
        let mut out = Vec::with_capacity(nodes.len());
        for (n, node) in nodes.iter().enumerate() {
            let Some(NodeEnum::ColumnDef(c)) = &node.node else { continue };
            let Some(name) = &c.type_name else { continue };
            let (ty, typmod) = self.binder.type_name(name)?;
            let shown = names.and_then(|names| names.get(n)).unwrap_or(&c.colname);
            let ty = self.type_text(ty, typmod);
            out.push(format!("{} {ty}", quote_ident(shown)));
        }
        Ok(format!("({})", out.join(", ")))
    }
}

/// Whether an expression's text is what the grammar takes for a function in FROM.
fn looks_like_function(call: &Expr) -> bool {
    use types::func::internal::{WRITTEN_CALL, WRITTEN_CAST, WRITTEN_SUBSCRIPTS};
    match call {
        Expr::Call { function, .. } if function.oid == WRITTEN_CALL.oid => true,
        Expr::Call { function, .. }
            if function.oid == WRITTEN_CAST.oid || function.oid == WRITTEN_SUBSCRIPTS.oid =>
        {
            false
        }
        Expr::Call { function, args, ty, .. } => !print::is_operator_or_cast(function, args, *ty),
        Expr::Typmod { arg, .. } => matches!(&**arg, Expr::SessionValue(..)),
        Expr::Coalesce(..) | Expr::MinMax { .. } | Expr::NullIf { .. } | Expr::SessionValue(..) => {
            true
        }
        _ => false,
    }
}

/// The array of `unnest(array)`.
fn unnested(call: &Expr) -> Option<&Expr> {
    match call {
        Expr::Call { function, args, .. }
            if function.name == "unnest" && function.oid < base::Oid::FIRST_USER =>
        {
            args.first().filter(|_| args.len() == 1)
        }
        _ => None,
    }
}
