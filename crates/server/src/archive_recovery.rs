//! `recovery.signal`: a start that first brings the directory to the target that the settings name, with the log of an
//! archive (`restore_command`), as `threadgres restore` does it. (A `standby.signal` beside it counts more: then the
//! directory is a standby's.)

use std::path::Path;

use base::settings::{Settings, setting};
use base::{Error, Lsn, Result, err};

use crate::control::{self, Restore};
use crate::{log, standby};

/// The file that asks for it.
pub const SIGNAL: &str = "recovery.signal";

/// The step after a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The server serves.
    Serve,
    /// It ends.
    Shutdown,
}

/// Recovers the directory if a file asks for that.
///
/// # Errors
/// `22023`, `0A000` for targets that contradict each other or are not supported; as [`control::restore`].
pub fn recover(dir: &Path, settings: &Settings) -> Result<After> {
    let signal = dir.join(SIGNAL);
    if !signal.exists() || standby::is_standby(dir) {
        return Ok(After::Serve);
    }
    let command = settings.str(setting::RESTORE_COMMAND);
    if command.is_empty() {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "must specify restore_command when standby mode is not enabled"
        ));
    }
    let target = target(settings)?;
    log::info("starting archive recovery");
    let restore = Restore { source: Some(command.to_owned()), ..target.clone() };
    let end = control::restore(dir, &restore)?;
    log::info(format_args!("archive recovery complete at {end}"));
    let action = settings.str(setting::RECOVERY_TARGET_ACTION);
    if target != Restore::default() && action == "shutdown" {
        log::info("shutting down at recovery target");
        return Ok(After::Shutdown);
    }
    if target != Restore::default() && action == "pause" {
        log::info("recovery does not pause at its target here: the server goes on as a primary");
    }
    std::fs::remove_file(&signal)
        .map_err(|e| Error::io(format_args!("remove file \"{SIGNAL}\""), &e))?;
    run_end_command(settings.str(setting::RECOVERY_END_COMMAND));
    Ok(After::Serve)
}

/// The target without where the log comes from.
fn target(settings: &Settings) -> Result<Restore> {
    let text = |id| Some(settings.str(id)).filter(|text| !text.is_empty()).map(str::to_owned);
    let restore = Restore {
        source: None,
        position: text(setting::RECOVERY_TARGET_LSN).map(|text| position(&text)).transpose()?,
        time: text(setting::RECOVERY_TARGET_TIME),
        name: text(setting::RECOVERY_TARGET_NAME),
        immediate: text(setting::RECOVERY_TARGET).is_some(),
    };
    if text(setting::RECOVERY_TARGET_XID).is_some() {
        return Err(Error::unsupported("recovery_target_xid")
            .hint("Use recovery_target_time, recovery_target_lsn or recovery_target_name."));
    }
    let given = [
        restore.position.is_some(),
        restore.time.is_some(),
        restore.name.is_some(),
        restore.immediate,
    ];
    if given.into_iter().filter(|given| *given).count() > 1 {
        return Err(err!(INVALID_PARAMETER_VALUE, "multiple recovery targets specified").detail(
            "At most one of recovery_target, recovery_target_lsn, recovery_target_name, \
             recovery_target_time, recovery_target_xid may be set.",
        ));
    }
    Ok(restore)
}

fn position(text: &str) -> Result<Lsn> {
    let half = |digits| u32::from_str_radix(digits, 16).ok();
    let read = text
        .split_once('/')
        .and_then(|(high, low)| Some(Lsn(u64::from(half(high)?) << 32 | u64::from(half(low)?))));
    read.ok_or_else(|| {
        err!(
            INVALID_PARAMETER_VALUE,
            "invalid value for parameter \"recovery_target_lsn\": \"{text}\""
        )
    })
}

/// `recovery_end_command`; the log says when it fails.
fn run_end_command(command: &str) {
    if command.is_empty() {
        return;
    }
    let status = std::process::Command::new("/bin/sh").args(["-c", command]).status();
    if !status.is_ok_and(|status| status.success()) {
        log::info("the command of recovery_end_command failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::settings::Value;

    #[test]
    fn one_target_at_most() {
        let mut settings = Settings::default();
        assert_eq!(target(&settings).unwrap(), Restore::default());
        settings.set(setting::RECOVERY_TARGET_LSN, Value::Str("1/A0".into()));
        assert_eq!(target(&settings).unwrap().position, Some(Lsn(0x1_0000_00A0)));
        settings.set(setting::RECOVERY_TARGET_NAME, Value::Str("x".into()));
        assert!(target(&settings).unwrap_err().message().starts_with("multiple"));
        settings.set(setting::RECOVERY_TARGET_NAME, Value::Str("".into()));
        settings.set(setting::RECOVERY_TARGET_LSN, Value::Str("nonsense".into()));
        assert!(target(&settings).is_err());
    }
}
