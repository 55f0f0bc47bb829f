//! Descriptors: how many there may be, and what is done when there are none left.

use crate::error::Error;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{PoisonError, RwLock};

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
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
        .map_err(|source| Error::system(too_many(connections, wanted, limit.maximum), source))
}

/// What is in the way, and what would be right.
fn too_many(connections: usize, wanted: u64, maximum: Option<u64>) -> String {
    let task = format!("{connections} connections take {wanted} open files ({EACH} each, {BESIDE} beside)");
    let Some(maximum) = maximum else {
        return format!("{task}, more than the kernel gives a process (fs.nr_open)");
    };
    format!(
        "{task}, and this process may have {maximum} (hard limit of RLIMIT_NOFILE), which do for {} connections: raise it before the \
         start (LimitNOFILE= of systemd, ulimit -Hn), or have fewer connections",
        maximum.saturating_sub(BESIDE) / EACH
    )
}

/// One descriptor that is kept for when there are no more: given up, it lets a call be taken, and so be refused.
///
/// Who opens something for as long as a connection lasts does it through [`Spare::beside`]: a spare descriptor that went to them would not
/// come back, and calls would wait for as long as the connections last.
#[derive(Debug)]
pub(super) struct Spare(RwLock<Option<OwnedFd>>);

impl Spare {
    pub(super) fn new() -> Self {
        Self(RwLock::new(reserve().ok()))
    }

    /// Runs `what` while nobody lends the spare.
    pub(super) fn beside<T>(&self, what: impl FnOnce() -> T) -> T {
        let _kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        what()
    }

    /// Runs `what` with one descriptor more, if there is one.
    pub(super) fn lend(&self, what: impl FnOnce()) {
        let mut spare = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if spare.take().is_some() {
            what();
        }
        *spare = reserve().ok();
    }
}

fn reserve() -> io::Result<OwnedFd> {
    Ok(open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn nobody_opens_anything_for_good_while_the_spare_is_lent() {
        let (spare, lent) = (Spare::new(), AtomicBool::new(false));
        thread::scope(|scope| {
            spare.beside(|| {
                scope.spawn(|| spare.lend(|| lent.store(true, Relaxed)));
                thread::sleep(Duration::from_millis(50));
                assert!(!lent.load(Relaxed), "somebody opens something");
            });
        });
        assert!(lent.load(Relaxed));
        assert!(spare.0.read().unwrap().is_some(), "there is one again");
    }

    #[test]
    fn who_wants_more_than_the_limit_is_told_for_how_many_it_does() {
        assert_eq!(
            too_many(10_000, 20_256, Some(20_000)),
            "10000 connections take 20256 open files (2 each, 256 beside), and this process may have 20000 (hard limit of \
             RLIMIT_NOFILE), which do for 9872 connections: raise it before the start (LimitNOFILE= of systemd, ulimit -Hn), or have \
             fewer connections"
        );
        assert!(too_many(10_000, 20_256, Some(100)).contains("which do for 0 connections"));
        assert!(
            too_many(10_000, 20_256, None).ends_with("more than the kernel gives a process (fs.nr_open)")
        );
    }
}
