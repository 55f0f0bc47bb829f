//! Datagrams at a rate, all the time or in bursts, or as they were recorded.

use super::replay::Replay;
use crate::distribution::RandomVariable;
use hopline_core::{Duration, Instant, RandomStream};

/// A source of datagrams and what its sink has of them.
#[derive(Debug)]
pub(super) struct Datagrams {
    schedule: SendSchedule,
    pub(super) sent: u32,
    pub(super) received: u64,
    /// One bit for each packet number received.
    seen: Vec<u64>,
}

/// Sending schedule: times and sizes.
#[derive(Debug)]
pub(super) enum SendSchedule {
    /// Packets of constant size at a constant interval, in bursts if given.
    Rate { packet_bytes: u32, interval: Duration, bursts: Option<OnOffProcess> },
    /// At recorded times.
    Recorded(Replay),
}

/// A datagram that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentDatagram {
    pub(super) number: u32,
    pub(super) bytes: u32,
    /// Time of the next packet, if there is one.
    pub(super) next: Option<Instant>,
}

/// The periods of an on-off source.
#[derive(Debug)]
pub(super) struct OnOffProcess {
    pub(super) on: RandomVariable,
    pub(super) off: RandomVariable,
    pub(super) stream: RandomStream,
    /// End of the present on time; `None` before the first.
    pub(super) until: Option<Instant>,
}

impl Datagrams {
    pub(super) fn new(schedule: SendSchedule) -> Self {
        Self { schedule, sent: 0, received: 0, seen: Vec::new() }
    }

    /// Returns the departure time of the first packet of a source that starts `now`.
    pub(super) fn first(&self, now: Instant) -> Option<Instant> {
        match &self.schedule {
            SendSchedule::Rate { .. } => Some(now),
            SendSchedule::Recorded(recording) => recording.due(),
        }
    }

    /// Sends a packet at `now`, if one is due.
    pub(super) fn send(&mut self, now: Instant) -> Option<SentDatagram> {
        let (bytes, next) = match &mut self.schedule {
            SendSchedule::Rate { packet_bytes, interval, bursts } => {
                let next = now + *interval;
                let due = bursts.as_mut().map_or(next, |bursts| bursts.due(now, next));
                (*packet_bytes, Some(due))
            }
            SendSchedule::Recorded(recording) => {
                let bytes = u32::try_from(recording.next_packet(now)?)
                    .expect("datagrams are at most 65,507 bytes long");
                (bytes, recording.due())
            }
        };
        let number = self.sent;
        self.sent += 1;
        Some(SentDatagram { number, bytes, next })
    }

    /// Takes packet `number` with `bytes` of data. Returns how many of them are new: all or none.
    pub(super) fn receive(&mut self, number: u32, bytes: u64) -> u64 {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            return 0;
        }
        self.seen[word] |= bit;
        self.received += 1;
        bytes
    }
}

impl OnOffProcess {
    /// Returns the departure time of the packet after that of `now`: `next`, or the beginning of the next on
    /// time if this one is over by then. Never before `next`, however short the times drawn.
    fn due(&mut self, now: Instant, next: Instant) -> Instant {
        let until = self.until.unwrap_or_else(|| now + duration(&self.on, &mut self.stream));
        self.until = Some(until);
        if next < until {
            return next;
        }
        let begin = next.max(until + duration(&self.off, &mut self.stream));
        self.until = Some(begin + duration(&self.on, &mut self.stream));
        begin
    }
}

/// Draws a time.
pub(super) fn duration(draw: &RandomVariable, stream: &mut RandomStream) -> Duration {
    Duration::from_secs_f64(draw.sample(stream))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::RecordedPacket;
    use hopline_core::Purpose;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Returns the departure times of the first `n` packets, in milliseconds.
    fn times(on_s: f64, off_s: f64, n: usize) -> Vec<f64> {
        let (on, off) = (RandomVariable::Constant(on_s), RandomVariable::Constant(off_s));
        let stream = RandomStream::keyed(1, 1, 0, Purpose::Traffic);
        let bursts = Some(OnOffProcess { on, off, stream, until: None });
        let mut source = Datagrams::new(SendSchedule::Rate { packet_bytes: 100, interval: ms(10), bursts });
        let mut now = Instant::from_millis(5);
        let mut left = || {
            let at = now;
            now = source.send(now).and_then(|sent| sent.next).expect("a rate has no end");
            at.as_secs_f64() * 1e3
        };
        (0..n).map(|_| left()).collect()
    }

    #[test]
    fn packets_leave_at_the_rate_while_on_and_not_while_off() {
        assert_eq!(times(0.025, 0.1, 7), [5.0, 15.0, 25.0, 130.0, 140.0, 150.0, 255.0]);
    }

    #[test]
    fn an_on_time_shorter_than_the_interval_is_one_packet() {
        assert_eq!(times(0.001, 0.05, 3), [5.0, 56.0, 107.0]);
    }

    #[test]
    fn without_off_times_it_is_a_constant_rate_however_short_the_on_times() {
        for on_s in [0.0, 0.001, 0.01] {
            assert_eq!(times(on_s, 0.0, 4), [5.0, 15.0, 25.0, 35.0], "{on_s}");
        }
    }

    #[test]
    fn a_recording_is_played_once_from_the_start_of_its_flow() {
        let packets = [(0, 10), (0, 20), (7, 30)].map(|(at, bytes)| RecordedPacket { at: ms(at), bytes });
        let start = Instant::from_millis(100);
        let recording = Replay::new(packets.into(), start);
        assert_eq!(recording.total(), 60);
        let mut source = Datagrams::new(SendSchedule::Recorded(recording));
        assert_eq!(source.first(start), Some(start));
        let sent = |number, bytes, next: Option<u64>| {
            Some(SentDatagram { number, bytes, next: next.map(Instant::from_millis) })
        };
        assert_eq!(source.send(start), sent(0, 10, Some(100)));
        assert_eq!(source.send(start), sent(1, 20, Some(107)));
        assert_eq!(source.send(start), None, "not yet");
        assert_eq!(source.send(start + ms(7)), sent(2, 30, None));
        assert_eq!(source.send(start + ms(99)), None);
        assert_eq!(source.sent, 3);
    }

    #[test]
    fn a_datagram_counts_once() {
        let mut sink =
            Datagrams::new(SendSchedule::Rate { packet_bytes: 100, interval: ms(10), bursts: None });
        assert_eq!([sink.receive(3, 100), sink.receive(70, 100), sink.receive(3, 100)], [100, 100, 0]);
        assert_eq!(sink.received, 2);
    }
}
