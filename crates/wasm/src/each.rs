//! Calls of a function of plain numbers for many rows at once, though its module knows nothing of batches.
//!
//! A call from outside takes a stack of its own and some bookkeeping, a microsecond and more; a call from one module to
//! another takes nothing of either. So a small module is made for each type of function: it has a memory for the
//! arguments and a loop that calls the function for each row, and leaves the result where the row's arguments were.
//!
//! ```text
//!   row 0: argument 0 │ argument 1 │ …   row 1: …          8 bytes each; result in the place of argument 0
//! ```

use std::fmt::Write;

use wasmtime::{Func, Memory, Module, ValType};

/// A loop in an instance.
pub struct Each {
    /// Takes the number of rows.
    pub run: Func,
    /// The rows.
    pub memory: Memory,
}

/// The bytes of a row.
pub fn stride(arguments: usize) -> usize {
    8 * arguments.max(1)
}

/// The text of the module for functions of this type.
pub fn text(params: &[ValType], result: &ValType) -> String {
    let list: Vec<String> = params.iter().map(ToString::to_string).collect();
    let mut loads = String::new();
    for (n, ty) in list.iter().enumerate() {
        let _ = write!(loads, " ({ty}.load offset={} (local.get $at))", n * 8);
    }
    let (list, stride) = (list.join(" "), stride(params.len()));
    format!(
        r#"(module
  (import "each" "function" (func $function (param {list}) (result {result})))
  (memory (export "memory") 1)
  (func (export "run") (param $rows i32)
    (local $at i32) (local $end i32)
    (local.set $end (i32.mul (local.get $rows) (i32.const {stride})))
    (block $done
      (loop $row
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        ({result}.store (local.get $at) (call $function{loads}))
        (local.set $at (i32.add (local.get $at) (i32.const {stride})))
        (br $row)))))"#
    )
}

/// Whether a module asks what a loop can't answer: which of a row's arguments are NULL, and that its result is.
pub fn asks_for_nulls(module: &Module) -> bool {
    module.imports().any(|import| {
        import.module() == "threadgres" && matches!(import.name(), "is_null" | "set_null")
    })
}
