//! CREATE, ALTER and DROP of operators, casts, operator classes and families, conversions; CREATE LANGUAGE and
//! TRANSFORM; SECURITY LABEL.

use base::{Error, Oid, Result, err};
use pb::ObjectType as T;
use pg_query::{NodeEnum, protobuf as pb};

use crate::define_statement::{
    CastDef, CastHow, ClassDef, ClassItem, DefineStatement, DefineTarget, MappingChange,
    OperatorDef, OperatorName, TextSearchKind, TextSearchValue,
};
use crate::utility::Name;

use super::define::def_value;
use super::{Binder, ast, inner};

impl Binder<'_> {
    /// A statement about such objects; None when it is none.
    pub(crate) fn define_statement(&self, node: &NodeEnum) -> Result<Option<DefineStatement>> {
        Ok(Some(match node {
            NodeEnum::DefineStmt(s) if s.kind == T::ObjectOperator as i32 => {
                DefineStatement::CreateOperator(Box::new(self.operator_def(s)?))
            }
            NodeEnum::AlterOperatorStmt(s) => self.alter_operator(s)?,
            NodeEnum::CreateCastStmt(s) => DefineStatement::CreateCast(self.cast_def(s)?),
            NodeEnum::CreateOpFamilyStmt(s) => DefineStatement::CreateFamily {
                name: self.name_of_list(&s.opfamilyname),
                method: s.amname.clone(),
            },
            NodeEnum::CreateOpClassStmt(s) => self.create_class(s)?,
            NodeEnum::AlterOpFamilyStmt(s) => DefineStatement::AlterFamily {
                name: self.name_of_list(&s.opfamilyname),
                method: s.amname.clone(),
                add: !s.is_drop,
                items: self.family_items(&s.items)?,
            },
            NodeEnum::DefineStmt(s) if text_search_kind(s.kind).is_some() => {
                let kind = text_search_kind(s.kind).unwrap_or(TextSearchKind::Configuration);
                let options = s.definition.iter().filter_map(|n| match &n.node {
                    Some(NodeEnum::DefElem(def)) => {
                        Some((def.defname.clone(), self.text_search_value(def)))
                    }
                    _ => None,
                });
                let options = options.collect();
                DefineStatement::CreateTextSearch(kind, self.name_of_list(&s.defnames), options)
            }
            NodeEnum::AlterTsdictionaryStmt(s) => {
                let options = s.options.iter().filter_map(|n| match &n.node {
                    Some(NodeEnum::DefElem(def)) => {
                        Some((def.defname.clone(), super::define::def_value(def)))
                    }
                    _ => None,
                });
                let options = options.collect();
                DefineStatement::AlterDictionary(self.name_of_list(&s.dictname), options)
            }
            NodeEnum::AlterTsconfigurationStmt(s) => {
                let change = self.mapping_change(s)?;
                DefineStatement::AlterConfiguration(self.name_of_list(&s.cfgname), change)
            }
            NodeEnum::CreateConversionStmt(s) => DefineStatement::CreateConversion {
                name: self.name_of_list(&s.conversion_name),
                from: s.for_encoding_name.clone(),
                to: s.to_encoding_name.clone(),
                function: self.name_of_list(&s.func_name),
                default: s.def,
            },
            NodeEnum::CreateAmStmt(s) => DefineStatement::CreateMethod {
                name: s.amname.clone(),
                kind: s.amtype.chars().next().unwrap_or('i'),
                handler: self.name_of_list(&s.handler_name),
            },
            NodeEnum::CreatePlangStmt(s) => DefineStatement::CreateLanguage {
                name: s.plname.clone(),
                replace: s.replace,
                handler: (!s.plhandler.is_empty()).then(|| self.name_of_list(&s.plhandler)),
            },
            NodeEnum::CreateTransformStmt(s) => DefineStatement::CreateTransform {
                ty: self.unplaced_type(s.type_name.as_ref())?,
                language: s.lang.clone(),
            },
            NodeEnum::SecLabelStmt(s) => {
                DefineStatement::SecurityLabel((!s.provider.is_empty()).then(|| s.provider.clone()))
            }
            NodeEnum::AlterObjectDependsStmt(s) => DefineStatement::DependsOn(
                s.extname.as_ref().map_or_else(String::new, |name| name.sval.clone()),
            ),
            NodeEnum::DropStmt(s) => return self.drop_defined(s),
            NodeEnum::RenameStmt(s) => match self.target(s.rename_type, inner(&s.object), false)? {
                Some(target) => DefineStatement::Rename(target, s.newname.clone()),
                None => return Ok(None),
            },
            NodeEnum::AlterObjectSchemaStmt(s) => {
                match self.target(s.object_type, inner(&s.object), false)? {
                    Some(target) => DefineStatement::SetSchema(target, s.newschema.clone()),
                    None => return Ok(None),
                }
            }
            NodeEnum::AlterOwnerStmt(s) => {
                match (self.target(s.object_type, inner(&s.object), false)?, &s.newowner) {
                    (Some(target), Some(owner)) => {
                        DefineStatement::Owner(target, super::role::role_ref(owner))
                    }
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// A type, for errors without a position.
    fn unplaced_type(&self, name: Option<&pb::TypeName>) -> Result<Oid> {
        let Some(name) = name else { return Err(err!(SYNTAX_ERROR, "a type is missing")) };
        self.type_name(name).map(|t| t.0).map_err(Error::without_position)
    }

    fn operator_def(&self, stmt: &pb::DefineStmt) -> Result<OperatorDef> {
        let name = self.name_of_list(&stmt.defnames);
        let mut out = OperatorDef { name: Some(name), ..OperatorDef::default() };
        for node in &stmt.definition {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let flag =
                || def_value(def).is_none_or(|v| base::settings::parse_bool(&v).unwrap_or(false));
            match def.defname.as_str() {
                "leftarg" => out.left = Some(self.operand_type(def)?),
                "rightarg" => out.right = Some(self.operand_type(def)?),
                "function" | "procedure" => out.function = self.name_of_def(def),
                "commutator" => out.commutator = self.name_of_def(def),
                "negator" => out.negator = self.name_of_def(def),
                "restrict" => out.restrict = self.name_of_def(def),
                "join" => out.join = self.name_of_def(def),
                "hashes" => out.hashes = flag(),
                "merges" => out.merges = flag(),
                // What the forms of old had: they say that it merges.
                "sort1" | "sort2" | "ltcmp" | "gtcmp" => out.merges = true,
                other => out.unknown.push(other.to_owned()),
            }
        }
        Ok(out)
    }

    fn operand_type(&self, def: &pb::DefElem) -> Result<Oid> {
        if let Some(NodeEnum::TypeName(name)) = inner(&def.arg)
            && name.setof
        {
            return Err(err!(
                INVALID_FUNCTION_DEFINITION,
                "SETOF type not allowed for operator argument"
            ));
        }
        self.type_of_def(def)
    }

    fn alter_operator(&self, stmt: &pb::AlterOperatorStmt) -> Result<DefineStatement> {
        let Some(object) = &stmt.opername else {
            return Err(err!(SYNTAX_ERROR, "ALTER OPERATOR without an operator"));
        };
        let operator = self.operator_ref(object)?;
        let (mut restrict, mut join) = (None, None);
        for node in &stmt.options {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            // NONE says nothing.
            let value = match inner(&def.arg) {
                None => None,
                Some(NodeEnum::String(s)) if s.sval.eq_ignore_ascii_case("none") => None,
                _ => self.name_of_def(def),
            };
            match def.defname.as_str() {
                "restrict" => restrict = Some(value),
                "join" => join = Some(value),
                name @ ("leftarg" | "rightarg" | "function" | "procedure" | "commutator"
                | "negator" | "hashes" | "merges") => {
                    return Err(err!(
                        SYNTAX_ERROR,
                        "operator attribute \"{name}\" cannot be changed"
                    ));
                }
                name => {
                    return Err(err!(SYNTAX_ERROR, "operator attribute \"{name}\" not recognized"));
                }
            }
        }
        Ok(DefineStatement::AlterOperator { operator, restrict, join })
    }

    /// An operator as statements name it.
    pub(crate) fn operator_ref(&self, object: &pb::ObjectWithArgs) -> Result<OperatorName> {
        let side = |n: usize| match object.objargs.get(n).and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::TypeName(name)) => self.unplaced_type(Some(name)).map(Some),
            _ => Ok(None),
        };
        let none = |n: usize| object.objargs.get(n).is_none_or(|n| n.node.is_none());
        if object.objargs.len() == 2 && none(1) {
            return Err(err!(FEATURE_NOT_SUPPORTED, "postfix operators are not supported"));
        }
        let name = self.name_of_list(&object.objname);
        Ok(OperatorName { name, left: side(0)?, right: side(1)?.unwrap_or(Oid::INVALID) })
    }

    fn cast_def(&self, stmt: &pb::CreateCastStmt) -> Result<CastDef> {
        let source = self.unplaced_type(stmt.sourcetype.as_ref())?;
        let target = self.unplaced_type(stmt.targettype.as_ref())?;
        let context = match pb::CoercionContext::try_from(stmt.context) {
            Ok(pb::CoercionContext::CoercionImplicit) => 'i',
            Ok(pb::CoercionContext::CoercionAssignment) => 'a',
            _ => 'e',
        };
        let how = match &stmt.func {
            Some(function) => {
                let args = (!function.args_unspecified).then(|| self.arguments_of(function));
                CastHow::Function(self.name_of_list(&function.objname), args.transpose()?)
            }
            None if stmt.inout => CastHow::InOut,
            None => CastHow::Binary,
        };
        Ok(CastDef { source, target, context, how })
    }

    fn arguments_of(&self, object: &pb::ObjectWithArgs) -> Result<Vec<Oid>> {
        let mut out = Vec::with_capacity(object.objargs.len());
        for node in &object.objargs {
            if let Some(NodeEnum::TypeName(name)) = &node.node {
                out.push(self.unplaced_type(Some(name))?);
            }
        }
        Ok(out)
    }

    fn create_class(&self, stmt: &pb::CreateOpClassStmt) -> Result<DefineStatement> {
        let family = (!stmt.opfamilyname.is_empty()).then(|| self.name_of_list(&stmt.opfamilyname));
        Ok(DefineStatement::CreateClass(Box::new(ClassDef {
            name: self.name_of_list(&stmt.opclassname),
            default: stmt.is_default,
            input: self.unplaced_type(stmt.datatype.as_ref())?,
            input_name: stmt.datatype.as_ref().map_or_else(String::new, |name| {
                let names = ast::strings(&name.names);
                let shown = names.strip_prefix(&["pg_catalog"]).unwrap_or(&names);
                shown.join(".")
            }),
            method: stmt.amname.clone(),
            family,
            items: self.class_items(&stmt.items)?,
        })))
    }

    /// Items of ALTER OPERATOR FAMILY, where STORAGE can't stand.
    fn family_items(&self, nodes: &[pb::Node]) -> Result<Vec<ClassItem>> {
        let is_storage = |node: &pb::Node| matches!(&node.node, Some(NodeEnum::CreateOpClassItem(item)) if item.itemtype == 3);
        if nodes.iter().any(is_storage) {
            return Err(err!(SYNTAX_ERROR, "STORAGE cannot be specified in ALTER OPERATOR FAMILY"));
        }
        self.class_items(nodes)
    }

    fn class_items(&self, nodes: &[pb::Node]) -> Result<Vec<ClassItem>> {
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::CreateOpClassItem(item)) = &node.node else { continue };
            let number = item.number;
            let mut types = Vec::new();
            for node in &item.class_args {
                if let Some(NodeEnum::TypeName(name)) = &node.node {
                    types.push(self.unplaced_type(Some(name))?);
                }
            }
            out.push(match item.itemtype {
                1 => {
                    if let Some(object) = &item.name {
                        types = self.arguments_of(object)?;
                    }
                    let sort_family = (!item.order_family.is_empty())
                        .then(|| self.name_of_list(&item.order_family));
                    let name = item.name.as_ref().map(|o| self.name_of_list(&o.objname));
                    // A prefix operator has no left type.
                    if let Some(object) = &item.name
                        && object.objargs.len() != types.len()
                    {
                        types.insert(0, Oid::INVALID);
                    }
                    ClassItem::Operator { number, name, types, sort_family }
                }
                2 => {
                    let args = match &item.name {
                        Some(object) if !object.args_unspecified => {
                            Some(self.arguments_of(object)?)
                        }
                        _ => None,
                    };
                    let name = item.name.as_ref().map(|o| self.name_of_list(&o.objname));
                    ClassItem::Function { number, name, args, types }
                }
                _ => ClassItem::Storage(self.unplaced_type(item.storedtype.as_ref())?),
            });
        }
        Ok(out)
    }

    fn drop_defined(&self, stmt: &pb::DropStmt) -> Result<Option<DefineStatement>> {
        let mut targets = Vec::with_capacity(stmt.objects.len());
        for node in &stmt.objects {
            match self.target(stmt.remove_type, node.node.as_ref(), stmt.missing_ok)? {
                Some(target) => targets.push(target),
                None => return Ok(None),
            }
        }
        Ok(Some(DefineStatement::Drop {
            targets,
            if_exists: stmt.missing_ok,
            cascade: stmt.behavior == pb::DropBehavior::DropCascade as i32,
        }))
    }

    /// What a statement is about; None for kinds of objects that others handle. `lenient`: with IF EXISTS, a
    /// type that is missing makes the object missing.
    fn target(
        &self,
        kind: i32,
        node: Option<&NodeEnum>,
        lenient: bool,
    ) -> Result<Option<DefineTarget>> {
        let found = self.target_of(kind, node);
        match found {
            Err(error) if lenient && is_missing(&error) => {
                let message = format!("{}, skipping", error.message());
                let words = match T::try_from(kind) {
                    Ok(T::ObjectOperator) => "OPERATOR",
                    Ok(T::ObjectCast) => "CAST",
                    _ => "TRANSFORM",
                };
                Ok(Some(DefineTarget::Missing(message, words)))
            }
            found => found,
        }
    }

    fn target_of(&self, kind: i32, node: Option<&NodeEnum>) -> Result<Option<DefineTarget>> {
        let items = match node {
            Some(NodeEnum::List(list)) => list.items.as_slice(),
            _ => &[],
        };
        let type_at = |n: usize| match items.get(n).and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::TypeName(name)) => self.unplaced_type(Some(name)),
            _ => Err(err!(SYNTAX_ERROR, "a type is missing")),
        };
        let method = || items.first().map(|n| ast::string(n).to_owned()).unwrap_or_default();
        let behind = || self.name_of_list(items.get(1..).unwrap_or_default());
        Ok(Some(match (T::try_from(kind), node) {
            (Ok(T::ObjectOperator), Some(NodeEnum::ObjectWithArgs(object))) => {
                DefineTarget::Operator(self.operator_ref(object)?)
            }
            (Ok(T::ObjectCast), _) => DefineTarget::Cast(type_at(0)?, type_at(1)?),
            (Ok(T::ObjectTransform), _) => {
                let language = items.get(1).map(|n| ast::string(n).to_owned());
                DefineTarget::Transform(type_at(0)?, language.unwrap_or_default())
            }
            (Ok(T::ObjectOpclass), _) => DefineTarget::Class(behind(), method()),
            (Ok(T::ObjectOpfamily), _) => DefineTarget::Family(behind(), method()),
            (Ok(T::ObjectAccessMethod), Some(NodeEnum::String(name))) => {
                DefineTarget::Method(name.sval.clone())
            }
            (Ok(T::ObjectConversion), _) => DefineTarget::Conversion(self.name_of_list(items)),
            (Ok(T::ObjectStatisticExt), _) => DefineTarget::Statistics(self.name_of_list(items)),
            _ if text_search_kind(kind).is_some() => {
                let kind = text_search_kind(kind).unwrap_or(TextSearchKind::Configuration);
                DefineTarget::TextSearch(kind, self.name_of_list(items))
            }
            _ => return Ok(None),
        }))
    }
}

impl Binder<'_> {
    fn text_search_value(&self, def: &pb::DefElem) -> TextSearchValue {
        let name = match inner(&def.arg) {
            Some(NodeEnum::TypeName(name)) => self.name_of_list(&name.names),
            Some(NodeEnum::List(list)) => self.name_of_list(&list.items),
            _ => Name {
                schema: None,
                name: super::define::def_value(def).unwrap_or_default(),
                position: 0,
                only: false,
            },
        };
        let text = super::define::def_value(def).unwrap_or_else(|| name.name.clone());
        TextSearchValue { name, text }
    }

    fn mapping_change(&self, s: &pb::AlterTsConfigurationStmt) -> Result<MappingChange> {
        use pb::AlterTsConfigType as K;
        let types: Vec<String> = s.tokentype.iter().map(|n| ast::string(n).to_owned()).collect();
        let dictionaries: Vec<Name> = s
            .dicts
            .iter()
            .filter_map(|n| match &n.node {
                Some(NodeEnum::List(list)) => Some(self.name_of_list(&list.items)),
                _ => None,
            })
            .collect();
        Ok(match K::try_from(s.kind) {
            Ok(K::AlterTsconfigAddMapping) => MappingChange::Add(types, dictionaries),
            Ok(K::AlterTsconfigAlterMappingForToken) => MappingChange::Alter(types, dictionaries),
            Ok(K::AlterTsconfigReplaceDict | K::AlterTsconfigReplaceDictForToken) => {
                match <[Name; 2]>::try_from(dictionaries) {
                    Ok([from, to]) => MappingChange::Replace(types, from, to),
                    Err(_) => return Err(err!(SYNTAX_ERROR, "a dictionary is missing")),
                }
            }
            _ => MappingChange::Drop(types, s.missing_ok),
        })
    }
}

fn text_search_kind(kind: i32) -> Option<TextSearchKind> {
    Some(match T::try_from(kind) {
        Ok(T::ObjectTsconfiguration) => TextSearchKind::Configuration,
        Ok(T::ObjectTsdictionary) => TextSearchKind::Dictionary,
        Ok(T::ObjectTsparser) => TextSearchKind::Parser,
        Ok(T::ObjectTstemplate) => TextSearchKind::Template,
        _ => return None,
    })
}

fn is_missing(error: &Error) -> bool {
    use base::sqlstate::{UNDEFINED_OBJECT, UNDEFINED_SCHEMA};
    [UNDEFINED_OBJECT, UNDEFINED_SCHEMA].contains(&error.code())
}

impl DefineTarget {
    /// A name that is its own.
    pub fn name(&self) -> Option<&Name> {
        match self {
            DefineTarget::Operator(operator) => Some(&operator.name),
            DefineTarget::Class(name, _)
            | DefineTarget::Family(name, _)
            | DefineTarget::TextSearch(_, name)
            | DefineTarget::Statistics(name)
            | DefineTarget::Conversion(name) => Some(name),
            _ => None,
        }
    }
}
