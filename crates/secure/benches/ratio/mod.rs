//! Ratio of the times of two operations, measured by turns in the same run.

use core::time::Duration;
use std::time::Instant;

const ROUNDS: usize = 400;
/// Number of operations of each kind in a round.
const COUNT: u64 = 256;

/// Does both by turns and prints the least time of each, and the median of the ratios of neighbours: other
/// load on the machine slows down both.
#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
pub(crate) fn print(
    what: &str,
    mut yardstick: impl FnMut(u64) -> Duration,
    mut ours: impl FnMut(u64) -> Duration,
) {
    let mut least = [f64::MAX; 2];
    let mut ratios: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let times = [yardstick(COUNT), ours(COUNT)].map(|time| time.as_secs_f64() * 1e9 / COUNT as f64);
            least = [0, 1].map(|of: usize| least[of].min(times[of]));
            times[1] / times[0]
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let [of_yardstick, of_ours] = least;
    let (low, median, high) = (ratios[ROUNDS / 4], ratios[ROUNDS / 2], ratios[ROUNDS * 3 / 4]);
    println!(
        "{what}: {of_yardstick:.0} ns by ring, {of_ours:.0} ns ours; ratio {median:.3} ({low:.3} to {high:.3})"
    );
}

/// Returns the duration of `work`.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads a clock")]
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
