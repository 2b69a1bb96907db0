//! Plans made by hand: the short path and the operators without the planner.

use std::sync::Arc;

use crate::common::{Db, Session};
use base::Oid;
use catalog::Table;
use sql::expr::{Expr, SortKey};
use sql::plan::{
    Estimate, ExecCache, IndexBounds, Modify, ModifyAction, Node, OutputColumn, Scan, ScanColumn,
};
use sql::utility::{ColumnDef, ConstraintDef, ConstraintDefKind, Name, Utility};
use sql::{Plan, Prepared, Statement};
use types::{Datum, oids};

fn plan(node: Node) -> Plan {
    Plan { node, estimate: Estimate::default() }
}

fn prepared(statement: Statement, types: &[Oid], writes: bool) -> Arc<Prepared> {
    let column = |ty: &Oid| OutputColumn {
        name: "c".to_owned(),
        ty: *ty,
        typmod: -1,
        table: Oid(0),
        column: 0,
        collation: 0,
    };
    Arc::new(Prepared {
        statement,
        params: vec![],
        columns: types.iter().map(column).collect(),
        subplans: vec![],
        changes: Vec::new(),
        slots: 0,
        locks: vec![],
        catalog_version: 0,
        tag: "",
        writes,
        identity: Default::default(),
        executor: ExecCache::default(),
        trials: Default::default(),
        constant_calls: Vec::new(),
        effects: Default::default(),
        stack: sched::stack_bytes(),
    })
}

fn query(node: Node, types: &[Oid]) -> Arc<Prepared> {
    prepared(Statement::Query(plan(node)), types, false)
}

fn change(modify: Modify) -> Arc<Prepared> {
    let node = Node::Modify(Box::new(modify));
    prepared(Statement::Query(plan(node)), &[], true)
}

fn utility(utility: Utility) -> Arc<Prepared> {
    prepared(Statement::Utility(utility), &[], true)
}

fn name(name: &str) -> Name {
    Name { schema: None, name: name.to_owned(), position: 0, only: false }
}

fn column(name: &str, ty: Oid) -> ColumnDef {
    ColumnDef::new(name, ty, -1)
}

/// `accounts (id int4 primary key, balance int4, note text)`.
fn create_accounts(session: &mut Session<'_>) {
    let statement = utility(Utility::CreateTable {
        method: None,
        of_type: 0,
        foreign: None,
        name: name("accounts"),
        columns: vec![
            column("id", oids::INT4),
            column("balance", oids::INT4),
            column("note", oids::TEXT),
        ],
        constraints: vec![ConstraintDef {
            name: None,
            kind: ConstraintDefKind::PrimaryKey { columns: vec!["id".to_owned()], include: vec![] },
            deferrable: false,
            deferred: false,
            unvalidated: false,
            options: Vec::new(),
            no_inherit: false,
            inherited: 0,
            only_inherited: false,
            position: 0,
        }],
        indexes: vec![],
        if_not_exists: false,
        options: vec![],
        persistence: sql::utility::Persistence::Permanent,
        inherits: Default::default(),
        partition: Default::default(),
    });
    session.execute(&statement).expect("create table");
}

fn table(session: &Session<'_>, name: &str) -> Arc<Table> {
    let view = session.db.catalog();
    view.expect_table(&[catalog::object::ids::PUBLIC], None, name).expect("table")
}

fn int(value: i32) -> Expr {
    Expr::Const(Datum::Int4(value), oids::INT4)
}

fn text(value: &str) -> Expr {
    Expr::Const(Datum::Text(value.into()), oids::TEXT)
}

fn insert(session: &Session<'_>, rows: Vec<Vec<Expr>>) -> Arc<Prepared> {
    let table = table(session, "accounts");
    let indexes = session.db.catalog().indexes_of(&table);
    change(Modify {
        role: 0,
        table,
        indexes,
        action: ModifyAction::Insert { input: plan(Node::Values(rows)), conflict: None },
        returning: None,
        checks: Default::default(),
        children: Vec::new(),
        tableoid: 0,
        places: false,
    })
}

fn fill(session: &mut Session<'_>, ids: std::ops::Range<i32>) {
    let rows = ids.map(|n| vec![int(n), int(n * 10), text(&format!("note {n}"))]).collect();
    let statement = insert(session, rows);
    session.execute(&statement).expect("insert");
}

fn scan(session: &Session<'_>, columns: Vec<ScanColumn>) -> Scan {
    Scan { table: table(session, "accounts"), columns, filter: None, alias: None }
}

fn by_key(session: &Session<'_>, columns: Vec<ScanColumn>, key: Expr) -> Node {
    let scan = scan(session, columns);
    let index = session.db.catalog().indexes_of(&scan.table)[0].clone();
    let bounds = IndexBounds { equal: vec![key], ..IndexBounds::default() };
    Node::IndexScan { scan, index, bounds, backward: false }
}

fn all(session: &mut Session<'_>) -> Vec<String> {
    let columns = vec![ScanColumn::Attr(1), ScanColumn::Attr(2), ScanColumn::Attr(3)];
    let node = Node::SeqScan(scan(session, columns));
    let statement = query(node, &[oids::INT4, oids::INT4, oids::TEXT]);
    session.execute(&statement).expect("scan").1.lines
}

#[test]
fn one_row_goes_in_and_comes_back_by_its_key() {
    let db = Db::new();
    let mut session = db.session();
    create_accounts(&mut session);
    fill(&mut session, 1..2);
    fill(&mut session, 2..5);
    let columns = vec![ScanColumn::Attr(2), ScanColumn::Attr(3)];
    let statement = query(by_key(&session, columns, int(3)), &[oids::INT4, oids::TEXT]);
    let (outcome, rows) = session.execute(&statement).expect("select");
    assert_eq!((outcome.rows, rows.lines), (1, vec!["30|note 3".to_owned()]));
    assert_eq!(all(&mut session).len(), 4);
}

#[test]
fn a_second_row_with_the_key_is_refused() {
    let db = Db::new();
    let mut session = db.session();
    create_accounts(&mut session);
    fill(&mut session, 1..3);
    let statement = insert(&session, vec![vec![int(2), int(0), text("")]]);
    let error = session.execute(&statement).err().expect("a duplicate");
    assert_eq!(error.code(), base::sqlstate::UNIQUE_VIOLATION);
    assert_eq!(error.message(), "duplicate key value violates unique constraint \"accounts_pkey\"");
    let fields = error.fields();
    assert_eq!(fields.detail.as_deref(), Some("Key (id)=(2) already exists."));
    assert_eq!(fields.object.constraint.as_deref(), Some("accounts_pkey"));
    let null = Expr::Const(Datum::Null, oids::INT4);
    let statement = insert(&session, vec![vec![null, int(0), text("x")]]);
    let error = session.execute(&statement).err().expect("a NULL key");
    assert_eq!(error.code(), base::sqlstate::NOT_NULL_VIOLATION);
    assert_eq!(error.fields().detail.as_deref(), Some("Failing row contains (null, 0, x)."));
    assert_eq!(all(&mut session).len(), 2);
}

fn whole_row() -> Vec<ScanColumn> {
    vec![
        ScanColumn::Tid,
        ScanColumn::Root,
        ScanColumn::Attr(1),
        ScanColumn::Attr(2),
        ScanColumn::Attr(3),
    ]
}

fn live_columns() -> Vec<(u16, ScanColumn)> {
    (1..=3).map(|n| (n + 1, ScanColumn::Attr(n))).collect()
}

fn update(session: &Session<'_>, input: Node, set: Vec<(u16, Expr)>) -> Arc<Prepared> {
    let table = table(session, "accounts");
    let indexes = session.db.catalog().indexes_of(&table);
    change(Modify {
        role: 0,
        table,
        indexes,
        action: ModifyAction::Update {
            input: plan(input),
            columns: live_columns(),
            set,
            recheck: None,
        },
        returning: None,
        checks: Default::default(),
        children: Vec::new(),
        tableoid: 0,
        places: false,
    })
}

#[test]
fn rows_are_changed_by_key_and_all_together() {
    let db = Db::new();
    let mut session = db.session();
    create_accounts(&mut session);
    fill(&mut session, 1..4);
    let input = by_key(&session, whole_row(), int(2));
    let statement = update(&session, input, vec![(2, int(-1))]);
    assert_eq!(session.execute(&statement).expect("update").0.rows, 1);
    assert_eq!(all(&mut session).len(), 3);
    // The key moves: a new entry in the index, and the old key finds nothing.
    let input = Node::SeqScan(scan(&session, whole_row()));
    let function = types::func::operators_named("+")
        .iter()
        .find(|o| o.left == oids::INT4 && o.right == oids::INT4)
        .and_then(|o| types::func::function(o.function))
        .expect("int4pl");
    let moved = Expr::Call {
        function,
        args: Box::new([Expr::Column(2, oids::INT4), int(100)]),
        ty: oids::INT4,
        position: 0,
    };
    let statement = update(&session, input, vec![(1, moved)]);
    assert_eq!(session.execute(&statement).expect("update").0.rows, 3);
    for (key, expected) in [(2, vec![]), (102, vec!["-1".to_owned()])] {
        let statement = query(by_key(&session, vec![ScanColumn::Attr(2)], int(key)), &[oids::INT4]);
        assert_eq!(session.execute(&statement).expect("select").1.lines, expected);
    }
}

#[test]
fn an_aborted_change_leaves_nothing() {
    let db = Db::new();
    let mut session = db.session();
    create_accounts(&mut session);
    fill(&mut session, 1..3);
    session.begin();
    fill(&mut session, 3..2000);
    assert_eq!(all(&mut session).len(), 1999);
    session.rollback();
    assert_eq!(all(&mut session).len(), 2);
    fill(&mut session, 3..4);
    assert_eq!(all(&mut session).len(), 3);
}

#[test]
fn truncate_and_its_rollback() {
    let db = Db::new();
    let mut session = db.session();
    create_accounts(&mut session);
    fill(&mut session, 1..10);
    let truncate = utility(Utility::Truncate {
        tables: vec![name("accounts")],
        cascade: false,
        restart: false,
    });
    session.begin();
    session.execute(&truncate).expect("truncate");
    session.rollback();
    assert_eq!(all(&mut session).len(), 9);
    session.execute(&truncate).expect("truncate");
    assert_eq!(all(&mut session).len(), 0);
    fill(&mut session, 1..3);
    assert_eq!(all(&mut session).len(), 2);
}

#[test]
fn an_index_over_rows_that_are_there() {
    let db = Db::new();
    let mut session = db.session();
    create_accounts(&mut session);
    fill(&mut session, 1..3000);
    let create = utility(Utility::CreateIndex {
        named_method: 0,
        name: None,
        table: name("accounts"),
        columns: vec![sql::utility::IndexKey {
            name: "note".to_owned(),
            expression: None,
            collation: 0,
            descending: false,
            nulls_first: false,
            class: 0,
            class_options: Vec::new(),
        }],
        include: vec![],
        predicate: None,
        nulls_equal: false,
        concurrently: false,
        unique: true,
        if_not_exists: false,
        options: vec![],
        method: base::AccessMethod::BTree,
    });
    session.execute(&create).expect("create index");
    let table = table(&session, "accounts");
    let index = session.db.catalog().indexes_of(&table)[1].clone();
    assert_eq!(index.name, "accounts_note_idx");
    let scan = Scan { table, columns: vec![ScanColumn::Attr(1)], filter: None, alias: None };
    let bounds = IndexBounds {
        lower: Some((vec![text("note 10")], true)),
        upper: Some((vec![text("note 101")], true)),
        ..IndexBounds::default()
    };
    let node = Node::IndexScan { scan, index, bounds, backward: true };
    let rows = session.execute(&query(node, &[oids::INT4])).expect("range").1.lines;
    assert_eq!(
        rows,
        [
            "101", "1009", "1008", "1007", "1006", "1005", "1004", "1003", "1002", "1001", "1000",
            "100", "10"
        ]
    );
}

#[test]
fn copy_loads_rows_and_says_where_it_fails() {
    let db = Db::new();
    let mut session = db.session();
    create_accounts(&mut session);
    let copy = |session: &Session<'_>| {
        let table = table(session, "accounts");
        let indexes = session.db.catalog().indexes_of(&table);
        utility(Utility::CopyFrom {
            modify: Box::new(Modify {
                role: 0,
                table,
                indexes,
                action: ModifyAction::Insert { input: plan(Node::Nothing), conflict: None },
                returning: None,
                checks: Default::default(),
                children: Vec::new(),
                tableoid: 0,
                places: false,
            }),
            columns: vec![1, 2],
            defaults: vec![None, None, Some(text("default"))],
            filter: None,
            options: sql::utility::CopyOptions {
                format: sql::utility::CopyFormat::Text,
                delimiter: b'\t',
                null: "\\N".to_owned(),
                header: false,
                header_match: false,
                force_quote: Vec::new(),
                force_not_null: Vec::new(),
                force_null: Vec::new(),
                quote: b'"',
                escape: b'"',
                freeze: false,
                encoding: None,
                file: None,
            },
        })
    };
    let mut data = String::new();
    (0..2500).for_each(|n| data.push_str(&format!("{n}\t\\N\n")));
    data.push_str("\\.\n");
    for piece in data.as_bytes().chunks(777) {
        session.hooks.copy_data.push_back(piece.to_vec());
    }
    let statement = copy(&session);
    assert_eq!(session.execute(&statement).expect("copy").0.rows, 2500);
    assert!(all(&mut session).contains(&"2499|~|default".to_owned()));
    session.hooks.copy_data.push_back(b"5000\t1\n5001\tx1\n".to_vec());
    let error = session.execute(&statement).err().expect("bad number");
    let context = error.fields().context.clone();
    assert_eq!(context.as_deref(), Some("COPY accounts, line 2, column balance: \"x1\""));
    session.hooks.copy_data.clear();
    session.hooks.copy_data.push_back(b"5000\t1\n17\t1\n".to_vec());
    let error = session.execute(&statement).err().expect("duplicate");
    assert_eq!(error.fields().context.as_deref(), Some("COPY accounts, line 2"));
    assert_eq!(all(&mut session).len(), 2500);
}

#[test]
fn sorting_grouping_and_limits() {
    let db = Db::new();
    let mut session = db.session();
    let values = |list: &[Option<i32>]| {
        let row =
            |v: &Option<i32>| vec![Expr::Const(v.map_or(Datum::Null, Datum::Int4), oids::INT4)];
        plan(Node::Values(list.iter().map(row).collect()))
    };
    let column = || Expr::Column(0, oids::INT4);
    let key = |descending, nulls_first| SortKey { expr: column(), descending, nulls_first };
    let sort = |list: &[Option<i32>], key| Node::Sort {
        input: Box::new(values(list)),
        keys: vec![key],
        top: false,
    };
    let list = [Some(3), None, Some(-1), Some(3)];
    let run = |session: &mut Session<'_>, node| {
        session.execute(&query(node, &[oids::INT4])).expect("query").1.lines
    };
    assert_eq!(run(&mut session, sort(&list, key(false, false))), ["-1", "3", "3", "~"]);
    assert_eq!(run(&mut session, sort(&list, key(true, true))), ["~", "3", "3", "-1"]);
    let limit = Node::Limit {
        input: Box::new(plan(sort(&list, key(false, false)))),
        count: Some(Expr::Const(Datum::Int8(1), oids::INT8)),
        offset: Some(Expr::Const(Datum::Int8(1), oids::INT8)),
        ties: vec![],
    };
    assert_eq!(run(&mut session, limit), ["3"]);
    let distinct =
        Node::Distinct { input: Box::new(values(&list)), keys: vec![column()], sorted: false };
    assert_eq!(run(&mut session, distinct), ["3", "~", "-1"]);
    let set_op = Node::SetOp {
        left: Box::new(values(&list)),
        right: Box::new(values(&[Some(3)])),
        except: true,
        all: true,
    };
    assert_eq!(run(&mut session, set_op), ["3", "~", "-1"]);
}
