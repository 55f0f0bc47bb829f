//! Statistics of one side of a test, in intervals and in total.

use super::datagram::DatagramStats;
use super::report::{Interval, Phase, Role, RttSummary, SendingReport, StreamInterval, StreamReport};
use super::stream::Telemetry;
use std::time::{Duration, Instant};

/// Counters of a stream at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StreamSnapshot {
    pub(super) role: Role,
    /// Bytes sent or received since the start.
    pub(super) bytes: u64,
    /// Transport statistics, at the sending side.
    pub(super) telemetry: Option<Telemetry>,
    /// Datagram statistics, for UDP.
    pub(super) datagrams: Option<DatagramStats>,
}

/// Counts from the start of a test to its end. The caller passes the time and the counters of all streams; there is no
/// clock inside.
#[derive(Debug)]
pub(super) struct IntervalStats {
    period: Option<Duration>,
    phase: Phase,
    /// Start of this phase.
    phase_start: Instant,
    /// End of this phase. `None`: the end of the test.
    phase_end: Option<Instant>,
    /// Counters of the streams at the start of the phase.
    at_phase_start: Vec<StreamSnapshot>,
    /// Start of the interval.
    interval_start: Instant,
    /// Counters of the streams at the start of the interval.
    at_interval_start: Vec<StreamSnapshot>,
    /// End of the interval.
    interval_end: Option<Instant>,
    samples: Vec<SenderSamples>,
}

/// Statistics of a sending stream, sampled at the ends of intervals.
#[derive(Clone, Copy, Debug, Default)]
struct SenderSamples {
    max_cwnd: u64,
    max_peer_window: u64,
    min_rtt: Option<Duration>,
    max_rtt: Duration,
    sum_rtt: Duration,
    samples: u32,
}

impl IntervalStats {
    /// Starts the first phase at `now`. `period`: length of an interval, above zero; `None`: no intervals. `omit`: time
    /// at the start that does not count.
    pub(super) fn new(
        now: Instant,
        period: Option<Duration>,
        omit: Duration,
        standing: Vec<StreamSnapshot>,
    ) -> Self {
        let phase = if omit.is_zero() { Phase::Measured } else { Phase::Omitted };
        let mut ledger = Self {
            period,
            phase,
            phase_start: now,
            phase_end: (phase == Phase::Omitted).then(|| now + omit),
            at_phase_start: standing.clone(),
            interval_start: now,
            samples: vec![SenderSamples::default(); standing.len()],
            at_interval_start: standing,
            interval_end: None,
        };
        ledger.schedule_interval_end();
        ledger
    }

    /// Returns the start of the measured phase, once it has begun.
    pub(super) fn measured_since(&self) -> Option<Instant> {
        (self.phase == Phase::Measured).then_some(self.phase_start)
    }

    /// Returns the end of the interval or of the phase, whichever comes first.
    pub(super) fn next_end(&self) -> Option<Instant> {
        [self.interval_end, self.phase_end].into_iter().flatten().min()
    }

    /// Ends the current interval at `now` and returns it. Starts the measured phase if the omission is over.
    pub(super) fn end_interval(&mut self, now: Instant, standing: &[StreamSnapshot]) -> Option<Interval> {
        let interval = self.close(now, standing);
        if self.phase_end.is_some_and(|until| until <= now) {
            (self.phase, self.phase_start, self.phase_end) = (Phase::Measured, now, None);
            self.at_phase_start = standing.to_vec();
            self.samples.fill(SenderSamples::default());
        }
        self.schedule_interval_end();
        interval
    }

    /// Returns the last, partial interval, if any time is left for it. It does not end before the last tick.
    pub(super) fn end(&mut self, now: Instant, standing: &[StreamSnapshot]) -> Option<Interval> {
        self.close(now.max(self.interval_start), standing)
    }

    /// Returns the time from the start of the phase to the end of the last interval.
    pub(super) fn elapsed(&self) -> Duration {
        self.interval_start - self.phase_start
    }

    /// Returns the datagrams of each stream that did not count.
    pub(super) fn omitted(&self) -> Vec<DatagramStats> {
        self.at_phase_start.iter().map(|standing| standing.datagrams.unwrap_or_default()).collect()
    }

    /// Returns the statistics of each stream up to the end of the last interval.
    pub(super) fn streams(&self) -> Vec<StreamReport> {
        let spans = self.at_phase_start.iter().zip(&self.at_interval_start).zip(&self.samples);
        spans
            .map(|((before, after), seen)| StreamReport {
                role: after.role,
                bytes: after.bytes - before.bytes,
                datagrams: datagrams_since(after, before),
                sending: after.telemetry.map(|t| SendingReport {
                    retransmits: retransmits_since(t, before),
                    max_cwnd: seen.max_cwnd,
                    max_peer_window: seen.max_peer_window,
                    rtt: seen.rtt(),
                }),
            })
            .collect()
    }

    fn close(&mut self, now: Instant, standing: &[StreamSnapshot]) -> Option<Interval> {
        let streams = self.at_interval_start.iter().zip(standing).map(|(before, after)| StreamInterval {
            role: after.role,
            bytes: after.bytes - before.bytes,
            datagrams: datagrams_since(after, before),
            sending: after.telemetry.map(|t| Telemetry { retransmits: retransmits_since(t, before), ..t }),
        });
        let interval = Interval {
            start: self.interval_start - self.phase_start,
            end: now - self.phase_start,
            phase: self.phase,
            streams: streams.collect(),
        };
        for (seen, standing) in self.samples.iter_mut().zip(standing) {
            standing.telemetry.iter().for_each(|telemetry| seen.record(telemetry));
        }
        self.interval_start = now;
        self.at_interval_start.copy_from_slice(standing);
        (self.period.is_some() && interval.end > interval.start).then_some(interval)
    }

    /// Schedules the next interval end on the grid that starts with the phase. Missed ends are skipped.
    fn schedule_interval_end(&mut self) {
        self.interval_end = self.period.map(|period| {
            let whole = (self.interval_start - self.phase_start).as_nanos() / period.as_nanos() + 1;
            self.phase_start + Duration::from_nanos((whole * period.as_nanos()) as u64)
        });
    }
}

fn datagrams_since(after: &StreamSnapshot, before: &StreamSnapshot) -> Option<DatagramStats> {
    Some(after.datagrams?.since(before.datagrams.unwrap_or_default()))
}

/// Returns the retransmitted segments since `before`.
fn retransmits_since(now: Telemetry, before: &StreamSnapshot) -> u64 {
    now.retransmits - before.telemetry.map_or(0, |t| t.retransmits)
}

impl SenderSamples {
    fn record(&mut self, telemetry: &Telemetry) {
        self.max_cwnd = self.max_cwnd.max(telemetry.cwnd);
        self.max_peer_window = self.max_peer_window.max(telemetry.peer_window);
        if let Some(rtt) = telemetry.rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.max_rtt = self.max_rtt.max(rtt);
            self.sum_rtt += rtt;
            self.samples += 1;
        }
    }

    fn rtt(&self) -> Option<RttSummary> {
        let min = self.min_rtt?;
        Some(RttSummary { min, mean: self.sum_rtt / self.samples, max: self.max_rtt })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::now;

    const SECOND: Duration = Duration::from_secs(1);

    fn sending(bytes: u64, retransmits: u64, rtt_ms: Option<u64>) -> StreamSnapshot {
        let rtt = rtt_ms.map(Duration::from_millis);
        let telemetry = Telemetry {
            retransmits,
            cwnd: 1000 * bytes,
            peer_window: bytes,
            rtt,
            rtt_var: None,
            path_mtu: None,
            mss: 1452,
        };
        StreamSnapshot { role: Role::Sends, bytes, telemetry: Some(telemetry), datagrams: None }
    }

    fn receiving(bytes: u64) -> StreamSnapshot {
        StreamSnapshot { role: Role::Receives, bytes, telemetry: None, datagrams: None }
    }

    #[test]
    fn intervals_hold_differences_and_totals_hold_sums() {
        let start = now();
        let mut ledger = IntervalStats::new(
            start,
            Some(SECOND),
            Duration::ZERO,
            vec![sending(0, 1, None), sending(0, 0, None)],
        );
        assert_eq!(ledger.next_end(), Some(start + SECOND));
        let first =
            ledger.end_interval(start + SECOND, &[sending(10, 3, Some(40)), sending(5, 0, None)]).unwrap();
        assert_eq!((first.start, first.end, first.phase), (Duration::ZERO, SECOND, Phase::Measured));
        assert_eq!((first.bytes(Role::Sends), first.retransmits()), (15, Some(2)));
        // A late tick does not shift the grid: the next end is due at its planned time.
        let late = start + Duration::from_millis(2300);
        let second = ledger.end_interval(late, &[sending(30, 3, Some(20)), sending(5, 4, None)]).unwrap();
        assert_eq!(
            (second.bytes(Role::Sends), second.retransmits(), second.end),
            (20, Some(4), late - start)
        );
        assert_eq!(ledger.next_end(), Some(start + 3 * SECOND));
        let rest = ledger.end(start + 3 * SECOND, &[sending(31, 3, Some(30)), sending(6, 4, None)]).unwrap();
        assert_eq!((rest.start, rest.bytes(Role::Sends)), (late - start, 2));
        assert_eq!(ledger.elapsed(), 3 * SECOND);
        let ms = Duration::from_millis;
        let rtt = RttSummary { min: ms(20), mean: ms(30), max: ms(40) };
        let report = SendingReport { retransmits: 2, max_cwnd: 31_000, max_peer_window: 31, rtt: Some(rtt) };
        assert_eq!(
            ledger.streams()[0],
            StreamReport { role: Role::Sends, bytes: 31, sending: Some(report), datagrams: None }
        );
        assert_eq!(ledger.streams()[1].sending.unwrap().rtt, None);
    }

    #[test]
    fn omitted_time_is_in_no_total_and_time_restarts_after_it() {
        let start = now();
        let mut ledger = IntervalStats::new(start, Some(2 * SECOND), 3 * SECOND, vec![sending(0, 0, None)]);
        let first = ledger.end_interval(start + 2 * SECOND, &[sending(100, 5, Some(900))]).unwrap();
        assert_eq!((first.phase, first.bytes(Role::Sends)), (Phase::Omitted, 100));
        assert_eq!(ledger.next_end(), Some(start + 3 * SECOND), "the omission ends within an interval");
        let second = ledger.end_interval(start + 3 * SECOND, &[sending(150, 6, Some(900))]).unwrap();
        assert_eq!((second.phase, second.start, second.end), (Phase::Omitted, 2 * SECOND, 3 * SECOND));
        assert_eq!((ledger.next_end(), ledger.elapsed()), (Some(start + 5 * SECOND), Duration::ZERO));
        let third = ledger.end(start + 4 * SECOND, &[sending(170, 8, Some(10))]).unwrap();
        assert_eq!((third.phase, third.start, third.end), (Phase::Measured, Duration::ZERO, SECOND));
        let all = ledger.streams()[0];
        assert_eq!((all.bytes, all.sending.unwrap().retransmits), (20, 2));
        assert_eq!(all.sending.unwrap().rtt.unwrap().max, Duration::from_millis(10));
        assert_eq!(ledger.elapsed(), SECOND);
    }

    #[test]
    fn totals_are_the_same_without_intervals() {
        let start = now();
        let mut ledger = IntervalStats::new(start, None, Duration::ZERO, vec![receiving(0)]);
        assert_eq!(ledger.next_end(), None);
        assert_eq!(ledger.end(start + SECOND, &[receiving(7)]), None);
        assert_eq!(
            ledger.streams(),
            [StreamReport { role: Role::Receives, bytes: 7, sending: None, datagrams: None }]
        );
        assert_eq!(ledger.elapsed(), SECOND);
    }

    #[test]
    fn an_interval_of_zero_length_is_discarded() {
        let start = now();
        let mut ledger = IntervalStats::new(start, Some(SECOND), Duration::ZERO, vec![receiving(0)]);
        assert!(ledger.end_interval(start + SECOND, &[receiving(1)]).is_some());
        assert_eq!(ledger.end(start + SECOND, &[receiving(1)]), None);
    }
}
