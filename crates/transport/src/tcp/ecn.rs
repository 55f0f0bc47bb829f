//! Explicit congestion notification (RFC 3168): negotiation, the receiver's echo, the sender's reaction.

use super::config::EcnUse;
use super::congestion::MarkedWindow;
use super::endpoint::Endpoint;
use super::timer::Timer;
use crate::connection::State;
use hopline_core::{Instant, Payload};
use hopline_wire::ipv4;
use hopline_wire::tcp::{Flags, Segment};

/// Result of the ECN negotiation in the SYNs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Agreement {
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
pub(super) struct Ecn {
    pub(super) agreement: Agreement,
    /// `true` if every acknowledgment carries ECE, until the peer sends CWR.
    echoing: bool,
    /// `true` if the next new data carry CWR.
    owes_cwr: bool,
}

impl<P: Payload> Endpoint<P> {
    /// Returns the flags of a SYN or SYN-ACK that offer or accept ECN (RFC 3168 §6.1.1). A retransmitted SYN carries
    /// none, since a middlebox may drop such SYNs (§6.1.1.1).
    pub(super) fn ecn_setup(&self) -> Flags {
        match self.state() {
            State::SynSent if self.config.ecn == EcnUse::Ask && !self.snd.syn_resent => {
                Flags::ECE | Flags::CWR
            }
            State::SynReceived if self.ecn.agreement != Agreement::None => Flags::ECE,
            _ => Flags(0),
        }
    }

    /// Processes the ECN flags of the peer's SYN or SYN-ACK.
    pub(super) fn agree_on_ecn(&mut self, segment: &Segment<P>) {
        let flags = segment.flags;
        let both = flags.contains(Flags::ECE | Flags::CWR);
        let asked = self.config.ecn == EcnUse::Ask;
        self.ecn.agreement = match self.state() {
            State::Listen if both && self.config.ecn != EcnUse::Never => Agreement::Full,
            // A SYN-ACK that mirrors our bits is no agreement.
            State::SynSent if flags.contains(Flags::ACK) && (both || !flags.contains(Flags::ECE)) => {
                Agreement::None
            }
            State::SynSent if !flags.contains(Flags::ACK) && !both => Agreement::None,
            State::SynSent if asked && self.snd.syn_resent => Agreement::EchoOnly,
            State::SynSent if asked => Agreement::Full,
            _ => Agreement::None,
        };
    }

    /// Processes a repeated SYN of the peer, which may no longer offer ECN.
    pub(super) fn confirm_ecn(&mut self, segment: &Segment<P>) {
        if !segment.flags.contains(Flags::ECE | Flags::CWR) && self.ecn.agreement == Agreement::Full {
            self.ecn.agreement = Agreement::EchoOnly;
        }
    }

    /// Records the ECN mark of data (§6.1.3), which lie within the window (§6.1.5).
    pub(super) fn note_mark(&mut self, segment: &Segment<P>) {
        if self.ecn.agreement == Agreement::None || segment.payload.is_empty() {
            return;
        }
        if segment.flags.contains(Flags::CWR) {
            self.ecn.echoing = false;
        }
        if segment.ecn == ipv4::Ecn::CongestionExperienced {
            self.ecn.echoing = true;
            self.stats.marks_received += 1;
        }
    }

    /// Returns the ECE flag of an acknowledgment.
    pub(super) fn ecn_echo(&self) -> Flags {
        if self.ecn.echoing { Flags::ECE } else { Flags(0) }
    }

    /// Returns whether the segment reports a mark on our data.
    pub(super) fn reports_mark(&self, segment: &Segment<P>) -> bool {
        self.ecn.agreement == Agreement::Full && segment.flags.contains(Flags::ECE)
    }

    /// Makes new data ECN-capable, and adds CWR after a reduction. Retransmissions and other segments must not be capable
    /// (§6.1.4–6.1.6).
    pub(super) fn make_capable(&mut self, segment: &mut Segment<P>) {
        if self.ecn.agreement != Agreement::Full {
            return;
        }
        segment.ecn = ipv4::Ecn::Capable0;
        if self.ecn.owes_cwr {
            self.ecn.owes_cwr = false;
            segment.flags |= Flags::CWR;
        }
    }

    /// Requests CWR on the next new data after a reduction of the window for any reason (§6.1.2).
    pub(super) fn owe_cwr(&mut self) {
        self.ecn.owes_cwr = self.ecn.agreement == Agreement::Full;
    }

    /// Pauses new data for one timeout if a mark finds a window of one segment, which cannot be halved (§6.1.2).
    pub(super) fn pause_for_mark(&mut self, now: Instant, window: MarkedWindow) {
        if window == MarkedWindow::OneSegment {
            self.timers.set(Timer::MarkPause, now + self.rto.timeout());
        }
    }

    /// Returns whether new data have to wait for the end of such a pause.
    pub(super) fn pauses_for_mark(&self) -> bool {
        self.timers.is_set(Timer::MarkPause)
    }
}
