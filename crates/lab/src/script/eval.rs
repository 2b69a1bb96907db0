//! Runs a script's commands for one client up to its next statement, pause or end.

use std::fmt::Write as _;
use std::sync::Arc;

use super::expression::Function;
use super::random::Random;
use super::{Command, Expression, Piece, Program, Statement, Value};

/// One client's variables and random numbers.
pub struct Machine {
    /// By slot; none where nothing was set.
    variables: Vec<Option<Value>>,
    random: Random,
    /// What the hash functions use without a seed.
    seed: i64,
}

/// What a script comes to.
#[derive(Debug)]
pub enum Step<'p> {
    /// Send this.
    Send(&'p Statement),
    /// Wait for so many microseconds.
    Sleep(u64),
    /// The transaction is over.
    End,
}

impl Machine {
    /// With the variables that every client begins with.
    pub fn new(program: &Program, seed: u64, variables: &[(&str, Value)]) -> Machine {
        let mut slots = vec![None; program.names().len()];
        for (name, value) in variables {
            if let Some(slot) = program.find(name) {
                slots[slot] = Some(value.clone());
            }
        }
        let seed_value = seed as i64;
        Machine { variables: slots, random: Random::new(seed), seed: seed_value }
    }

    /// The index of the script for the next transaction, by weight.
    pub fn choose(&mut self, program: &Program) -> usize {
        let scripts = program.scripts();
        if scripts.len() == 1 {
            return 0;
        }
        let total: u32 = scripts.iter().map(|(_, weight)| weight).sum();
        let mut left = self.random.uniform(0, i64::from(total) - 1);
        scripts
            .iter()
            .position(|(_, weight)| {
                left -= i64::from(*weight);
                left < 0
            })
            .unwrap_or(0)
    }

    /// Runs from command `at` on, up to something that takes time; `at` is then the one after it.
    ///
    /// # Errors
    /// An expression without a value, with its line.
    pub fn run<'p>(&mut self, commands: &'p [Command], at: &mut usize) -> Result<Step<'p>, String> {
        while let Some(command) = commands.get(*at) {
            *at += 1;
            let on_line = |line: usize| move |error: String| format!("line {line}: {error}");
            match command {
                Command::Sql(statement) => return Ok(Step::Send(statement)),
                Command::Set(slot, expression, line) => {
                    let value = self.value(expression).map_err(on_line(*line))?;
                    self.variables[*slot] = Some(value);
                }
                Command::Sleep(amount, unit_us, line) => {
                    let amount = self.value(amount).and_then(integer).map_err(on_line(*line))?;
                    return Ok(Step::Sleep(amount.max(0) as u64 * unit_us));
                }
                Command::Unless(condition, target, line) => {
                    let holds = self.value(condition).and_then(truth).map_err(on_line(*line))?;
                    if holds != Some(true) {
                        *at = *target;
                    }
                }
                Command::Jump(target) => *at = *target,
            }
        }
        Ok(Step::End)
    }

    /// The variable's text; none for NULL.
    pub fn write(&self, slot: usize, out: &mut Vec<u8>) -> bool {
        match &self.variables[slot] {
            None | Some(Value::Null) => return false,
            Some(Value::Int(value)) => {
                out.extend_from_slice(itoa::Buffer::new().format(*value).as_bytes());
            }
            Some(value) => out.extend_from_slice(text(value).as_bytes()),
        }
        true
    }

    /// The statement's text with the variables' values in it.
    pub fn fill(&self, program: &Program, statement: &Statement, out: &mut Vec<u8>) {
        for piece in &statement.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable(slot) if self.variables[*slot].is_none() => {
                    out.push(b':');
                    out.extend_from_slice(program.names()[*slot].as_bytes());
                }
                Piece::Variable(slot) => {
                    if !self.write(*slot, out) {
                        out.extend_from_slice(b"NULL");
                    }
                }
            }
        }
    }

    /// Sets a variable from a result's column; names that no script reads are forgotten.
    pub fn keep(&mut self, program: &Program, name: &str, value: Option<&str>) {
        if let Some(slot) = program.find(name) {
            self.variables[slot] =
                Some(value.map_or(Value::Null, |text| Value::Text(Arc::from(text))));
        }
    }

    fn value(&mut self, expression: &Expression) -> Result<Value, String> {
        match expression {
            Expression::Constant(value) => Ok(value.clone()),
            Expression::Variable(slot) => match &self.variables[*slot] {
                Some(Value::Text(text)) => Ok(looks_like(text)),
                Some(value) => Ok(value.clone()),
                None => Err("a variable has no value yet".to_owned()),
            },
            Expression::Case(branches, otherwise) => {
                for (condition, value) in branches {
                    if self.value(condition).and_then(truth)? == Some(true) {
                        return self.value(value);
                    }
                }
                self.value(otherwise)
            }
            Expression::Call(function, arguments) => self.call(*function, arguments),
        }
    }

    fn call(&mut self, function: Function, arguments: &[Expression]) -> Result<Value, String> {
        if let Function::And | Function::Or = function {
            return self.connective(function == Function::Or, arguments);
        }
        let mut values = [Value::Null, Value::Null, Value::Null];
        if arguments.len() > values.len()
            || matches!(function, Function::Greatest | Function::Least)
        {
            let values: Result<Vec<Value>, _> = arguments.iter().map(|a| self.value(a)).collect();
            return extreme(function == Function::Greatest, &values?);
        }
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = self.value(argument)?;
        }
        let [a, b, c] = values;
        match function {
            Function::IsNull => return Ok(Value::Bool(a == Value::Null)),
            Function::IsTrue => return Ok(Value::Bool(truth(a)? == Some(true))),
            Function::IsFalse => return Ok(Value::Bool(truth(a)? == Some(false))),
            Function::Debug => {
                eprintln!("debug: {}", text(&a));
                return Ok(a);
            }
            _ => {}
        }
        let given = [&a, &b, &c];
        if given[..arguments.len()].iter().any(|v| **v == Value::Null) {
            return Ok(Value::Null);
        }
        match function {
            Function::Not => Ok(Value::Bool(truth(a)? != Some(true))),
            Function::Random
            | Function::RandomExponential
            | Function::RandomGaussian
            | Function::RandomZipfian => self.draw(function, a, b, c),
            Function::HashMurmur2 | Function::HashFnv1a => {
                let seed = if arguments.len() == 2 { integer(b)? } else { self.seed };
                let (key, seed) = (integer(a)? as u64, seed as u64);
                let murmur = function == Function::HashMurmur2;
                Ok(Value::Int(if murmur { murmur2(key, seed) } else { fnv1a(key, seed) } as i64))
            }
            _ => arithmetic(function, a, b),
        }
    }

    /// Three-valued AND and OR; the right side is left alone when the left one decides.
    fn connective(&mut self, or: bool, arguments: &[Expression]) -> Result<Value, String> {
        let mut unknown = false;
        for argument in arguments {
            match self.value(argument).and_then(truth)? {
                Some(value) if value == or => return Ok(Value::Bool(or)),
                Some(_) => {}
                None => unknown = true,
            }
        }
        Ok(if unknown { Value::Null } else { Value::Bool(!or) })
    }

    fn draw(&mut self, function: Function, a: Value, b: Value, c: Value) -> Result<Value, String> {
        let (low, high) = (integer(a)?, integer(b)?);
        if low > high {
            return Err(format!("the random range {low} to {high} is empty"));
        }
        if high.checked_sub(low).and_then(|w| w.checked_add(1)).is_none() {
            return Err(format!("the random range {low} to {high} is too wide"));
        }
        if function == Function::Random {
            return Ok(Value::Int(self.random.uniform(low, high)));
        }
        let parameter = double(&c)?;
        let (least, draw): (f64, fn(&mut Random, i64, i64, f64) -> i64) = match function {
            Function::RandomGaussian => (2.0, Random::gaussian),
            Function::RandomExponential => (f64::MIN_POSITIVE, Random::exponential),
            _ => (f64::MIN_POSITIVE, Random::zipfian),
        };
        if !(least..=1e6).contains(&parameter) {
            return Err(format!("{parameter} is no parameter for this distribution"));
        }
        Ok(Value::Int(draw(&mut self.random, low, high, parameter)))
    }
}

/// As SQL takes it.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Double(value) => {
            let mut out = String::new();
            let _ = write!(out, "{value}");
            out
        }
        Value::Text(text) => text.to_string(),
    }
}

/// The value that a text stands for.
fn looks_like(text: &str) -> Value {
    let trimmed = text.trim();
    match trimmed.to_ascii_lowercase().as_str() {
        "null" => Value::Null,
        "true" | "on" | "yes" => Value::Bool(true),
        "false" | "off" | "no" => Value::Bool(false),
        _ => match (trimmed.parse::<i64>(), trimmed.parse::<f64>()) {
            (Ok(value), _) => Value::Int(value),
            (_, Ok(value)) => Value::Double(value),
            _ => Value::Text(Arc::from(text)),
        },
    }
}

fn integer(value: Value) -> Result<i64, String> {
    match value {
        Value::Int(value) => Ok(value),
        Value::Double(value) if (-9.2e18..9.2e18).contains(&value.round_ties_even()) => {
            Ok(value.round_ties_even() as i64)
        }
        other => Err(format!("{} is no integer", text(&other))),
    }
}

fn double(value: &Value) -> Result<f64, String> {
    match value {
        Value::Int(value) => Ok(*value as f64),
        Value::Double(value) => Ok(*value),
        other => Err(format!("{} is no number", text(other))),
    }
}

/// Numbers are true unless they are 0; NULL is unknown.
fn truth(value: Value) -> Result<Option<bool>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(value) => Ok(Some(value)),
        Value::Int(value) => Ok(Some(value != 0)),
        Value::Double(value) => Ok(Some(value != 0.0)),
        Value::Text(text) => Err(format!("{text:?} is neither true nor false")),
    }
}

fn extreme(greatest: bool, values: &[Value]) -> Result<Value, String> {
    let mut best = values[0].clone();
    for value in values {
        let (a, b) = (double(value)?, double(&best)?);
        if (greatest && a > b) || (!greatest && a < b) {
            best = value.clone();
        }
    }
    Ok(best)
}

fn arithmetic(function: Function, a: Value, b: Value) -> Result<Value, String> {
    use Function::{
        Abs, Add, BitAnd, BitNot, BitOr, BitXor, Divide, Equal, Exp, Less, LessEqual, Ln, Modulo,
        Multiply, NotEqual, Pi, Power, ShiftLeft, ShiftRight, Sqrt, Subtract, ToDouble, ToInt,
    };
    match (function, &a, &b) {
        (Equal | NotEqual, Value::Bool(x), Value::Bool(y)) => {
            return Ok(Value::Bool((x == y) == (function == Equal)));
        }
        (Add | Subtract | Multiply | Divide, Value::Int(x), Value::Int(y)) => {
            return whole(function, *x, *y);
        }
        (Abs, Value::Int(x), _) => {
            return x.checked_abs().map(Value::Int).ok_or_else(out_of_range);
        }
        (Equal | NotEqual | Less | LessEqual, Value::Int(x), Value::Int(y)) => {
            return Ok(Value::Bool(compare(function, x.cmp(y))));
        }
        _ => {}
    }
    match function {
        Pi => return Ok(Value::Double(std::f64::consts::PI)),
        Modulo => {
            let (x, y) = (integer(a)?, integer(b)?);
            return x.checked_rem(y).map(Value::Int).ok_or_else(|| division(y));
        }
        ToInt => return integer(a).map(Value::Int),
        BitNot => return Ok(Value::Int(!integer(a)?)),
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => {
            let (x, y) = (integer(a)?, integer(b)?);
            return Ok(Value::Int(match function {
                BitAnd => x & y,
                BitOr => x | y,
                BitXor => x ^ y,
                ShiftLeft => x.wrapping_shl(y as u32),
                _ => x.wrapping_shr(y as u32),
            }));
        }
        _ => {}
    }
    let x = double(&a)?;
    let value = match function {
        Abs => x.abs(),
        ToDouble => x,
        Exp => x.exp(),
        Ln => x.ln(),
        Sqrt => x.sqrt(),
        _ => {
            let y = double(&b)?;
            match function {
                Add => x + y,
                Subtract => x - y,
                Multiply => x * y,
                Divide if y == 0.0 => return Err(division(0)),
                Divide => x / y,
                Power => x.powf(y),
                _ => {
                    let order = x.partial_cmp(&y).ok_or("NaN can't be compared")?;
                    return Ok(Value::Bool(compare(function, order)));
                }
            }
        }
    };
    Ok(Value::Double(value))
}

fn whole(function: Function, x: i64, y: i64) -> Result<Value, String> {
    let value = match function {
        Function::Add => x.checked_add(y),
        Function::Subtract => x.checked_sub(y),
        Function::Multiply => x.checked_mul(y),
        _ if y == 0 => return Err(division(y)),
        _ => x.checked_div(y),
    };
    value.map(Value::Int).ok_or_else(out_of_range)
}

fn compare(function: Function, order: std::cmp::Ordering) -> bool {
    match function {
        Function::Equal => order.is_eq(),
        Function::NotEqual => order.is_ne(),
        Function::Less => order.is_lt(),
        _ => order.is_le(),
    }
}

fn out_of_range() -> String {
    "the result does not fit into 64 bits".to_owned()
}

fn division(by: i64) -> String {
    if by == 0 { "division by zero".to_owned() } else { out_of_range() }
}

/// FNV-1a (Fowler, Noll, Vo) over the eight bytes, lowest first.
fn fnv1a(key: u64, seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed;
    key.to_le_bytes()
        .iter()
        .fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// MurmurHash2 (Appleby), its 64-bit form for one key of eight bytes.
fn murmur2(key: u64, seed: u64) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    let mut k = key.wrapping_mul(FACTOR);
    k ^= k >> 47;
    let mut hash = seed ^ 8u64.wrapping_mul(FACTOR);
    hash = (hash ^ k.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    hash = (hash ^ (hash >> 47)).wrapping_mul(FACTOR);
    hash ^ (hash >> 47)
}
