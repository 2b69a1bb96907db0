//! CREATE, ALTER and DROP of functions and procedures, CALL, and calls of users' functions.

use base::{Oid, Result, err};
use catalog::{Function, FunctionArg, Table};
use pg_query::{NodeEnum, protobuf as pb};
use types::func::{CastContext, FunctionRow};
use types::oids::*;

use crate::expr::Expr;
use crate::parse::{deparse_expr, deparse_statement, parse_expr};
use crate::routine;
use crate::utility::{AlterRoutine, Name, RoutineDef, RoutineRef, Utility};

use super::coerce::{element_of, is_polymorphic};
use super::function::Callee;
use super::overload::Candidate;
use super::scope::Place;
use super::{Binder, Scope, ast, inner};

/// Languages with crates of their own.
const PROCEDURAL_LANGUAGES: [&str; 4] = ["plpgsql", "javascript", "wasm", "java"];

/// `42P13`.
fn bad(message: impl std::fmt::Display) -> base::Error {
    err!(INVALID_FUNCTION_DEFINITION, "{message}")
}

/// Which argument of a call each input gets: None its default. `names` are those of the last
/// arguments. None when the call doesn't fit.
fn places(function: &Function, count: usize, names: &[&str]) -> Option<Vec<Option<usize>>> {
    let inputs: Vec<&FunctionArg> = function.called_with().collect();
    let positional = count - names.len();
    if positional > inputs.len() {
        return None;
    }
    let mut places: Vec<Option<usize>> = vec![None; inputs.len()];
    (0..positional).for_each(|i| places[i] = Some(i));
    for (n, name) in names.iter().enumerate() {
        let at = inputs.iter().position(|a| a.name == *name)?;
        if places[at].replace(positional + n).is_some() {
            return None;
        }
    }
    let fits = inputs.iter().zip(&places).all(|(a, p)| p.is_some() || a.default.is_some());
    fits.then_some(places)
}

/// The type of a VARIADIC parameter's elements.
pub(crate) fn variadic_element(array: Oid) -> Oid {
    match array {
        ANY => ANY,
        ANYARRAY => ANYELEMENT,
        ANYCOMPATIBLEARRAY => ANYCOMPATIBLE,
        array => element_of(array),
    }
}

/// The declared types of a call by position; None when the number doesn't fit. `spread`: with VARIADIC.
fn declared_by_position(row: &FunctionRow, count: usize, spread: bool) -> Option<Vec<Oid>> {
    let full = row.args.len();
    let least = full - row.defaults.len().min(full);
    if (least..=full).contains(&count) && (spread || !row.variadic || count < full) {
        return Some(row.args[..count].to_vec());
    }
    if !row.variadic || spread || count < full {
        return None;
    }
    let mut args = row.args[..full - 1].to_vec();
    args.resize(count, variadic_element(*row.args.last()?));
    Some(args)
}

impl Binder<'_> {
    /// The users' functions that a call may mean, those of earlier schemas first; functions that one of
    /// the `known` hides are left out.
    pub(crate) fn user_candidates(
        &mut self,
        schema: Option<&str>,
        name: &str,
        inputs: &[Oid],
        names: &[&str],
        spread: bool,
        known: &mut Vec<Candidate<Callee>>,
    ) {
        let catalog = self.cx.catalog.clone();
        let schemas: Vec<u32> = match schema {
            Some(schema) => catalog.schema_named(schema).map(|s| s.oid).into_iter().collect(),
            None => self.cx.search_path.to_vec(),
        };
        for schema in schemas {
            for function in catalog.functions_named(name).filter(|f| f.schema == schema) {
                let row = routine::row(&catalog, function);
                let args = if names.is_empty() {
                    declared_by_position(row, inputs.len(), spread)
                } else {
                    places(function, inputs.len(), names).map(|places| {
                        let mut args = vec![UNKNOWN; inputs.len()];
                        for (place, ty) in places.iter().zip(row.args) {
                            place.iter().for_each(|at| args[*at] = *ty);
                        }
                        args
                    })
                };
                let Some(args) = args else { continue };
                let own = match &function.aggregate {
                    Some(_) => Callee::OwnAggregate(row),
                    None => Callee::Function(row),
                };
                let packed = |row: &FunctionRow| row.variadic && !spread && names.is_empty();
                let beside = |other: &FunctionRow| {
                    catalog.function(other.oid.0).is_some_and(|f| f.schema == schema)
                };
                match known.iter_mut().find(|c| c.args == args) {
                    None => known.push(Candidate { args, item: own }),
                    Some(candidate)
                        if matches!(candidate.item, Callee::Function(other)
                            if packed(other) == packed(row) && beside(other)) =>
                    {
                        candidate.item = Callee::Several;
                    }
                    // One that takes the arguments as they are comes before one that packs them up.
                    Some(Candidate { item: Callee::Function(other), .. })
                        if packed(other) && !packed(row) =>
                    {
                        *other = row;
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// A call of a user's function, with arguments not yet cast; `names` are those of the last ones.
    /// `spread`: with VARIADIC; `calling`: by CALL.
    pub(crate) fn user_call(
        &mut self,
        row: &'static FunctionRow,
        args: Vec<Expr>,
        names: &[&str],
        (spread, calling): (bool, bool),
        position: u32,
    ) -> Result<Expr> {
        let catalog = self.cx.catalog.clone();
        let Some(function) = catalog.function(row.oid.0) else {
            return Err(base::Error::internal("a function that the catalog doesn't have"));
        };
        if function.procedure != calling {
            return Err(wrong_kind(&function.name, &args, function.procedure).at(position));
        }
        let packed = row.variadic && !spread && names.is_empty() && args.len() >= row.args.len();
        let given = args.len();
        let args = match packed {
            true => args,
            false => self.in_order(function, args, names)?,
        };
        let (mut args, ty) = self.fit_packed(row, args, !packed, position)?;
        if row.variadic && (spread || row.args.last() != Some(&types::oids::ANY)) {
            self.spread_as_written(&mut args);
        }
        if self.unfolded
            && !packed
            && let Some(places) = places(function, given, names)
        {
            let parameters: Vec<&str> = function.called_with().map(|p| p.name.as_str()).collect();
            self.as_written(&mut args, &places, given - names.len(), &parameters);
        }
        self.note_call(row.oid);
        self.note_use(row.oid.0, 0);
        if !calling
            && !std::mem::take(&mut self.keep_call)
            && let Some(value) = self.inlined(function, &args, ty)
        {
            return Ok(value);
        }
        Ok(self.call(row, args, ty, position))
    }

    /// Marks arguments that the call doesn't have, and those that it has by name: it is printed as it was written.
    /// `places`: which of the given arguments each parameter has; those after the `plain` first ones have names.
    pub(super) fn as_written(
        &self,
        args: &mut [Expr],
        places: &[Option<usize>],
        plain: usize,
        parameters: &[&str],
    ) {
        use types::func::internal::{DEFAULTED, NAMED};
        for ((arg, place), name) in args.iter_mut().zip(places).zip(parameters) {
            let (function, name) = match place {
                None => (&DEFAULTED, None),
                Some(at) if *at >= plain => (&NAMED, Some((types::Datum::text(name), *at as i32))),
                Some(_) => continue,
            };
            let value = std::mem::replace(arg, Expr::Const(types::Datum::Null, UNKNOWN));
            let ty = value.ty();
            let mut args = vec![value];
            if let Some((name, at)) = name {
                args.push(Expr::Const(name, types::oids::TEXT));
                args.push(Expr::Const(types::Datum::Int4(at), types::oids::INT4));
            }
            let args = args.into();
            *arg = Expr::Call { function, args, ty, position: 0 };
        }
    }

    /// Arguments in the order of the parameters, defaults filled in.
    fn in_order(
        &mut self,
        function: &Function,
        args: Vec<Expr>,
        names: &[&str],
    ) -> Result<Vec<Expr>> {
        let Some(places) = places(function, args.len(), names) else {
            return Err(base::Error::internal("a call that doesn't fit its function"));
        };
        let mut given: Vec<Option<Expr>> = args.into_iter().map(Some).collect();
        let mut out = Vec::with_capacity(places.len());
        for (place, parameter) in places.into_iter().zip(function.called_with()) {
            let default = parameter.default.as_deref().unwrap_or("NULL");
            let ty = Oid(parameter.ty);
            out.push(match place.and_then(|at| given[at].take()) {
                // What is given for an output is never evaluated.
                Some(arg) if parameter.mode == 'o' => {
                    Expr::Const(types::Datum::Null, if is_polymorphic(ty) { arg.ty() } else { ty })
                }
                Some(arg) => arg,
                None => {
                    let node = parse_expr(default)?;
                    let scope = Scope::new(None);
                    let expr = self.without_variables(|b| b.holding(|b| b.expr(&scope, &node)));
                    let expr = expr.map_err(|e| self.near(e))?;
                    let wanted = if is_polymorphic(ty) { expr.ty() } else { ty };
                    match self.coerce(expr.clone(), wanted, CastContext::Assignment, 0)? {
                        Some(expr) => expr,
                        None => expr,
                    }
                }
            });
        }
        Ok(out)
    }

    /// A parameter of the function whose body is bound, by its name (or by the function's and its).
    pub(crate) fn parameter_named(&mut self, names: &[&str]) -> Option<Expr> {
        let inlined = match names {
            [name] => self.inlined_parameter(name),
            [function, name] => self.inlined_by(Some(function), Err(name)),
            _ => None,
        };
        if inlined.is_some() {
            return inlined;
        }
        let arguments = self.cx.arguments?;
        let parameter = |name: &str| {
            let at = arguments.names.iter().position(|n| !n.is_empty() && n == name)?;
            Some(Expr::Param(at as u32, *self.params.get(at)?))
        };
        let (row, field) = match names {
            [name] => return parameter(name),
            [function, name] if *function == arguments.function => match parameter(name) {
                None => (*function, *name),
                found => return found,
            },
            [function, row, field] if *function == arguments.function => (*row, *field),
            [row, field] => (*row, *field),
            _ => return None,
        };
        // A field of a parameter that is a row.
        let row = parameter(row)?;
        let shape = types::user::shape(row.ty())?;
        let at = shape.columns.iter().position(|(name, _)| &**name == field)?;
        Some(self.field_at(row, at, shape.columns[at].1))
    }

    /// CREATE [OR REPLACE] FUNCTION and PROCEDURE.
    pub(crate) fn create_routine(&mut self, stmt: &pb::CreateFunctionStmt) -> Result<Utility> {
        let names = ast::strings(&stmt.funcname);
        ast::check_database(&names, self.cx.database, false)?;
        let (schema, name) = ast::qualified(&names);
        let (schema, name) = (schema.map(str::to_owned), name.to_owned());
        let mut function =
            Function { name: name.clone(), procedure: stmt.is_procedure, set: false, ..blank() };
        let body = self.routine_options(&mut function, &stmt.options, &stmt.sql_body)?;
        self.parameters(&mut function, &stmt.parameters)?;
        self.result_type(&mut function, stmt)?;
        if function.set {
            if function.rows == 0.0 {
                function.rows = 1000.0;
            }
        } else if function.rows != 0.0 {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "ROWS is not applicable when function does not return a set"
            ));
        }
        let mut body_at = None;
        match body {
            Some((text, location)) => {
                body_at = self.place_of_body(&text, location);
                function.body = text;
            }
            None => {
                let Some(node) = inner(&stmt.sql_body) else {
                    return Err(bad("no function body specified"));
                };
                function.body = standard_body(node)?;
                function.standard_body = true;
                function.path = self.cx.search_path.to_vec();
            }
        }
        if function.standard_body {
            self.bind_standard_body(&mut function)?;
        }
        let name = Name { schema, name, position: 0, only: false };
        Ok(Utility::CreateRoutine(Box::new(RoutineDef {
            name,
            function,
            replace: stmt.replace,
            body_at,
            warnings: Vec::new(),
            notices: std::mem::take(&mut self.notices),
        })))
    }

    /// A standard body is bound once and for all: what it uses must be there.
    fn bind_standard_body(&self, function: &mut Function) -> Result<()> {
        if function.args.iter().any(|a| is_polymorphic(Oid(a.ty))) {
            return Err(bad(
                "SQL function with unquoted function body cannot have polymorphic arguments",
            ));
        }
        let (types, result) = (function.input_types(), Oid(function.result));
        let kept = crate::view::body::defined(self.cx, function).map_err(|e| self.near(e))?;
        routine::prepare_body(function, &types, result, false, self.cx)
            .map_err(|e| self.near(e))?;
        function.body = kept.0;
        function.uses.extend(kept.1);
        function.uses.sort_unstable();
        function.uses.dedup();
        Ok(())
    }

    /// Where a body that was given as a string begins: characters from 1.
    fn place_of_body(&self, body: &str, location: i32) -> Option<u32> {
        let from = usize::try_from(location).ok()?;
        let found = self.text.get(from..)?.find(body)?;
        Some(self.at((from + found) as i32))
    }

    /// Parameters and their defaults.
    fn parameters(&mut self, function: &mut Function, nodes: &[pb::Node]) -> Result<()> {
        use pb::FunctionParameterMode as M;
        for node in nodes {
            let Some(NodeEnum::FunctionParameter(p)) = &node.node else { continue };
            let Some(type_name) = &p.arg_type else { continue };
            let mode = match M::try_from(p.mode) {
                Ok(M::FuncParamOut) => 'o',
                Ok(M::FuncParamInout) => 'b',
                Ok(M::FuncParamVariadic) => 'v',
                Ok(M::FuncParamTable) => 't',
                _ => 'i',
            };
            if type_name.setof {
                let what = if function.procedure { "procedures" } else { "functions" };
                return Err(bad(format_args!("{what} cannot accept set arguments")));
            }
            let (ty, _) = self.type_or_shell(type_name).map_err(|error| {
                if error.code() != base::sqlstate::UNDEFINED_OBJECT || type_name.pct_type {
                    return error;
                }
                let array = if type_name.array_bounds.is_empty() { "" } else { "[]" };
                let name = ast::strings(&type_name.names).join(".");
                err!(UNDEFINED_OBJECT, "type {name}{array} does not exist")
            })?;
            let sql = function.language == "sql";
            if types::user::is_shell(ty) {
                let name = types::io::format_type(ty, -1);
                if sql {
                    return Err(bad(format_args!("SQL function cannot accept shell type {name}")));
                }
                self.notices.push(format!("argument type {name} is only a shell"));
            }
            if matches!(ty, VOID | RECORD | ANY | TRIGGER | CSTRING | INTERNAL) && sql {
                return Err(bad(format_args!(
                    "SQL functions cannot have arguments of type {}",
                    types::io::format_type(ty, -1)
                )));
            }
            self.check_parameter(function, p, mode, ty)?;
            let default = match inner(&p.defexpr) {
                None => None,
                Some(_) if matches!(mode, 'o' | 't') => {
                    return Err(bad("only input parameters can have default values"));
                }
                Some(node) => {
                    // There are no columns, and as PostgreSQL has it nobody says so of defaults.
                    let scope = Scope::new(None);
                    scope.place.set(Place::Values);
                    self.holding(|b| b.expr(&scope, node))?;
                    let (default, uses) = self.new_default(node, ty, -1, &p.name)?;
                    function.uses.extend(uses.into_iter().map(|id| (id, 0)));
                    Some(default)
                }
            };
            if default.is_none()
                && matches!(mode, 'i' | 'b' | 'v')
                && function.inputs().any(|a| a.default.is_some())
            {
                return Err(bad(
                    "input parameters after one with a default value must also have defaults",
                ));
            }
            function.args.push(FunctionArg { name: p.name.clone(), ty: ty.0, mode, default });
        }
        Ok(())
    }

    fn check_parameter(
        &self,
        function: &Function,
        p: &pb::FunctionParameter,
        mode: char,
        ty: Oid,
    ) -> Result<()> {
        if function.procedure && function.is_variadic() {
            return Err(bad("VARIADIC parameter must be the last parameter"));
        }
        if function.procedure && mode == 'o' && function.inputs().any(|a| a.default.is_some()) {
            return Err(bad(
                "procedure OUT parameters cannot appear after one with a default value",
            ));
        }
        if function.is_variadic() && matches!(mode, 'i' | 'b' | 'v') {
            return Err(bad("VARIADIC parameter must be the last input parameter"));
        }
        let is_array =
            matches!(ty, ANYARRAY | ANYCOMPATIBLEARRAY) || element_of(ty) != Oid::INVALID;
        if mode == 'v' && !is_array {
            return Err(bad("VARIADIC parameter must be an array"));
        }
        let input = |mode: char| matches!(mode, 'i' | 'v');
        let output = |mode: char| matches!(mode, 'o' | 't');
        // An input and an output may have one name.
        let apart = |a: char, b: char| input(a) && output(b) || output(a) && input(b);
        let clashes = |a: &FunctionArg| a.name == p.name && !apart(a.mode, mode);
        if !p.name.is_empty() && function.args.iter().any(clashes) {
            return Err(bad(format_args!("parameter name \"{}\" used more than once", p.name)));
        }
        Ok(())
    }

    /// RETURNS, or what the OUT parameters say.
    fn result_type(
        &mut self,
        function: &mut Function,
        stmt: &pb::CreateFunctionStmt,
    ) -> Result<()> {
        if function.inputs().count() > ast::ARGUMENTS_MAX {
            base::bail!(
                TOO_MANY_ARGUMENTS,
                "functions cannot have more than {} arguments",
                ast::ARGUMENTS_MAX
            );
        }
        let outputs: Vec<Oid> = function.outputs().map(|a| Oid(a.ty)).collect();
        let required = match outputs.as_slice() {
            [] => None,
            [one] if !function.procedure => Some(*one),
            _ => Some(RECORD),
        };
        function.result = match (&stmt.return_type, required) {
            (None, Some(required)) => required.0,
            (None, None) if function.procedure => VOID.0,
            (None, None) => return Err(bad("function result type must be specified")),
            (Some(name), required) => {
                function.set = name.setof;
                let plain = pb::TypeName { setof: false, ..name.clone() };
                let found = self.type_or_shell(&plain);
                if let Ok((ty, _)) = &found
                    && types::user::is_shell(*ty)
                {
                    let name = types::io::format_type(*ty, -1);
                    if function.language == "sql" {
                        return Err(bad(format_args!(
                            "SQL function cannot return shell type {name}"
                        )));
                    }
                    self.notices.push(format!("return type {name} is only a shell"));
                }
                let table = self.table_of_rows(&plain);
                let ty = match (found, table) {
                    (Ok((ty, _)), Some(table)) if ty.0 == table.row_type[0] => {
                        function.row_of = Some(table.oid);
                        RECORD
                    }
                    (Ok((ty, _)), _) => ty,
                    (Err(error), table) => match table {
                        Some(table) => {
                            function.row_of = Some(table.oid);
                            RECORD
                        }
                        None if error.code() == base::sqlstate::UNDEFINED_OBJECT => {
                            return Err(error.without_position());
                        }
                        None => return Err(error),
                    },
                };
                if let Some(required) = required
                    && required != ty
                {
                    return Err(bad(format_args!(
                        "function result type must be {} because of OUT parameters",
                        types::io::format_type(required, -1)
                    )));
                }
                ty.0
            }
        };
        let result = Oid(function.result);
        if matches!(result, ANY | TRIGGER | CSTRING | types::oids::EVENT_TRIGGER)
            && function.language == "sql"
        {
            return Err(bad(format_args!(
                "SQL functions cannot return type {}",
                types::io::format_type(result, -1)
            )));
        }
        for ty in outputs.into_iter().chain([result]).filter(|ty| is_polymorphic(*ty)) {
            check_deducible(function, ty)?;
        }
        Ok(())
    }

    fn table_of_rows(&self, name: &pb::TypeName) -> Option<std::sync::Arc<Table>> {
        let names = ast::strings(&name.names);
        let (schema, plain) = ast::qualified(&names);
        match self.find_relation(schema, plain)? {
            catalog::snapshot::Relation::Table(table) if name.array_bounds.is_empty() => {
                Some(table)
            }
            _ => None,
        }
    }

    /// The words behind the parameters. Returns the body's text and where AS stands.
    fn routine_options(
        &mut self,
        function: &mut Function,
        nodes: &[pb::Node],
        sql_body: &Option<Box<pb::Node>>,
    ) -> Result<Option<(String, i32)>> {
        let mut body = None;
        let mut language = None;
        let mut symbol = None;
        let mut seen: Vec<&str> = Vec::new();
        for node in nodes {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let word = def.defname.as_str();
            if word != "set" && seen.contains(&word) {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options")
                    .at(self.at(def.location)));
            }
            seen.push(word);
            match word {
                "as" => {
                    let Some(NodeEnum::List(list)) = inner(&def.arg) else { continue };
                    let parts = ast::owned_strings(&list.items);
                    symbol = parts.get(1).cloned();
                    body = parts.into_iter().next().map(|text| (text, def.location));
                }
                "language" => language = super::define::def_value(def),
                _ => self.routine_option(function, def)?,
            }
        }
        let language = match (language, sql_body) {
            (Some(language), _) => language.to_lowercase(),
            (None, Some(_)) => "sql".to_owned(),
            (None, None) => return Err(bad("no language specified")),
        };
        self.check_java(&language)?;
        if matches!(language.as_str(), "internal" | "c" | "java") {
            let superuser = self.cx.catalog.role(self.cx.role).is_some_and(|r| r.superuser);
            if !superuser {
                base::bail!(INSUFFICIENT_PRIVILEGE, "permission denied for language {language}");
            }
            if function.cost == 100.0 && language != "java" {
                function.cost = 1.0;
            }
            if let Some((file, _)) = body.as_mut().filter(|_| language == "c") {
                function.library = std::mem::take(file);
                *file = symbol.take().unwrap_or_else(|| function.name.clone());
            }
        } else if language == "wasm" {
            // The module stands where a library would, and the export where its symbol would.
            if let Some((module, _)) = &mut body {
                self.check_module(module)?;
                function.library = std::mem::take(module);
                *module = symbol.take().unwrap_or_else(|| function.name.clone());
            }
        } else if language != "sql" && !PROCEDURAL_LANGUAGES.contains(&language.as_str()) {
            base::bail!(UNDEFINED_OBJECT, "language \"{language}\" does not exist");
        }
        if symbol.is_some() {
            return Err(bad(format_args!("only one AS item needed for language \"{language}\"")));
        }
        if body.is_some() && sql_body.is_some() {
            return Err(bad("duplicate function body specified"));
        }
        if body.is_none() && sql_body.is_none() {
            return Err(bad("no function body specified"));
        }
        function.language = language;
        Ok(body)
    }

    /// The language that comes with an extension.
    fn check_java(&self, language: &str) -> Result<()> {
        if language != "java" || self.cx.catalog.extension_named(language).is_some() {
            return Ok(());
        }
        Err(err!(UNDEFINED_OBJECT, "language \"{language}\" does not exist")
            .hint("Use CREATE EXTENSION to load the language into the database."))
    }

    /// A module that is a file of the server is a superuser's to name.
    fn check_module(&self, module: &str) -> Result<()> {
        let start = module.trim_start();
        let itself = start.starts_with(['(', ';', '\\'])
            || start.starts_with("0061736")
            || start.starts_with("AGFzb");
        let superuser = self.cx.catalog.role(self.cx.role).is_some_and(|r| r.superuser);
        if itself || superuser {
            return Ok(());
        }
        Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to name a file as a module")
            .hint("Give the module itself, as text, as hexadecimal digits or in base64."))
    }

    /// One attribute.
    fn routine_option(&mut self, function: &mut Function, def: &pb::DefElem) -> Result<()> {
        let text = super::define::def_value(def).unwrap_or_default();
        let yes = text == "true" || text == "1";
        let location = def.location;
        if function.procedure && !matches!(def.defname.as_str(), "security" | "set") {
            return Err(bad("invalid attribute in procedure definition").at(self.at(location)));
        }
        match def.defname.as_str() {
            "volatility" => {
                function.volatility = text.chars().next().unwrap_or('v');
            }
            "strict" => function.strict = yes,
            "security" => function.security_definer = yes,
            "leakproof" => {
                let superuser = self.cx.catalog.role(self.cx.role).is_some_and(|r| r.superuser);
                if yes && !superuser {
                    base::bail!(
                        INSUFFICIENT_PRIVILEGE,
                        "only superuser can define a leakproof function"
                    );
                }
                function.leakproof = yes;
            }
            "cost" => {
                function.cost = text.parse().unwrap_or(0.0);
                if function.cost <= 0.0 {
                    base::bail!(INVALID_PARAMETER_VALUE, "COST must be positive");
                }
            }
            "rows" => {
                function.rows = text.parse().unwrap_or(0.0);
                if function.rows <= 0.0 {
                    base::bail!(INVALID_PARAMETER_VALUE, "ROWS must be positive");
                }
            }
            "parallel" => {
                function.parallel = match text.as_str() {
                    "safe" => 's',
                    "restricted" => 'r',
                    "unsafe" => 'u',
                    _ => base::bail!(
                        SYNTAX_ERROR,
                        "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE"
                    ),
                };
            }
            "set" => self.routine_setting(function, def)?,
            "support" => function.support = self.support_of(def)?,
            other => {
                let what = format!("{} of a function", other.to_uppercase());
                return Err(self.unsupported(&what, location));
            }
        }
        Ok(())
    }

    /// SUPPORT: a function that tells planners more; none is asked.
    fn support_of(&self, def: &pb::DefElem) -> Result<u32> {
        let Some(name) = self.name_of_def(def) else { return Ok(0) };
        let superuser = self.cx.catalog.role(self.cx.role).is_some_and(|r| r.superuser);
        let (schema, args) = (name.schema.as_deref(), [INTERNAL]);
        let path = self.cx.search_path;
        let found = catalog::routine::with_types(self.cx.catalog, path, schema, &name.name, &args);
        let shown = match schema {
            Some(schema) => format!("{schema}.{}", name.name),
            None => name.name.clone(),
        };
        let Some(id) = found else {
            base::bail!(UNDEFINED_FUNCTION, "function {shown}(internal) does not exist");
        };
        let info = catalog::routine::info(self.cx.catalog, id);
        if info.is_none_or(|info| info.result != INTERNAL) {
            base::bail!(
                INVALID_OBJECT_DEFINITION,
                "support function {shown} must return type internal"
            );
        }
        if !superuser {
            base::bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to specify a support function");
        }
        Ok(id)
    }

    /// SET and RESET of what is in force while the function runs.
    fn routine_setting(&mut self, function: &mut Function, def: &pb::DefElem) -> Result<()> {
        use base::settings::{SETTINGS, SettingId, setting, show};
        let Some(NodeEnum::VariableSetStmt(set)) = inner(&def.arg) else { return Ok(()) };
        let id = SettingId::find(&set.name);
        let name =
            id.map_or_else(|| set.name.clone(), |id| SETTINGS[usize::from(id.0)].name.into());
        let utility = match (set.kind == pb::VariableSetKind::VarSetCurrent as i32, id) {
            (true, Some(id)) => {
                let value = Some(show(id, self.cx.settings.get(id)));
                Utility::Set { name: name.clone(), value, local: false }
            }
            _ => self.set_variable(set)?,
        };
        if id == Some(setting::SESSION_AUTHORIZATION) {
            return Err(self.unsupported(&format!("SET {name} of a function"), def.location));
        }
        if let (Some(setting::ROLE), Utility::Set { value: Some(value), .. }) = (id, &utility)
            && value != "none"
            && self.cx.catalog.role_named(value).is_none()
        {
            base::bail!(INVALID_PARAMETER_VALUE, "role \"{value}\" does not exist");
        }
        match utility {
            Utility::Reset(None) => function.settings.clear(),
            Utility::Set { value: Some(value), .. } => {
                function.settings.retain(|s| s.0 != name);
                function.settings.push((name, value));
            }
            Utility::Set { value: None, .. } | Utility::Reset(Some(_)) => {
                function.settings.retain(|s| s.0 != name);
            }
            _ => return Err(self.unsupported("this SET of a function", def.location)),
        }
        Ok(())
    }

    /// A function as DROP, ALTER, COMMENT and GRANT name it.
    pub(crate) fn routine_ref(&self, kind: i32, object: &pb::ObjectWithArgs) -> Result<RoutineRef> {
        let kind = match pb::ObjectType::try_from(kind) {
            Ok(pb::ObjectType::ObjectProcedure) => "PROCEDURE",
            Ok(pb::ObjectType::ObjectRoutine) => "ROUTINE",
            Ok(pb::ObjectType::ObjectFunction) => "FUNCTION",
            Ok(pb::ObjectType::ObjectAggregate) => "AGGREGATE",
            _ => return Err(base::Error::unsupported("this kind of object")),
        };
        let mut args = Vec::with_capacity(object.objargs.len());
        for node in &object.objargs {
            if let Some(NodeEnum::TypeName(name)) = &node.node {
                args.push(self.type_name(name)?.0);
            }
        }
        let args = (!object.args_unspecified).then_some(args);
        // The standard's form names all parameters, without their modes.
        let mut all_args = Vec::with_capacity(object.objfuncargs.len());
        for node in &object.objfuncargs {
            let Some(NodeEnum::FunctionParameter(p)) = &node.node else { continue };
            let Some(name) = &p.arg_type else { continue };
            if p.mode == pb::FunctionParameterMode::FuncParamDefault as i32 {
                all_args.push(self.type_name(name)?.0);
            }
        }
        let all_args = (args.is_some()
            && matches!(kind, "PROCEDURE" | "ROUTINE")
            && all_args.len() == object.objfuncargs.len())
        .then_some(all_args);
        let name = self.name_of_list(&object.objname);
        let written = object.objargs.iter().filter_map(written_type).collect();
        Ok(RoutineRef { kind, name, args, all_args, written, missing: None })
    }

    /// DROP FUNCTION, PROCEDURE, ROUTINE; None for other kinds of objects.
    pub(crate) fn drop_routines(&self, stmt: &pb::DropStmt) -> Result<Option<Utility>> {
        use pb::ObjectType as T;
        let kind = T::try_from(stmt.remove_type);
        if !matches!(
            kind,
            Ok(T::ObjectFunction | T::ObjectProcedure | T::ObjectRoutine | T::ObjectAggregate)
        ) {
            return Ok(None);
        }
        let mut routines = Vec::with_capacity(stmt.objects.len());
        for node in &stmt.objects {
            let Some(NodeEnum::ObjectWithArgs(object)) = &node.node else { return Ok(None) };
            let found = match self.routine_ref(stmt.remove_type, object) {
                // Without its types there is no such function either.
                Err(error) if stmt.missing_ok && is_missing(&error) => {
                    let plain = pb::ObjectWithArgs {
                        objname: object.objname.clone(),
                        ..pb::ObjectWithArgs::default()
                    };
                    let routine = self.routine_ref(stmt.remove_type, &plain)?;
                    RoutineRef { missing: Some(error.message().to_owned()), ..routine }
                }
                found => found.map_err(base::Error::without_position)?,
            };
            routines.push(found);
        }
        Ok(Some(Utility::DropRoutine {
            routines,
            if_exists: stmt.missing_ok,
            cascade: stmt.behavior == pb::DropBehavior::DropCascade as i32,
        }))
    }

    /// ALTER FUNCTION with attributes.
    pub(crate) fn alter_routine(&mut self, stmt: &pb::AlterFunctionStmt) -> Result<Utility> {
        let Some(object) = &stmt.func else {
            return Err(err!(SYNTAX_ERROR, "ALTER FUNCTION without a function"));
        };
        let routine = self.routine_ref(stmt.objtype, object)?;
        // What they mean depends on what is there: they are bound again over the function itself.
        let mut checked = Vec::with_capacity(stmt.actions.len());
        for node in &stmt.actions {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            checked.push(self.routine_change(def)?);
        }
        Ok(Utility::AlterRoutine { routine, change: AlterRoutine::Options(checked) })
    }

    /// One attribute, as what it makes of a function without any.
    fn routine_change(&mut self, def: &pb::DefElem) -> Result<(String, Box<Function>)> {
        let mut blank = blank();
        self.routine_option(&mut blank, def)?;
        let reset = match inner(&def.arg) {
            Some(NodeEnum::VariableSetStmt(set)) if blank.settings.is_empty() => {
                format!("reset {}", set.name)
            }
            _ => def.defname.clone(),
        };
        Ok((reset, Box::new(blank)))
    }

    /// DO.
    pub(crate) fn do_block(&self, stmt: &pb::DoStmt) -> Result<Utility> {
        let (mut body, mut language) = (None, None);
        for node in &stmt.args {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let slot = if def.defname == "as" { &mut body } else { &mut language };
            if slot.is_some() {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options")
                    .at(self.at(def.location)));
            }
            *slot = super::define::def_value(def);
        }
        let Some(body) = body else {
            return Err(err!(SYNTAX_ERROR, "no inline code specified"));
        };
        let language = language.unwrap_or_else(|| "plpgsql".to_owned());
        self.check_java(&language)?;
        let known = PROCEDURAL_LANGUAGES.contains(&language.as_str());
        if !known && !matches!(language.as_str(), "sql" | "c" | "internal") {
            base::bail!(UNDEFINED_OBJECT, "language \"{language}\" does not exist");
        }
        let body_at = stmt.args.iter().find_map(|node| match &node.node {
            Some(NodeEnum::DefElem(def)) if def.defname == "as" => {
                self.place_of_body(&body, def.location)
            }
            _ => None,
        });
        Ok(Utility::Do { body, language, body_at })
    }

    /// CALL: the query that does it.
    pub(crate) fn call_statement(&mut self, stmt: &pb::CallStmt) -> Result<(pb::SelectStmt, bool)> {
        let Some(call) = &stmt.funccall else {
            return Err(err!(SYNTAX_ERROR, "CALL without a procedure"));
        };
        self.calling = true;
        let node = |node: NodeEnum| pb::Node { node: Some(node) };
        let call = node(NodeEnum::FuncCall(call.clone()));
        let names = match &call.node {
            Some(NodeEnum::FuncCall(c)) => ast::owned_strings(&c.funcname),
            _ => Vec::new(),
        };
        let name = names.last().cloned().unwrap_or_default();
        let returns =
            self.cx.catalog.functions_named(&name).any(|f| f.procedure && f.result == RECORD.0);
        let mut select = pb::SelectStmt {
            limit_option: pb::LimitOption::Default as i32,
            op: pb::SetOperation::SetopNone as i32,
            ..pb::SelectStmt::default()
        };
        let star =
            pb::ColumnRef { fields: vec![node(NodeEnum::AStar(pb::AStar {}))], location: -1 };
        let value = if returns {
            let list = vec![call, node(NodeEnum::List(pb::List { items: vec![] }))];
            select.from_clause = vec![node(NodeEnum::RangeFunction(pb::RangeFunction {
                functions: vec![node(NodeEnum::List(pb::List { items: list }))],
                ..pb::RangeFunction::default()
            }))];
            node(NodeEnum::ColumnRef(star))
        } else {
            call
        };
        select.target_list = vec![node(NodeEnum::ResTarget(Box::new(pb::ResTarget {
            val: Some(Box::new(value)),
            location: -1,
            ..pb::ResTarget::default()
        })))];
        Ok((select, returns))
    }
}

/// `42P13` when no input says what a polymorphic output is.
fn check_deducible(function: &Function, ty: Oid) -> Result<()> {
    check_deducible_as(function, ty, "cannot determine result data type")
}

/// The same with another message.
pub(crate) fn check_deducible_as(function: &Function, ty: Oid, message: &str) -> Result<()> {
    if !is_polymorphic(ty) {
        return Ok(());
    }
    let range = |ty: Oid| {
        matches!(ty, ANYRANGE | ANYMULTIRANGE | ANYCOMPATIBLERANGE | ANYCOMPATIBLEMULTIRANGE)
    };
    let compatible = super::polymorphic::is_compatible(ty);
    let says = |a: &FunctionArg| {
        let input = Oid(a.ty);
        is_polymorphic(input)
            && super::polymorphic::is_compatible(input) == compatible
            && (!range(ty) || range(input))
    };
    if function.inputs().any(says) {
        return Ok(());
    }
    let inputs = match (range(ty), compatible) {
        (true, false) => "anyrange or anymultirange",
        (true, true) => "anycompatiblerange or anycompatiblemultirange",
        (false, false) => "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange",
        (false, true) => {
            "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange"
        }
    };
    let name = types::io::format_type(ty, -1);
    Err(bad(message)
        .detail(format!("A result of type {name} requires at least one input of type {inputs}.")))
}

/// A function that says nothing.
pub(crate) fn blank() -> Function {
    Function {
        oid: 0,
        name: String::new(),
        schema: 0,
        owner: 0,
        args: Vec::new(),
        result: 0,
        set: true,
        language: String::new(),
        body: String::new(),
        volatility: 'v',
        strict: false,
        procedure: false,
        security_definer: false,
        leakproof: false,
        parallel: 'u',
        cost: 100.0,
        rows: 0.0,
        standard_body: false,
        path: Vec::new(),
        uses: Vec::new(),
        settings: Vec::new(),
        row_of: None,
        aggregate: None,
        support: 0,
        library: String::new(),
    }
}

/// Stands before a SELECT that was written as RETURN among the statements of BEGIN ATOMIC.
pub(crate) const RETURN_MARK: &str = "/* RETURN */ ";

/// `RETURN expression`, or the statements of BEGIN ATOMIC.
fn standard_body(node: &NodeEnum) -> Result<String> {
    let statement = |node: &NodeEnum| match node {
        NodeEnum::ReturnStmt(r) => match inner(&r.returnval) {
            Some(value) => Ok(format!("{RETURN_MARK}SELECT {}", deparse_expr(value)?)),
            None => Err(bad("no function body specified")),
        },
        other => deparse_statement(other),
    };
    match node {
        NodeEnum::ReturnStmt(r) => {
            let Some(value) = inner(&r.returnval) else {
                return Err(bad("no function body specified"));
            };
            let text = deparse_expr(value)?;
            Ok(format!("RETURN {text}"))
        }
        NodeEnum::List(list) => {
            let mut out = Vec::new();
            for node in list.items.iter().flat_map(|n| match &n.node {
                Some(NodeEnum::List(inner)) => inner.items.as_slice(),
                _ => std::slice::from_ref(n),
            }) {
                if let Some(node) = &node.node {
                    out.push(format!(" {};", statement(node)?));
                }
            }
            Ok(out.join("\n"))
        }
        _ => Err(bad("no function body specified")),
    }
}

/// `42809`: a function can't be called, nor a procedure used in an expression.
pub(crate) fn wrong_kind(name: &str, args: &[Expr], procedure: bool) -> base::Error {
    let types: Vec<String> = args.iter().map(|a| types::io::format_type(a.ty(), -1)).collect();
    let signature = format!("{name}({})", types.join(", "));
    if procedure {
        err!(WRONG_OBJECT_TYPE, "{signature} is a procedure").hint("To call a procedure, use CALL.")
    } else {
        err!(WRONG_OBJECT_TYPE, "{signature} is not a procedure")
            .hint("To call a function, use SELECT.")
    }
}

/// Whether a callee is a user's function.
pub(crate) fn is_users(row: &FunctionRow) -> bool {
    row.oid >= Oid::FIRST_USER
}

/// A type as it is written: `pg_catalog.int4[]`.
fn written_type(node: &pb::Node) -> Option<String> {
    let Some(NodeEnum::TypeName(name)) = &node.node else { return None };
    let array = if name.array_bounds.is_empty() { "" } else { "[]" };
    Some(format!("{}{array}", ast::strings(&name.names).join(".")))
}

/// Whether a type, or its schema, is not there.
fn is_missing(error: &base::Error) -> bool {
    use base::sqlstate::{UNDEFINED_OBJECT, UNDEFINED_SCHEMA};
    [UNDEFINED_OBJECT, UNDEFINED_SCHEMA].contains(&error.code())
}
