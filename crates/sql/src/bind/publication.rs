//! Statements about publications and subscriptions.

use base::{Oid, Result, err};
use catalog::snapshot::Relation;
use catalog::{Table, TableKind};
use pg_query::{NodeEnum, NodeRef, protobuf as pb};
use types::func::Volatility;

use crate::every_node::every_node;
use crate::expr::Expr;
use crate::publication::{
    ListChange, ObjectsChange, PublicationObjects, PublicationStatement as P, PublishedTable,
    RowFilter, StreamOption, SubscriptionStatement as S,
};
use crate::role::RoleStatement;
use crate::utility::{Name, Utility};

use super::define::{def_value, table_columns};
use super::scope::Place;
use super::{Binder, Scope, ast, inner};

impl Binder<'_> {
    /// A statement about publications or subscriptions; None for others.
    pub(crate) fn publication_statement(&mut self, node: &NodeEnum) -> Result<Option<Utility>> {
        if let NodeEnum::AlterOwnerStmt(s) = node {
            let kind = match pb::ObjectType::try_from(s.object_type) {
                Ok(pb::ObjectType::ObjectPublication) => "PUBLICATION",
                Ok(pb::ObjectType::ObjectSubscription) => "SUBSCRIPTION",
                _ => return Ok(None),
            };
            let Some(owner) = s.newowner.as_ref().map(super::role::role_ref) else {
                return Ok(None);
            };
            let object = Name { schema: None, name: name_of(&s.object), position: 0, only: false };
            return Ok(Some(Utility::Role(RoleStatement::Owner { kind, object, owner })));
        }
        if let Some(statement) = self.subscription_statement(node)? {
            return Ok(Some(Utility::Subscription(Box::new(statement))));
        }
        let kind = pb::ObjectType::ObjectPublication as i32;
        let statement = match node {
            NodeEnum::CreatePublicationStmt(s) => P::Create {
                name: s.pubname.clone(),
                all_tables: s.for_all_tables,
                objects: self.publication_objects(&s.pubobjects, true)?,
                options: self.stream_options(&s.options),
            },
            NodeEnum::AlterPublicationStmt(s) if !s.options.is_empty() => {
                P::Options(s.pubname.clone(), self.stream_options(&s.options))
            }
            NodeEnum::AlterPublicationStmt(s) => {
                use pb::AlterPublicationAction as A;
                let change = match A::try_from(s.action) {
                    Ok(A::ApAddObjects) => ObjectsChange::Add,
                    Ok(A::ApDropObjects) => ObjectsChange::Drop,
                    _ => ObjectsChange::Set,
                };
                let bind = change != ObjectsChange::Drop;
                let objects = self.publication_objects(&s.pubobjects, bind)?;
                P::Objects(s.pubname.clone(), change, objects)
            }
            NodeEnum::RenameStmt(s) if s.rename_type == kind => {
                P::Rename(name_of(&s.object), s.newname.clone())
            }
            NodeEnum::DropStmt(s) if s.remove_type == kind => {
                P::Drop { names: ast::owned_strings(&s.objects), if_exists: s.missing_ok }
            }
            _ => return Ok(None),
        };
        Ok(Some(Utility::Publication(Box::new(statement))))
    }

    fn subscription_statement(&self, node: &NodeEnum) -> Result<Option<S>> {
        let kind = pb::ObjectType::ObjectSubscription as i32;
        Ok(Some(match node {
            NodeEnum::CreateSubscriptionStmt(s) => S::Create {
                name: s.subname.clone(),
                connection: s.conninfo.clone(),
                publications: ast::owned_strings(&s.publication),
                options: self.stream_options(&s.options),
            },
            NodeEnum::AlterSubscriptionStmt(s) => {
                use pb::AlterSubscriptionType as A;
                let (name, options) = (s.subname.clone(), self.stream_options(&s.options));
                let list = |change| {
                    let names = ast::owned_strings(&s.publication);
                    S::Publications(s.subname.clone(), change, names, options.clone())
                };
                match A::try_from(s.kind) {
                    Ok(A::AlterSubscriptionConnection) => S::Connection(name, s.conninfo.clone()),
                    Ok(A::AlterSubscriptionSetPublication) => list(ListChange::Set),
                    Ok(A::AlterSubscriptionAddPublication) => list(ListChange::Add),
                    Ok(A::AlterSubscriptionDropPublication) => list(ListChange::Drop),
                    Ok(A::AlterSubscriptionRefresh) => S::Refresh(name, options),
                    Ok(A::AlterSubscriptionSkip) => S::Skip(name, options),
                    Ok(A::AlterSubscriptionEnabled) => {
                        let on = |o: &StreamOption| o.value.as_deref() == Some("true");
                        let enabled = options.iter().any(|o| o.name == "enabled" && on(o));
                        S::Enable(name, enabled)
                    }
                    _ => S::Options(name, options),
                }
            }
            NodeEnum::DropSubscriptionStmt(s) => {
                S::Drop { name: s.subname.clone(), if_exists: s.missing_ok }
            }
            NodeEnum::RenameStmt(s) if s.rename_type == kind => {
                S::Rename(name_of(&s.object), s.newname.clone())
            }
            _ => return Ok(None),
        }))
    }

    fn stream_options(&self, nodes: &[pb::Node]) -> Vec<StreamOption> {
        let one = |node: &pb::Node| match &node.node {
            Some(NodeEnum::DefElem(def)) => Some(StreamOption {
                name: def.defname.clone(),
                value: def_value(def),
                position: self.at(def.location),
            }),
            _ => None,
        };
        nodes.iter().filter_map(one).collect()
    }

    /// The tables and schemas of a statement; `bind`: conditions are looked at.
    fn publication_objects(
        &mut self,
        nodes: &[pb::Node],
        bind: bool,
    ) -> Result<PublicationObjects> {
        use pb::PublicationObjSpecType as K;
        let mut out = PublicationObjects::default();
        for node in nodes {
            let Some(NodeEnum::PublicationObjSpec(spec)) = &node.node else { continue };
            match K::try_from(spec.pubobjtype) {
                Ok(K::PublicationobjTablesInSchema) => out.schemas.push(Some(spec.name.clone())),
                Ok(K::PublicationobjTablesInCurSchema) => out.schemas.push(None),
                _ => {
                    let Some(table) = &spec.pubtable else { continue };
                    out.tables.push(self.published_table(table, bind)?);
                }
            }
        }
        Ok(out)
    }

    fn published_table(
        &mut self,
        table: &pb::PublicationTable,
        bind: bool,
    ) -> Result<PublishedTable> {
        let name = self.name_of_range(&table.relation)?;
        let columns = (!table.columns.is_empty()).then(|| ast::owned_strings(&table.columns));
        let filter = match inner(&table.where_clause) {
            None => None,
            Some(node) => match self.find_relation(name.schema.as_deref(), &name.name) {
                Some(Relation::Table(found)) if bind && found.kind == TableKind::Table => {
                    Some(self.row_filter(&found, node)?)
                }
                // The statement will say what is wrong with it.
                _ => Some(RowFilter { sql: String::new(), columns: Vec::new() }),
            },
        };
        let Name { schema, name, only, .. } = name;
        Ok(PublishedTable { schema, name, only, columns, filter })
    }

    /// A condition over a table's row that is simple enough to be asked far away from the session.
    fn row_filter(&mut self, table: &std::sync::Arc<Table>, node: &NodeEnum) -> Result<RowFilter> {
        let rel = self.table_rel(table.clone(), &table.name)?;
        let mut scope = Scope::new(None);
        scope.items.push(self.item_of(&rel));
        self.unseen += 1;
        let before = std::mem::replace(&mut self.unfolded, true);
        let bound = self.holding(|b| b.condition(&scope, node, Place::PublicationWhere));
        self.unfolded = before;
        self.unseen -= 1;
        let bound = bound?;
        if let Some((refusal, location)) = refusal(self, &rel, &bound, node) {
            return Err(err!(FEATURE_NOT_SUPPORTED, "invalid publication WHERE expression")
                .detail(refusal)
                .at(self.at(location)));
        }
        let sql = self.stored_form(node, None, |b, node| b.row_expr(&rel, node))?;
        Ok(RowFilter { sql, columns: table_columns(&rel, &bound) })
    }
}

/// Why an expression can't be a publication's, and where that stands.
fn refusal(
    binder: &Binder<'_>,
    rel: &crate::logical::TableRel,
    bound: &Expr,
    node: &NodeEnum,
) -> Option<(&'static str, i32)> {
    const SIMPLE: &str = "Only columns, constants, built-in operators, built-in data types, built-in \
                          collations, and immutable built-in functions are allowed.";
    const FUNCTIONS: &str = "User-defined or built-in mutable functions are not allowed.";
    let own = |id: u32| id >= Oid::FIRST_USER.0;
    let place = |wanted: &dyn Fn(&NodeRef<'_>) -> Option<i32>| {
        let mut all = every_node(node).into_iter();
        all.find_map(|n| wanted(&n)).unwrap_or_else(|| ast::location(node))
    };
    let system = crate::walk::any(bound, &|e| match e {
        Expr::Column(col, _) => {
            rel.column(*col).is_some_and(|c| !matches!(c, crate::plan::ScanColumn::Attr(_)))
        }
        _ => false,
    });
    if system {
        let at = place(&|n| match n {
            NodeRef::ColumnRef(c) => Some(c.location),
            _ => None,
        });
        return Some(("System columns are not allowed.", at));
    }
    if crate::walk::any(bound, &|e| matches!(e, Expr::Subquery(_))) {
        return Some((SIMPLE, ast::location(node)));
    }
    if crate::walk::any(bound, &|e| matches!(e, Expr::Collate(_, id, _) if own(*id))) {
        return Some(("User-defined collations are not allowed.", ast::location(node)));
    }
    // Types of its values, and functions by their names: user-defined ones have become something else by now.
    if binder.names_own_operator(node) {
        return Some(("User-defined operators are not allowed.", ast::location(node)));
    }
    if let Some(at) = binder.names_own_function(node) {
        return Some((FUNCTIONS, at));
    }
    let mutable = crate::walk::any(bound, &|e| match e {
        Expr::Call { function, .. } => function.volatility != Volatility::Immutable,
        Expr::SessionValue(..) => true,
        _ => false,
    });
    if mutable {
        let at = place(&|n| match n {
            NodeRef::FuncCall(f) => Some(f.location),
            NodeRef::SqlvalueFunction(f) => Some(f.location),
            _ => None,
        });
        return Some((FUNCTIONS, at));
    }
    if crate::walk::any(bound, &|e| own(e.ty().0)) {
        return Some(("User-defined types are not allowed.", ast::location(node)));
    }
    None
}

impl Binder<'_> {
    /// Whether an expression names an operator that is not built in.
    fn names_own_operator(&self, node: &NodeEnum) -> bool {
        every_node(node).into_iter().any(|n| match n {
            NodeRef::AExpr(e) => {
                let names = ast::strings(&e.name);
                let (_, name) = ast::qualified(&names);
                self.cx.catalog.operators_named(name).next().is_some()
            }
            _ => false,
        })
    }

    /// Where an expression names a function that is not built in.
    fn names_own_function(&self, node: &NodeEnum) -> Option<i32> {
        every_node(node).into_iter().find_map(|n| match n {
            NodeRef::FuncCall(f) => {
                let names = ast::strings(&f.funcname);
                let (_, name) = ast::qualified(&names);
                self.cx.catalog.has_functions_named(name).then_some(f.location)
            }
            _ => None,
        })
    }
}

fn name_of(node: &Option<Box<pb::Node>>) -> String {
    match inner(node) {
        Some(NodeEnum::String(name)) => name.sval.clone(),
        _ => String::new(),
    }
}
