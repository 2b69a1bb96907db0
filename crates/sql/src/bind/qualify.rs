//! Expressions that are kept as text (checks, indexes, domains): users' types and functions get their
//! schemas, so that the text means the same under any search path.

use base::Result;
use catalog::definition::quote_ident;
use pg_query::{NodeEnum, NodeRef, protobuf as pb};
use types::TypeIo;

use crate::expr::Expr;
use crate::parse::{deparse_expr, parse_expr};
use crate::print::{Names, Printer};

use super::{Binder, ast};

/// What stands before an expression where [`parse_expr`] parses it.
const BEFORE: usize = "SELECT ".len();

impl Binder<'_> {
    /// An expression's text, to be kept: as it was written, unless it has constants whose text would not mean the same
    /// later. `bind` binds it; `names` are those of its columns.
    ///
    /// # Errors
    /// Those of binding it.
    pub(crate) fn stored_form(
        &mut self,
        node: &NodeEnum,
        names: Option<&dyn Names>,
        bind: impl Fn(&mut Self, &NodeEnum) -> Result<Expr>,
    ) -> Result<String> {
        let text = self.stored_text(node)?;
        if cfg!(debug_assertions) {
            crate::view::expression_survives(self, node, names, &bind)?;
        }
        if !text.contains('\'') {
            return Ok(text);
        }
        let expr = self.unfolding(|b| bind(b, node))?;
        // A table that is being made has no oid yet by which it could be named.
        if !crate::print::has_fleeting_constant(&expr) || crate::print::names_itself(&expr) {
            return Ok(text);
        }
        let printer = Printer { binder: &*self, pretty: false, by_oid: true, names, indent: 0 };
        let printed = printer.outer(&expr);
        // A form that can't be read again is no better than the written one.
        Ok(if parse_expr(&printed).is_ok() { printed } else { text })
    }

    /// An expression's text with the schemas of what it names.
    pub(crate) fn stored_text(&self, node: &NodeEnum) -> Result<String> {
        let mut text = deparse_expr(node)?;
        let tree = parse_expr(&text)?;
        let mut places = Vec::new();
        self.unplaced_names(&tree, &mut places);
        places.sort_unstable();
        places.dedup();
        for (at, schema) in places.into_iter().rev() {
            text.insert_str(at, &format!("{}.", quote_ident(&schema)));
        }
        Ok(text)
    }

    /// Where names lack their schema, and which one that is.
    fn unplaced_names(&self, node: &NodeEnum, out: &mut Vec<(usize, String)>) {
        let mut note = |location: i32, schema: Option<u32>| {
            let at = usize::try_from(location).ok().and_then(|at| at.checked_sub(BEFORE));
            let schema = schema.and_then(|s| self.cx.catalog.schema(s));
            if let (Some(at), Some(schema)) = (at, schema) {
                out.push((at, schema.name.clone()));
            }
        };
        let mut further: Vec<&pb::Node> = Vec::new();
        for (found, ..) in node.nodes() {
            match found {
                NodeRef::TypeCast(c) => {
                    if let Some(name) = &c.type_name {
                        note(name.location, self.schema_of_type(name));
                    }
                }
                NodeRef::FuncCall(c) => {
                    note(c.location, self.schema_of_function(c));
                    further.extend(&c.agg_order);
                    further.extend(c.agg_filter.as_deref());
                }
                // What the library's walk leaves out.
                NodeRef::AArrayExpr(a) => further.extend(&a.elements),
                NodeRef::AIndirection(a) => {
                    further.extend(a.arg.as_deref());
                    further.extend(&a.indirection);
                }
                NodeRef::AIndices(a) => {
                    further.extend(a.lidx.as_deref());
                    further.extend(a.uidx.as_deref());
                }
                NodeRef::CaseExpr(c) => further.extend(c.arg.as_deref()),
                NodeRef::CollateClause(c) => further.extend(c.arg.as_deref()),
                NodeRef::NamedArgExpr(a) => further.extend(a.arg.as_deref()),
                _ => {}
            }
        }
        for node in further {
            if let Some(node) = &node.node {
                self.unplaced_names(node, out);
            }
        }
    }

    fn schema_of_type(&self, name: &pb::TypeName) -> Option<u32> {
        let [name] = ast::strings(&name.names)[..] else { return None };
        if TypeIo::by_name(name).is_some() {
            return None;
        }
        let catalog = &self.cx.catalog;
        let ty = catalog.type_oid(self.cx.search_path, None, name)?;
        catalog.type_place(ty).map(|(schema, ..)| schema)
    }

    /// The first schema of the path with a user's function of this name, unless there is one built in.
    fn schema_of_function(&self, call: &pb::FuncCall) -> Option<u32> {
        let [name] = ast::strings(&call.funcname)[..] else { return None };
        let catalog = &self.cx.catalog;
        if !catalog.has_functions_named(name) || !types::func::functions_named(name).is_empty() {
            return None;
        }
        let holds = |schema: &&u32| catalog.functions_named(name).any(|f| f.schema == **schema);
        self.cx.search_path.iter().find(holds).copied()
    }
}
