//! Header of iperf3's datagrams, and the statistics of a receiver.

use std::time::Duration;

/// Bytes of the header: seconds and microseconds of the sender's clock, then the number of the datagram, from 1.
const HEADER_LEN_32: usize = 12;
/// Bytes of the header with a number of 64 bits (`udp_counters_64bit`).
const HEADER_LEN_64: usize = 16;
/// Gain of the jitter estimate (RFC 3550 §6.4.1).
const JITTER_GAIN: f64 = 1.0 / 16.0;

/// Width of the sequence numbers of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CounterWidth {
    Bits32,
    Bits64,
}

/// Statistics of the datagrams of a stream. The sender knows `packets` only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramStats {
    /// Datagrams sent, as far as is known: the highest number that has arrived.
    pub packets: u64,
    /// Datagrams sent that have not arrived.
    pub lost: u64,
    /// Datagrams that arrived after one with a higher number.
    pub out_of_order: u64,
    /// Interarrival jitter (RFC 1889 §6.3.1, RFC 3550 §6.4.1).
    pub jitter: Duration,
}

/// Counts the datagrams of one stream.
#[derive(Debug, Default)]
pub(super) struct DatagramCounter {
    stats: DatagramStats,
    jitter: f64,
    /// Transit time of the previous datagram. It includes the offset of the clocks, which cancels out.
    transit: Option<f64>,
}

/// Header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DatagramHeader {
    pub(super) number: u64,
    /// Departure time since 1970.
    pub(super) departure: Duration,
}

impl DatagramHeader {
    /// Writes the header to the beginning of a datagram, which must have room for it, and returns its length.
    pub(super) fn write(self, counters: CounterWidth, to: &mut [u8]) -> usize {
        to[..4].copy_from_slice(&(self.departure.as_secs() as u32).to_be_bytes());
        to[4..8].copy_from_slice(&self.departure.subsec_micros().to_be_bytes());
        match counters {
            CounterWidth::Bits32 => {
                to[8..HEADER_LEN_32].copy_from_slice(&(self.number as u32).to_be_bytes());
                HEADER_LEN_32
            }
            CounterWidth::Bits64 => {
                to[8..HEADER_LEN_64].copy_from_slice(&self.number.to_be_bytes());
                HEADER_LEN_64
            }
        }
    }

    /// Reads a header. Returns `None` if the datagram is too short.
    pub(super) fn read(counters: CounterWidth, from: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(*from.get(at..)?.first_chunk()?));
        let number = match counters {
            CounterWidth::Bits32 => word(8)?.into(),
            CounterWidth::Bits64 => u64::from(word(8)?) << 32 | u64::from(word(12)?),
        };
        let departure = Duration::from_secs(word(0)?.into()) + Duration::from_micros(word(4)?.into());
        Some(Self { number, departure })
    }
}

impl DatagramCounter {
    /// Records the arrival of `stamp` at `now`, the time since 1970.
    pub(super) fn record(&mut self, stamp: DatagramHeader, now: Duration) {
        let seen = &mut self.stats;
        if stamp.number > seen.packets {
            // As in iperf3, skipped numbers count as lost until they arrive.
            seen.lost = seen.lost.saturating_add(stamp.number - seen.packets - 1);
            seen.packets = stamp.number;
        } else {
            seen.out_of_order += 1;
            seen.lost = seen.lost.saturating_sub(1);
        }
        let transit = now.as_secs_f64() - stamp.departure.as_secs_f64();
        if let Some(before) = self.transit.replace(transit) {
            self.jitter += ((transit - before).abs() - self.jitter) * JITTER_GAIN;
        }
        seen.jitter = Duration::try_from_secs_f64(self.jitter).unwrap_or_default();
    }

    pub(super) const fn stats(&self) -> DatagramStats {
        self.stats
    }
}

impl DatagramStats {
    /// Returns the counts since `before`, with the current jitter.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            // Datagrams that counted as lost before and have arrived since reduce the difference.
            lost: self.lost.saturating_sub(before.lost),
            out_of_order: self.out_of_order.saturating_sub(before.out_of_order),
            jitter: self.jitter,
        }
    }

    /// Returns the sums over several streams and their mean jitter, as iperf3 does. `None` without a stream of datagrams.
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

    /// Returns the lost datagrams in percent of those sent.
    #[must_use]
    pub fn lost_percent(&self) -> f64 {
        if self.packets == 0 { 0.0 } else { 100.0 * self.lost as f64 / self.packets as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(counter: &mut DatagramCounter, number: u64, sent_ms: u64, came_ms: u64) {
        let departure = Duration::from_millis(sent_ms);
        counter.record(DatagramHeader { number, departure }, Duration::from_millis(came_ms));
    }

    #[test]
    fn a_gap_counts_as_lost_until_the_datagram_arrives_late() {
        let mut counter = DatagramCounter::default();
        for number in [1, 2, 5] {
            arrive(&mut counter, number, 0, 0);
        }
        assert_eq!((counter.stats().packets, counter.stats().lost), (5, 2));
        arrive(&mut counter, 3, 0, 0);
        let seen = counter.stats();
        assert_eq!((seen.packets, seen.lost, seen.out_of_order), (5, 1, 1));
        assert_eq!(seen.lost_percent(), 20.0);
    }

    #[test]
    fn jitter_moves_by_a_sixteenth_of_each_deviation() {
        let mut counter = DatagramCounter::default();
        arrive(&mut counter, 1, 0, 100);
        assert_eq!(counter.stats().jitter, Duration::ZERO);
        // The transit time grows by 16 ms; the offset of the clocks does not matter.
        arrive(&mut counter, 2, 10, 126);
        assert_eq!(counter.stats().jitter, Duration::from_millis(1));
        arrive(&mut counter, 3, 20, 136);
        assert_eq!(counter.stats().jitter, Duration::from_nanos(937_500));
    }

    #[test]
    fn headers_round_trip_and_short_datagrams_are_rejected() {
        let stamp = DatagramHeader { number: 7, departure: Duration::new(5, 9000) };
        for (counters, len) in [(CounterWidth::Bits32, 12), (CounterWidth::Bits64, 16)] {
            let mut bytes = [0; 16];
            assert_eq!(stamp.write(counters, &mut bytes), len);
            assert_eq!(DatagramHeader::read(counters, &bytes), Some(stamp));
            assert_eq!(DatagramHeader::read(counters, &bytes[..len - 1]), None);
        }
    }

    #[test]
    fn hostile_sequence_numbers_do_not_overflow() {
        let mut counter = DatagramCounter::default();
        for number in [u64::MAX, 0, u64::MAX, 1] {
            let departure = Duration::from_secs(u32::MAX.into());
            counter.record(DatagramHeader { number, departure }, Duration::ZERO);
        }
        assert_eq!((counter.stats().packets, counter.stats().lost), (u64::MAX, u64::MAX - 4));
        let worst = Some(DatagramStats { packets: u64::MAX, jitter: Duration::MAX, ..counter.stats() });
        assert_eq!(DatagramStats::sum([worst; 2].into_iter()).unwrap().packets, u64::MAX);
        assert_eq!(DatagramStats::sum(std::iter::empty()), None);
    }
}
