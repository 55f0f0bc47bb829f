//! Descriptors: how many there may be, and what is done when there are none left.

use crate::error::Error;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::os::fd::OwnedFd;

/// Two of a connection.
const EACH: u64 = 2;
/// What the rest of the process may have open.
const BESIDE: u64 = 256;

/// Lets the process have as many descriptors as `connections` take (`RLIMIT_NOFILE`), if it may not yet.
pub(super) fn allow(connections: usize) -> Result<(), Error> {
    let wanted = EACH * connections as u64 + BESIDE;
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= wanted);
    if enough(limit.current) {
        return Ok(());
    }
    let maximum = if enough(limit.maximum) { limit.maximum } else { Some(wanted) };
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).map_err(|source| {
        let limit = limit.maximum.map_or_else(|| "unlimited".into(), |limit| limit.to_string());
        let doing = format!(
            "allowing {wanted} open files, which {connections} connections take (RLIMIT_NOFILE is {limit}; allow more, or have \
             fewer connections)"
        );
        Error::system(doing, source)
    })
}

/// One descriptor that is kept for when there are no more: given up, it lets a call be taken, and so be refused.
#[derive(Debug)]
pub(super) struct Spare(Option<OwnedFd>);

impl Spare {
    pub(super) fn new() -> Self {
        Self(reserve().ok())
    }

    /// Runs `what` with one descriptor more. Whether there was one.
    pub(super) fn lend(&mut self, what: impl FnOnce()) -> bool {
        let had = self.0.take().is_some();
        if had {
            what();
        }
        self.0 = reserve().ok();
        had
    }
}

fn reserve() -> io::Result<OwnedFd> {
    Ok(open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}
