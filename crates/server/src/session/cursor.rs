//! Cursors: DECLARE, FETCH, MOVE, CLOSE. A cursor is a named portal.

use std::sync::Arc;

use base::{Result, err};
use exec::context::Outcome;
use sql::Prepared;
use types::Datum;

use super::State;
use super::execute::Run;
use super::portal::{Portal, Progress, ResultFormats};
use super::rows;

impl State {
    /// DECLARE CURSOR.
    pub(super) fn declare(
        &mut self,
        name: &str,
        query: &Arc<Prepared>,
        params: &[Datum],
        hold: bool,
    ) -> Result<()> {
        if hold {
            return Err(base::Error::unsupported("DECLARE CURSOR … WITH HOLD"));
        }
        self.require_block("DECLARE CURSOR")?;
        self.portals.check_new(name)?;
        let formats = ResultFormats::default();
        let mut run = Run {
            text: "",
            declared: None,
            plan: self.plan_of(query),
            params: params.to_vec(),
            formats: &formats,
            rest: &[],
            describe: false,
            discard: false,
        };
        let (execution, snapshot, pin) = self.start_execution(&mut run)?;
        let portal = Portal {
            text: self.entry.activity().query.into(),
            declared: Vec::new(),
            plan: run.plan,
            params: run.params,
            formats: ResultFormats::default(),
            progress: Progress::Suspended { execution: Box::new(execution), snapshot, pin },
            cursor: true,
            since: self.settings.format.now,
        };
        self.portals.add(name, portal)
    }

    /// FETCH and MOVE forward.
    pub(super) fn fetch_sql(
        &mut self,
        name: &str,
        count: Option<i64>,
        moving: bool,
        formats: &ResultFormats,
        describe: bool,
    ) -> Result<Outcome> {
        if count.is_some_and(|c| c < 0) {
            return Err(base::Error::unsupported("FETCH backward"));
        }
        let mut portal = self
            .portals
            .take(name)
            .ok_or_else(|| err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist"))?;
        if describe && !moving {
            let out = self.out.get_mut();
            rows::describe(&mut out.buffer, &portal.plan.prepared.columns, formats);
            out.complete = out.buffer.len();
        }
        portal.formats = formats.clone();
        let limit = count.map_or(0, |c| c as u64);
        let rows = match count {
            Some(0) => 0,
            _ => self.fetch_rows(&mut portal, limit, moving)?.0,
        };
        self.portals.put(name, portal);
        Ok(Outcome { rows, tag: None })
    }

    /// CLOSE.
    pub(super) fn close_sql(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.portals.clear(),
            Some(name) if self.portals.get(name).is_none() => {
                return Err(err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist"));
            }
            Some(name) => self.close_portal(name),
        }
        Ok(())
    }
}
