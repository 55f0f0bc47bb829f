//! End of a test program of which a test hangs.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Time after which a test that is not [long](crate::Test::long) is taken to hang.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// Calls `body`, and `give_up` if it has not ended after `limit`.
pub(crate) fn watch(limit: Duration, give_up: impl FnOnce() + Send, body: impl FnOnce()) {
    thread::scope(|scope| {
        let (ended, told) = channel::<()>();
        scope.spawn(move || {
            if told.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                give_up();
            }
        });
        // Dropped when the body returns, and when it panics.
        let _ended = ended;
        body();
    });
}

/// Ends the program, which cannot end a thread, and names the test: an outer limit would name none.
#[expect(clippy::print_stderr, reason = "the harness prints nothing of a test that has not ended")]
pub(crate) fn end_program(name: &str) {
    eprintln!("test {name} hangs: it has not ended after {} s", LIMIT.as_secs());
    std::process::exit(101);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    #[test]
    fn a_test_that_does_not_end_is_given_up() {
        let (give_up, given_up) = channel();
        watch(Duration::ZERO, move || give_up.send(()).unwrap(), || given_up.recv().unwrap());
    }

    #[test]
    fn a_test_that_ends_or_panics_is_not_given_up() {
        let given_up = AtomicBool::new(false);
        let give_up = || given_up.store(true, Relaxed);
        watch(LIMIT, give_up, || {});
        let panicked = std::panic::catch_unwind(|| watch(LIMIT, give_up, || panic!("meant to")));
        assert!(panicked.is_err() && !given_up.load(Relaxed));
    }
}
