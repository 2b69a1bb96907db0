//! Questions and orders of statements about subscriptions to the publisher.

use std::time::{Duration, Instant};

use base::{Result, WaitEvent, err};
use exec::publisher::PublisherRequest;
use logical::conninfo::Conninfo;
use types::func::quote_ident;

use ext_postgres::client::Client;

/// Time in which a slot must become free to be dropped.
const PATIENCE: Duration = Duration::from_secs(10);

/// A text as SQL has it.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Names as a list of literals.
pub(super) fn literals(names: &[String]) -> String {
    names.iter().map(|name| literal(name)).collect::<Vec<_>>().join(", ")
}

/// Asks the publisher, on a thread on which waiting keeps nobody else.
///
/// # Errors
/// `08006`; what the publisher answers.
pub fn ask(
    connection: &str,
    subscription: &str,
    request: &PublisherRequest,
) -> Result<Vec<Vec<String>>> {
    let info = Conninfo::parse(connection)
        .map_err(|why| err!(SYNTAX_ERROR, "invalid connection string syntax: {why}"))?;
    sched::blocking(WaitEvent::ClientClientRead, || answer(&info, subscription, request))
}

fn answer(
    info: &Conninfo,
    subscription: &str,
    request: &PublisherRequest,
) -> Result<Vec<Vec<String>>> {
    let mut client = Client::connect(info, subscription, true)?;
    match request {
        PublisherRequest::Tables(publications) => {
            let sql = format!(
                "SELECT DISTINCT t.schemaname, t.tablename FROM pg_catalog.pg_publication_tables t \
                 WHERE t.pubname IN ({}) ORDER BY 1, 2",
                literals(publications)
            );
            let rows = client.query(&sql)?;
            Ok(rows.into_iter().map(|row| row.into_iter().flatten().collect()).collect())
        }
        PublisherRequest::CreateSlot { slot, two_phase } => {
            let two_phase = if *two_phase { ", TWO_PHASE" } else { "" };
            let sql = format!(
                "CREATE_REPLICATION_SLOT {} LOGICAL pgoutput (SNAPSHOT 'nothing'{two_phase})",
                quote_ident(slot)
            );
            client.query(&sql)?;
            Ok(Vec::new())
        }
        PublisherRequest::DropSlot(slot) => {
            let sql = format!("DROP_REPLICATION_SLOT {} WAIT", quote_ident(slot));
            let until = Instant::now() + PATIENCE;
            loop {
                match client.query(&sql) {
                    Err(error)
                        if error.code() == base::sqlstate::OBJECT_IN_USE
                            && Instant::now() < until =>
                    {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                    Err(error) => {
                        return Err(base::Error::new(
                            error.code(),
                            format!(
                                "could not drop replication slot \"{slot}\" on publisher: ERROR:  {}",
                                error.message()
                            ),
                        ));
                    }
                    Ok(_) => return Ok(Vec::new()),
                }
            }
        }
    }
}
