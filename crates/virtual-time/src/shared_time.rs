//! Memory that the scheduler shares with a kernel, in the place of most messages of the time-travel protocol (Linux 6.11 and
//! later: `struct um_timetravel_schedshm`, version 2).
//!
//! Each kernel has memory of its own, with two clients: the kernel, and one for the scheduler and all other kernels. The first
//! one counts as running at any time, so that a kernel never asks by a message.
//!
//! | field | offset | written by |
//! |---|--:|---|
//! | version, length of the memory in bytes | 0, 4 | scheduler, once |
//! | time up to which the kernel may run freely | 8 | scheduler, while the kernel waits or sends a frame |
//! | current time | 16 | the kernel while it runs, else the scheduler |
//! | number of the running client; number of clients | 24, 26 | scheduler, once |
//! | of each client: capabilities, flags, requested time | 4096 + 128 i + 0, 4, 8 | the client; the flag of a request also at RUN |

use hopline_core::Instant;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

/// Version of the layout.
const VERSION: u32 = 2;
/// Number of the kernel among the clients.
pub(crate) const KERNEL: u16 = 1;
const CLIENTS: u16 = 2;
const FREE_UNTIL: u64 = 8;
const CURRENT_TIME: u64 = 16;
const HEADER_LEN: u64 = 4096;
const CLIENT_LEN: u64 = 128;
const LEN: u64 = HEADER_LEN + CLIENTS as u64 * CLIENT_LEN;
/// Offset of the kernel's capabilities.
const KERNEL_OFFSET: u64 = HEADER_LEN + KERNEL as u64 * CLIENT_LEN;
/// Capability: the client uses this memory.
const TIME_SHARE: u32 = 1;
/// Flag: the client requests to run.
const REQUESTS_RUN: u32 = 1;

/// The memory.
#[derive(Debug)]
pub(crate) struct SharedTime(File);

impl SharedTime {
    /// Creates memory for a kernel that starts at time zero.
    pub(crate) fn create() -> io::Result<Self> {
        let file = File::from(memfd_create("hopline-time", MemfdFlags::CLOEXEC)?);
        file.set_len(LEN)?;
        file.write_all_at(&[VERSION, LEN as u32].map(u32::to_ne_bytes).concat(), 0)?;
        file.write_all_at(&[KERNEL, CLIENTS].map(u16::to_ne_bytes).concat(), 24)?;
        file.write_all_at(&TIME_SHARE.to_ne_bytes(), HEADER_LEN)?;
        Ok(Self(file))
    }

    /// Returns whether the kernel uses the memory. It decides before its first message after START.
    pub(crate) fn is_used(&self) -> io::Result<bool> {
        let mut capabilities = [0; 4];
        self.0.read_exact_at(&mut capabilities, KERNEL_OFFSET)?;
        Ok(u32::from_ne_bytes(capabilities) & TIME_SHARE != 0)
    }

    /// Returns the time at which the kernel requests to run.
    pub(crate) fn request(&self) -> io::Result<Option<u64>> {
        let mut bytes = [0; 12];
        self.0.read_exact_at(&mut bytes, KERNEL_OFFSET + 4)?;
        let [a, b, c, d, time @ ..] = bytes;
        let is_set = u32::from_ne_bytes([a, b, c, d]) & REQUESTS_RUN != 0;
        Ok(is_set.then(|| u64::from_ne_bytes(time)))
    }

    /// Returns the time that the running kernel has reached.
    pub(crate) fn reached(&self) -> io::Result<u64> {
        let mut time = [0; 8];
        self.0.read_exact_at(&mut time, CURRENT_TIME)?;
        Ok(u64::from_ne_bytes(time))
    }

    /// Sets both times for a kernel that is about to run.
    pub(crate) fn grant(&self, now: Instant, free_until: Instant) -> io::Result<()> {
        let times = [free_until, now].map(|time| time.as_nanos().to_ne_bytes()).concat();
        self.0.write_all_at(&times, FREE_UNTIL)
    }

    /// Sets the time up to which the kernel may run freely.
    pub(crate) fn set_free_until(&self, time: Instant) -> io::Result<()> {
        self.0.write_all_at(&time.as_nanos().to_ne_bytes(), FREE_UNTIL)
    }

    /// Sets the current time for a kernel that is about to be interrupted.
    pub(crate) fn set_now(&self, now: Instant) -> io::Result<()> {
        self.0.write_all_at(&now.as_nanos().to_ne_bytes(), CURRENT_TIME)
    }
}

impl AsFd for SharedTime {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_finds_its_times_where_linux_has_them() {
        let memory = SharedTime::create().expect("memory");
        assert!(!memory.is_used().expect("read"));
        memory.grant(Instant::from_nanos(7), Instant::from_nanos(9)).expect("written");
        let mut header = [0; 28];
        memory.0.read_exact_at(&mut header, 0).expect("read");
        let number = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("four bytes"));
        assert_eq!([0, 4, 8, 16].map(number), [2, 4352, 9, 7]);
        assert_eq!(header[24..], [KERNEL, CLIENTS].map(u16::to_ne_bytes).concat());
    }

    #[test]
    fn a_request_counts_only_while_its_flag_is_set() {
        let memory = SharedTime::create().expect("memory");
        let set = |flags: u32| {
            let client = [&1u32.to_ne_bytes()[..], &flags.to_ne_bytes(), &5u64.to_ne_bytes()].concat();
            memory.0.write_all_at(&client, KERNEL_OFFSET).expect("written");
            (memory.is_used().expect("read"), memory.request().expect("read"))
        };
        assert_eq!(set(0), (true, None));
        assert_eq!(set(1), (true, Some(5)));
    }
}
