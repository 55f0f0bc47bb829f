//! Explicit congestion notification (RFC 3168): what is agreed on, the receiver's echo, the sender's reaction.

use super::config::EcnUse;
use super::congestion::MarkedWindow;
use super::endpoint::Endpoint;
use super::timer::Timer;
use crate::connection::State;
use hopline_core::{Instant, Payload};
use hopline_wire::ipv4;
use hopline_wire::tcp::{Flags, Segment};

/// What the SYNs have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Agreement {
    /// No ECN.
    #[default]
    None,
    /// Marks on what the peer sends are echoed; our data are not capable, for a SYN of ours did not say that they would be
    /// (RFC 3168 §6.1.1).
    EchoOnly,
    /// Both ways.
    Full,
}

/// ECN state of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ecn {
    pub(super) agreement: Agreement,
    /// Every acknowledgment carries ECE until the peer sends CWR.
    echoing: bool,
    /// The next new data carry CWR.
    owes_cwr: bool,
}

impl<P: Payload> Endpoint<P> {
    /// The bits that a SYN or SYN-ACK offers or accepts ECN with (RFC 3168 §6.1.1). A SYN that was lost goes without: a box on
    /// the path may dislike it (§6.1.1.1).
    pub(super) fn ecn_setup(&self) -> Flags {
        match self.state {
            State::SynSent if self.config.ecn == EcnUse::Ask && !self.snd.syn_resent => {
                Flags::ECE | Flags::CWR
            }
            State::SynReceived if self.ecn.agreement != Agreement::None => Flags::ECE,
            _ => Flags(0),
        }
    }

    /// What the peer's SYN or SYN-ACK comes to.
    pub(super) fn agree_on_ecn(&mut self, segment: &Segment<P>) {
        let flags = segment.flags;
        let both = flags.contains(Flags::ECE | Flags::CWR);
        let asked = self.config.ecn == EcnUse::Ask;
        self.ecn.agreement = match self.state {
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

    /// The peer repeats its SYN, and may have thought better of it.
    pub(super) fn confirm_ecn(&mut self, segment: &Segment<P>) {
        if !segment.flags.contains(Flags::ECE | Flags::CWR) && self.ecn.agreement == Agreement::Full {
            self.ecn.agreement = Agreement::EchoOnly;
        }
    }

    /// Takes note of what happened to data on the way (§6.1.3). They lie in the window (§6.1.5).
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

    /// The bit of an acknowledgment.
    pub(super) fn ecn_echo(&self) -> Flags {
        if self.ecn.echoing { Flags::ECE } else { Flags(0) }
    }

    /// Whether the segment reports a mark on our data.
    pub(super) fn reports_mark(&self, segment: &Segment<P>) -> bool {
        self.ecn.agreement == Agreement::Full && segment.flags.contains(Flags::ECE)
    }

    /// Makes data that were never sent before capable of being marked, and says what became of the last mark. Everything else
    /// must not be (§6.1.4–6.1.6).
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

    /// The window was reduced, for whatever reason (§6.1.2).
    pub(super) fn owe_cwr(&mut self) {
        self.ecn.owes_cwr = self.ecn.agreement == Agreement::Full;
    }

    /// A mark found a window of one segment, which cannot be halved: the next leaves a timeout later (§6.1.2).
    pub(super) fn pause_for_mark(&mut self, now: Instant, window: MarkedWindow) {
        if window == MarkedWindow::OneSegment {
            self.timers.set(Timer::MarkPause, now + self.rto.timeout());
        }
    }

    /// Whether new data have to wait for the end of such a pause.
    pub(super) fn pauses_for_mark(&self) -> bool {
        self.timers.is_set(Timer::MarkPause)
    }
}
