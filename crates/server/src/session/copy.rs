//! COPY's data, from the client to the executor.

use std::cell::RefCell;
use std::sync::Arc;

use base::{Error, Result, WaitEvent, err};
use wire::Frontend;

use crate::connection::{Fill, Input, Output, Socket};

/// Data is handed over in pieces of about this size.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads the messages of COPY FROM STDIN. They begin in what the session had already read after
/// the statement; `input` is theirs from the first read on, and the session goes on with it.
pub struct CopyReader<'a> {
    /// The client.
    pub socket: &'a Arc<Socket>,
    /// The bytes that came after the statement's message.
    pub rest: &'a [u8],
    /// Where the data is read into.
    pub input: &'a mut Option<Input>,
    /// CopyDone was read.
    pub done: bool,
}

impl CopyReader<'_> {
    /// The next piece of data: as many messages as are there. None at the end.
    ///
    /// # Errors
    /// `57014` CopyFail; `08P01` for other messages; a broken connection; interrupts.
    pub fn read(&mut self, out: &RefCell<Output>) -> Result<Option<Vec<u8>>> {
        if self.done {
            return Ok(None);
        }
        let input = self.input.get_or_insert_with(|| Input::with(self.rest));
        let mut piece = Vec::new();
        loop {
            while let Some(frame) = wire::next_frame(input.bytes())? {
                let size = frame.size();
                match wire::frontend::decode(frame)? {
                    Frontend::CopyData(bytes) => piece.extend_from_slice(bytes),
                    Frontend::CopyDone => self.done = true,
                    Frontend::CopyFail(reason) => {
                        let reason = String::from_utf8_lossy(reason);
                        let error = err!(QUERY_CANCELED, "COPY from stdin failed: {reason}");
                        input.consume(size);
                        return Err(error);
                    }
                    Frontend::Flush | Frontend::Sync => {}
                    _ => return Err(unexpected(frame.tag)),
                }
                input.consume(size);
                if self.done || piece.len() >= PIECE_BYTES {
                    return Ok((!piece.is_empty()).then_some(piece));
                }
            }
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
            match input.fill(self.socket)? {
                Fill::End => {
                    let message = "unexpected EOF on client connection with an open transaction";
                    return Err(err!(CONNECTION_FAILURE, "{message}").fatal());
                }
                Fill::Empty => {
                    out.borrow_mut().send()?;
                    sched::wait_readable(self.socket.fd(), WaitEvent::ClientClientRead)?;
                }
                Fill::More | Fill::Drained => {}
            }
        }
    }
}

fn unexpected(tag: u8) -> Error {
    wire::violation(format!("unexpected message type 0x{tag:02X} during COPY from stdin"))
}
