//! Time-varying links: recorded delivery opportunities, and recorded conditions.

use core::fmt;
use core::str::FromStr;
use hopline_core::{Duration, Instant, settings};

/// Bytes that one opportunity delivers, as in mahimahi traces: a packet of the usual length.
const OPPORTUNITY_BYTES: u32 = 1500;

/// Delivery opportunities: times at which a link delivers up to 1500 bytes each, repeated in rounds. The format is that of
/// mahimahi's traces of cellular links. The unused part of an opportunity is lost.
///
/// # Example
///
/// ```
/// use hopline_core::{Duration, Instant};
/// use hopline_link::{Direction, Emulation, Opportunities};
/// use std::sync::Arc;
///
/// // One packet in each of the first two milliseconds of every ten.
/// let times = [1, 2, 10].map(Duration::from_millis).to_vec();
/// let opportunities = Opportunities::new(times).expect("in order");
/// assert_eq!(opportunities.mean_rate(), 3.6e6);
/// let emulation = Emulation::default().with_opportunities(Some(Arc::new(opportunities)));
/// let mut link = Direction::new(emulation, 1, 0);
/// let arrival = link.transmit(Instant::from_millis(3), 1500)[0].map(|(at, _)| at);
/// assert_eq!(arrival, Some(Instant::from_millis(10)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// Times from the start of a round, in order. Not empty.
    times: Vec<Duration>,
    /// Length of a round: the last of the times, above zero.
    period: Duration,
}

/// Reason for which a list of times is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// The list is empty.
    Empty,
    /// The last time is zero, so that a round has no length.
    ZeroPeriod,
    /// The time with this index is earlier than the one before.
    NotSorted(usize),
    /// A line is not a whole number of milliseconds below 2³².
    NotATime,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "there is no time at which a packet may leave",
            Self::ZeroPeriod => "all times are zero, and the last one is the length of the trace",
            Self::NotSorted(_) => "a time that is earlier than the one before",
            Self::NotATime => "no time, a whole number of milliseconds",
        })
    }
}

impl core::error::Error for TraceError {}

/// Error in a line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceLineError {
    /// Index of the line, counted from 0.
    pub line: usize,
    /// Error of the line.
    pub error: TraceError,
}

impl fmt::Display for TraceLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line + 1, self.error)
    }
}

impl core::error::Error for TraceLineError {}

/// Reads a trace of mahimahi: each line is the time of an opportunity in milliseconds. Lines that are empty or begin with `#`
/// are ignored.
///
/// ```
/// use hopline_link::Opportunities;
/// let trace: Opportunities = "# 12 Mb/s\n1\n2\n".parse().expect("a trace");
/// assert_eq!(trace.mean_rate(), 12e6);
/// let error = "1\nx\n".parse::<Opportunities>().expect_err("`x` is no time");
/// assert_eq!(error.to_string(), "line 2: no time, a whole number of milliseconds");
/// ```
impl FromStr for Opportunities {
    type Err = TraceLineError;

    fn from_str(text: &str) -> Result<Self, TraceLineError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let mut numbers = Vec::new();
        let mut times = Vec::new();
        for (number, line) in lines {
            let ms: u32 =
                line.parse().map_err(|_| TraceLineError { line: number, error: TraceError::NotATime })?;
            times.push(Duration::from_millis(ms.into()));
            numbers.push(number);
        }
        Self::new(times).map_err(|error| {
            let index = match error {
                TraceError::NotSorted(index) => Some(index),
                _ => numbers.len().checked_sub(1),
            };
            TraceLineError { line: index.map_or(0, |index| numbers[index]), error }
        })
    }
}

impl Opportunities {
    /// Creates opportunities at `times`, repeated after the last of them.
    ///
    /// # Errors
    /// If the list is empty, not in order, or all at zero.
    pub fn new(times: Vec<Duration>) -> Result<Self, TraceError> {
        let period = *times.last().ok_or(TraceError::Empty)?;
        if let Some(at) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(TraceError::NotSorted(at + 1));
        }
        if period.is_zero() { Err(TraceError::ZeroPeriod) } else { Ok(Self { times, period }) }
    }

    /// Returns the mean rate in bits per second.
    #[must_use]
    pub fn mean_rate(&self) -> f64 {
        self.times.len() as f64 * f64::from(OPPORTUNITY_BYTES * 8) / self.period.as_secs_f64()
    }

    /// Returns the number of bits that a link can deliver from `from` to before `until`.
    #[must_use]
    pub fn bits_between(&self, from: Instant, until: Instant) -> u64 {
        let opportunities = self.first_at_or_after(until).saturating_sub(self.first_at_or_after(from));
        opportunities * u64::from(OPPORTUNITY_BYTES * 8)
    }

    /// Returns the time of opportunity `number`, counted from 0.
    fn time_of(&self, number: u64) -> Instant {
        let each = self.times.len() as u64;
        let rounds = Duration::from_nanos(self.period.as_nanos() * (number / each));
        Instant::ZERO + rounds + self.times[(number % each) as usize]
    }

    /// Returns the first opportunity that is not before `now`.
    fn first_at_or_after(&self, now: Instant) -> u64 {
        let (now, period) = (now.as_nanos(), self.period.as_nanos());
        // The last opportunity of a round is at the same time as the beginning of the next.
        let rounds = now.saturating_sub(1) / period;
        let rest = Duration::from_nanos(now - rounds * period);
        let number = self.times.partition_point(|&time| time < rest);
        rounds * self.times.len() as u64 + number as u64
    }
}

/// Position in the opportunities: the current one, and the bytes of it that are used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TraceCursor {
    index: u64,
    used_bytes: u32,
}

impl TraceCursor {
    /// Returns the times at which the first and the last of `len` bytes that are enqueued at `now` leave the sender.
    pub(crate) fn transmit(&mut self, all: &Opportunities, now: Instant, len: usize) -> (Instant, Instant) {
        let first = all.first_at_or_after(now);
        if first > self.index {
            *self = Self { index: first, used_bytes: 0 };
        } else if self.used_bytes == OPPORTUNITY_BYTES {
            *self = Self { index: self.index + 1, used_bytes: 0 };
        }
        let start = all.time_of(self.index);
        let bytes = u64::from(self.used_bytes) + (len as u64).max(1);
        // The opportunity in which the last byte leaves may be used up.
        let more = (bytes - 1) / u64::from(OPPORTUNITY_BYTES);
        *self = Self {
            index: self.index + more,
            used_bytes: (bytes - more * u64::from(OPPORTUNITY_BYTES)) as u32,
        };
        (start, all.time_of(self.index))
    }

    /// Returns the time at which the bytes would begin to leave, without sending them.
    pub(crate) fn start_of_transmission(mut self, all: &Opportunities, now: Instant) -> Instant {
        self.transmit(all, now, 1).0
    }
}

settings! {
    /// Conditions of a link from an instant on. They replace those of its [`Emulation`](crate::Emulation); `None` keeps the
    /// latter. Start from [`Condition::starting_at`] and use the setters.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct Condition {
        /// Start time. Default the beginning.
        from, with_from: Instant,
        /// Rate in bits per second, for packets with a later start of transmission. Default `None`.
        rate, with_rate: Option<u64>,
        /// Propagation delay of packets that have been sent. A decrease does not reorder packets. Default `None`.
        latency, with_latency: Option<Duration>,
        /// Loss rate. 0 to 1, default `None`.
        loss, with_loss: Option<f64>,
    }
}

impl Condition {
    /// Returns a condition from `from` on that changes nothing yet.
    #[must_use]
    pub const fn starting_at(from: Instant) -> Self {
        Self { from, rate: None, latency: None, loss: None }
    }
}

/// Returns the index of the condition at `now` among conditions sorted by time; `None` before the first.
pub(crate) fn index_at(conditions: &[Condition], now: Instant) -> Option<usize> {
    conditions.partition_point(|condition| condition.from <= now).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    fn trace(times: &[u64]) -> Opportunities {
        Opportunities::new(times.iter().copied().map(ms).collect()).expect("a trace")
    }

    #[test]
    fn a_trace_repeats_after_its_last_time() {
        let trace = trace(&[2, 5, 5, 10]);
        let times: Vec<_> = (0..9).map(|number| trace.time_of(number)).collect();
        assert_eq!(times, [2, 5, 5, 10, 12, 15, 15, 20, 22].map(at));
        for (now, first) in [(0, 0), (2, 0), (3, 1), (5, 1), (6, 3), (10, 3), (11, 4), (20, 7), (21, 8)] {
            assert_eq!(trace.first_at_or_after(at(now)), first, "{now} ms");
        }
        assert_eq!(trace.mean_rate(), 4.0 * 12_000.0 / 0.01);
    }

    #[test]
    fn the_end_of_a_round_and_the_beginning_of_the_next_are_two_opportunities() {
        let trace = trace(&[0, 10]);
        assert_eq!((trace.time_of(1), trace.time_of(2)), (at(10), at(10)));
        assert_eq!(
            (
                trace.first_at_or_after(at(0)),
                trace.first_at_or_after(at(10)),
                trace.first_at_or_after(at(11))
            ),
            (0, 1, 3)
        );
    }

    #[test]
    fn invalid_traces_are_refused() {
        let of = |times: &[u64]| {
            Opportunities::new(times.iter().copied().map(ms).collect()).expect_err("no trace")
        };
        assert_eq!(of(&[]), TraceError::Empty);
        assert_eq!(of(&[0, 0]), TraceError::ZeroPeriod);
        assert_eq!(of(&[1, 3, 2]), TraceError::NotSorted(2));
    }

    #[test]
    fn bits_are_those_of_the_opportunities_in_the_interval() {
        let trace = trace(&[2, 5, 5, 10]);
        let packets = |from, until| trace.bits_between(at(from), at(until)) / 12_000;
        assert_eq!([packets(0, 2), packets(0, 3), packets(2, 6), packets(3, 5)], [0, 1, 3, 0]);
        assert_eq!([packets(0, 10), packets(0, 11), packets(5, 105), packets(7, 7)], [3, 4, 40, 0]);
        assert_eq!(packets(8, 7), 0, "an interval that ends before its start");
    }

    #[test]
    fn a_trace_is_read_from_text_and_an_error_names_its_line() {
        let read: Opportunities = "\u{feff}# cellular\r\n\r\n0\r\n  5\n5\n10\n".parse().expect("a trace");
        assert_eq!(read, trace(&[0, 5, 5, 10]));
        let error = |text: &str| text.parse::<Opportunities>().expect_err("no trace");
        for (text, line, expected) in [
            ("5\n\n-1\n", 2, TraceError::NotATime),
            ("4294967296\n", 0, TraceError::NotATime),
            ("# c\n5\n7\n6\n9\n", 3, TraceError::NotSorted(2)),
            ("\n0\n0\n", 2, TraceError::ZeroPeriod),
            ("# c\n", 0, TraceError::Empty),
        ] {
            assert_eq!(error(text), TraceLineError { line, error: expected }, "{text}");
        }
    }

    #[test]
    fn an_opportunity_carries_several_small_packets_or_part_of_a_long_one() {
        let trace = trace(&[1, 2, 3, 4]);
        let mut position = TraceCursor::default();
        let mut send = |now, len| position.transmit(&trace, at(now), len);
        assert_eq!(send(0, 700), (at(1), at(1)));
        assert_eq!(send(0, 700), (at(1), at(1)));
        // 100 bytes are left of the first.
        assert_eq!(send(0, 1500), (at(1), at(2)));
        assert_eq!(send(0, 100), (at(2), at(2)));
        assert_eq!(send(0, 3000), (at(3), at(4)), "the second was used up");
        assert_eq!(send(0, 1), (at(5), at(5)));
    }

    #[test]
    fn unused_bytes_of_an_opportunity_are_lost() {
        let trace = trace(&[1, 2]);
        let mut position = TraceCursor::default();
        assert_eq!(position.transmit(&trace, at(0), 100), (at(1), at(1)));
        assert_eq!(position.transmit(&trace, at(2), 1500), (at(2), at(2)), "a whole one");
        assert_eq!(position.start_of_transmission(&trace, at(2)), at(3));
    }
}
