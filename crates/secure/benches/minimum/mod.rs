//! Least time that something takes. Other load on the machine makes it longer, and nothing makes it shorter.

use std::time::Instant;

const ROUNDS: usize = 400;
/// In a round.
const COUNT: u32 = 8;

/// Prints it.
#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
#[expect(clippy::disallowed_methods, reason = "a benchmark reads a clock")]
pub(crate) fn print<T>(what: &str, mut work: impl FnMut() -> T) {
    let round = |_| {
        let start = Instant::now();
        for _ in 0..COUNT {
            std::hint::black_box(work());
        }
        start.elapsed() / COUNT
    };
    let least = (0..ROUNDS).map(round).min().expect("there are rounds");
    println!("{what}: {:.2} µs at least", least.as_secs_f64() * 1e6);
}
