//! COMMENT ON. The grammar has a form for each kind of object.

use base::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use super::define::object_kind;
use super::{Binder, ast, inner};
use crate::comment_statement::{CommentStatement, CommentTarget};
use crate::utility::{Name, Utility};

impl Binder<'_> {
    /// COMMENT ON.
    pub(crate) fn comment(&mut self, stmt: &pb::CommentStmt) -> Result<Utility> {
        let text = (!stmt.comment.is_empty()).then(|| stmt.comment.clone());
        let kind = pb::ObjectType::try_from(stmt.objtype).unwrap_or(pb::ObjectType::Undefined);
        let target = match inner(&stmt.object) {
            Some(NodeEnum::ObjectWithArgs(object)) if kind == pb::ObjectType::ObjectOperator => {
                self.operator_target(object)?
            }
            Some(NodeEnum::ObjectWithArgs(object)) => {
                CommentTarget::Routine(self.routine_ref(stmt.objtype, object)?)
            }
            Some(NodeEnum::TypeName(name)) => {
                let domain = (kind == pb::ObjectType::ObjectDomain)
                    .then(|| ast::strings(&name.names).join("."));
                let found = self.type_name(name).map_err(base::Error::without_position)?;
                CommentTarget::Type { domain, ty: found.0 }
            }
            Some(NodeEnum::List(list)) => self.list_target(kind, &list.items)?,
            Some(node) => {
                let name = match node {
                    NodeEnum::String(s) => s.sval.clone(),
                    NodeEnum::Integer(i) => i.ival.to_string(),
                    NodeEnum::Float(f) => f.fval.clone(),
                    _ => return Err(unsupported()),
                };
                let object = Name { schema: None, name, position: 0, only: false };
                CommentTarget::Named { kind: kind_of(kind)?, object, part: None }
            }
            None => return Err(unsupported()),
        };
        Ok(Utility::Comment(CommentStatement { target, text }))
    }

    fn operator_target(&self, object: &pb::ObjectWithArgs) -> Result<CommentTarget> {
        let side = |n: usize| match object.objargs.get(n).and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::TypeName(name)) => self.type_name(name).map(|t| Some(t.0)),
            _ => Ok(None),
        };
        let name = self.name_of_list(&object.objname);
        let (left, right) = (side(0)?, side(1)?.unwrap_or(Oid::INVALID));
        Ok(CommentTarget::Operator { name, left, right })
    }

    /// Objects whose name is a list: of its parts, of a table's and the part's, of types.
    fn list_target(&self, kind: pb::ObjectType, items: &[pb::Node]) -> Result<CommentTarget> {
        use pb::ObjectType as T;
        let type_at = |n: usize| match items.get(n).and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::TypeName(name)) => Ok(name),
            _ => Err(unsupported()),
        };
        let last = || items.last().map(|n| ast::string(n).to_owned());
        let but_last = &items[..items.len().saturating_sub(1)];
        let (object, part) = match kind {
            T::ObjectCast => {
                let (source, target) = (type_at(0)?, type_at(1)?);
                let types = (self.type_name(source)?.0, self.type_name(target)?.0);
                return Ok(CommentTarget::Cast(types.0, types.1));
            }
            T::ObjectTransform => {
                let ty = self.type_name(type_at(0)?)?.0;
                return Ok(CommentTarget::Transform(ty, last().unwrap_or_default()));
            }
            T::ObjectDomconstraint => (self.name_of_list(&type_at(0)?.names), last()),
            T::ObjectOpclass | T::ObjectOpfamily => {
                let method = items.first().map(|n| ast::string(n).to_owned()).unwrap_or_default();
                let name = self.name_of_list(&items[1..]);
                // The method stands where others have a part: the name may be qualified.
                (name, Some(method))
            }
            T::ObjectColumn if items.len() < 2 => {
                return Err(err!(SYNTAX_ERROR, "column name must be qualified"));
            }
            T::ObjectColumn
            | T::ObjectTabconstraint
            | T::ObjectPolicy
            | T::ObjectRule
            | T::ObjectTrigger => (self.name_of_list(but_last), last()),
            _ => (self.name_of_list(items), None),
        };
        Ok(CommentTarget::Named { kind: kind_of(kind)?, object, part })
    }
}

/// The statement's words for a kind of object.
fn kind_of(kind: pb::ObjectType) -> Result<&'static str> {
    use pb::ObjectType as T;
    if let Some((kind, _)) = object_kind(kind as i32) {
        return Ok(kind);
    }
    Ok(match kind {
        T::ObjectAccessMethod => "ACCESS METHOD",
        T::ObjectConversion => "CONVERSION",
        T::ObjectDomconstraint => "DOMAIN CONSTRAINT",
        T::ObjectEventTrigger => "EVENT TRIGGER",
        T::ObjectExtension => "EXTENSION",
        T::ObjectFdw => "FOREIGN DATA WRAPPER",
        T::ObjectForeignServer => "SERVER",
        T::ObjectLanguage => "LANGUAGE",
        T::ObjectLargeobject => "LARGE OBJECT",
        T::ObjectOpclass => "OPERATOR CLASS",
        T::ObjectOpfamily => "OPERATOR FAMILY",
        T::ObjectPolicy => "POLICY",
        T::ObjectPublication => "PUBLICATION",
        T::ObjectRule => "RULE",
        T::ObjectStatisticExt => "STATISTICS OBJECT",
        T::ObjectSubscription => "SUBSCRIPTION",
        T::ObjectTablespace => "TABLESPACE",
        T::ObjectTrigger => "TRIGGER",
        T::ObjectTsconfiguration => "TEXT SEARCH CONFIGURATION",
        T::ObjectTsdictionary => "TEXT SEARCH DICTIONARY",
        T::ObjectTsparser => "TEXT SEARCH PARSER",
        T::ObjectTstemplate => "TEXT SEARCH TEMPLATE",
        _ => return Err(unsupported()),
    })
}

fn unsupported() -> base::Error {
    base::Error::unsupported("COMMENT on this kind of object")
}
