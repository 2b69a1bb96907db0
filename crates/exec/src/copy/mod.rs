//! COPY from and to the client or a file of the server, in the text, CSV and binary formats (manual, SQL command COPY).

mod ahead;
mod binary;
mod csv;
pub mod file;
pub mod from;
pub mod input;
mod parse;
mod text;
pub mod to;

pub use file::make as make_file;

/// The binary format's first bytes.
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
