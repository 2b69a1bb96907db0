//! Questions and orders of CREATE, ALTER and DROP SUBSCRIPTION to the publisher, over a connection that the session makes.

/// A question or order.
#[derive(Clone, Debug)]
pub enum PublisherRequest {
    /// The tables of these publications: rows of schema and name.
    Tables(Vec<String>),
    /// Makes a slot for `pgoutput`.
    CreateSlot {
        /// Its name.
        slot: String,
        /// Prepared transactions are sent when they are prepared.
        two_phase: bool,
    },
    /// Drops a slot.
    DropSlot(String),
}
