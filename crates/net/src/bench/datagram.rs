//! The header of iperf3's datagrams, and what a receiver makes of it.

use std::time::Duration;

/// Seconds and microseconds of the sender's clock, then the number of the datagram from 1.
const WITH_32_BITS: usize = 12;
/// The number may have 64 bits (`udp_counters_64bit`).
const WITH_64_BITS: usize = 16;
/// Part of a deviation that goes into the jitter. RFC 3550 §6.4.1
const GAIN: f64 = 1.0 / 16.0;

/// How wide the numbers of datagrams are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counters {
    Bits32,
    Bits64,
}

/// What is known of the datagrams of a stream: at the receiver, and at the sender `packets` only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Sent, as far as is known: the highest number that has arrived.
    pub packets: u64,
    /// Those of them that have not arrived.
    pub lost: u64,
    /// Those that came after a later one.
    pub out_of_order: u64,
    /// Smoothed deviation of the spacing at arrival from that at departure. RFC 1889 §6.3.1, RFC 3550 §6.4.1
    pub jitter: Duration,
}

/// Counts the datagrams of one stream.
#[derive(Debug, Default)]
pub(super) struct Counter {
    seen: Arrivals,
    jitter: f64,
    /// Time on the way of the one before; the clocks differ, and that cancels out.
    transit: Option<f64>,
}

/// What a datagram says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stamp {
    pub(super) number: u64,
    /// Since 1970.
    pub(super) departure: Duration,
}

impl Stamp {
    /// Writes it to the beginning of a datagram, which has room for it, and returns its length.
    pub(super) fn write(self, counters: Counters, to: &mut [u8]) -> usize {
        to[..4].copy_from_slice(&(self.departure.as_secs() as u32).to_be_bytes());
        to[4..8].copy_from_slice(&self.departure.subsec_micros().to_be_bytes());
        match counters {
            Counters::Bits32 => {
                to[8..WITH_32_BITS].copy_from_slice(&(self.number as u32).to_be_bytes());
                WITH_32_BITS
            }
            Counters::Bits64 => {
                to[8..WITH_64_BITS].copy_from_slice(&self.number.to_be_bytes());
                WITH_64_BITS
            }
        }
    }

    /// What is too short is none.
    pub(super) fn read(counters: Counters, from: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(*from.get(at..)?.first_chunk()?));
        let number = match counters {
            Counters::Bits32 => word(8)?.into(),
            Counters::Bits64 => u64::from(word(8)?) << 32 | u64::from(word(12)?),
        };
        let departure = Duration::from_secs(word(0)?.into()) + Duration::from_micros(word(4)?.into());
        Some(Self { number, departure })
    }
}

impl Counter {
    /// `stamp` has arrived at `now`, since 1970.
    pub(super) fn take(&mut self, stamp: Stamp, now: Duration) {
        let seen = &mut self.seen;
        if stamp.number > seen.packets {
            // As iperf3: what was left out is lost, until it comes after all.
            seen.lost = seen.lost.saturating_add(stamp.number - seen.packets - 1);
            seen.packets = stamp.number;
        } else {
            seen.out_of_order += 1;
            seen.lost = seen.lost.saturating_sub(1);
        }
        let transit = now.as_secs_f64() - stamp.departure.as_secs_f64();
        if let Some(before) = self.transit.replace(transit) {
            self.jitter += ((transit - before).abs() - self.jitter) * GAIN;
        }
        seen.jitter = Duration::try_from_secs_f64(self.jitter).unwrap_or_default();
    }

    pub(super) const fn seen(&self) -> Arrivals {
        self.seen
    }
}

impl Arrivals {
    /// What was added since `before`; the jitter is that of now.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            // Lost before, and come since.
            lost: self.lost.saturating_sub(before.lost),
            out_of_order: self.out_of_order.saturating_sub(before.out_of_order),
            jitter: self.jitter,
        }
    }

    /// Of several streams, if there are any: sums, and the mean jitter, as iperf3 has it.
    pub(super) fn sum(streams: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        let streams: Vec<Self> = streams.collect::<Option<_>>()?;
        let mut sum = Self::default();
        for stream in &streams {
            sum.packets = sum.packets.saturating_add(stream.packets);
            sum.lost = sum.lost.saturating_add(stream.lost);
            sum.out_of_order = sum.out_of_order.saturating_add(stream.out_of_order);
            sum.jitter = sum.jitter.saturating_add(stream.jitter);
        }
        sum.jitter /= u32::try_from(streams.len()).ok().filter(|&n| n > 0)?;
        Some(sum)
    }

    /// Of those sent, in percent.
    #[must_use]
    pub fn lost_percent(&self) -> f64 {
        if self.packets == 0 { 0.0 } else { 100.0 * self.lost as f64 / self.packets as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(counter: &mut Counter, number: u64, sent_ms: u64, came_ms: u64) {
        let departure = Duration::from_millis(sent_ms);
        counter.take(Stamp { number, departure }, Duration::from_millis(came_ms));
    }

    #[test]
    fn a_gap_is_lost_until_it_comes_late() {
        let mut counter = Counter::default();
        for number in [1, 2, 5] {
            arrive(&mut counter, number, 0, 0);
        }
        assert_eq!((counter.seen().packets, counter.seen().lost), (5, 2));
        arrive(&mut counter, 3, 0, 0);
        let seen = counter.seen();
        assert_eq!((seen.packets, seen.lost, seen.out_of_order), (5, 1, 1));
        assert_eq!(seen.lost_percent(), 20.0);
    }

    #[test]
    fn jitter_moves_by_a_sixteenth_of_each_deviation() {
        let mut counter = Counter::default();
        arrive(&mut counter, 1, 0, 100);
        assert_eq!(counter.seen().jitter, Duration::ZERO);
        // 16 ms more on the way than the one before; where the clocks stand does not matter.
        arrive(&mut counter, 2, 10, 126);
        assert_eq!(counter.seen().jitter, Duration::from_millis(1));
        arrive(&mut counter, 3, 20, 136);
        assert_eq!(counter.seen().jitter, Duration::from_nanos(937_500));
    }

    #[test]
    fn stamps_are_read_as_they_were_written_and_short_datagrams_are_none() {
        let stamp = Stamp { number: 7, departure: Duration::new(5, 9000) };
        for (counters, len) in [(Counters::Bits32, 12), (Counters::Bits64, 16)] {
            let mut bytes = [0; 16];
            assert_eq!(stamp.write(counters, &mut bytes), len);
            assert_eq!(Stamp::read(counters, &bytes), Some(stamp));
            assert_eq!(Stamp::read(counters, &bytes[..len - 1]), None);
        }
    }

    #[test]
    fn hostile_numbers_overflow_nothing() {
        let mut counter = Counter::default();
        for number in [u64::MAX, 0, u64::MAX, 1] {
            let departure = Duration::from_secs(u32::MAX.into());
            counter.take(Stamp { number, departure }, Duration::ZERO);
        }
        assert_eq!((counter.seen().packets, counter.seen().lost), (u64::MAX, u64::MAX - 4));
        let worst = Some(Arrivals { packets: u64::MAX, jitter: Duration::MAX, ..counter.seen() });
        assert_eq!(Arrivals::sum([worst; 2].into_iter()).unwrap().packets, u64::MAX);
        assert_eq!(Arrivals::sum(std::iter::empty()), None);
    }
}
