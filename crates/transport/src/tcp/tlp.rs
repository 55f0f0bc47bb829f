//! Tail loss probes (RFC 8985 §7): one segment is sent if no ACK for the end of a flight arrives.

use hopline_core::{Duration, Instant};

/// Use of tail loss probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailProbe {
    /// Not in use: a lost tail waits for the retransmission timer.
    Off,
    /// After two smoothed round trips, 1 s before the first sample (RFC 8985 §7.2).
    On {
        /// Additional wait for a single segment in flight, since the peer may delay its ACK ("TLP.max_ack_delay"). At
        /// most 500 ms, default 200 ms (as Linux).
        max_ack_delay: Duration,
    },
}

/// Least time until a probe: two ticks of the clock (Linux, `TCP_TIMEOUT_MIN`), so that no probe leaves beside what it probes.
const LEAST_PTO: Duration = Duration::from_millis(2);
/// Wait before the first round-trip sample (RFC 8985 §7.2).
const INITIAL_PTO: Duration = Duration::from_secs(1);

/// State of the tail loss probe of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tlp {
    config: TailProbe,
    probe: Option<TailLossProbe>,
    /// `true` if a round-trip time was measured since the last probe (RFC 8985 §7.3).
    rtt_measured: bool,
    /// `true` if a probe has to be sent.
    pub(crate) pending: bool,
    /// Start of the segment that the next probe repeats.
    pub(crate) retransmit_at: Option<u64>,
}

/// Tail loss probe that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailLossProbe {
    /// Position after all data sent by then ("TLP.end_seq").
    pub(crate) end: u64,
    /// Content of the probe ("TLP.is_retrans").
    kind: ProbeKind,
    /// Bytes in flight at its sending: the flight with the lost tail.
    pub(crate) flight: u64,
}

/// Content of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeKind {
    /// New data.
    NewData,
    /// Retransmission of the last segment.
    Retransmission,
}

/// Information about a probe in an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TlpAck {
    /// First unacknowledged position after it.
    pub(crate) ack: u64,
    /// End of the duplicate that it reports.
    pub(crate) dsack: Option<u64>,
    /// `true` if it is a duplicate without a SACK report.
    pub(crate) bare_duplicate: bool,
}

impl Tlp {
    pub(crate) fn new(config: TailProbe) -> Self {
        Self { config, probe: None, rtt_measured: true, pending: false, retransmit_at: None }
    }

    /// Cancels the probe at the start of recovery or at a time-out (RFC 8985 §7.1).
    pub(crate) fn reset(&mut self) {
        self.probe = None;
        self.pending = false;
    }

    /// Returns the start of the segment that a probe repeats, once.
    pub(crate) fn take_retransmission(&mut self) -> Option<u64> {
        self.retransmit_at.take()
    }

    pub(crate) fn on_rtt_sample(&mut self) {
        self.rtt_measured = true;
    }

    /// Returns whether a probe may be sent: no other is outstanding, and a round-trip time was measured since the last
    /// one (RFC 8985 §7.3).
    pub(crate) fn may_probe(&self) -> bool {
        self.config != TailProbe::Off && self.probe.is_none() && self.rtt_measured
    }

    /// Returns the time of the next probe (RFC 8985 §7.2), from `srtt` if known, the number of segments in flight, and
    /// the expiry `rto` of the retransmission timer.
    pub(crate) fn probe_timeout(
        &self,
        now: Instant,
        srtt: Option<Duration>,
        flight: Flight,
        rto: Option<Instant>,
    ) -> Option<Instant> {
        let TailProbe::On { max_ack_delay } = self.config else { return None };
        let wait = match (srtt, flight) {
            (None, _) => INITIAL_PTO,
            (Some(srtt), Flight::OneSegment) => srtt * 2 + max_ack_delay,
            (Some(srtt), Flight::More) => (srtt * 2).max(LEAST_PTO),
        };
        let at = now + wait;
        Some(rto.map_or(at, |rto| rto.min(at)))
    }

    /// Records that a probe was sent for a flight of `flight` bytes; `end`: position after all data sent.
    pub(crate) fn on_probe(&mut self, kind: ProbeKind, end: u64, flight: u64) {
        self.probe = Some(TailLossProbe { end, kind, flight });
        self.rtt_measured = false;
    }

    /// Processes an acknowledgment (RFC 8985 §7.4.2). Returns the probe if it repaired a loss.
    pub(crate) fn on_ack(&mut self, answer: TlpAck) -> Option<TailLossProbe> {
        let probe = self.probe.filter(|probe| answer.ack >= probe.end)?;
        let reported = answer.dsack == Some(probe.end);
        let arrived_twice = reported || (answer.ack == probe.end && answer.bare_duplicate);
        if probe.kind == ProbeKind::NewData || arrived_twice {
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

/// Segments in flight at the scheduling of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flight {
    /// One segment: the peer may delay its ACK.
    OneSegment,
    /// More than one segment.
    More,
}
