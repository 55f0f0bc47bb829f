//! A seeded emulated link: rate, latency, loss, reordering, duplication, corruption, blackouts.

use hopline_core::{Duration, Instant, Purpose, Stream};

/// What one direction of a link does to packets. The default is perfect and instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Emulation {
    /// Propagation delay.
    pub latency: Duration,
    /// Bits per second; `None`: no serialisation delay. Packets wait for each other without limit.
    pub rate: Option<u64>,
    /// Most packets waiting for the rate; `None`: no limit.
    pub queue: Option<usize>,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet takes `extra_delay` longer, uniformly drawn, and so may be overtaken.
    pub reorder: f64,
    /// Largest additional delay of a reordered packet.
    pub extra_delay: Duration,
    /// Probability that a packet arrives twice; the copy is delayed like a reordered packet.
    pub duplicate: f64,
    /// Probability that a bit is flipped.
    pub corrupt: f64,
    /// Times at which nothing gets through: from, until.
    pub blackouts: Vec<(Instant, Instant)>,
}

impl Emulation {
    /// A link that only delays.
    #[must_use]
    pub fn delay(latency: Duration) -> Self {
        Self { latency, ..Self::default() }
    }
}

/// What becomes of one packet: its copies, each with its time of arrival and fate.
pub(crate) type Copies = [Option<(Instant, Fate)>; 2];

/// Whether a copy arrives whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Whole,
    Corrupt,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Direction {
    pub(crate) emulation: Emulation,
    pub(crate) random: Stream,
    /// When the sender has serialised everything handed over.
    free_at: Instant,
}

impl Direction {
    pub(crate) fn new(emulation: Emulation, seed: u64, owner: u64) -> Self {
        Self { emulation, random: Stream::keyed(seed, 0, owner, Purpose::Emulation), free_at: Instant::ZERO }
    }

    /// Sends `len` bytes at `now`.
    pub(crate) fn carry(&mut self, now: Instant, len: usize) -> Copies {
        let e = &self.emulation;
        let mut at = now;
        if let Some(rate) = e.rate {
            let time = Duration::of_bits(len as u64 * 8, rate);
            let start = self.free_at.max(now);
            if e.queue.is_some_and(|most| (start - now) / time.max(Duration::from_nanos(1)) > most as u64) {
                return [None, None];
            }
            self.free_at = start + time;
            at = self.free_at;
        }
        if e.blackouts.iter().any(|&(from, until)| (from..until).contains(&at))
            || self.random.bernoulli(e.loss)
        {
            return [None, None];
        }
        let fate = if self.random.bernoulli(e.corrupt) { Fate::Corrupt } else { Fate::Whole };
        let late = self.random.bernoulli(e.reorder);
        let twice = self.random.bernoulli(e.duplicate);
        let mut extra = || self.random.duration_below(e.extra_delay);
        let arrival = at + e.latency;
        let first = if late { arrival + extra() } else { arrival };
        [Some((first, fate)), twice.then(|| (arrival + extra(), Fate::Whole))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    fn first(copies: Copies) -> Option<Instant> {
        copies[0].map(|(at, _)| at)
    }

    #[test]
    fn packets_wait_for_each_other_and_the_full_queue_drops() {
        let e = Emulation {
            rate: Some(8_000_000),
            queue: Some(1),
            ..Emulation::delay(Duration::from_millis(10))
        };
        let mut d = Direction::new(e, 1, 0);
        // 1000 bytes take 1 ms.
        assert_eq!(first(d.carry(ms(0), 1000)), Some(ms(11)));
        assert_eq!(first(d.carry(ms(0), 1000)), Some(ms(12)));
        assert_eq!(first(d.carry(ms(0), 1000)), None);
        assert_eq!(first(d.carry(ms(5), 1000)), Some(ms(16)));
    }

    #[test]
    fn nothing_gets_through_a_blackout_or_certain_loss() {
        let e = Emulation { blackouts: vec![(ms(1), ms(2))], ..Emulation::default() };
        let mut d = Direction::new(e, 1, 0);
        assert_eq!(first(d.carry(ms(0), 1)), Some(ms(0)));
        assert_eq!(first(d.carry(ms(1), 1)), None);
        assert_eq!(first(d.carry(ms(2), 1)), Some(ms(2)));
        let mut d = Direction::new(Emulation { loss: 1.0, ..Emulation::default() }, 1, 0);
        assert_eq!(first(d.carry(ms(0), 1)), None);
    }

    #[test]
    fn certain_duplication_corruption_and_reordering() {
        let e = Emulation {
            duplicate: 1.0,
            corrupt: 1.0,
            reorder: 1.0,
            extra_delay: Duration::from_millis(50),
            ..Emulation::delay(Duration::from_millis(10))
        };
        let mut d = Direction::new(e, 1, 0);
        let [a, b] = d.carry(ms(0), 1);
        let (a, b) = (a.expect("arrives"), b.expect("arrives twice"));
        assert_eq!((a.1, b.1), (Fate::Corrupt, Fate::Whole));
        assert!(a.0 > ms(10) && a.0 < ms(60) && b.0 < ms(60) && a.0 != b.0);
    }
}
