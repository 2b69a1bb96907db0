//! Several sends in one system call, by io_uring where the system has it.
//!
//! The kernel gives the processor to a thread that a send has woken when the system call ends: after one
//! call for many sends that thread finds all of them. Only sends that never wait go this way, so that each
//! is over when the call is.

use std::os::fd::RawFd;

use io_uring::{IoUring, opcode, types};

use crate::sys;

/// Most sends of one call.
pub(super) const MOST: usize = 32;

/// A worker's ring; made on the thread that serves the worker, which alone uses it. The kernel takes sends from no other.
pub(super) struct Ring(Option<IoUring>);

impl Ring {
    /// One that sends one by one where the system has no rings, or too old ones (before Linux 6.0), or
    /// forbids them.
    pub fn new() -> Ring {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_coop_taskrun().setup_submit_all();
        Ring(builder.build(MOST as u32).ok())
    }

    /// Gives sockets what they take now; at most [`MOST`]. How much of each, 0 also where it failed: then
    /// the next who uses the socket is told.
    pub fn send<'a>(
        &mut self,
        packets: impl ExactSizeIterator<Item = (RawFd, &'a [u8])> + Clone,
    ) -> [usize; MOST] {
        let mut taken = [0; MOST];
        let count = packets.len();
        let mut done = 0;
        if count > 1 && self.submit(packets.clone()) {
            done = self.collect(count, &mut taken);
        }
        for (taken, (fd, bytes)) in taken.iter_mut().zip(packets).skip(done) {
            *taken = sys::send(fd, bytes);
        }
        taken
    }

    /// False: nothing was submitted.
    fn submit<'a>(&mut self, packets: impl Iterator<Item = (RawFd, &'a [u8])>) -> bool {
        let Some(ring) = &mut self.0 else { return false };
        let mut queue = ring.submission();
        for (number, (fd, bytes)) in packets.enumerate() {
            let entry = opcode::Send::new(types::Fd(fd), bytes.as_ptr(), bytes.len() as u32)
                .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
                .build()
                .user_data(number as u64);
            // SAFETY: the bytes live until `collect` has seen the send's end: it never waits.
            if unsafe { queue.push(&entry) }.is_err() {
                break; // more than there is room for: the rest is sent one by one
            }
        }
        true
    }

    /// Has the kernel do what was submitted; how many of the sends it has done, which are the first ones.
    fn collect(&mut self, count: usize, taken: &mut [usize; MOST]) -> usize {
        let Some(ring) = &mut self.0 else { return 0 };
        let (mut done, mut wait_for) = (0, 0);
        while done < count.min(MOST) {
            match ring.submit_and_wait(wait_for) {
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.0 = None; // and with it what the kernel has not begun
                    break;
                }
            }
            for entry in ring.completion() {
                if let Some(taken) = taken.get_mut(entry.user_data() as usize) {
                    *taken = usize::try_from(entry.result()).unwrap_or(0);
                }
                done += 1;
            }
            wait_for = 1; // all are over by now, but for an interrupted call
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Sends to a socket that takes all, one that takes nothing, one whose peer is gone, and the first again.
    fn send(mut ring: Ring) -> (Vec<usize>, Vec<u8>) {
        let pair = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            (ours, theirs)
        };
        let (one, mut reader) = pair();
        let (mut full, _theirs) = pair();
        while full.write(&[0; 4096]).is_ok() {}
        let (gone, theirs) = pair();
        drop(theirs);
        let sockets = [&one, &full, &gone, &one];
        let bytes: [&[u8]; 4] = [b"first", b"second", b"third", b"fourth"];
        let packets = sockets.iter().zip(bytes).map(|(socket, b)| (socket.as_raw_fd(), b));
        let taken = ring.send(packets);
        let mut got = vec![0; 11];
        reader.read_exact(&mut got).unwrap();
        (taken[..5].to_vec(), got)
    }

    #[test]
    fn sends_do_the_same_one_by_one_and_together() {
        let expected = (vec![5, 0, 0, 6, 0], b"firstfourth".to_vec());
        assert_eq!(send(Ring(None)), expected);
        assert_eq!(send(Ring::new()), expected);
    }

    #[test]
    fn a_ring_is_used_many_times() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut ring = Ring::new();
        for round in 0..100_u8 {
            let bytes = [round; MOST];
            let packets = bytes.iter().map(|b| (ours.as_raw_fd(), std::slice::from_ref(b)));
            assert_eq!(ring.send(packets), [1; MOST]);
            let mut got = [0; MOST];
            theirs.read_exact(&mut got).unwrap();
            assert_eq!(got, bytes);
        }
    }
}
