//! The simple protocol: a string of statements.
//!
//! Several statements in one string are one transaction unless they say otherwise. One statement
//! takes the short way: no parse, its plan is found by shape.

use base::{Error, Result};
use sql::Statement;

use super::SessionState;
use super::portal::ResultFormats;
use super::transaction::Block;
use crate::session::statement_run::Run;

impl SessionState {
    /// Query. Fatal errors only are returned.
    pub(super) fn simple_query(&mut self, text: &[u8], rest: &[u8]) -> Result<()> {
        self.prologue();
        let result = self.guarded(|s| {
            let text = s.text(text)?;
            s.conforming(&text, |s, text| s.run_string(text, rest))
        });
        self.log_turn(text);
        if let Err(error) = result {
            self.failed(error, std::str::from_utf8(text).ok())?;
        }
        self.ready()
    }

    /// Runs a text whose literals are the standard's, or were made so (`standard_conforming_strings`).
    pub(super) fn conforming<R>(
        &mut self,
        text: &str,
        run: impl FnOnce(&mut Self, &str) -> Result<R>,
    ) -> Result<R> {
        use base::settings::setting;
        let settings = self.settings.get();
        if settings.bool(setting::STANDARD_CONFORMING_STRINGS) {
            return run(self, text);
        }
        let quotes = match settings.str(setting::BACKSLASH_QUOTE) {
            "safe_encoding" => !self.encoding().is_client_only(),
            word => word == "on",
        };
        let warns = settings.bool(setting::ESCAPE_STRING_WARNING);
        let escapes = sql::nonstandard::Escapes { quotes, warns };
        let Some(standard) = sql::nonstandard::rewritten(text, escapes)? else {
            return run(self, text);
        };
        standard.warnings.iter().for_each(|warning| self.notice("WARNING", warning));
        run(self, &standard.text).map_err(|e| e.shift_back(|at| standard.before(at)))
    }

    fn run_string(&mut self, text: &str, rest: &[u8]) -> Result<()> {
        if std::mem::take(&mut self.exports_slot) {
            // The snapshot of a slot that was made is there until the next command.
            self.commit()?;
        }
        self.begin_statement(text);
        self.arm_timeout();
        if self.transaction.block != Block::Failed {
            self.ensure_transaction();
        }
        self.statements.remove("");
        if self.replication_command(text, rest)? {
            return Ok(());
        }
        if is_single(text) && self.transaction.block != Block::Failed {
            return self.run_text(text, true, rest);
        }
        let statements = sql::split_statements(text)?;
        if statements.is_empty() {
            wire::response::empty_query(&mut self.out.get_mut().buffer);
            return self.end_implicit();
        }
        let count = statements.len();
        for (index, range) in statements.into_iter().enumerate() {
            if count > 1 && self.transaction.block == Block::None {
                self.transaction.block = Block::Implicit;
            }
            if index > 0 {
                // Each has its own time, by the settings that it begins with.
                self.disarm_timeout();
                self.arm_timeout();
            }
            let before = text[..range.start].chars().count() as u32;
            self.run_text(&text[range], index + 1 == count, rest)
                .map_err(|e: Error| e.shift(before))?;
        }
        Ok(())
    }

    /// One statement; after the `last` a transaction of its own ends before the client is told that
    /// the statement is complete.
    fn run_text(&mut self, text: &str, last: bool, rest: &[u8]) -> Result<()> {
        if self.transaction.block == Block::Failed && !ends_block(text) {
            self.check_not_failed()?;
        }
        let (mut plan, params) = self.plan_simple(text)?;
        self.identify_statement(&plan.prepared);
        let logged = self.log_before("statement", text, &plan.prepared, &[]);
        let clock = self.duration_clock();
        let tag = plan.prepared.tag;
        let mut run = Run {
            text,
            declared: None,
            plan: &mut plan,
            params,
            formats: &ResultFormats::default(),
            rest,
            describe: true,
            discard: false,
        };
        let outcome = match &run.plan.prepared.statement {
            Statement::Empty => {
                wire::response::empty_query(&mut self.out.get_mut().buffer);
                return if last { self.end_implicit() } else { Ok(()) };
            }
            Statement::Utility(utility) => {
                let began = self.watch();
                let done = self.control(utility, &run)?;
                self.count_control(began, run.plan, done.as_ref());
                done
            }
            Statement::Query(_) => None,
        };
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => self.run(&mut run)?,
        };
        if last {
            self.end_implicit()?;
        }
        self.log_duration(clock, logged, "statement", text);
        self.complete(tag, &outcome)
    }
}

/// Whether the string is surely one statement: no semicolon but at its end.
fn is_single(text: &str) -> bool {
    match text.bytes().position(|b| b == b';') {
        None => true,
        Some(at) => {
            text.as_bytes()[at + 1..].iter().all(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'))
        }
    }
}

/// Whether the statement begins with a word that can end a failed block.
pub(super) fn ends_block(text: &str) -> bool {
    let text = text.trim_ascii_start();
    let end = text.bytes().position(|b| !b.is_ascii_alphabetic()).unwrap_or(text.len());
    let enders = ["COMMIT", "END", "ROLLBACK", "ABORT"];
    let next = text[end..].trim_ascii_start().get(.."TRANSACTION".len());
    enders.iter().any(|word| text[..end].eq_ignore_ascii_case(word))
        || text[..end].eq_ignore_ascii_case("PREPARE")
            && next.is_some_and(|next| next.eq_ignore_ascii_case("TRANSACTION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_at_the_end_does_not_make_two_statements() {
        assert!(is_single("SELECT 1"));
        assert!(is_single("SELECT 1 ; \n"));
        assert!(!is_single("SELECT 1; SELECT 2"));
        assert!(!is_single("SELECT ';'"), "the parser decides");
        assert!(!is_single("SELECT 1;;"));
    }

    #[test]
    fn only_the_end_can_follow_a_failure() {
        assert!(ends_block(" rollback to a"));
        assert!(ends_block("END;"));
        assert!(!ends_block("ENDING"));
        assert!(ends_block("prepare  transaction 'a'"));
        assert!(!ends_block("PREPARE a AS SELECT 1"));
        assert!(!ends_block("SELECT 1"));
    }
}
