//! A descriptor that is kept for when there are none left.

use rustix::fs::{Mode, OFlags, open};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{PoisonError, RwLock};

/// One descriptor that is kept for when there are no more: given up, it lets a call be taken, and so be refused.
///
/// Code that opens a descriptor for the lifetime of a connection does it through [`SpareDescriptor::with_spare_held`]. If it took the spare
/// descriptor instead, calls would wait until that connection ends.
#[derive(Debug)]
pub(super) struct SpareDescriptor(RwLock<Option<OwnedFd>>);

impl SpareDescriptor {
    pub(super) fn new() -> Self {
        Self(RwLock::new(reserve().ok()))
    }

    /// Runs `what` while the spare is not lent.
    pub(super) fn with_spare_held<T>(&self, what: impl FnOnce() -> T) -> T {
        let _kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        what()
    }

    /// Runs `what` with one descriptor more, if there is one.
    pub(super) fn with_spare_released(&self, what: impl FnOnce()) {
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
    fn no_descriptor_is_opened_for_good_while_the_spare_is_released() {
        let (spare, lent) = (SpareDescriptor::new(), AtomicBool::new(false));
        thread::scope(|scope| {
            spare.with_spare_held(|| {
                scope.spawn(|| spare.with_spare_released(|| lent.store(true, Relaxed)));
                thread::sleep(Duration::from_millis(50));
                assert!(!lent.load(Relaxed), "somebody opens something");
            });
        });
        assert!(lent.load(Relaxed));
        assert!(spare.0.read().unwrap().is_some(), "there is one again");
    }
}
