//! The frontend/backend protocol 3.0 (PostgreSQL manual, chapter 55): bytes in, values out, and
//! back. Pure: no sockets, no sessions.
//!
//! * [`frame`] cuts the input into messages and holds them to their limits;
//! * [`startup`] reads what a client says before the protocol proper begins;
//! * [`frontend`] names the messages of a running session; each family has a file that decodes it
//!   ([`query`], [`extended`], [`copy`]);
//! * [`scram`] and [`password`] are how a client shows who it is;
//! * [`response`], [`rows`], [`copy`] and [`auth`] append the server's messages to a buffer.
//!
//! Input is decoded in place: a decoded message borrows from the bytes it came in. Whatever breaks
//! the protocol is one kind of error, [`violation`]: `08P01`, fatal, and the connection ends.
#![forbid(unsafe_code)]

pub mod auth;
pub mod copy;
pub mod extended;
pub mod frame;
pub mod frontend;
pub mod fuzz;
pub mod password;
pub mod query;
pub mod reader;
pub mod response;
pub mod rows;
pub mod scram;
pub mod startup;
pub mod writer;

pub use frame::{Frame, next_frame};
pub use frontend::Frontend;
pub use reader::violation;
pub use writer::Message;
