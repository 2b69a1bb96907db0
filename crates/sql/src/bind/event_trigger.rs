//! Statements about event triggers.

use base::Result;
use pg_query::{NodeEnum, protobuf as pb};

use crate::event_trigger::EventTriggerStatement as S;
use crate::utility::Utility;

use super::{Binder, ast, inner};

impl Binder<'_> {
    /// A statement about event triggers; None for others.
    pub(crate) fn event_trigger_statement(&self, node: &NodeEnum) -> Result<Option<Utility>> {
        let kind = pb::ObjectType::ObjectEventTrigger as i32;
        let name_of = |node: &Option<Box<pb::Node>>| match inner(node) {
            Some(NodeEnum::String(name)) => name.sval.clone(),
            _ => String::new(),
        };
        Ok(Some(Utility::EventTrigger(match node {
            NodeEnum::CreateEventTrigStmt(s) => {
                let mut filters = Vec::with_capacity(s.whenclause.len());
                for node in &s.whenclause {
                    let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
                    let values = match inner(&def.arg) {
                        Some(NodeEnum::List(list)) => ast::owned_strings(&list.items),
                        _ => Vec::new(),
                    };
                    filters.push((def.defname.clone(), values));
                }
                S::Create {
                    name: s.trigname.clone(),
                    event: s.eventname.clone(),
                    filters,
                    function: self.name_of_list(&s.funcname),
                }
            }
            NodeEnum::AlterEventTrigStmt(s) => {
                S::Enable(s.trigname.clone(), s.tgenabled.chars().next().unwrap_or('O'))
            }
            NodeEnum::RenameStmt(s) if s.rename_type == kind => {
                S::Rename(name_of(&s.object), s.newname.clone())
            }
            NodeEnum::AlterOwnerStmt(s) if s.object_type == kind => match &s.newowner {
                Some(owner) => S::Owner(name_of(&s.object), super::role::role_ref(owner)),
                None => return Ok(None),
            },
            NodeEnum::DropStmt(s) if s.remove_type == kind => S::Drop {
                names: ast::owned_strings(&s.objects),
                if_exists: s.missing_ok,
                cascade: s.behavior == pb::DropBehavior::DropCascade as i32,
            },
            _ => return Ok(None),
        })))
    }
}
