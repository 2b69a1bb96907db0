//! A client shows who it is.
//!
//! ```text
//!   start-up packet ─▶ rule of pg_hba.conf ─ trust, peer, cert ─────────────▶ in
//!                           │                                                 ▲
//!                           ├─ password, md5 ─ challenge ─▶ answer ───────────┤
//!                           ├─ scram-sha-256 ─ challenge ─▶ first ─▶ last ────┘
//!                           └─ reject, no rule, a wrong answer ─▶ wait ─▶ out
//! ```
//! Between the messages there is only a small object; who fails is told after a while, and meanwhile
//! holds no stack and no worker. The log says why, the client only that: a role that does not exist, one
//! without a password and one with another password look alike.

use std::time::{Duration, Instant};

use base::settings::{live_int, setting};
use base::{Error, Result, err};
use wire::password::StoredPassword;
use wire::scram::{self, Exchange, Verifier};
use wire::startup::Parameters;
use wire::{Frame, auth};

use super::replication::Replication;
use super::{End, Phase, SessionState};
use crate::client_auth::hba::{Client, ClientCert, Method, Rule};
use crate::connection::Socket;
use crate::log;

/// The client's request.
#[derive(PartialEq, Eq)]
pub(super) struct Login {
    pub user: String,
    pub database: String,
    pub replication: Replication,
    /// Settings that it wants to begin with.
    pub settings: Vec<(String, String)>,
}

impl Login {
    pub(super) fn new(parameters: &Parameters<'_>) -> Result<Login> {
        let user = parameters.get("user").filter(|u| !u.is_empty()).ok_or_else(|| {
            let message = "no PostgreSQL user name specified in startup packet";
            err!(INVALID_AUTHORIZATION_SPECIFICATION, "{message}").fatal()
        })?;
        let replication = match parameters.get("replication") {
            Some(value) => Replication::parse(value)?,
            None => Replication::No,
        };
        let database = match replication {
            // Commands are about the whole server; the session is in some database nevertheless.
            Replication::Physical => "postgres",
            _ => parameters.get("database").filter(|d| !d.is_empty()).unwrap_or(user),
        };
        let mut settings = Vec::new();
        for (name, value) in &parameters.values {
            match *name {
                "user" | "database" | "replication" => {}
                "options" => {
                    settings.extend(wire::startup::split_options(value).map_err(Error::fatal)?)
                }
                name => settings.push((name.to_owned(), (*value).to_owned())),
            }
        }
        let cut = |name| types::io::cut_name(name).to_owned();
        Ok(Login { user: cut(user), database: cut(database), replication, settings })
    }
}

/// A conversation that is not over.
pub(super) struct Conversation {
    login: Login,
    /// The rule, for the log.
    rule: String,
    stage: Stage,
    /// Why it can't succeed, whatever the client answers.
    doomed: Option<String>,
}

enum Stage {
    /// The password itself is to come.
    Password { kept: Option<StoredPassword> },
    /// The answer to a challenge.
    Md5 { kept: String, salt: [u8; 4] },
    /// SCRAM's first message.
    First { verifier: Verifier },
    /// Its last.
    Last(Box<Exchange>),
}

/// The result of a client's message.
enum Verdict {
    /// It goes on.
    More(Stage),
    In,
    Out,
}

/// How a client that is not let in is told, and what the log knows besides.
struct Refusal {
    error: Error,
    log: String,
}

impl SessionState {
    /// Finds the rule and begins the conversation, or lets the client in at once.
    pub(super) fn begin_authentication(&mut self, login: Login) -> Result<()> {
        let client_auth = self.server.client_auth();
        let catalog = self.catalog_tx.view();
        let tls = self.socket.tls_info();
        let client = Client {
            address: self.entry.peer.client.map(|(ip, _)| ip),
            encrypted: tls.is_some(),
            user: &login.user,
            database: &login.database,
            replication: login.replication == Replication::Physical,
        };
        let Some(rule) = client_auth.hba.find(&client, &catalog) else {
            return self.refuse(refused("no pg_hba.conf entry for host", &client, None));
        };
        if rule.method == Method::Reject {
            let what = "pg_hba.conf rejects connection for host";
            return self.refuse(refused(what, &client, Some(rule)));
        }
        if let Err(refusal) = self.check_certificate(rule, &login) {
            return self.refuse(refusal);
        }
        let (doomed, kept) = match rule.method {
            Method::Trust | Method::Cert => return self.admit_login(login),
            Method::Peer => match self.check_peer(rule, &login) {
                Ok(()) => return self.admit_login(login),
                Err(refusal) => return self.refuse(refusal),
            },
            _ => self.kept_password(&login.user),
        };
        let (stage, doomed) = self.challenge(rule.method, &login.user, kept, doomed)?;
        self.conversation =
            Some(Box::new(Conversation { login, rule: matched(rule), stage, doomed }));
        self.phase = Phase::Authenticating;
        Ok(())
    }

    /// The stored form of a role's password, or why there is nothing to compare with.
    fn kept_password(&mut self, user: &str) -> (Option<String>, Option<StoredPassword>) {
        let catalog = self.catalog_tx.view();
        let Some(role) = catalog.role_named(user) else {
            return (Some(format!("Role \"{}\" does not exist.", log::one_line(user))), None);
        };
        let user = log::one_line(user);
        let Some(kept) = role.password.as_deref().and_then(StoredPassword::parse) else {
            return (Some(format!("User \"{user}\" has no password assigned.")), None);
        };
        let ended = role.valid_until.is_some_and(|until| until < crate::server::now());
        (ended.then(|| format!("User \"{user}\" has an expired password.")), Some(kept))
    }

    /// Sends the first message of a method.
    fn challenge(
        &mut self,
        method: Method,
        user: &str,
        kept: Option<StoredPassword>,
        doomed: Option<String>,
    ) -> Result<(Stage, Option<String>)> {
        let with_md5 = self.settings.get().str(setting::PASSWORD_ENCRYPTION) == "md5";
        let salt = self.server.random()?;
        let mock = Verifier::mock(&self.server.mock_secret, user);
        let out = self.out.get_mut();
        let stage = match (method, kept) {
            (Method::Password, kept) => {
                auth::cleartext(&mut out.buffer);
                (Stage::Password { kept }, doomed)
            }
            (Method::Md5, Some(StoredPassword::Md5(kept))) if with_md5 => {
                auth::md5(&mut out.buffer, salt);
                (Stage::Md5 { kept, salt }, doomed)
            }
            (_, kept) => {
                let mechanisms: &[&str] = match self.socket.tls_info() {
                    Some(_) => &[scram::PLUS, scram::PLAIN],
                    None => &[scram::PLAIN],
                };
                auth::sasl(&mut out.buffer, mechanisms);
                match kept {
                    Some(StoredPassword::Scram(verifier)) => (Stage::First { verifier }, doomed),
                    Some(StoredPassword::Md5(_)) => {
                        let why = format!(
                            "User \"{}\" has an MD5 password, which only the method \"md5\" takes, and \
                             only with password_encryption = md5.",
                            log::one_line(user)
                        );
                        (Stage::First { verifier: mock }, Some(why))
                    }
                    None => (Stage::First { verifier: mock }, doomed),
                }
            }
        };
        out.complete = out.buffer.len();
        self.flush = true;
        Ok(stage)
    }

    /// A message of the conversation.
    pub(super) fn authenticate(&mut self, frame: Frame<'_>) -> Result<(), End> {
        let Some(mut conversation) = self.conversation.take() else {
            return Err(Error::internal("no conversation to go on with").fatal().into());
        };
        if frame.tag != b'p' {
            let message = format!("expected password response, got message type {}", frame.tag);
            return Err(wire::violation(message).into());
        }
        let verdict = self.hear(&mut conversation, frame.body)?;
        match verdict {
            Verdict::More(stage) => {
                conversation.stage = stage;
                self.conversation = Some(conversation);
                self.flush = true;
                Ok(())
            }
            Verdict::In => {
                self.server.failures.forget(self.entry.peer.client.map(|(ip, _)| ip));
                Ok(self.admit_login(conversation.login)?)
            }
            Verdict::Out => {
                let user = &conversation.login.user;
                let why = conversation.doomed.unwrap_or_else(|| {
                    format!("Password does not match for user \"{}\".", log::one_line(user))
                });
                let message = format!("password authentication failed for user \"{user}\"");
                let error = Error::new(base::sqlstate::INVALID_PASSWORD, message).fatal();
                Ok(self.refuse(Refusal { error, log: format!("{why}\n{}", conversation.rule) })?)
            }
        }
    }

    fn hear(&mut self, conversation: &mut Conversation, body: &[u8]) -> Result<Verdict> {
        let user = &conversation.login.user;
        let fits = match &conversation.stage {
            Stage::Password { kept } => {
                let password = auth::password(body)?;
                if password.is_empty() {
                    return Err(err!(INVALID_PASSWORD, "empty password returned by client").fatal());
                }
                let password = std::str::from_utf8(password).unwrap_or_default();
                match kept {
                    Some(kept) => kept.fits(user, password, &mut let_others_run)?,
                    None => false,
                }
            }
            Stage::Md5 { kept, salt } => {
                wire::password::md5_answer_fits(kept, *salt, auth::password(body)?)
            }
            Stage::First { verifier } => {
                let (mechanism, message) = auth::sasl_initial(body)?;
                let tls = self.socket.tls_info();
                let hash = tls.as_ref().map(|tls| tls.certificate_hash.as_slice());
                let nonce = printable(&self.server.random::<{ scram::NONCE_BYTES }>()?);
                let (exchange, answer) =
                    Exchange::begin(mechanism, message, verifier.clone(), &nonce, hash)?;
                let out = self.out.get_mut();
                auth::sasl_continue(&mut out.buffer, &answer);
                out.complete = out.buffer.len();
                return Ok(Verdict::More(Stage::Last(Box::new(exchange))));
            }
            Stage::Last(exchange) => match exchange.finish(body)? {
                Some(signature) if conversation.doomed.is_none() => {
                    let out = self.out.get_mut();
                    auth::sasl_final(&mut out.buffer, &signature);
                    out.complete = out.buffer.len();
                    true
                }
                _ => false,
            },
        };
        let goes_in = fits && conversation.doomed.is_none();
        Ok(if goes_in { Verdict::In } else { Verdict::Out })
    }

    /// Checks the rule's demand on the client's certificate.
    fn check_certificate(&self, rule: &Rule, login: &Login) -> Result<(), Refusal> {
        if rule.client_cert == ClientCert::Off {
            return Ok(());
        }
        let certificate = self.socket.tls_info().and_then(|tls| tls.client.clone());
        let Some(certificate) = certificate else {
            let message = "connection requires a valid client certificate";
            let error = err!(INVALID_AUTHORIZATION_SPECIFICATION, "{message}").fatal();
            return Err(Refusal { error, log: matched(rule) });
        };
        let by_name = rule.client_cert == ClientCert::VerifyFull;
        let auth = self.server.client_auth();
        let map = rule.map.as_deref();
        if !by_name || auth.ident.allows(map, &certificate.common_name, &login.user) {
            return Ok(());
        }
        let error = err!(
            INVALID_AUTHORIZATION_SPECIFICATION,
            "certificate authentication failed for user \"{}\"",
            login.user
        );
        let log = format!(
            "The certificate is \"{}\"'s.\n{}",
            log::one_line(&certificate.subject),
            matched(rule)
        );
        Err(Refusal { error: error.fatal(), log })
    }

    /// Whether the operating system's user has the role's name.
    fn check_peer(&self, rule: &Rule, login: &Login) -> Result<(), Refusal> {
        let name = self.socket.peer_user();
        let auth = self.server.client_auth();
        let is_allowed = |name: &String| auth.ident.allows(rule.map.as_deref(), name, &login.user);
        if name.as_ref().is_some_and(is_allowed) {
            return Ok(());
        }
        let error = err!(
            INVALID_AUTHORIZATION_SPECIFICATION,
            "Peer authentication failed for user \"{}\"",
            login.user
        );
        let name = name.unwrap_or_else(|| "unknown".to_owned());
        let log = format!("The operating system's user is \"{name}\".\n{}", matched(rule));
        Err(Refusal { error: error.fatal(), log })
    }

    /// The client is not let in. It is told after a while.
    fn refuse(&mut self, refusal: Refusal) -> Result<()> {
        let Refusal { error, log } = refusal;
        log::refusal(self.entry.pid, &error, Some(&log));
        let from = self.entry.peer.client.map(|(ip, _)| ip);
        let first = live_int(setting::AUTHENTICATION_FAILURE_DELAY).max(0) as u64;
        let now = Instant::now();
        let delay = self.server.failures.note(from, Duration::from_millis(first), now);
        self.phase = Phase::Refused;
        self.refusal = Some(error);
        self.flush = false;
        self.idle_deadline = Some(now + delay);
        self.server.workers.wake_at(&self.entry.task, self.idle_deadline);
        Ok(())
    }
}

/// In the middle of a key derivation, which takes as long as many statements: nobody waits for it.
pub(super) fn let_others_run() -> Result<()> {
    sched::yield_now();
    sched::check_interrupts()
}

fn matched(rule: &Rule) -> String {
    format!("Connection matched pg_hba.conf line {}: \"{}\"", rule.line, rule.text)
}

/// `28000`: the rules have no place for the client.
fn refused(what: &str, client: &Client<'_>, rule: Option<&Rule>) -> Refusal {
    let host = client.address.map_or_else(|| "[local]".to_owned(), |ip| ip.to_string());
    let how = if client.encrypted { "SSL encryption" } else { "no encryption" };
    let (user, database) = (client.user, client.database);
    let error = err!(
        INVALID_AUTHORIZATION_SPECIFICATION,
        "{what} \"{host}\", user \"{user}\", database \"{database}\", {how}"
    );
    let log = rule.map_or_else(|| "No line fits.".to_owned(), matched);
    Refusal { error: error.fatal(), log }
}

/// Random bytes as characters that a nonce may have.
fn printable(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Socket {
    /// The operating system's name of who is at the other end of a Unix socket.
    fn peer_user(&self) -> Option<String> {
        let Socket::Unix(socket) = self else { return None };
        let credentials =
            nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::PeerCredentials);
        let uid = nix::unistd::Uid::from_raw(credentials.ok()?.uid());
        nix::unistd::User::from_uid(uid).ok()?.map(|user| user.name)
    }
}
