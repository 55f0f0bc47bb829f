//! Explicit congestion notification (RFC 3168): negotiation, the receiver's echo, the sender's reaction.

use super::config::EcnMode;
use super::congestion::EcnEffect;
use super::endpoint::Endpoint;
use super::timer::Timer;
use crate::connection::State;
use hopline_core::{Instant, Payload};
use hopline_wire::ipv4;
use hopline_wire::tcp::{Flags, Segment};

/// Result of the ECN negotiation in the SYNs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EcnNegotiation {
    /// No ECN.
    #[default]
    None,
    /// Marks on the peer's data are echoed. Our data are not ECN-capable, since one of our SYNs did not announce it
    /// (RFC 3168 §6.1.1).
    EchoOnly,
    /// Full ECN in both directions.
    Full,
}

/// ECN state of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnState {
    pub(super) negotiation: EcnNegotiation,
    /// `true` if every acknowledgment carries ECE, until the peer sends CWR.
    must_echo: bool,
    /// `true` if the next new data carry CWR.
    cwr_pending: bool,
}

impl<P: Payload> Endpoint<P> {
    /// Returns the flags of a SYN or SYN-ACK that offer or accept ECN (RFC 3168 §6.1.1). A retransmitted SYN carries
    /// none, since a middlebox may drop such SYNs (§6.1.1.1).
    pub(super) fn ecn_setup(&self) -> Flags {
        match self.state() {
            State::SynSent if self.config.ecn == EcnMode::Request && !self.snd.syn_was_retransmitted() => {
                Flags::ECE | Flags::CWR
            }
            State::SynReceived if self.ecn.negotiation != EcnNegotiation::None => Flags::ECE,
            _ => Flags(0),
        }
    }

    /// Processes the ECN flags of the peer's SYN or SYN-ACK.
    pub(super) fn negotiate_ecn(&mut self, segment: &Segment<P>) {
        let flags = segment.flags;
        let both = flags.contains(Flags::ECE | Flags::CWR);
        let asked = self.config.ecn == EcnMode::Request;
        self.ecn.negotiation = match self.state() {
            State::Listen if both && self.config.ecn != EcnMode::Never => EcnNegotiation::Full,
            // A SYN-ACK that mirrors our bits is no agreement.
            State::SynSent if flags.contains(Flags::ACK) && (both || !flags.contains(Flags::ECE)) => {
                EcnNegotiation::None
            }
            State::SynSent if !flags.contains(Flags::ACK) && !both => EcnNegotiation::None,
            State::SynSent if asked && self.snd.syn_was_retransmitted() => EcnNegotiation::EchoOnly,
            State::SynSent if asked => EcnNegotiation::Full,
            _ => EcnNegotiation::None,
        };
    }

    /// Processes a repeated SYN of the peer, which may no longer offer ECN.
    pub(super) fn renegotiate_ecn(&mut self, segment: &Segment<P>) {
        if !segment.flags.contains(Flags::ECE | Flags::CWR) && self.ecn.negotiation == EcnNegotiation::Full {
            self.ecn.negotiation = EcnNegotiation::EchoOnly;
        }
    }

    /// Records the ECN mark of data (§6.1.3), which lie within the window (§6.1.5).
    pub(super) fn record_ce_mark(&mut self, segment: &Segment<P>) {
        if self.ecn.negotiation == EcnNegotiation::None || segment.payload.is_empty() {
            return;
        }
        if segment.flags.contains(Flags::CWR) {
            self.ecn.must_echo = false;
        }
        if segment.ecn == ipv4::Ecn::CongestionExperienced {
            self.ecn.must_echo = true;
            self.stats.marks_received += 1;
        }
    }

    /// Returns the ECE flag of an acknowledgment.
    pub(super) fn ecn_echo(&self) -> Flags {
        if self.ecn.must_echo { Flags::ECE } else { Flags(0) }
    }

    /// Returns whether the segment reports a mark on our data.
    pub(super) fn has_ecn_echo(&self, segment: &Segment<P>) -> bool {
        self.ecn.negotiation == EcnNegotiation::Full && segment.flags.contains(Flags::ECE)
    }

    /// Makes new data ECN-capable, and adds CWR after a reduction. Retransmissions and other segments must not be capable
    /// (§6.1.4–6.1.6).
    pub(super) fn mark_ecn_capable(&mut self, segment: &mut Segment<P>) {
        if self.ecn.negotiation != EcnNegotiation::Full {
            return;
        }
        segment.ecn = ipv4::Ecn::Capable0;
        if self.ecn.cwr_pending {
            self.ecn.cwr_pending = false;
            segment.flags |= Flags::CWR;
        }
    }

    /// Requests CWR on the next new data after a reduction of the window for any reason (§6.1.2).
    pub(super) fn request_cwr(&mut self) {
        self.ecn.cwr_pending = self.ecn.negotiation == EcnNegotiation::Full;
    }

    /// Pauses new data for one timeout if a mark finds a window of one segment, which cannot be halved (§6.1.2).
    pub(super) fn start_ecn_pause(&mut self, now: Instant, window: EcnEffect) {
        if window == EcnEffect::OneSegment {
            self.timers.set(Timer::EcnPause, now + self.rto.timeout());
        }
    }

    /// Returns whether new data have to wait for the end of such a pause.
    pub(super) fn is_in_ecn_pause(&self) -> bool {
        self.timers.is_set(Timer::EcnPause)
    }
}
