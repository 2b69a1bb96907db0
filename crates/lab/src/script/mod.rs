//! Scripts in `pgbench`'s syntax (PostgreSQL manual, reference page of pgbench), compiled once and
//! run by every client.
//!
//! ```text
//!   text ─ parse ─► commands: SQL in pieces, \set with an expression, \sleep, jumps for \if … \endif
//!                   names of variables ─► slots, shared by all scripts of a program
//! ```
//! Left out: `\shell`, `\setshell` (a process for each transaction measures the shell), pipelines, and
//! the function `permute`. Each is refused by name.

mod eval;
mod expression;
mod parse;
mod random;

use std::sync::Arc;

pub use eval::{Machine, Step};
pub use expression::Expression;

use crate::{Error, Result};

/// A variable's or expression's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Double(f64),
    /// From a result or the command line; expressions take it for what it looks like.
    Text(Arc<str>),
}

/// Statements and meta-commands in order.
#[derive(Debug)]
pub struct Script {
    /// The file's name, or that of a built-in workload.
    pub name: String,
    /// What one transaction does.
    pub commands: Vec<Command>,
}

/// One step of a script.
#[derive(Debug)]
pub enum Command {
    /// Send it, wait for its end.
    Sql(Statement),
    /// `\set`.
    Set(usize, Expression, usize),
    /// `\sleep`: so many of this many microseconds.
    Sleep(Expression, u64, usize),
    /// Go on at this command unless the condition holds (line of the condition for errors).
    Unless(Expression, usize, usize),
    /// Go on at this command.
    Jump(usize),
}

/// An SQL command, cut where variables stand.
#[derive(Debug)]
pub struct Statement {
    /// Its number among all statements of the program: the name of its prepared statement.
    pub number: usize,
    /// Text and variables in turn, as the simple protocol sends them.
    pub pieces: Vec<Piece>,
    /// Text with `$1`, `$2`, …, as the extended protocol sends it.
    pub numbered: String,
    /// The variable of each parameter, `$1` first.
    pub parameters: Vec<usize>,
    /// Prefix and columns' slots of `\gset`.
    pub keep: Option<Keep>,
}

/// A part of an SQL command.
#[derive(Debug, PartialEq)]
pub enum Piece {
    /// As it stands.
    Text(String),
    /// The value in this slot.
    Variable(usize),
}

/// What `\gset` does with the result.
#[derive(Debug)]
pub struct Keep {
    /// In front of the columns' names.
    pub prefix: String,
    /// `\aset`: any number of rows, the last one counts; `\gset` demands exactly one.
    pub any_rows: bool,
}

/// Scripts with their weights, and the variables they share.
#[derive(Debug, Default)]
pub struct Program {
    scripts: Vec<(Script, u32)>,
    names: Vec<String>,
    statements: usize,
}

impl Program {
    /// A program without scripts.
    pub fn new() -> Program {
        Program::default()
    }

    /// Compiles a script and adds it; it is chosen in proportion to its weight.
    ///
    /// # Errors
    /// A script that can't be compiled: name, line and reason.
    pub fn add(&mut self, name: &str, text: &str, weight: u32) -> Result<()> {
        let script = parse::parse(self, name, text)?;
        if !script.commands.iter().any(|c| matches!(c, Command::Sql(_))) {
            return Err(Error::new(format!("{name}: there is no SQL command in it")));
        }
        self.scripts.push((script, weight));
        Ok(())
    }

    /// The scripts and their weights.
    pub fn scripts(&self) -> &[(Script, u32)] {
        &self.scripts
    }

    /// How many SQL commands all scripts have.
    pub fn statements(&self) -> usize {
        self.statements
    }

    /// The slot of a variable, made if it is new.
    pub fn slot(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    /// The slot of a variable that some script names.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }

    /// The variables' names, by slot.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}
