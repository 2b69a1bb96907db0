//! The session's connections, one for each user mapping, and their transactions.
//!
//! ```text
//! local:   BEGIN   SELECT   SAVEPOINT a   SELECT   ROLLBACK TO a              COMMIT
//! remote:          START …                SAVEPOINT s1;                       COMMIT
//!                                         SELECT   ROLLBACK TO s1; RELEASE s1
//! ```
//!
//! Invariants: a connection in a transaction has as many savepoints as the local one had when it was last used,
//! unless levels have ended since. One that has failed in the middle of something is not used again.

use std::any::Any;

use base::{Result, err};
use catalog::{ForeignServer, UserMapping};
use exec::context::ExecContext;
use exec::foreign::{SessionPart, option};
use logical::conninfo::Conninfo;

use crate::client::{Answer, Client};
use crate::options::is_of_connection;

/// The name under which the session keeps them.
const PART: &str = "postgres_fdw";

/// A connection of the session.
pub struct Connection {
    client: Client,
    /// The user mapping.
    mapping: u32,
    /// The server and its name.
    server: u32,
    server_name: String,
    /// The options that it was made with: other options need another connection.
    made_with: String,
    /// Levels of the remote transaction: 0, none; 1, the transaction; more, savepoints.
    depth: usize,
    /// Something failed in the middle: it can't be used any more.
    broken: bool,
    /// An answer is on its way.
    busy: bool,
    /// It is closed at the end of the transaction.
    closing: bool,
    /// Cursors so far.
    cursors: u32,
}

impl Connection {
    /// Runs a statement.
    ///
    /// # Errors
    /// The server's answer to a statement.
    pub fn run(&mut self, sql: &str) -> Result<Answer> {
        self.run_shown(sql, sql)
    }

    /// The same; errors show another text.
    ///
    /// # Errors
    /// As [`Connection::run`].
    pub fn run_shown(&mut self, sql: &str, shown: &str) -> Result<Answer> {
        self.busy = true;
        let answer = self.client.run(sql);
        if let Err(error) = &answer {
            // Interrupts and lost connections leave the answer somewhere on the way.
            let own = matches!(
                error.code(),
                base::sqlstate::QUERY_CANCELED
                    | base::sqlstate::ADMIN_SHUTDOWN
                    | base::sqlstate::CONNECTION_FAILURE
            );
            if own {
                self.broken = true;
                self.client.cancel();
            }
        }
        self.busy = false;
        answer.map_err(|e| e.context(format!("remote SQL command: {shown}")))
    }

    /// A name for a new cursor.
    pub fn cursor(&mut self) -> String {
        self.cursors += 1;
        format!("c{}", self.cursors)
    }

    /// Brings the remote transaction to the depth of the local one.
    fn enter(&mut self, depth: usize, serializable: bool) -> Result<()> {
        if self.depth == 0 {
            let level = if serializable { "SERIALIZABLE" } else { "REPEATABLE READ" };
            self.run(&format!("START TRANSACTION ISOLATION LEVEL {level}"))?;
            self.depth = 1;
        }
        while self.depth <= depth {
            self.run(&format!("SAVEPOINT s{}", self.depth + 1))?;
            self.depth += 1;
        }
        Ok(())
    }
}

/// The session's connections.
#[derive(Default)]
pub struct Connections(Vec<Connection>);

impl Connections {
    /// All of them: the server's oid and name, whether it may go on.
    pub fn list(&self) -> impl Iterator<Item = (u32, &str, &Connection)> {
        self.0.iter().map(|c| (c.server, c.server_name.as_str(), c))
    }

    /// Closes connections that no transaction uses; whether there were any, and whether one is in use.
    pub fn close(&mut self, wanted: &dyn Fn(&str) -> bool) -> (bool, Vec<String>) {
        let before = self.0.len();
        let used = |c: &Connection| wanted(&c.server_name) && c.depth > 0;
        let in_use = self.0.iter().filter(|c| used(c)).map(|c| c.server_name.clone()).collect();
        self.0.retain(|c| !wanted(&c.server_name) || c.depth > 0);
        (self.0.len() < before, in_use)
    }
}

impl Connection {
    /// Whether it was made with what the server and the mapping say now.
    pub fn is_valid(&self, server: Option<&ForeignServer>, mapping: Option<&UserMapping>) -> bool {
        match (server, mapping) {
            (Some(server), Some(mapping)) => self.made_with == description(server, mapping),
            _ => false,
        }
    }

    /// The mapping's oid.
    pub fn mapping(&self) -> u32 {
        self.mapping
    }
}

impl SessionPart for Connections {
    fn before_commit(&mut self) -> Result<()> {
        for connection in self.0.iter_mut().filter(|c| c.depth > 0) {
            connection.run("COMMIT TRANSACTION")?;
            connection.depth = 0;
        }
        Ok(())
    }

    fn before_prepare(&mut self) -> Result<()> {
        if self.0.iter().any(|c| c.depth > 0) {
            base::bail!(
                FEATURE_NOT_SUPPORTED,
                "cannot PREPARE a transaction that has operated on postgres_fdw foreign tables"
            );
        }
        Ok(())
    }

    fn ended(&mut self, _committed: bool) {
        for connection in self.0.iter_mut().filter(|c| c.depth > 0 && !c.broken) {
            if connection.run("ABORT TRANSACTION").is_err() {
                connection.broken = true;
            }
            connection.depth = 0;
        }
        for connection in &mut self.0 {
            connection.cursors = 0;
        }
        self.0.retain(|c| !c.broken && !c.busy && !c.closing);
    }

    fn rolled_back(&mut self, depth: usize) {
        for connection in self.0.iter_mut().filter(|c| c.depth > depth + 1 && !c.broken) {
            let level = depth + 2;
            let sql = format!("ROLLBACK TO SAVEPOINT s{level}; RELEASE SAVEPOINT s{level}");
            match connection.run(&sql) {
                Ok(_) => connection.depth = depth + 1,
                Err(_) => connection.broken = true,
            }
        }
    }

    fn released(&mut self, depth: usize) {
        for connection in self.0.iter_mut().filter(|c| c.depth > depth + 1 && !c.broken) {
            match connection.run(&format!("RELEASE SAVEPOINT s{}", depth + 2)) {
                Ok(_) => connection.depth = depth + 1,
                Err(_) => connection.broken = true,
            }
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// All options of a server and mapping, to see whether they are others than before.
fn description(server: &ForeignServer, mapping: &UserMapping) -> String {
    format!("{:?}{:?}", server.options, mapping.options)
}

/// The connections of the session.
///
/// # Errors
/// `0A000` where there is no session.
pub fn all<'c>(cx: &'c mut ExecContext<'_>) -> Result<&'c mut Connections> {
    let parts = cx.hooks.foreign().and_then(|parts| parts.of::<Connections>(PART));
    parts.ok_or_else(|| err!(FEATURE_NOT_SUPPORTED, "foreign tables need a session"))
}

/// The connection of a role to a server, in a transaction of the depth of the local one.
///
/// # Errors
/// `42704` without a user mapping, `08001`, `2F003`, and what the server says.
pub fn connect<'c>(
    server: &ForeignServer,
    role: u32,
    cx: &'c mut ExecContext<'_>,
) -> Result<&'c mut Connection> {
    let view = cx.catalog_tx.view();
    let mapping = view.user_mapping_for(role, server.oid).ok_or_else(|| {
        let name = view.role(role).map_or("", |r| r.name.as_str());
        err!(UNDEFINED_OBJECT, "user mapping not found for \"{name}\"")
    })?;
    let (depth, superuser) = (cx.tx.depth(), exec::rights::of(cx, &view).is_superuser(role));
    let serializable = cx.tx.isolation() == txn::Isolation::Serializable;
    let made_with = description(server, mapping);
    let own = all(cx)?;
    // One that failed serves nobody before the transaction ends; one of old options goes when it is free.
    own.0.retain(|c| {
        c.mapping != mapping.oid || c.depth > 0 || c.made_with == made_with && !c.broken
    });
    let at = match own.0.iter().position(|c| c.mapping == mapping.oid) {
        Some(at) => at,
        None => {
            own.0.push(make(server, mapping, superuser, made_with)?);
            own.0.len() - 1
        }
    };
    let connection = &mut own.0[at];
    if connection.broken {
        base::bail!(CONNECTION_EXCEPTION, "connection to server \"{}\" was lost", server.name);
    }
    let keeps = option(&server.options, "keep_connections").and_then(base::settings::parse_bool);
    connection.closing = keeps == Some(false);
    connection.enter(depth, serializable)?;
    Ok(connection)
}

fn make(
    server: &ForeignServer,
    mapping: &UserMapping,
    superuser: bool,
    made_with: String,
) -> Result<Connection> {
    let required = option(&mapping.options, "password_required")
        .and_then(base::settings::parse_bool)
        .unwrap_or(true);
    let needs = required && !superuser;
    let password = option(&mapping.options, "password").is_some_and(|p| !p.is_empty());
    if needs && !password {
        return Err(err!(S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED, "password is required")
            .detail("Non-superusers must provide a password in the user mapping."));
    }
    let mut text = String::new();
    for (name, value) in server.options.iter().chain(&mapping.options) {
        if is_of_connection(name) {
            let value = value.replace('\\', "\\\\").replace('\'', "\\'");
            text += &format!("{name}='{value}' ");
        }
    }
    let failed = |detail: String| {
        err!(
            SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION,
            "could not connect to server \"{}\"",
            server.name
        )
        .detail(detail)
    };
    let info = Conninfo::parse(&text).map_err(failed)?;
    let client = Client::open(&info, "postgres_fdw", false).map_err(|e| match e.code() {
        base::sqlstate::SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION => {
            failed(e.message().to_owned())
        }
        _ => e,
    })?;
    if needs && !client.asked_for_password() {
        return Err(err!(S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED, "password is required")
            .detail("Non-superuser cannot connect if the server does not request a password.")
            .hint("Target server's authentication method must be changed or password_required=false set in the user mapping attributes."));
    }
    let mut made = Connection {
        client,
        mapping: mapping.oid,
        server: server.oid,
        server_name: server.name.clone(),
        made_with,
        depth: 0,
        broken: false,
        busy: false,
        closing: false,
        cursors: 0,
    };
    made.run("SET search_path = pg_catalog; SET timezone = 'UTC'; SET datestyle = ISO; SET intervalstyle = postgres; SET extra_float_digits = 3")?;
    Ok(made)
}
