//! LISTEN and NOTIFY between sessions that share two workers: to those who listen, after the commit,
//! in the commits' order, to idle clients without being asked, and to nobody else.

use crate::support::raw::Raw;
use crate::support::{Server, TempDir};

/// Notifications among the messages, as `channel payload`.
fn notifications(lines: &[String]) -> Vec<String> {
    lines.iter().filter(|l| l.starts_with('A')).cloned().collect()
}

#[test]
fn notifications_reach_idle_listeners_in_the_order_of_commits() {
    let dir = TempDir::new("notify");
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    let mut listeners: Vec<Raw> = (0..50).map(|_| Raw::connect(server.port)).collect();
    for (i, listener) in listeners.iter_mut().enumerate() {
        listener.query(if i % 2 == 0 { "LISTEN even" } else { "LISTEN odd; LISTEN \"Both\"" });
    }
    let mut senders: Vec<Raw> = (0..4).map(|_| Raw::connect(server.port)).collect();
    for n in 0..40 {
        let sender = &mut senders[n % 4];
        sender.query("BEGIN");
        sender.query(&format!(
            "NOTIFY even, '{n}'; SAVEPOINT s; NOTIFY even, 'never'; ROLLBACK TO s"
        ));
        let end = if n % 10 == 9 { "ROLLBACK" } else { "COMMIT" };
        sender.query(end);
    }
    senders[0].query("SELECT pg_notify('Both', 'last'), pg_notify('even', 'last')");
    let mut seen = Vec::new();
    for listener in &mut listeners {
        let lines = listener.until(|line| line.starts_with('A') && line.contains("last"));
        seen.push(notifications(&lines));
    }
    let even: Vec<_> = seen.iter().step_by(2).collect();
    assert!(even.iter().all(|s| *s == even[0]), "all see the same order");
    assert_eq!(even[0].len(), 37, "{:?}", even[0]);
    assert!(!even[0].iter().any(|n| n.contains("never")));
    assert!(seen.iter().skip(1).step_by(2).all(|s| s.len() == 1), "{seen:?}");
}

#[test]
fn inside_a_transaction_they_wait_and_what_is_given_up_does_not_come() {
    let dir = TempDir::new("notify-wait");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut listener = Raw::connect(server.port);
    listener.query("LISTEN a; LISTEN b");
    listener.query("BEGIN");
    server.query("NOTIFY a, 'one'; NOTIFY b; NOTIFY c");
    assert!(notifications(&listener.query("SELECT 1")).is_empty());
    let after = notifications(&listener.query("COMMIT"));
    assert_eq!(after.len(), 2, "{after:?}");
    listener.query("BEGIN; UNLISTEN *; ROLLBACK");
    listener.query("BEGIN; LISTEN c; ROLLBACK");
    listener.query("UNLISTEN a");
    server.query("NOTIFY a; NOTIFY b; NOTIFY c");
    let left = notifications(&listener.query("NOTIFY b, 'own'"));
    assert_eq!(left.len(), 2, "{left:?}");
    listener.query("DISCARD ALL");
    server.query("NOTIFY b");
    assert!(notifications(&listener.query("SELECT 1")).is_empty());
    assert_eq!(server.query("SELECT pg_notification_queue_usage()"), "0");
    assert!(server.query("SELECT pg_notify('', 'x')").contains("channel name cannot be empty"));
}
