//! A compiled body: statements over a frame of slots. Shared by all sessions.
//!
//! ```text
//!   Program ── slots ── what a call's frame holds, one value each
//!           ├─ names ── which names mean which slots, by place (a list that grows downward)
//!           ├─ codes ── SQL: text, place in the names, plans
//!           └─ body  ── statements that refer to both by number
//! ```

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use base::{Oid, SqlState};
use exec::plan_slot::{PlanKey, PlanSlot};
use sql::embedded::Conflict;
use sql::{Expr, Prepared};
use types::datum::Shape;

use crate::fast::{Append, Fast};

/// Number of a slot.
pub type Slot = u16;
/// Number of a piece of SQL.
pub type CodeId = usize;
/// Number of a block or loop that can be left.
pub type LabelId = u32;

/// The content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// A value of a type without columns.
    Scalar,
    /// A row of a composite type.
    Row,
    /// A row of any shape.
    Record,
    /// The value that CASE compares, as the one field of a record.
    Case,
}

/// A variable.
pub struct SlotInfo {
    /// Its name.
    pub name: String,
    /// The content.
    pub kind: SlotKind,
    /// Its type.
    pub ty: Oid,
    /// And typmod.
    pub typmod: i32,
    /// COLLATE; 0: the type's.
    pub collation: u32,
    /// NOT NULL.
    pub not_null: bool,
    /// CONSTANT.
    pub constant: bool,
    /// The initial value.
    pub default: Option<CodeId>,
    /// A bound cursor's query and parameters.
    pub cursor: Option<Arc<CursorInfo>>,
    /// Its declaration's line.
    pub line: u32,
}

/// A bound cursor.
pub struct CursorInfo {
    /// Its query.
    pub query: CodeId,
    /// The slots of its parameters, and their names.
    pub params: Vec<Slot>,
    /// SCROLL or NO SCROLL.
    pub scroll: Option<bool>,
}

/// The kind of an SQL text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeKind {
    /// An expression.
    Expression,
    /// The same, assigned to a variable: how its errors name it.
    Assignment,
    /// The first value of a variable, which is cast when it has been computed.
    Default,
    /// A statement.
    Statement,
    /// A cursor's query.
    Cursor,
}

/// A piece of SQL.
pub struct Code {
    /// The text.
    pub text: Arc<str>,
    /// The text before it where errors show it: `x := `.
    pub lead: String,
    /// The text's kind.
    pub kind: CodeKind,
    /// Where in the names.
    pub scope: usize,
    /// The variable that it is assigned to as a whole.
    pub into: Option<Slot>,
    /// Type and typmod that an expression is to have.
    pub target: Option<(Oid, i32)>,
    /// Its plans.
    pub plans: PlanSlot<Compiled>,
}

/// A piece of SQL made ready to run.
pub struct Compiled {
    /// The plan or expression.
    pub what: What,
    /// The shapes that the records named in it had.
    pub guard: Box<[(Slot, Arc<Shape>)]>,
    /// The key that it was made under.
    pub key: PlanKey,
}

/// See [`Compiled`].
pub enum What {
    /// An expression that is evaluated as it is.
    Value {
        /// It.
        expr: Expr,
        /// The plans that its subqueries need.
        prepared: Box<Prepared>,
        /// It reads tables.
        reads: bool,
        /// The same, where it is one of the simple kinds.
        fast: Option<Fast>,
        /// The value that it adds to the variable that it is assigned to.
        append: Option<Append>,
        /// It depends on nothing.
        constant: bool,
        /// It may call something that needs a snapshot of its own.
        calls: bool,
    },
    /// A statement.
    Query {
        /// Its plan.
        prepared: Arc<Prepared>,
        /// Its rows'.
        shape: Arc<Shape>,
        /// A cursor's: the tables that WHERE CURRENT OF can change.
        tables: Vec<Vec<u32>>,
    },
}

/// Something that is assigned to.
pub struct Assignable {
    /// The variable.
    pub slot: Slot,
    /// The part of it.
    pub path: Vec<Step>,
}

/// A step into a value.
pub enum Step {
    /// `.name`.
    Field(String),
    /// `[i]`.
    Index(CodeId),
    /// `[low:high]`.
    Slice(Option<CodeId>, Option<CodeId>),
}

/// INTO.
pub struct Into {
    /// STRICT.
    pub strict: bool,
    /// A row or record alone, or scalars.
    pub targets: Vec<Assignable>,
}

/// Where rows come from.
pub enum Source {
    /// A query.
    Query(CodeId),
    /// EXECUTE … USING.
    Execute(CodeId, Vec<CodeId>),
    /// A bound cursor with its arguments.
    Cursor(Slot, Vec<CodeId>),
}

/// The item that GET DIAGNOSTICS gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagnostic {
    /// ROW_COUNT.
    RowCount,
    /// PG_CONTEXT.
    Context,
    /// PG_EXCEPTION_CONTEXT.
    ExceptionContext,
    /// PG_EXCEPTION_DETAIL.
    Detail,
    /// PG_EXCEPTION_HINT.
    Hint,
    /// RETURNED_SQLSTATE.
    State,
    /// COLUMN_NAME.
    Column,
    /// CONSTRAINT_NAME.
    Constraint,
    /// PG_DATATYPE_NAME.
    DataType,
    /// MESSAGE_TEXT.
    Message,
    /// TABLE_NAME.
    Table,
    /// SCHEMA_NAME.
    Schema,
}

/// An option of RAISE … USING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseOption {
    /// ERRCODE.
    Code,
    /// MESSAGE.
    Message,
    /// DETAIL.
    Detail,
    /// HINT.
    Hint,
    /// COLUMN.
    Column,
    /// CONSTRAINT.
    Constraint,
    /// DATATYPE.
    DataType,
    /// TABLE.
    Table,
    /// SCHEMA.
    Schema,
}

/// RAISE.
pub struct Raise {
    /// `EXCEPTION`, `NOTICE` …
    pub level: &'static str,
    /// The condition's name or code, as written.
    pub condition: Option<(String, SqlState)>,
    /// The format, split at its parameters.
    pub format: Option<Vec<String>>,
    /// Its parameters.
    pub params: Vec<CodeId>,
    /// USING.
    pub options: Vec<(RaiseOption, CodeId)>,
    /// RAISE alone.
    pub again: bool,
}

/// The condition that an exception handler catches.
pub enum Catch {
    /// OTHERS.
    Others,
    /// A code, or a class of codes.
    State(SqlState),
}

impl Catch {
    /// Whether it catches an error.
    pub fn catches(&self, error: &base::Error) -> bool {
        let code = error.code();
        match self {
            // Neither a cancelled query nor a failed assertion is anybody's to swallow unasked.
            Catch::Others => {
                code != base::sqlstate::QUERY_CANCELED && code != base::sqlstate::ASSERT_FAILURE
            }
            Catch::State(wanted) if wanted.0.ends_with(b"000") => wanted.0[..2] == code.0[..2],
            Catch::State(wanted) => *wanted == code,
        }
    }
}

/// WHEN … THEN.
pub struct Handler {
    /// The conditions that it catches.
    pub catches: Vec<Catch>,
    /// The statements that it runs.
    pub body: Vec<Stmt>,
}

/// BEGIN … END.
pub struct Block {
    /// To be left by EXIT.
    pub id: LabelId,
    /// Variables to be set when it is entered.
    pub declares: Vec<Slot>,
    /// Statements.
    pub body: Vec<Stmt>,
    /// EXCEPTION: slots of SQLSTATE and SQLERRM, handlers.
    pub handlers: Option<(Slot, Slot, Vec<Handler>)>,
}

/// A statement.
pub struct Stmt {
    /// Its line in the body.
    pub line: u32,
    /// It.
    pub kind: StmtKind,
}

/// See [`Stmt`].
pub enum StmtKind {
    /// BEGIN … END.
    Block(Block),
    /// `target := value`.
    Assign(Assignable, CodeId),
    /// IF.
    If(Vec<(CodeId, Vec<Stmt>)>, Vec<Stmt>),
    /// CASE: what is compared and its slot, the arms, ELSE.
    Case(Option<(CodeId, Slot)>, Vec<(CodeId, Vec<Stmt>)>, Option<Vec<Stmt>>),
    /// LOOP.
    Loop(LabelId, Vec<Stmt>),
    /// WHILE.
    While(LabelId, CodeId, Vec<Stmt>),
    /// FOR over integers.
    ForInteger {
        /// To be left by EXIT.
        id: LabelId,
        /// The variable.
        slot: Slot,
        /// From, to, BY.
        low: CodeId,
        /// See `low`.
        high: CodeId,
        /// See `low`.
        step: Option<CodeId>,
        /// REVERSE.
        reverse: bool,
        /// Statements.
        body: Vec<Stmt>,
    },
    /// FOR over rows.
    ForRows {
        /// To be left by EXIT.
        id: LabelId,
        /// The variables that each row goes to.
        targets: Vec<Assignable>,
        /// The rows.
        source: Source,
        /// Statements.
        body: Vec<Stmt>,
    },
    /// FOREACH.
    Foreach {
        /// To be left by EXIT.
        id: LabelId,
        /// The variables that each item goes to.
        targets: Vec<Assignable>,
        /// SLICE.
        slice: u32,
        /// The array.
        array: CodeId,
        /// Statements.
        body: Vec<Stmt>,
    },
    /// EXIT and CONTINUE.
    Leave {
        /// EXIT.
        exit: bool,
        /// Which.
        id: LabelId,
        /// WHEN.
        when: Option<CodeId>,
    },
    /// RETURN with an expression, or with what the output parameters hold.
    Return(Option<CodeId>),
    /// RETURN NEXT.
    ReturnNext(Option<CodeId>),
    /// RETURN QUERY.
    ReturnQuery(Source),
    /// RAISE.
    Raise(Box<Raise>),
    /// ASSERT.
    Assert(CodeId, Option<CodeId>),
    /// A statement in SQL.
    Sql(CodeId, Option<Into>),
    /// EXECUTE.
    Execute(CodeId, Option<Into>, Vec<CodeId>),
    /// PERFORM.
    Perform(CodeId),
    /// CALL, with the names of its arguments and the variables that they are.
    Call(CodeId, Vec<(Option<String>, Option<Assignable>)>),
    /// DO.
    Do(CodeId),
    /// GET DIAGNOSTICS; `true`: STACKED.
    GetDiagnostics(bool, Vec<(Diagnostic, Assignable)>),
    /// OPEN of a bound cursor.
    Open(Slot, Vec<CodeId>),
    /// OPEN … FOR.
    OpenFor(Slot, Option<bool>, Source),
    /// FETCH.
    Fetch(Slot, Go, Vec<Assignable>),
    /// MOVE.
    Move(Slot, Go),
    /// CLOSE.
    Close(Slot),
    /// COMMIT [AND CHAIN].
    Commit(bool),
    /// ROLLBACK [AND CHAIN].
    Rollback(bool),
    /// NULL.
    Null,
}

/// Where FETCH and MOVE go.
pub enum Go {
    /// NEXT, PRIOR, FIRST, LAST, and the like.
    Fixed(sql::utility::FetchHow),
    /// ABSOLUTE n.
    Absolute(CodeId),
    /// RELATIVE n.
    Relative(CodeId),
    /// FORWARD n.
    Forward(CodeId),
    /// BACKWARD n.
    Backward(CodeId),
}

/// An entry of the names; each points to the one declared before it.
pub struct NameEntry {
    /// The thing that is declared.
    pub what: NameKind,
    /// The name.
    pub name: String,
    /// The entry before, +1; 0: none.
    pub before: usize,
}

/// See [`NameEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A block begins here; its label, if it has one.
    Label(LabelId, LabelKind),
    /// A variable.
    Variable(Slot),
}

/// The statement that a label stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelKind {
    /// A block.
    Block,
    /// A loop.
    Loop,
    /// Neither can be left: the parameters of a cursor.
    Other,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Returns {
    /// Nothing.
    Void,
    /// A value of a type.
    Scalar(Oid),
    /// A row: of this shape, or of the one that the caller names (or none).
    Row(Option<Arc<Shape>>),
    /// A trigger's row.
    Trigger,
    /// Nothing: an event trigger.
    EventTrigger,
}

/// A compiled body.
pub struct Program {
    /// As CONTEXT lines name it: `f(integer)`.
    pub signature: Arc<str>,
    /// Its schema, and the same with the schema's name, for where the search path does not lead to it.
    pub placed: Option<(u32, Arc<str>)>,
    /// The function's name.
    pub name: String,
    /// Variables.
    pub slots: Vec<SlotInfo>,
    /// Names.
    pub names: Vec<NameEntry>,
    /// SQL.
    pub codes: Vec<Code>,
    /// Statements.
    pub body: Block,
    /// Slots of the inputs.
    pub inputs: Vec<Slot>,
    /// Slots of the outputs.
    pub outputs: Vec<Slot>,
    /// `$1`, `$2` …
    pub numbered: Vec<Slot>,
    /// FOUND.
    pub found: Slot,
    /// The result.
    pub returns: Returns,
    /// The table whose rows those are.
    pub row_of: Option<u32>,
    /// SETOF.
    pub set: bool,
    /// A procedure.
    pub procedure: bool,
    /// VOLATILE.
    pub volatile: bool,
    /// The side that wins where a name is a variable and a column.
    pub conflict: Conflict,
    /// `#print_strict_params`.
    pub print_strict_params: bool,
    /// It commits or calls something that may.
    pub ends_transactions: bool,
    /// A trigger's variables.
    pub trigger: Option<TriggerSlots>,
    /// The columns of the composite types that it names.
    pub shapes: Vec<(Oid, Arc<Shape>)>,
    /// Conversions between types.
    pub conversions: RwLock<HashMap<(Oid, Oid, i32), Arc<Expr>>>,
}

/// Slots of a trigger's variables, as far as its body names them.
#[derive(Default)]
pub struct TriggerSlots {
    /// NEW.
    pub new: Slot,
    /// OLD.
    pub old: Slot,
    /// TG_… by name.
    pub others: Vec<(&'static str, Slot)>,
    /// Of the rows of transition tables: OLD, NEW.
    pub tables: [Slot; 2],
}

/// A variable and how many of the names were its.
pub struct Found {
    /// The variable.
    pub slot: Slot,
    /// Names used up.
    pub used: usize,
}

/// The meaning of a name at a place: see [`NameEntry`].
pub fn lookup(names: &[NameEntry], slots: &[SlotInfo], at: usize, parts: &[&str]) -> Option<Found> {
    let first = *parts.first()?;
    let mut next = at;
    while next > 0 {
        // One block's variables, then its label.
        let block = next;
        while next > 0 {
            let entry = &names[next - 1];
            match entry.what {
                NameKind::Variable(slot) => {
                    let has_fields =
                        matches!(slots[usize::from(slot)].kind, SlotKind::Row | SlotKind::Record);
                    if entry.name == first && (parts.len() == 1 || has_fields) {
                        return Some(Found { slot, used: 1 });
                    }
                    next = entry.before;
                }
                NameKind::Label(..) => break,
            }
        }
        let Some(label) = next.checked_sub(1).map(|n| &names[n]) else { return None };
        if label.name == first && !label.name.is_empty() && parts.len() > 1 {
            let mut inner = block;
            while inner != next {
                let entry = &names[inner - 1];
                if let NameKind::Variable(slot) = entry.what
                    && entry.name == parts[1]
                {
                    return Some(Found { slot, used: 2 });
                }
                inner = entry.before;
            }
        }
        next = label.before;
    }
    None
}
