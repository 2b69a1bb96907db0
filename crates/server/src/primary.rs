//! The threads that write: a primary has them, and a standby that becomes one starts them.

use std::sync::Arc;

use crate::server::Server;
use crate::{archiver, autovacuum, partition_maintenance, subscription};

/// Starts them.
pub(crate) fn start(server: &Arc<Server>) {
    server.autovacuum.start(server, autovacuum::work);
    server.archiver.start(server, archiver::work);
    server.partitions.start(server, partition_maintenance::work);
    server.subscriber.start(server, subscription::work);
}
