//! Tail loss probes (RFC 8985 §7): when nothing is heard of the end of a flight, one segment asks.

use hopline_core::{Duration, Instant};

/// Whether the tail of a flight is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailProbe {
    /// It is not: a lost tail waits for the retransmission timer.
    Off,
    /// After two smoothed round trips, 1 s before the first sample (RFC 8985 §7.2).
    On {
        /// What is added where a single segment is in flight, whose ACK the peer may delay ("TLP.max_ack_delay"). At most
        /// 500 ms, default 200 ms (as Linux).
        max_ack_delay: Duration,
    },
}

/// Before the first round trip is known (RFC 8985 §7.2).
const WITHOUT_SAMPLE: Duration = Duration::from_secs(1);

/// The probe of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tlp {
    config: TailProbe,
    probe: Option<Probe>,
    /// A round trip was measured since the last probe (RFC 8985 §7.3).
    sampled: bool,
    /// A probe is owed.
    pub(crate) pending: bool,
    /// Where the segment starts that a probe is about to repeat.
    pub(crate) repeats: Option<u64>,
}

/// A probe that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// Position after everything that was sent by then ("TLP.end_seq").
    pub(crate) end: u64,
    /// "TLP.is_retrans".
    kind: ProbeKind,
    /// Data in flight when it was sent, bytes: the flight whose tail was lost.
    pub(crate) flight: u64,
}

/// What a probe is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeKind {
    /// Data that were not sent before.
    New,
    /// The last segment, once more.
    Again,
}

/// What an acknowledgment says about a probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// First unacknowledged position, after it.
    pub(crate) ack: u64,
    /// The end of the duplicate that it reports.
    pub(crate) dsack: Option<u64>,
    /// It is a duplicate that reports nothing.
    pub(crate) bare_duplicate: bool,
}

impl Tlp {
    pub(crate) fn new(config: TailProbe) -> Self {
        Self { config, probe: None, sampled: true, pending: false, repeats: None }
    }

    /// Recovery began, or the timer expired (RFC 8985 §7.1).
    pub(crate) fn reset(&mut self) {
        self.probe = None;
        self.pending = false;
    }

    /// Where the segment starts that a probe repeats, once.
    pub(crate) fn take_repeated(&mut self) -> Option<u64> {
        self.repeats.take()
    }

    pub(crate) fn note_sample(&mut self) {
        self.sampled = true;
    }

    /// Whether a probe may be sent: there is none under way, and a round trip was measured since the last
    /// (RFC 8985 §7.3).
    pub(crate) fn may_probe(&self) -> bool {
        self.config != TailProbe::Off && self.probe.is_none() && self.sampled
    }

    /// When to probe (RFC 8985 §7.2): `srtt` is known or not, one segment is in flight or several, and the retransmission
    /// timer expires at `rto`.
    pub(crate) fn due(
        &self,
        now: Instant,
        srtt: Option<Duration>,
        flight: Flight,
        rto: Option<Instant>,
    ) -> Option<Instant> {
        let TailProbe::On { max_ack_delay } = self.config else { return None };
        let wait = match (srtt, flight) {
            (None, _) => WITHOUT_SAMPLE,
            (Some(srtt), Flight::OneSegment) => srtt * 2 + max_ack_delay,
            (Some(srtt), Flight::More) => srtt * 2,
        };
        let at = now + wait;
        Some(rto.map_or(at, |rto| rto.min(at)))
    }

    /// A probe left, of a flight of so many bytes; `end`: position after everything sent.
    pub(crate) fn on_probe(&mut self, kind: ProbeKind, end: u64, flight: u64) {
        self.probe = Some(Probe { end, kind, flight });
        self.sampled = false;
    }

    /// RFC 8985 §7.4.2. Returns the probe if what it repeated had been lost.
    pub(crate) fn on_ack(&mut self, answer: Answer) -> Option<Probe> {
        let probe = self.probe.filter(|probe| answer.ack >= probe.end)?;
        let reported = answer.dsack == Some(probe.end);
        let arrived_twice = reported || (answer.ack == probe.end && answer.bare_duplicate);
        if probe.kind == ProbeKind::New || arrived_twice {
            self.probe = None;
            return None;
        }
        let beyond = answer.ack > probe.end;
        if beyond {
            self.probe = None;
        }
        beyond.then_some(probe)
    }
}

/// What is in flight when a probe is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flight {
    /// One segment: the peer may delay its ACK.
    OneSegment,
    /// More.
    More,
}
