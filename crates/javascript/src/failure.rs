//! Errors of SQL as exceptions, and back.

use base::sqlstate;
use base::{Error, SqlState, err};
use rquickjs::{Ctx, Exception, Object, Value};

/// The failure of a call: the server's errors and JavaScript's.
pub enum Failure {
    /// An error with its SQLSTATE.
    Sql(Error),
    /// Of the library; an exception is pending in the context.
    Js(rquickjs::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Sql(error)
    }
}

impl From<rquickjs::Error> for Failure {
    fn from(error: rquickjs::Error) -> Failure {
        Failure::Js(error)
    }
}

/// Whether JavaScript may not catch it: the statement ends.
pub fn ends_statement(error: &Error) -> bool {
    let code = error.code();
    code == sqlstate::OUT_OF_MEMORY || code.0.starts_with(b"57")
}

/// Throws a failure in the context; an exception that is pending stays.
pub fn throw(ctx: &Ctx<'_>, failure: Failure) -> rquickjs::Error {
    let error = match failure {
        Failure::Js(error) => return error,
        Failure::Sql(error) => error,
    };
    match exception(ctx, &error) {
        Ok(value) => {
            if ends_statement(&error) {
                uncatchable(ctx, &value);
            }
            ctx.throw(value)
        }
        Err(error) => error,
    }
}

/// Lets no `catch` and no `finally` have an exception.
fn uncatchable(ctx: &Ctx<'_>, value: &Value<'_>) {
    // SAFETY: the value is one of this context, and an object of the class Error.
    unsafe { rquickjs::qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), value.as_raw()) };
}

/// An `Error` with the fields of an error: `sqlerrcode`, `detail`, `hint`, `context`.
fn exception<'js>(ctx: &Ctx<'js>, error: &Error) -> rquickjs::Result<Value<'js>> {
    let object = Exception::from_message(ctx.clone(), error.message())?.into_object();
    let fields = error.fields();
    object.set("sqlerrcode", error.code().as_str())?;
    for (name, text) in
        [("detail", &fields.detail), ("hint", &fields.hint), ("context", &fields.context)]
    {
        if let Some(text) = text {
            object.set(name, text.as_str())?;
        }
    }
    Ok(object.into_value())
}

/// The error of a failure that nobody caught.
pub fn uncaught(ctx: &Ctx<'_>, failure: Failure, function: &str) -> Error {
    let thrown = match failure {
        Failure::Sql(error) => return error,
        Failure::Js(rquickjs::Error::Exception) => ctx.catch(),
        Failure::Js(rquickjs::Error::Allocation) => return err!(OUT_OF_MEMORY, "out of memory"),
        Failure::Js(error) => return err!(EXTERNAL_ROUTINE_EXCEPTION, "{error}"),
    };
    match thrown.as_object() {
        Some(object) => from_object(object, function),
        None => {
            let text = thrown.get::<rquickjs::convert::Coerced<String>>();
            let text = text.map_or_else(|_| "an exception without text".to_owned(), |t| t.0);
            err!(EXTERNAL_ROUTINE_EXCEPTION, "{text}")
                .context(format!("JavaScript function {function}"))
        }
    }
}

fn from_object(object: &Object<'_>, function: &str) -> Error {
    let text = |name: &str| object.get::<_, Option<String>>(name).ok().flatten();
    let message = text("message").unwrap_or_default();
    let name = text("name").unwrap_or_else(|| "Error".to_owned());
    let code = text("sqlerrcode").and_then(|code| state(&code));
    let mut error = match (code, name.as_str(), message.as_str()) {
        (Some(code), _, _) => Error::new(code, message),
        (None, "InternalError", "out of memory") => err!(OUT_OF_MEMORY, "out of memory")
            .detail("JavaScript reached the session's limit of memory."),
        (None, "RangeError" | "InternalError", m) if m.contains("stack") => {
            err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        }
        (None, "SyntaxError", _) => err!(SYNTAX_ERROR, "{name}: {message}"),
        (None, _, "") => err!(EXTERNAL_ROUTINE_EXCEPTION, "{name}"),
        (None, ..) => err!(EXTERNAL_ROUTINE_EXCEPTION, "{name}: {message}"),
    };
    if let Some(detail) = text("detail") {
        error = error.detail(detail);
    }
    if let Some(hint) = text("hint") {
        error = error.hint(hint);
    }
    if let Some(context) = text("context") {
        error = error.context(context);
    }
    let line = text("stack").and_then(|stack| line_of(&stack));
    error.context(match line {
        Some(line) => format!("JavaScript function {function} line {line}"),
        None => format!("JavaScript function {function}"),
    })
}

/// The line of the body that a stack's first frame in a body names.
fn line_of(stack: &str) -> Option<u32> {
    let place = stack.lines().find_map(|line| line.split_once("(body:")).map(|(_, rest)| rest)?;
    let line: u32 = place.split([':', ')']).next()?.parse().ok()?;
    // The body begins below the line with the parameters.
    Some(line.saturating_sub(1).max(1))
}

fn state(code: &str) -> Option<SqlState> {
    let bytes: [u8; 5] = code.as_bytes().try_into().ok()?;
    let plain = bytes.iter().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    plain.then_some(SqlState(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_body() {
        let stack = "    at plv8.execute (eval:3:1)\n    at f (body:4:11)\n    at g (body:9:1)\n";
        assert_eq!(line_of(stack), Some(3));
        assert_eq!(line_of("    at <anonymous> (body:1)"), Some(1));
        assert_eq!(line_of("    at native"), None);
        assert_eq!(state("22012").map(|s| s.0), Some(*b"22012"));
        assert!(state("2201").is_none() && state("2201é").is_none());
    }
}
