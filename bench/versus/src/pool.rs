//! Concurrent runs.

use crate::peer::Failure;
use std::sync::Mutex;
use std::thread;

/// Maximum number of attempts of a run with a late link.
const TRIES: u32 = 3;

/// Does all `jobs`, `parallel` at once. Returns their results, in order.
///
/// # Errors
/// The first error of a worker.
pub fn all<J: Sync, T: Send>(
    jobs: &[J],
    parallel: usize,
    run: impl Fn(&J) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let next = Mutex::new(0..jobs.len());
    let results: Mutex<Vec<Option<T>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    thread::scope(|scope| {
        let worker = || -> Result<(), Failure> {
            loop {
                let Some(index) = next.lock().expect("no worker panics").next() else { return Ok(()) };
                let result = run(&jobs[index])?;
                let mut results = results.lock().expect("no worker panics");
                results[index] = Some(result);
                let done = results.iter().flatten().count();
                eprint!("\r{done} of {} ", jobs.len());
            }
        };
        let workers: Vec<_> = (0..parallel).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a run panicked")?)
    })?;
    eprintln!();
    Ok(results.into_inner().expect("no worker panicked").into_iter().flatten().collect())
}

/// Repeats a run if the link was late.
///
/// # Errors
/// Errors of `run`.
pub fn on_time<T>(run: impl Fn() -> Result<T, Failure>, is_late: impl Fn(&T) -> bool) -> Result<T, Failure> {
    let mut result = run()?;
    for _ in 1..TRIES {
        if !is_late(&result) {
            break;
        }
        result = run()?;
    }
    Ok(result)
}
