//! The client of a server that speaks MySQL's protocol.

use super::{Client, Context};
use crate::driver::mysql::{self, Answers};
use crate::driver::{Failure, Protocol};
use crate::script::Statement;

fn unsupported(what: &str) -> Failure {
    let message = format!("{what} is not supported with MySQL's protocol");
    Failure { code: "0A000".to_owned(), message }
}

impl<'a> Client<'a> {
    /// Takes in all whole packets; whether the last answer is complete.
    pub(super) fn take_packets(&mut self) -> bool {
        let (mut at, mut over) = (0, false);
        while let Some((_, body)) = mysql::next(&self.input[at..self.filled]) {
            match self.answers.take(body) {
                Ok(last) => over = last,
                Err(failure) => {
                    self.answers.failure.get_or_insert(failure);
                    over = true;
                }
            }
            at += 4 + body.len();
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        if !over {
            return false;
        }
        if let Some(inside) = self.answers.in_transaction {
            self.status = if inside { b'T' } else { b'I' };
        }
        if let Some(failure) = self.answers.failure.take() {
            self.error.get_or_insert(failure.code);
        }
        if let (Some(number), Some(statement)) = (self.answers.statement, self.current) {
            self.prepared[statement.number] = Some(number);
        }
        true
    }

    /// Writes a statement.
    pub(super) fn put_command(
        &mut self,
        cx: &Context<'a>,
        statement: &'a Statement,
    ) -> Result<(), Failure> {
        if statement.keep.is_some() {
            return Err(unsupported("\\gset"));
        }
        let (machine, out) = (&self.machine, &mut self.out);
        self.current = None;
        match self.protocol {
            Protocol::Simple => {
                self.answers = Answers::new(false);
                mysql::query(out, |out| machine.fill(cx.control.load.program, statement, out));
            }
            Protocol::Extended => return Err(unsupported("the extended protocol")),
            Protocol::Prepared => {
                let known = self.prepared[statement.number];
                self.answers = Answers::new(known.is_none());
                let (sql, order) = mysql::question_marks(&statement.numbered);
                if known.is_none() {
                    self.current = Some(statement);
                    mysql::prepare(out, sql.as_bytes());
                }
                let (mut text, mut places) = (Vec::with_capacity(64), Vec::new());
                for parameter in order {
                    let from = text.len();
                    let there = machine.write(statement.parameters[parameter], &mut text);
                    places.push(there.then_some(from..text.len()));
                }
                let values = places.iter().map(|place| place.clone().map(|place| &text[place]));
                mysql::execute(out, known.unwrap_or(mysql::LAST), values);
            }
        }
        Ok(())
    }

    /// Writes a ROLLBACK.
    pub(super) fn put_rollback(&mut self) {
        self.answers = Answers::new(false);
        mysql::query(&mut self.out, |out| out.extend_from_slice(b"ROLLBACK"));
    }
}
