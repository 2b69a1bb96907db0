//! Cuts a script into SQL commands and meta-commands, and turns `\if … \endif` into jumps.

use super::expression::{self, Expression};
use super::{Command, Keep, Piece, Program, Script, Statement};
use crate::{Error, Result};

/// Compiles one script.
///
/// # Errors
/// Name, line and reason.
pub fn parse(program: &mut Program, name: &str, text: &str) -> Result<Script> {
    let mut parser = Parser { program, text, at: 0, commands: Vec::new(), open: Vec::new() };
    match parser.all() {
        Ok(()) => Ok(Script { name: name.to_owned(), commands: parser.commands }),
        Err(why) => {
            let line = parser.line();
            Err(Error::new(format!("{name}: line {line}: {why}")))
        }
    }
}

/// An `\if` that is not closed yet.
struct Block {
    /// The jump that skips the current branch, until its target is known.
    skip: Option<usize>,
    /// The jumps at the ends of the branches before.
    ends: Vec<usize>,
    /// After `\else` there is no other branch.
    last: bool,
}

struct Parser<'a> {
    program: &'a mut Program,
    text: &'a str,
    at: usize,
    commands: Vec<Command>,
    open: Vec<Block>,
}

impl Parser<'_> {
    fn all(&mut self) -> Result<(), String> {
        loop {
            let (sql, backslash) = self.sql()?;
            if backslash {
                self.meta(sql)?;
                continue;
            }
            match sql {
                Some(sql) => self.statement(&sql, None),
                None => break,
            }
        }
        if self.open.is_empty() { Ok(()) } else { Err("\\if without \\endif".to_owned()) }
    }

    fn line(&self) -> usize {
        let before = &self.text[..self.at.min(self.text.len())];
        let before = before.strip_suffix('\n').unwrap_or(before);
        before.matches('\n').count() + 1
    }

    /// The next SQL text (none if there is none before the end or a meta-command), and whether a
    /// backslash ended it.
    fn sql(&mut self) -> Result<(Option<String>, bool), String> {
        let mut out = String::new();
        let mut depth = 0usize;
        let found = |out: &str| Some(out.trim().to_owned()).filter(|sql| !sql.is_empty());
        loop {
            let rest = &self.text[self.at..];
            let Some(c) = rest.chars().next() else { return Ok((found(&out), false)) };
            let length = match c {
                '-' if rest.starts_with("--") => {
                    self.at += rest.find('\n').unwrap_or(rest.len());
                    continue;
                }
                '/' if rest.starts_with("/*") => {
                    self.at += comment(rest)?;
                    out.push(' ');
                    continue;
                }
                '\\' if rest[1..].starts_with(';') => {
                    self.at += 2;
                    out.push(';');
                    continue;
                }
                '\\' => return Ok((found(&out), true)),
                ';' if depth == 0 => {
                    self.at += 1;
                    match found(&out) {
                        Some(sql) => return Ok((Some(sql), false)),
                        None => continue,
                    }
                }
                '(' => {
                    depth += 1;
                    1
                }
                ')' => {
                    depth = depth.saturating_sub(1);
                    1
                }
                '\'' | '"' => quoted(rest, c, escapes(&out))?,
                '$' => dollar(rest, &out)?,
                c => c.len_utf8(),
            };
            out.push_str(&rest[..length]);
            self.at += length;
        }
    }

    /// A meta-command, up to its line's end; `sql` is the text before it that had no semicolon.
    fn meta(&mut self, sql: Option<String>) -> Result<(), String> {
        let mut line = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let part = &rest[..rest.find('\n').unwrap_or(rest.len())];
            self.at += part.len() + usize::from(part.len() < rest.len());
            let Some(before) = part.trim_end_matches('\r').strip_suffix('\\') else {
                line.push_str(part);
                break;
            };
            line.push_str(before);
            line.push(' ');
        }
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let word = word.to_ascii_lowercase();
        if let "gset" | "aset" = word.as_str() {
            let sql = sql.ok_or_else(|| format!("\\{word} must follow an SQL command"))?;
            let keep = Keep { prefix: rest.trim().to_owned(), any_rows: word == "aset" };
            self.statement(&sql, Some(keep));
            return Ok(());
        }
        if let Some(sql) = sql {
            self.statement(&sql, None);
        }
        self.command(&word, rest.trim())
    }

    fn command(&mut self, word: &str, rest: &str) -> Result<(), String> {
        let line = self.line();
        match word {
            "set" => {
                let (name, text) = rest
                    .split_once(char::is_whitespace)
                    .ok_or("\\set takes a variable and an expression")?;
                let value = self.expression(text)?;
                let slot = self.program.slot(name);
                self.commands.push(Command::Set(slot, value, line));
            }
            "sleep" => self.sleep(rest, line)?,
            "if" => {
                let skip = Some(self.unless(rest)?);
                self.open.push(Block { skip, ends: Vec::new(), last: false });
            }
            "elif" | "else" => {
                let end = self.commands.len();
                self.commands.push(Command::Jump(end));
                let here = self.commands.len();
                let block = self.open.last_mut().filter(|b| !b.last);
                let block = block.ok_or_else(|| format!("\\{word} without \\if"))?;
                block.ends.push(end);
                block.last = word == "else";
                let skip = block.skip.take();
                self.aim(skip, here);
                if word == "elif" {
                    let skip = Some(self.unless(rest)?);
                    if let Some(block) = self.open.last_mut() {
                        block.skip = skip;
                    }
                }
            }
            "endif" => {
                let block = self.open.pop().ok_or("\\endif without \\if")?;
                let here = self.commands.len();
                for jump in block.ends.into_iter().chain(block.skip) {
                    self.aim(Some(jump), here);
                }
            }
            "shell" | "setshell" | "startpipeline" | "endpipeline" => {
                return Err(format!("\\{word} is not supported"));
            }
            _ => return Err(format!("there is no meta-command \\{word}")),
        }
        Ok(())
    }

    fn expression(&mut self, text: &str) -> Result<Expression, String> {
        expression::parse(self.program, text)
    }

    fn unless(&mut self, text: &str) -> Result<usize, String> {
        let condition = self.expression(text)?;
        let line = self.line();
        self.commands.push(Command::Unless(condition, 0, line));
        Ok(self.commands.len() - 1)
    }

    /// Gives a jump its target.
    fn aim(&mut self, jump: Option<usize>, to: usize) {
        match jump.and_then(|at| self.commands.get_mut(at)) {
            Some(Command::Unless(_, target, _) | Command::Jump(target)) => *target = to,
            _ => {}
        }
    }

    fn sleep(&mut self, rest: &str, line: usize) -> Result<(), String> {
        let digits = rest.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let (amount, unit) = if rest.starts_with(':') {
            rest.split_once(char::is_whitespace).unwrap_or((rest, ""))
        } else {
            (digits, &rest[digits.len()..])
        };
        let unit_us = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "s" => 1_000_000,
            "ms" => 1000,
            "us" => 1,
            other => return Err(format!("\\sleep: {other:?} is none of us, ms, s")),
        };
        let amount = self.expression(amount)?;
        self.commands.push(Command::Sleep(amount, unit_us, line));
        Ok(())
    }

    fn statement(&mut self, sql: &str, keep: Option<Keep>) {
        let mut pieces = Vec::new();
        let (mut text, mut rest) = (String::new(), sql);
        while let Some(colon) = rest.find(':') {
            text.push_str(&rest[..colon]);
            rest = &rest[colon..];
            let colons = rest.len() - rest.trim_start_matches(':').len();
            let name = variable(&rest[colons..]);
            if colons > 1 || name.is_empty() {
                text.push_str(&rest[..colons]);
                rest = &rest[colons..];
                continue;
            }
            pieces.push(Piece::Text(std::mem::take(&mut text)));
            pieces.push(Piece::Variable(self.program.slot(name)));
            rest = &rest[1 + name.len()..];
        }
        text.push_str(rest);
        pieces.push(Piece::Text(text));
        let (numbered, parameters) = number(&pieces);
        let number = self.program.statements;
        self.program.statements += 1;
        self.commands.push(Command::Sql(Statement { number, pieces, numbered, parameters, keep }));
    }
}

/// The variable's name that a text begins with.
fn variable(text: &str) -> &str {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    if !text.starts_with(begins) {
        return "";
    }
    let end = text.find(|c: char| !begins(c) && !c.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

/// Text with `$1`, … and the slots that these stand for; every place is a parameter of its own.
fn number(pieces: &[Piece]) -> (String, Vec<usize>) {
    let (mut text, mut slots) = (String::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Variable(slot) => {
                slots.push(*slot);
                text.push_str(&format!("${}", slots.len()));
            }
        }
    }
    (text, slots)
}

/// Whether a quote after this text begins a string with backslash escapes.
fn escapes(before: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let rest = before.strip_suffix(['e', 'E']);
    rest.is_some_and(|rest| !rest.ends_with(word))
}

/// Length of a quoted string; a doubled quote begins the next one and so needs no thought.
fn quoted(text: &str, quote: char, escapes: bool) -> Result<usize, String> {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == '\\' && escapes && quote == '\'' {
            chars.next();
        } else if c == quote {
            return Ok(at + 1);
        }
    }
    Err(format!("a quote {quote} is not closed"))
}

/// Length of a dollar-quoted string, or of the dollar sign.
fn dollar(text: &str, before: &str) -> Result<usize, String> {
    let inside_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
    let tag_end = text[1..].find(|c: char| !(c.is_alphanumeric() || c == '_')).map(|at| at + 1);
    let tag = match tag_end {
        Some(end) if text[end..].starts_with('$') && !inside_word => &text[..=end],
        _ => return Ok(1),
    };
    if tag[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(1);
    }
    let close = text[tag.len()..].find(tag).ok_or_else(|| format!("{tag} is not closed"))?;
    Ok(close + 2 * tag.len())
}

/// Length of a comment; comments nest.
fn comment(text: &str) -> Result<usize, String> {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Ok(at);
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    Err("a comment is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{Machine, Step, Value};
    use super::*;

    /// The statements that one run of the script sends, filled in.
    fn sent(text: &str) -> Result<Vec<String>, String> {
        let mut program = Program::new();
        program.add("test", text, 1).map_err(|e| e.to_string())?;
        let mut machine = Machine::new(&program, 7, &[("scale", Value::Int(3))]);
        let (mut at, mut out) = (0, Vec::new());
        let commands = &program.scripts()[0].0.commands;
        loop {
            match machine.run(commands, &mut at)? {
                Step::Send(statement) => {
                    let mut sql = Vec::new();
                    machine.fill(&program, statement, &mut sql);
                    out.push(String::from_utf8(sql).unwrap());
                }
                Step::Sleep(us) => out.push(format!("sleep {us}")),
                Step::End => return Ok(out),
            }
        }
    }

    fn value(expression: &str) -> String {
        match sent(&format!("\\set x {expression}\n:x;")) {
            Ok(sql) => sql[0].clone(),
            Err(error) => error,
        }
    }

    #[test]
    fn statements_are_cut_where_sql_ends() {
        let text = "-- a comment; with a semicolon\n\
            SELECT ';', \"a;b\", $$;$$, $q$ $$; $q$ /* ; /* nested */ */ FROM t(1; 2); ;\n\
            SELECT E'\\';' || '\\';\nSELECT a::int, :scale, '12:30:00', :missing \\; SELECT 2\n;last";
        let expected = [
            "SELECT ';', \"a;b\", $$;$$, $q$ $$; $q$   FROM t(1; 2)",
            "SELECT E'\\';' || '\\'",
            "SELECT a::int, 3, '12:30:00', :missing ; SELECT 2",
            "last",
        ];
        assert_eq!(sent(text).unwrap(), expected);
    }

    #[test]
    fn parameters_are_numbered_by_place() {
        let mut program = Program::new();
        program.add("test", "SELECT :a + :b + :a::int", 1).unwrap();
        let Command::Sql(statement) = &program.scripts()[0].0.commands[0] else { panic!() };
        assert_eq!(statement.numbered, "SELECT $1 + $2 + $3::int");
        assert_eq!(statement.parameters, [0, 1, 0]);
    }

    #[test]
    fn branches_and_pauses() {
        let text = "\\if :scale = 1\none;\n\\elif :scale = 3\n\\if false\nno;\n\\else\nthree;\n\\endif\n\
            \\else\nother;\n\\endif\n\\sleep 5 ms\n\\set n 2 * \\\n  :scale\n\\sleep :n us\nend;";
        assert_eq!(sent(text).unwrap(), ["three", "sleep 5000", "sleep 6", "end"]);
    }

    #[test]
    fn expressions_as_pgbench_has_them() {
        for (expression, expected) in [
            ("1 + 2 * 3 - 4", "3"),
            ("-(2 + 3) % 4", "-1"),
            ("7 / 2", "3"),
            ("7.0 / 2", "3.5"),
            ("1 << 4 | 1", "17"),
            ("not 1 > 2 and true", "true"),
            ("null is null or 1/0 = 1", "true"),
            ("case when :scale > 5 then 1 when :scale > 2 then 2 else 3 end", "2"),
            ("greatest(1, 5.5, 3)", "5.5"),
            ("int(2.5) + abs(-3)", "5"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("hash_fnv1a(10, 123)", "6400321898261566932"),
            ("hash(10, 5)", "5862924560876750601"),
            ("power(2, 3)", "8"),
            ("1 = null", "NULL"),
            ("9223372036854775807 + 1", "line 1: the result does not fit into 64 bits"),
            ("1 / 0", "line 1: division by zero"),
            (":missing + 1", "line 1: a variable has no value yet"),
            ("nosuch(1)", "test: line 1: there is no function \"nosuch\""),
            ("random(5, 1)", "line 1: the random range 5 to 1 is empty"),
            ("1 +", "test: line 1: the expression ends too early"),
        ] {
            assert_eq!(value(expression), expected, "{expression}");
        }
    }

    #[test]
    fn errors_say_the_line() {
        for (text, expected) in [
            ("SELECT 1;\n\\nonsense\n", "test: line 2: there is no meta-command \\nonsense"),
            ("SELECT 1;\n\\if true\n", "test: line 2: \\if without \\endif"),
            ("\n\nSELECT 'x", "test: line 3: a quote ' is not closed"),
            ("\\set a 1\n", "test: there is no SQL command in it"),
            ("SELECT 1;\n\\shell ls\n", "test: line 2: \\shell is not supported"),
        ] {
            assert_eq!(sent(text).unwrap_err(), expected);
        }
    }
}
