//! Unsupported constructs, by the words of PostgreSQL's manual.

use pg_query::{NodeEnum, protobuf as pb};

/// Statements whose name is not that of their node, taken apart at its capital letters.
const STATEMENTS: &[(&str, &str)] = &[
    ("AlterEventTrigStmt", "ALTER EVENT TRIGGER"),
    ("AlterExtensionContentsStmt", "ALTER EXTENSION"),
    ("AlterFdwStmt", "ALTER FOREIGN DATA WRAPPER"),
    ("AlterForeignServerStmt", "ALTER SERVER"),
    ("AlterObjectDependsStmt", "ALTER … DEPENDS ON EXTENSION"),
    ("AlterOpFamilyStmt", "ALTER OPERATOR FAMILY"),
    ("AlterStatsStmt", "ALTER STATISTICS"),
    ("AlterTableMoveAllStmt", "ALTER … ALL IN TABLESPACE"),
    ("AlterTableSpaceOptionsStmt", "ALTER TABLESPACE"),
    ("AlterTsconfigurationStmt", "ALTER TEXT SEARCH CONFIGURATION"),
    ("AlterTsdictionaryStmt", "ALTER TEXT SEARCH DICTIONARY"),
    ("CallStmt", "CALL"),
    ("CreateAmStmt", "CREATE ACCESS METHOD"),
    ("CreateEventTrigStmt", "CREATE EVENT TRIGGER"),
    ("CreateFdwStmt", "CREATE FOREIGN DATA WRAPPER"),
    ("CreateForeignServerStmt", "CREATE SERVER"),
    ("CreateOpClassStmt", "CREATE OPERATOR CLASS"),
    ("CreateOpFamilyStmt", "CREATE OPERATOR FAMILY"),
    ("CreateStmt", "CREATE TABLE"),
    ("CreatePlangStmt", "CREATE LANGUAGE"),
    ("CreateStatsStmt", "CREATE STATISTICS"),
    ("CreateTableSpaceStmt", "CREATE TABLESPACE"),
    ("DropTableSpaceStmt", "DROP TABLESPACE"),
    ("RuleStmt", "CREATE RULE"),
    ("SecLabelStmt", "SECURITY LABEL"),
];

/// The name of a node's kind.
fn kind(node: &NodeEnum) -> String {
    format!("{node:?}").split('(').next().unwrap_or_default().to_owned()
}

/// A statement's name.
pub(crate) fn statement(node: &NodeEnum) -> String {
    match node {
        NodeEnum::CreateTrigStmt(s) if s.isconstraint => return "CREATE CONSTRAINT TRIGGER".into(),
        NodeEnum::CreateTrigStmt(_) => return "CREATE TRIGGER".into(),
        NodeEnum::DefineStmt(s) => return format!("CREATE {}", object(s.kind)),
        NodeEnum::AlterOperatorStmt(_) => return "ALTER OPERATOR".into(),
        _ => {}
    }
    let kind = kind(node);
    if let Some((_, words)) = STATEMENTS.iter().find(|(name, _)| *name == kind) {
        return (*words).to_owned();
    }
    let mut words = String::new();
    for c in kind.trim_end_matches("Stmt").chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_uppercase());
    }
    words
}

/// A kind of object.
pub(crate) fn object(kind: i32) -> &'static str {
    use pb::ObjectType as T;
    match T::try_from(kind).unwrap_or(T::Undefined) {
        T::ObjectAccessMethod => "ACCESS METHOD",
        T::ObjectAggregate => "AGGREGATE",
        T::ObjectCast => "CAST",
        T::ObjectCollation => "COLLATION",
        T::ObjectConversion => "CONVERSION",
        T::ObjectDatabase => "DATABASE",
        T::ObjectDefacl => "DEFAULT PRIVILEGES",
        T::ObjectDomain => "DOMAIN",
        T::ObjectEventTrigger => "EVENT TRIGGER",
        T::ObjectExtension => "EXTENSION",
        T::ObjectFdw => "FOREIGN DATA WRAPPER",
        T::ObjectForeignServer => "SERVER",
        T::ObjectForeignTable => "FOREIGN TABLE",
        T::ObjectFunction => "FUNCTION",
        T::ObjectIndex => "INDEX",
        T::ObjectLanguage => "LANGUAGE",
        T::ObjectLargeobject => "LARGE OBJECT",
        T::ObjectMatview => "MATERIALIZED VIEW",
        T::ObjectOpclass => "OPERATOR CLASS",
        T::ObjectOperator => "OPERATOR",
        T::ObjectOpfamily => "OPERATOR FAMILY",
        T::ObjectParameterAcl => "PARAMETER",
        T::ObjectPolicy => "POLICY",
        T::ObjectProcedure => "PROCEDURE",
        T::ObjectPublication => "PUBLICATION",
        T::ObjectRole => "ROLE",
        T::ObjectRoutine => "ROUTINE",
        T::ObjectRule => "RULE",
        T::ObjectSchema => "SCHEMA",
        T::ObjectSequence => "SEQUENCE",
        T::ObjectStatisticExt => "STATISTICS",
        T::ObjectSubscription => "SUBSCRIPTION",
        T::ObjectTable => "TABLE",
        T::ObjectTablespace => "TABLESPACE",
        T::ObjectTransform => "TRANSFORM",
        T::ObjectTrigger => "TRIGGER",
        T::ObjectTsconfiguration => "TEXT SEARCH CONFIGURATION",
        T::ObjectTsdictionary => "TEXT SEARCH DICTIONARY",
        T::ObjectTsparser => "TEXT SEARCH PARSER",
        T::ObjectTstemplate => "TEXT SEARCH TEMPLATE",
        T::ObjectType => "TYPE",
        T::ObjectUserMapping => "USER MAPPING",
        T::ObjectView => "VIEW",
        _ => "this kind of object",
    }
}

/// An expression's kind.
pub(crate) fn expression(node: &NodeEnum) -> String {
    use pb::XmlExprOp as X;
    match node {
        NodeEnum::XmlExpr(xml) => match X::try_from(xml.op).unwrap_or(X::Undefined) {
            X::IsXmlconcat => "XMLCONCAT",
            X::IsXmlelement => "XMLELEMENT",
            X::IsXmlforest => "XMLFOREST",
            X::IsXmlparse => "XMLPARSE",
            X::IsXmlpi => "XMLPI",
            X::IsXmlroot => "XMLROOT",
            X::IsXmlserialize => "XMLSERIALIZE",
            X::IsDocument => "IS DOCUMENT",
            X::Undefined => "XML",
        }
        .to_owned(),
        NodeEnum::XmlSerialize(_) => "XMLSERIALIZE".to_owned(),
        NodeEnum::SetToDefault(_) => "DEFAULT in this place".to_owned(),
        NodeEnum::CurrentOfExpr(_) => "WHERE CURRENT OF in this place".to_owned(),
        NodeEnum::MultiAssignRef(_) => "an assignment of several columns in this place".to_owned(),
        _ => "this expression".to_owned(),
    }
}

/// An item of FROM.
pub(crate) fn from_item(node: &NodeEnum) -> &'static str {
    match node {
        NodeEnum::RangeTableFunc(_) => "XMLTABLE",
        _ => "this FROM item",
    }
}

/// A form of ALTER TABLE.
pub(crate) fn alter_table(command: &pb::AlterTableCmd) -> String {
    use pb::AlterTableType as T;
    let words = match T::try_from(command.subtype).unwrap_or(T::Undefined) {
        T::AtSetTableSpace => "SET TABLESPACE",
        T::AtSetAccessMethod => "SET ACCESS METHOD",
        T::AtSetUnLogged => "SET UNLOGGED",
        T::AtReplicaIdentity => "REPLICA IDENTITY USING INDEX",
        T::AtEnableTrig => "ENABLE TRIGGER",
        T::AtEnableAlwaysTrig => "ENABLE ALWAYS TRIGGER",
        T::AtEnableReplicaTrig => "ENABLE REPLICA TRIGGER",
        T::AtDisableTrig => "DISABLE TRIGGER",
        T::AtDisableTrigAll => "DISABLE TRIGGER ALL",
        T::AtEnableRule => "ENABLE RULE",
        T::AtEnableAlwaysRule => "ENABLE ALWAYS RULE",
        T::AtEnableReplicaRule => "ENABLE REPLICA RULE",
        T::AtDisableRule => "DISABLE RULE",
        T::AtAddOf => "OF",
        T::AtDropOf => "NOT OF",
        T::AtEnableRowSecurity => "ENABLE ROW LEVEL SECURITY",
        T::AtForceRowSecurity => "FORCE ROW LEVEL SECURITY",
        T::AtGenericOptions => "OPTIONS",
        T::AtAttachPartition => "ATTACH PARTITION",
        T::AtDetachPartition | T::AtDetachPartitionFinalize => "DETACH PARTITION",
        T::AtAlterColumnGenericOptions => "ALTER COLUMN … OPTIONS",
        T::AtSetOptions => "ALTER COLUMN … SET",
        T::AtResetOptions => "ALTER COLUMN … RESET",
        T::AtDropExpression => "ALTER COLUMN … DROP EXPRESSION",
        T::AtAlterConstraint => "ALTER CONSTRAINT",
        _ => return "this form of ALTER TABLE".to_owned(),
    };
    format!("ALTER TABLE … {words}")
}
