//! A language whose engine this program was built without.
//!
//! Definitions of its functions are kept (a dump restores, another program runs them); what would run one is refused, and
//! says how to get a program that has the engine.

use std::sync::Arc;

use base::{Error, Result, err};
use catalog::Function;

use crate::context::ExecContext;
use crate::language::{CallSignature, Language, Routine};

/// The language of this name, without its engine.
pub struct AbsentLanguage(
    /// Its name in `pg_language`.
    pub &'static str,
);

impl AbsentLanguage {
    fn refusal(&self) -> Error {
        let name = self.0;
        err!(
            FEATURE_NOT_SUPPORTED,
            "this program was built without the engine of language \"{name}\""
        )
        .hint(format!("Build it with: make run FEATURES={name}"))
    }
}

impl Language for AbsentLanguage {
    fn name(&self) -> &'static str {
        self.0
    }

    fn validate(
        &self,
        _function: &Arc<Function>,
        _body_at: Option<u32>,
        _cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        Err(self.refusal())
    }

    fn compile(
        &self,
        _function: &Arc<Function>,
        _signature: &CallSignature,
        _cx: &mut ExecContext<'_>,
    ) -> Result<Arc<dyn Routine>> {
        Err(self.refusal())
    }

    fn run_block(&self, _body: &str, _cx: &mut ExecContext<'_>) -> Result<()> {
        Err(self.refusal())
    }
}
