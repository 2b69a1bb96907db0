//! CREATE OPERATOR CLASS and FAMILY, ALTER OPERATOR FAMILY.

use base::{AccessMethod, Error, Oid, Result, err};
use catalog::routine::RoutineInfo;
use catalog::system::named;
use catalog::{
    AclKind, Defined, FamilyFunction, FamilyOperator, OperatorClass, OperatorFamily, Snapshot,
};
use exec::context::ExecContext;
use exec::rights;
use sql::define_statement::{ClassDef, ClassItem, OperatorName};
use sql::utility::Name;
use types::oids::*;

use super::operator;
use crate::defined::place::{full, place, put, require_superuser, schemas_of};

/// The demands of an access method on its operator classes.
struct Method {
    oid: u32,
    /// The name of the method whose code it is.
    name: &'static str,
    /// Its own name.
    shown: String,
    /// Strategies; 0: any.
    strategies: i32,
    /// Support functions.
    functions: i32,
    /// Operators may order.
    orders: bool,
    /// Indexes may keep values of another type.
    stores: bool,
    /// The support function that reads options.
    options: i32,
}

const METHODS: [Method; 9] = [
    method("btree", 5, 5, false, false, 5),
    method("hash", 1, 3, false, false, 3),
    method("gist", 0, 11, true, true, 10),
    method("gin", 0, 7, false, true, 7),
    method("spgist", 0, 7, true, true, 6),
    method("brin", 0, 15, false, true, 5),
    method("hnsw", 0, 3, true, false, 0),
    method("ivfflat", 0, 5, true, false, 0),
    method("bloom", 1, 2, false, false, 2),
];

const fn method(
    name: &'static str,
    strategies: i32,
    functions: i32,
    orders: bool,
    stores: bool,
    options: i32,
) -> Method {
    Method { oid: 0, name, shown: String::new(), strategies, functions, orders, stores, options }
}

fn bad(message: impl std::fmt::Display) -> Error {
    err!(INVALID_OBJECT_DEFINITION, "{message}")
}

fn method_named(view: &Snapshot, name: &str) -> Result<Method> {
    let missing = || err!(UNDEFINED_OBJECT, "access method \"{name}\" does not exist");
    let known = view.access_method_named(name).ok_or_else(missing)?;
    let behind = match AccessMethod::of_oid(known.oid) {
        Some(own) => Some(own),
        None => named::handled_method(known.handler).and_then(|m| AccessMethod::of_oid(m.0)),
    };
    let found = METHODS.into_iter().find(|m| behind.is_some_and(|behind| m.name == behind.name()));
    let found = found.ok_or_else(missing)?;
    Ok(Method { oid: known.oid, shown: name.to_owned(), ..found })
}

impl Method {
    /// The oid of the method whose code it is.
    fn base(&self) -> u32 {
        AccessMethod::named(self.name).map_or(self.oid, AccessMethod::oid)
    }
}

/// An operator class by name.
///
/// # Errors
/// `42704`, `3F000`.
pub fn find_class(view: &Snapshot, path: &[u32], name: &Name, method: &str) -> Result<u32> {
    let am = method_named(view, method)?;
    let of_schema = |schema: u32| {
        let mut own = view.operator_classes();
        let is =
            |c: &&OperatorClass| c.schema == schema && c.name == name.name && c.method == am.oid;
        let built_in = (schema == catalog::object::ids::PG_CATALOG)
            .then(|| named::operator_class(am.oid, &name.name))
            .flatten();
        own.find(is).map(|c| c.oid).or(built_in)
    };
    schemas_of(view, path, name)?.into_iter().find_map(of_schema).ok_or_else(|| {
        err!(
            UNDEFINED_OBJECT,
            "operator class \"{}\" does not exist for access method \"{method}\"",
            full(name)
        )
    })
}

/// An operator family by name.
///
/// # Errors
/// `42704`, `3F000`.
pub fn find_family(view: &Snapshot, path: &[u32], name: &Name, method: &str) -> Result<u32> {
    let am = method_named(view, method)?;
    let of_schema = |schema: u32| {
        let mut own = view.operator_families();
        let is =
            |f: &&OperatorFamily| f.schema == schema && f.name == name.name && f.method == am.oid;
        let built_in = (schema == catalog::object::ids::PG_CATALOG)
            .then(|| named::operator_family(am.oid, &name.name))
            .flatten();
        own.find(is).map(|f| f.oid).or(built_in)
    };
    schemas_of(view, path, name)?.into_iter().find_map(of_schema).ok_or_else(|| {
        err!(
            UNDEFINED_OBJECT,
            "operator family \"{}\" does not exist for access method \"{method}\"",
            full(name)
        )
    })
}

/// CREATE OPERATOR FAMILY; the family's oid.
pub fn create_family(name: &Name, method: &str, cx: &mut ExecContext<'_>) -> Result<u32> {
    let schema = place(cx, name, "operator family")?;
    let am = method_named(&cx.catalog_tx.view(), method)?;
    require_superuser(cx, "must be superuser to create an operator family")?;
    make_family(name, &am, schema, cx)
}

fn make_family(name: &Name, am: &Method, schema: u32, cx: &mut ExecContext<'_>) -> Result<u32> {
    let view = cx.catalog_tx.view();
    let taken =
        |f: &OperatorFamily| f.schema == schema && f.name == name.name && f.method == am.oid;
    if view.operator_families().any(taken) {
        base::bail!(
            DUPLICATE_OBJECT,
            "operator family \"{}\" for access method \"{}\" already exists",
            name.name,
            am.shown
        );
    }
    let oid = super::super::new_oid(cx, schema)?;
    let made = OperatorFamily {
        oid,
        name: name.name.clone(),
        schema,
        owner: cx.role,
        method: am.oid,
        ..OperatorFamily::default()
    };
    put(cx, Defined::Family(made))?;
    Ok(oid)
}

/// Operators and functions of a class or family.
#[derive(Default)]
struct Members {
    operators: Vec<FamilyOperator>,
    functions: Vec<FamilyFunction>,
}

/// CREATE OPERATOR CLASS.
pub fn create(def: &ClassDef, cx: &mut ExecContext<'_>) -> Result<()> {
    let schema = place(cx, &def.name, "operator class")?;
    let am = method_named(&cx.catalog_tx.view(), &def.method)?;
    require_superuser(cx, "must be superuser to create an operator class")?;
    let view = cx.catalog_tx.view();
    let family = match &def.family {
        Some(name) => find_family(&view, cx.search_path, name, &def.method)?,
        None => {
            let is = |f: &&OperatorFamily| {
                f.schema == schema && f.name == def.name.name && f.method == am.oid
            };
            match view.operator_families().find(is) {
                Some(known) => known.oid,
                None => make_family(&def.name, &am, schema, cx)?,
            }
        }
    };
    let mut members = Members::default();
    let mut key = None;
    for item in &def.items {
        if let ClassItem::Storage(ty) = item {
            if key.is_some() {
                return Err(bad("storage type specified more than once"));
            }
            key = Some(*ty);
            continue;
        }
        add_item(&mut members, item, &am, Some(def.input), cx)?;
    }
    let key = key.filter(|ty| *ty != def.input);
    if key.is_some() && !am.stores {
        return Err(bad(format_args!(
            "storage type cannot be different from data type for access method \"{}\"",
            am.shown
        )));
    }
    let view = cx.catalog_tx.view();
    let taken =
        |c: &OperatorClass| c.schema == schema && c.name == def.name.name && c.method == am.oid;
    if view.operator_classes().any(taken) {
        base::bail!(
            DUPLICATE_OBJECT,
            "operator class \"{}\" for access method \"{}\" already exists",
            def.name.name,
            am.shown
        );
    }
    if def.default
        && let Some(other) = default_class(&view, &am, def.input)
    {
        return Err(err!(
            DUPLICATE_OBJECT,
            "could not make operator class \"{}\" be default for type {}",
            def.name.name,
            def.input_name
        )
        .detail(format!("Operator class \"{other}\" already is the default.")));
    }
    check_new(&members, family, cx)?;
    let (usable, code) = index_behind(&view, &am, def.input, &members);
    let behind = members.operators.iter().map(|o| function_behind(&view, o.operator)).collect();
    let oid = super::super::new_oid(cx, schema)?;
    let made = OperatorClass {
        usable,
        code,
        base: if am.base() == am.oid { 0 } else { am.base() },
        behind,
        oid,
        name: def.name.name.clone(),
        schema,
        owner: cx.role,
        method: am.oid,
        family,
        input: def.input.0,
        key: key.map_or(0, |ty| ty.0),
        default: def.default,
        operators: members.operators,
        functions: members.functions,
    };
    put(cx, Defined::Class(made))
}

/// The function of an operator.
fn function_behind(view: &Snapshot, operator: u32) -> u32 {
    match view.operator(operator) {
        Some(own) => own.function,
        None => types::func::operator(Oid(operator)).map_or(0, |row| row.function.0),
    }
}

/// Whether indexes can have a class: those of types that an extension brings with an order of their own, and those
/// with code of an extension, which is returned.
fn index_behind(view: &Snapshot, am: &Method, input: Oid, members: &Members) -> (bool, String) {
    let support = |number: i16| {
        let own = members.functions.iter().find(|f| f.number == number)?;
        let function = view.function(own.function).filter(|f| f.language == "c")?;
        let library = types::extension::library_name(&function.library);
        Some(format!("{library}/{}", function.body))
    };
    match am.name {
        "btree" | "hash" => {
            let open = types::user::get(input)
                .is_some_and(|t| matches!(t.kind, types::user::UserKind::Open(_)));
            // A class with the type's own order (or hash) under another name; one with an order of its own has no
            // index: keys are compared as bytes.
            let own = members.functions.iter().find(|f| f.number == 1).map(|f| f.function);
            let method = if am.name == "btree" { 403 } else { 405 };
            let form = match view.user_type(input.0).map(|t| &t.kind) {
                Some(catalog::UserTypeKind::Base(base)) => Oid(base.form),
                _ => input,
            };
            let usual = types::opclass::support(method, form, 1);
            let same = own.is_some_and(|own| {
                let source = view.function(own).filter(|f| f.language == "internal");
                let source = source.and_then(|f| catalog::system::facts::with_source(&f.body));
                usual.is_some() && (usual == Some(Oid(own)) || usual.map(|u| u.0) == source)
            });
            (same || open && support(1).is_some(), String::new())
        }
        "gin" => match support(2).or_else(|| support(3)) {
            Some(code) if types::extension::gin_class(&code, input).is_some() => (true, code),
            _ => as_built_in(am, input, members),
        },
        "hnsw" | "ivfflat" => {
            let norm = if support(2).is_some() { "+norm" } else { "" };
            match support(1).map(|code| code + norm) {
                Some(code) if types::extension::vector_class(&code).is_some() => (true, code),
                _ => (false, String::new()),
            }
        }
        // Bits are made of what B-trees keep.
        "bloom" => (types::opclass::default_class(403, input).is_some(), String::new()),
        "gist" => match support(1) {
            Some(code) if types::extension::gist_class(&code, input).is_some() => (true, code),
            _ => as_built_in(am, input, members),
        },
        _ => as_built_in(am, input, members),
    }
}

/// The class of PostgreSQL's that has all of a class's functions and operators under the same numbers: its code answers
/// for the class. (The same without them: no such class.)
fn as_built_in(am: &Method, input: Oid, members: &Members) -> (bool, String) {
    let has_all = |class: &&types::opclass::Class| {
        let functions = types::opclass::support_functions(class.family, [class.ty, class.ty]);
        let operators = types::opclass::family_operators(class.family, [class.ty, class.ty]);
        !members.functions.is_empty()
            && members.functions.iter().all(|f| functions.contains(&(f.number, Oid(f.function))))
            && members.operators.iter().all(|o| {
                (o.left, o.right) != (class.ty.0, class.ty.0)
                    || operators.contains(&(o.number, Oid(o.operator)))
            })
    };
    let of_type = |c: &&types::opclass::Class| c.method == am.base() && c.ty == input;
    let found = types::opclass::classes().iter().filter(of_type).find(has_all);
    found.map_or((false, String::new()), |class| (true, format!("={}", class.oid)))
}

/// The class that a type has by default.
fn default_class(view: &Snapshot, am: &Method, ty: Oid) -> Option<String> {
    let own = |c: &&OperatorClass| c.default && c.method == am.oid && c.input == ty.0;
    match view.operator_classes().find(own) {
        Some(own) => Some(own.name.clone()),
        None => named::default_class(am.oid, ty.0),
    }
}

/// Adds an item to the members; `input`: a class's type.
fn add_item(
    members: &mut Members,
    item: &ClassItem,
    am: &Method,
    input: Option<Oid>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    match item {
        ClassItem::Storage(_) => {
            Err(err!(SYNTAX_ERROR, "STORAGE cannot be specified in ALTER OPERATOR FAMILY"))
        }
        ClassItem::Operator { number, name, types, sort_family } => {
            let number = operator_number(*number, am)?;
            let Some(name) = name else { return Ok(()) };
            let (left, right) = match (&types[..], input) {
                ([left, right], _) => (*left, *right),
                (_, Some(input)) => (input, input),
                _ => {
                    return Err(err!(
                        SYNTAX_ERROR,
                        "operator argument types must be specified in ALTER OPERATOR FAMILY"
                    ));
                }
            };
            let view = cx.catalog_tx.view();
            let left_type = (left != Oid::INVALID).then_some(left);
            let wanted = OperatorName { name: name.clone(), left: left_type, right };
            let id = operator::find(&view, cx.search_path, &wanted)?;
            let sort_family = match sort_family {
                Some(name) => find_family(&view, cx.search_path, name, "btree")?,
                None => 0,
            };
            if left == Oid::INVALID {
                return Err(bad("index operators must be binary"));
            }
            let result = match view.operator(id) {
                Some(own) => Oid(own.result),
                None => Oid(catalog::system::facts::operator_result(id)),
            };
            if sort_family != 0 && !am.orders {
                return Err(bad(format_args!(
                    "access method \"{}\" does not support ordering operators",
                    am.shown
                )));
            }
            if sort_family == 0 && result != BOOL {
                return Err(bad("index search operators must return boolean"));
            }
            let same =
                |o: &FamilyOperator| (o.number, o.left, o.right) == (number, left.0, right.0);
            if members.operators.iter().any(same) {
                return Err(bad(format_args!(
                    "operator number {number} for ({},{}) appears more than once",
                    types::io::format_type(left, -1),
                    types::io::format_type(right, -1)
                )));
            }
            let oid = cx.engine.txn.next_oid()?;
            let (left, right) = (left.0, right.0);
            members.operators.push(FamilyOperator {
                oid,
                number,
                left,
                right,
                operator: id,
                sort_family,
            });
            Ok(())
        }
        ClassItem::Function { number, name, args, types } => {
            let number = function_number(*number, am)?;
            let Some(name) = name else { return Ok(()) };
            let found = support_function(name, args.as_deref(), cx)?;
            let given = match types[..] {
                [] => None,
                [one] => Some((one, one)),
                [left, right] => Some((left, right)),
                _ => {
                    return Err(err!(SYNTAX_ERROR, "one or two argument types must be specified"));
                }
            };
            let (left, right) = function_types(&found, number, given, am, input)?;
            let same =
                |f: &FamilyFunction| (f.number, f.left, f.right) == (number, left.0, right.0);
            if members.functions.iter().any(same) {
                return Err(bad(format_args!(
                    "function number {number} for ({},{}) appears more than once",
                    types::io::format_type(left, -1),
                    types::io::format_type(right, -1)
                )));
            }
            let oid = cx.engine.txn.next_oid()?;
            let (left, right, function) = (left.0, right.0, found.oid);
            members.functions.push(FamilyFunction { oid, number, left, right, function });
            Ok(())
        }
    }
}

fn operator_number(number: i32, am: &Method) -> Result<i16> {
    let most = if am.strategies > 0 { am.strategies } else { i32::from(i16::MAX) };
    if !(1..=most).contains(&number) {
        return Err(bad(format_args!(
            "invalid operator number {number}, must be between 1 and {most}"
        )));
    }
    Ok(number as i16)
}

fn function_number(number: i32, am: &Method) -> Result<i16> {
    if !(1..=am.functions).contains(&number) {
        return Err(bad(format_args!(
            "invalid function number {number}, must be between 1 and {}",
            am.functions
        )));
    }
    Ok(number as i16)
}

fn support_function(
    name: &Name,
    args: Option<&[Oid]>,
    cx: &mut ExecContext<'_>,
) -> Result<RoutineInfo> {
    if let Some(args) = args {
        return operator::function(name, args, cx);
    }
    let view = cx.catalog_tx.view();
    let all = catalog::routine::named(&view, cx.search_path, name.schema.as_deref(), &name.name);
    match all[..] {
        [one] => catalog::routine::info(&view, one)
            .ok_or_else(|| Error::internal("a function that is not there")),
        [] => Err(err!(UNDEFINED_FUNCTION, "could not find a function named \"{}\"", full(name))),
        _ => Err(err!(AMBIGUOUS_FUNCTION, "function name \"{}\" is not unique", full(name))
            .hint("Specify the argument list to select the function unambiguously.")),
    }
}

/// The types that a support function is for; it must be what its number says.
fn function_types(
    found: &RoutineInfo,
    number: i16,
    given: Option<(Oid, Oid)>,
    am: &Method,
    input: Option<Oid>,
) -> Result<(Oid, Oid)> {
    let args = &found.args[..];
    let (mut left, mut right) = given.unwrap_or((Oid::INVALID, Oid::INVALID));
    let from_args = |left: &mut Oid, right: &mut Oid, types: (Oid, Oid)| {
        if *left == Oid::INVALID {
            *left = types.0;
        }
        if *right == Oid::INVALID {
            *right = types.1;
        }
    };
    if i32::from(number) == am.options {
        if left != right {
            return Err(bad(
                "left and right associated data types for operator class options parsing functions must match",
            ));
        }
        if args != [INTERNAL] || found.result != VOID {
            return Err(bad("invalid operator class options parsing function").hint(
                "Valid signature of operator class options parsing function is (internal) RETURNS void.",
            ));
        }
    } else if am.name == "btree" {
        match number {
            1 => {
                if args.len() != 2 {
                    return Err(bad("btree comparison functions must have two arguments"));
                }
                if found.result != INT4 {
                    return Err(bad("btree comparison functions must return integer"));
                }
                from_args(&mut left, &mut right, (args[0], args[1]));
            }
            2 => {
                if args != [INTERNAL] {
                    return Err(bad("btree sort support functions must accept type \"internal\""));
                }
                if found.result != VOID {
                    return Err(bad("btree sort support functions must return void"));
                }
            }
            3 => {
                if args.len() != 5 {
                    return Err(bad("btree in_range functions must have five arguments"));
                }
                if found.result != BOOL {
                    return Err(bad("btree in_range functions must return boolean"));
                }
                from_args(&mut left, &mut right, (args[0], args[2]));
            }
            _ => {
                if args.len() != 1 {
                    return Err(bad("btree equal image functions must have one argument"));
                }
                if found.result != BOOL {
                    return Err(bad("btree equal image functions must return boolean"));
                }
                if left != right {
                    return Err(bad("btree equal image functions must not be cross-type"));
                }
            }
        }
    } else if am.name == "hash" {
        match number {
            1 if args.len() != 1 => return Err(bad("hash function 1 must have one argument")),
            1 if found.result != INT4 => return Err(bad("hash function 1 must return integer")),
            2 if args.len() != 2 => return Err(bad("hash function 2 must have two arguments")),
            2 if found.result != INT8 => return Err(bad("hash function 2 must return bigint")),
            _ => {}
        }
        if let Some(first) = args.first() {
            from_args(&mut left, &mut right, (*first, *first));
        }
    }
    if let Some(input) = input {
        from_args(&mut left, &mut right, (input, input));
    }
    if left == Oid::INVALID || right == Oid::INVALID {
        return Err(bad("associated data types must be specified for index support function"));
    }
    Ok((left, right))
}

/// The members of a family by now: its own operators and functions and those of its classes.
fn known_members(view: &Snapshot, family: u32) -> (Vec<FamilyOperator>, Vec<FamilyFunction>) {
    let (mut operators, mut functions) = (Vec::new(), Vec::new());
    for class in view.operator_classes().filter(|c| c.family == family) {
        operators.extend(class.operators.iter().cloned());
        functions.extend(class.functions.iter().cloned());
    }
    for own in view.operator_families().filter(|f| f.oid == family) {
        operators.extend(own.operators.iter().cloned());
        functions.extend(own.functions.iter().cloned());
    }
    (operators, functions)
}

/// `42710` for members that the family has already.
fn check_new(members: &Members, family: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let (operators, functions) = known_members(&view, family);
    let name = family_name(&view, family);
    let show = |ty: u32| types::io::format_type(Oid(ty), -1);
    for new in &members.operators {
        let key = |o: &FamilyOperator| (o.number, o.left, o.right);
        if operators.iter().any(|o| key(o) == key(new)) {
            base::bail!(
                DUPLICATE_OBJECT,
                "operator {}({},{}) already exists in operator family \"{name}\"",
                new.number,
                show(new.left),
                show(new.right)
            );
        }
    }
    for new in &members.functions {
        let key = |f: &FamilyFunction| (f.number, f.left, f.right);
        if functions.iter().any(|f| key(f) == key(new)) {
            base::bail!(
                DUPLICATE_OBJECT,
                "function {}({},{}) already exists in operator family \"{name}\"",
                new.number,
                show(new.left),
                show(new.right)
            );
        }
    }
    Ok(())
}

fn family_name(view: &Snapshot, family: u32) -> String {
    let own = view.operator_families().find(|f| f.oid == family).map(|f| f.name.clone());
    own.or_else(|| named::family_name(family)).unwrap_or_default()
}

/// ALTER OPERATOR FAMILY … ADD and DROP.
pub fn alter_family(
    name: &Name,
    method: &str,
    add: bool,
    items: &[ClassItem],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let am = method_named(&view, method)?;
    let id = find_family(&view, cx.search_path, name, method)?;
    require_superuser(cx, "must be superuser to alter an operator family")?;
    rights::require_owner(cx, AclKind::Defined, id, "operator family", &full(name))?;
    let mut members = Members::default();
    if add {
        for item in items {
            add_item(&mut members, item, &am, None, cx)?;
        }
        check_new(&members, id, cx)?;
        let Some(mut family) = own_family(id, cx) else {
            return Err(Error::unsupported("changing an operator family of the server"));
        };
        family.operators.append(&mut members.operators);
        family.functions.append(&mut members.functions);
        return put(cx, Defined::Family(family));
    }
    drop_members(id, &am, items, name, cx)
}

fn own_family(id: u32, cx: &mut ExecContext<'_>) -> Option<OperatorFamily> {
    let view = cx.catalog_tx.view();
    view.operator_families().find(|f| f.oid == id).cloned()
}

fn drop_members(
    id: u32,
    am: &Method,
    items: &[ClassItem],
    name: &Name,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let show = |ty: Oid| types::io::format_type(ty, -1);
    let mut gone: Vec<u32> = Vec::new();
    let mut seen: Vec<(bool, i16, Oid, Oid)> = Vec::new();
    let (operators, functions) = known_members(&view, id);
    for item in items {
        let (is_operator, number, types) = match item {
            ClassItem::Operator { number, types, .. } => {
                (true, operator_number(*number, am)?, types)
            }
            ClassItem::Function { number, types, .. } => {
                (false, function_number(*number, am)?, types)
            }
            ClassItem::Storage(_) => continue,
        };
        let (left, right) = match types[..] {
            [one] => (one, one),
            [left, right] => (left, right),
            _ => {
                return Err(err!(SYNTAX_ERROR, "one or two argument types must be specified"));
            }
        };
        let word = if is_operator { "operator" } else { "function" };
        if seen.contains(&(is_operator, number, left, right)) {
            return Err(bad(format_args!(
                "{word} number {number} for ({},{}) appears more than once",
                show(left),
                show(right)
            )));
        }
        seen.push((is_operator, number, left, right));
        let key = (number, left.0, right.0);
        let found = match is_operator {
            true => operators.iter().find(|o| (o.number, o.left, o.right) == key).map(|o| o.oid),
            false => functions.iter().find(|f| (f.number, f.left, f.right) == key).map(|f| f.oid),
        };
        gone.push(found.ok_or_else(|| {
            err!(
                UNDEFINED_OBJECT,
                "{word} {number}({},{}) does not exist in operator family \"{}\"",
                show(left),
                show(right),
                name.name
            )
        })?);
    }
    let Some(mut family) = own_family(id, cx) else {
        return Err(Error::unsupported("changing an operator family of the server"));
    };
    let of_class = |id: &u32| {
        !family.operators.iter().any(|o| o.oid == *id)
            && !family.functions.iter().any(|f| f.oid == *id)
    };
    if gone.iter().any(of_class) {
        return Err(Error::unsupported("dropping what an operator class needs"));
    }
    family.operators.retain(|o| !gone.contains(&o.oid));
    family.functions.retain(|f| !gone.contains(&f.oid));
    put(cx, Defined::Family(family))
}
