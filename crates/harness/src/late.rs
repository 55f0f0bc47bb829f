//! Repetition of tests for which the machine was too late.
//!
//! A test over an emulated link in real time may check how long something took. On a machine that is too busy such a check says
//! nothing. The run is then void: it neither passes nor fails.
//!
//! | a run | is |
//! |---|---|
//! | panics | failed, on time or not: what depends on time stands in [`if_on_time`] |
//! | ends, on time | passed |
//! | ends, late | repeated with no other test beside it, up to [`RUNS`] runs in all; then ignored, with the last reason |

use std::cell::RefCell;
use std::sync::{PoisonError, RwLock};

/// Runs of a test that is late each time.
pub const RUNS: usize = 3;

/// Tests that run at the same time.
#[derive(Clone, Copy)]
pub(crate) enum Concurrency {
    Shared,
    Exclusive,
}

/// Lateness of one run: the first reason.
type Lateness = Option<String>;

thread_local! {
    /// Lateness of the run on this thread, if there is one.
    static RUN: RefCell<Option<Lateness>> = const { RefCell::new(None) };
}

/// Runs `check`, which depends on time, unless the machine was too late for it. `late` is the reason in that case. The rest of the
/// test is run as usual, and then all of it again.
///
/// # Panics
///
/// If the thread is not the one on which the body of a [`Test`](crate::Test) was called.
pub fn if_on_time(late: Option<String>, check: impl FnOnce()) {
    RUN.with_borrow_mut(|run| {
        let lateness = run.as_mut().expect("only the thread of a test's body can repeat the test");
        if lateness.is_none() {
            lateness.clone_from(&late);
        }
    });
    if late.is_none() {
        check();
    }
}

/// Calls `body` until it is on time, and returns why it never was if it was not.
pub(crate) fn repeat(body: impl Fn(), company: Concurrency, floor: &RwLock<()>) -> Result<(), String> {
    let mut outcome = call(&body, company, floor);
    for _ in 1..RUNS {
        if outcome.is_none() {
            break;
        }
        outcome = call(&body, Concurrency::Exclusive, floor);
    }
    outcome.map_or(Ok(()), Err)
}

/// Calls `body` once, and returns its lateness.
fn call(body: impl Fn(), company: Concurrency, floor: &RwLock<()>) -> Lateness {
    let (_shared, _own);
    match company {
        Concurrency::Shared => _shared = floor.read().unwrap_or_else(PoisonError::into_inner),
        // Another test that failed while it had the floor has left it.
        Concurrency::Exclusive => _own = floor.write().unwrap_or_else(PoisonError::into_inner),
    }
    let _ended = Ended;
    RUN.set(Some(None));
    body();
    RUN.take().flatten()
}

/// Ends the run on this thread, even if its body panics.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        RUN.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Test, conclude};
    use libtest_mimic::Arguments;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn busy() -> Option<String> {
        Some("the link was late".into())
    }

    /// Runs one test, and returns the numbers of passed, failed and ignored tests and of runs. `body` is given the number of its run.
    fn outcome(body: impl Fn(usize) + Send + 'static) -> ([u64; 3], usize) {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = runs.clone();
        let test = Test::new("a test", [], move || body(counted.fetch_add(1, Relaxed) + 1));
        let ended = conclude(&Arguments::default(), [test]);
        ([ended.num_passed, ended.num_failed, ended.num_ignored], runs.load(Relaxed))
    }

    #[test]
    fn a_run_on_time_is_checked_once() {
        assert_eq!(outcome(|_| if_on_time(None, || {})), ([1, 0, 0], 1));
        assert_eq!(outcome(|_| if_on_time(None, || panic!("meant to"))), ([0, 1, 0], 1));
    }

    #[test]
    fn a_test_that_was_late_once_is_passed_or_failed_by_its_second_run() {
        let late_at_first = |run| if run == 1 { busy() } else { None };
        assert_eq!(outcome(move |run| if_on_time(late_at_first(run), || assert_eq!(run, 2))), ([1, 0, 0], 2));
        assert_eq!(outcome(move |run| if_on_time(late_at_first(run), || panic!("meant to"))), ([0, 1, 0], 2));
    }

    #[test]
    fn a_test_that_is_always_late_is_ignored_with_the_reason() {
        assert_eq!(outcome(|_| if_on_time(busy(), || panic!("not checked"))), ([0, 0, 1], RUNS));
        let body = || {
            if_on_time(busy(), || {});
            if_on_time(Some("another link was late".into()), || {});
        };
        let ended = repeat(body, Concurrency::Shared, &RwLock::new(()));
        assert_eq!(ended, Err("the link was late".into()), "the first reason is the reason");
    }

    #[test]
    fn what_follows_a_check_is_run_and_fails_the_test_late_or_not() {
        let followed = Arc::new(AtomicUsize::new(0));
        let seen = followed.clone();
        let body = move |_| {
            if_on_time(busy(), || {});
            seen.fetch_add(1, Relaxed);
        };
        assert_eq!((outcome(body), followed.load(Relaxed)), (([0, 0, 1], RUNS), RUNS));
        let body = |_| {
            if_on_time(busy(), || {});
            panic!("meant to");
        };
        assert_eq!(outcome(body), ([0, 1, 0], 1));
    }

    #[test]
    fn lateness_of_a_run_that_panicked_does_not_count_for_the_next() {
        let body = || {
            if_on_time(busy(), || {});
            panic!("meant to");
        };
        std::panic::catch_unwind(|| repeat(body, Concurrency::Exclusive, &RwLock::new(()))).unwrap_err();
        assert_eq!(repeat(|| if_on_time(None, || {}), Concurrency::Shared, &RwLock::new(())), Ok(()));
    }

    #[test]
    fn a_repeated_test_has_no_other_beside_it() {
        let running = Arc::new(AtomicUsize::new(0));
        let of = |name: &str, late: bool| {
            let (running, runs) = (running.clone(), AtomicUsize::new(0));
            Test::new(name, [], move || {
                let others = running.fetch_add(1, Relaxed);
                let repeated = runs.fetch_add(1, Relaxed) > 0;
                std::thread::yield_now();
                if_on_time((late && !repeated).then(|| "late".into()), || {});
                let left = running.fetch_sub(1, Relaxed);
                assert!(!repeated || (others, left) == (0, 1), "{others} ran beside it, then {left}");
            })
        };
        let tests = (0..40).map(|number| of(&format!("test {number}"), number % 4 == 0));
        let arguments = Arguments { test_threads: Some(8), ..Arguments::default() };
        assert_eq!(conclude(&arguments, tests).num_passed, 40);
    }

    #[test]
    #[should_panic(expected = "only the thread of a test's body")]
    fn a_check_outside_of_a_test_is_a_mistake() {
        if_on_time(None, || {});
    }
}
