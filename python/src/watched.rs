//! Long work with the interpreter free meanwhile. Ctrl-C interrupts it, and progress is reported.

use crate::errors;
use hopline_lab::run::Observer;
use hopline_lab::{VirtualTime, Work};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Interval between checks for signals: Ctrl-C is handled within a tenth of a second.
const TICK: Duration = Duration::from_millis(20);
/// Number of such intervals between reports of progress.
const TOLD_EVERY: u32 = 5;

/// State of the work.
#[derive(Debug, Default)]
pub(crate) struct Known {
    interrupted: AtomicBool,
    nanos: AtomicU64,
    ended: AtomicU64,
    work: Mutex<Work>,
}

impl Observer for Known {
    fn planned(&self, work: Work) {
        *self.work.lock().expect("nobody panics with it") = work;
    }

    fn ended(&self, _point: usize, _virtual_s: f64, _cpu_s: f64) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    fn advanced(&self, by: VirtualTime, _events: u64) {
        self.nanos.fetch_add(by.as_nanos(), Ordering::Relaxed);
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

impl Known {
    /// Returns the progress: virtual seconds done and in all, runs done and in all. Finished parts of earlier runs count as
    /// done.
    fn progress(&self) -> (f64, f64, u64, u64) {
        let work = self.work.lock().expect("nobody panics with it");
        let done_s = self.nanos.load(Ordering::Relaxed) as f64 * 1e-9;
        let ended = work.runs - work.missing + self.ended.load(Ordering::Relaxed);
        (work.there_s + done_s, work.total_s, ended, work.runs)
    }
}

/// Does `work` on another thread. `progress` is called from time to time with four numbers: virtual seconds done and in all,
/// runs done and in all.
///
/// # Errors
///
/// The exception of a signal or of `progress`; the work has ended by then.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&dyn Observer) -> T + Send,
) -> PyResult<T> {
    let known = Known::default();
    let (result, raised) = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let known = &known;
            scope.spawn(move || {
                // The thread keeps its state in the interpreter, for user-defined algorithms in Python.
                let attached = || Python::attach(|py| py.detach(|| work(known)));
                let result = catch_unwind(AssertUnwindSafe(attached));
                // Fails only if the receiver is gone, which then waits for no result.
                let _ = sender.send(result);
            });
            let mut raised = None;
            for tick in 1u32.. {
                match receiver.recv_timeout(TICK) {
                    Ok(result) => return (Some(result), raised),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
                    Err(RecvTimeoutError::Timeout) => {
                        raised = Python::attach(|py| look(py, known, progress.as_ref(), tick)).err();
                        known.interrupted.store(raised.is_some(), Ordering::Relaxed);
                    }
                }
            }
            (None, raised)
        })
    });
    match (raised, result) {
        (Some(raised), _) => Err(raised),
        (None, Some(Ok(result))) => {
            if let Some(progress) = progress {
                progress.call1(py, known.progress())?;
            }
            Ok(result)
        }
        (None, Some(Err(panic))) => resume_unwind(panic),
        (None, None) => Err(errors::internal("the work went away")),
    }
}

fn look(py: Python<'_>, known: &Known, progress: Option<&Py<PyAny>>, tick: u32) -> PyResult<()> {
    py.check_signals()?;
    if let Some(progress) = progress.filter(|_| tick.is_multiple_of(TOLD_EVERY)) {
        progress.call1(py, known.progress())?;
    }
    Ok(())
}
