//! Explicit congestion notification: negotiation, the receiver's feedback, the sender's reaction. Classic feedback is that of
//! RFC 3168, and accurate feedback that of RFC 9768 ([`super::acc_ecn`]).

use super::acc_ecn::{
    Feedback, FeedbackAck, MarkAck, MarkCounter, MarkReader, MarkReport, UnackedData, reported_codepoint,
};
use super::config::EcnMode;
use super::congestion::EcnEffect;
use super::endpoint::Endpoint;
use super::receive::PendingAck;
use super::timer::Timer;
use crate::connection::State;
use hopline_core::{Instant, Payload};
use hopline_wire::ip::Ecn;
use hopline_wire::tcp::{AccEcnOption, Flags, Segment};

/// Flags of a classic ECN-setup SYN (RFC 3168 §6.1.1).
const CLASSIC_SYN: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

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
    /// Accurate ECN in both directions (RFC 9768).
    Accurate,
}

/// ECN state of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnState {
    pub(super) negotiation: EcnNegotiation,
    /// `true` if every acknowledgment carries ECE, until the peer sends CWR.
    must_echo: bool,
    /// `true` if the next new data carry CWR.
    cwr_pending: bool,
    /// Accurate feedback about the peer's packets.
    counter: MarkCounter,
    /// Accurate feedback about our packets.
    reader: MarkReader,
    /// Marks that the acknowledgment in process reports.
    report: MarkReport,
    /// Client's segments that still differ from later ones.
    client_tests: ClientTests,
}

/// First segments of the client with accurate ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientTests {
    /// A pure ACK has to report the codepoint of the SYN-ACK (RFC 9768 §3.2.2.1), with an option.
    HandshakeAck,
    /// The first data carry an option (§3.2.3.2.1).
    FirstData,
    /// None is left.
    Done,
}

/// Agreement of a repeated SYN with the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepeatedSyn {
    /// It is compatible.
    Compatible,
    /// It requests another kind of feedback: the connection is reset (RFC 9768 §3.1.5).
    Conflicting,
}

impl Default for EcnState {
    fn default() -> Self {
        Self {
            negotiation: EcnNegotiation::None,
            must_echo: false,
            cwr_pending: false,
            counter: MarkCounter::new(Ecn::NotCapable),
            reader: MarkReader::new(),
            report: MarkReport::default(),
            client_tests: ClientTests::Done,
        }
    }
}

impl<P: Payload> Endpoint<P> {
    /// Returns the flags of a SYN or SYN-ACK that offer or accept ECN (RFC 3168 §6.1.1, RFC 9768 §3.1.1). A retransmitted
    /// SYN carries none, since a middlebox may drop such SYNs (RFC 3168 §6.1.1.1). Accurate ECN is offered twice (RFC 9768
    /// §3.1.4.1), and confirmed twice (§3.2.3.2.2).
    pub(super) fn ecn_setup(&mut self) -> Flags {
        let repetitions = self.snd.syn_retransmissions;
        match self.state() {
            State::SynSent => match self.config.ecn {
                EcnMode::Request if repetitions == 0 => CLASSIC_SYN,
                EcnMode::AccEcn if repetitions <= 1 => Flags::ECN,
                _ => Flags(0),
            },
            State::SynReceived => match self.ecn.negotiation {
                EcnNegotiation::None => Flags(0),
                EcnNegotiation::EchoOnly | EcnNegotiation::Full => Flags::ECE,
                EcnNegotiation::Accurate if repetitions <= 1 => {
                    Flags::from_ace(self.ecn.counter.handshake_code())
                }
                EcnNegotiation::Accurate => {
                    // §3.1.5: a server that has sent such a SYN-ACK must not send ECN-capable packets.
                    self.ecn.reader.stop_capable_data();
                    Flags(0)
                }
            },
            _ => Flags(0),
        }
    }

    /// Processes the ECN flags of the peer's SYN or SYN-ACK.
    pub(super) fn negotiate_ecn(&mut self, segment: &Segment<P>) {
        let is_answer = self.state() == State::SynSent && segment.flags.contains(Flags::ACK);
        *self.ecn = EcnState { counter: MarkCounter::new(segment.ecn), ..EcnState::default() };
        self.ecn.negotiation = match (self.state(), self.config.ecn) {
            _ if is_answer => self.negotiation_by_syn_ack(segment),
            (State::Listen, mode) => negotiation_by_syn(mode, segment.flags),
            // Simultaneous open: as a responding host (RFC 9768 §3.1.2), or as far as our SYN has asked (RFC 3168).
            (State::SynSent, EcnMode::AccEcn) => negotiation_by_syn(EcnMode::AccEcn, segment.flags),
            (State::SynSent, _) if segment.flags.contains(CLASSIC_SYN) => self.classic_negotiation(),
            _ => EcnNegotiation::None,
        };
        if is_answer && self.ecn.negotiation == EcnNegotiation::Accurate {
            self.ecn.counter.count_syn_ack();
            self.ecn.client_tests = ClientTests::HandshakeAck;
            // The reserved combination counts as "arrived unchanged" (§3.1.3).
            let codepoint = reported_codepoint(segment.flags.ace()).unwrap_or(Ecn::NotCapable);
            self.ecn.reader.on_syn_report(codepoint, segment.options.acc_ecn);
        }
    }

    /// Returns the result of a SYN-ACK.
    fn negotiation_by_syn_ack(&self, segment: &Segment<P>) -> EcnNegotiation {
        let flags = segment.flags;
        match (self.config.ecn, flags.ace()) {
            // Table 2. (1,0,1) is reserved, and confirms, too (§3.1.3); (1,1,1) mirrors our flags.
            (EcnMode::AccEcn, 0b010..=0b110) => EcnNegotiation::Accurate,
            (EcnMode::AccEcn, 0b001) if self.snd.syn_retransmissions > 1 => EcnNegotiation::EchoOnly,
            (EcnMode::AccEcn, 0b001) => EcnNegotiation::Full,
            (EcnMode::AccEcn, _) => EcnNegotiation::None,
            // A SYN-ACK that mirrors our bits is no agreement.
            _ if flags.contains(CLASSIC_SYN) || !flags.contains(Flags::ECE) => EcnNegotiation::None,
            _ => self.classic_negotiation(),
        }
    }

    /// Returns the result of an answer to our classic ECN-setup SYN.
    fn classic_negotiation(&self) -> EcnNegotiation {
        match self.config.ecn {
            EcnMode::Request if self.snd.syn_was_retransmitted() => EcnNegotiation::EchoOnly,
            EcnMode::Request => EcnNegotiation::Full,
            EcnMode::Never | EcnMode::Accept | EcnMode::AccEcn => EcnNegotiation::None,
        }
    }

    /// Processes a repeated SYN of the peer, which may no longer offer ECN. The kind of feedback never changes (RFC 9768
    /// §3.1.5).
    pub(super) fn renegotiate_ecn(&mut self, segment: &Segment<P>) -> RepeatedSyn {
        let offer = negotiation_by_syn(self.config.ecn, segment.flags);
        match (self.ecn.negotiation, offer) {
            (EcnNegotiation::Accurate, EcnNegotiation::Full)
            | (EcnNegotiation::Full | EcnNegotiation::EchoOnly, EcnNegotiation::Accurate) => {
                return RepeatedSyn::Conflicting;
            }
            (EcnNegotiation::Accurate, EcnNegotiation::None) => self.ecn.reader.stop_capable_data(),
            (EcnNegotiation::Full, EcnNegotiation::None) => self.ecn.negotiation = EcnNegotiation::EchoOnly,
            _ => {}
        }
        self.ecn.counter.on_handshake_packet(segment.ecn);
        RepeatedSyn::Compatible
    }

    /// Processes a SYN-ACK that arrives again after the connection was established. The next pure ACK reports its codepoint
    /// (RFC 9768 §3.2.2.1).
    pub(super) fn on_repeated_syn_ack(&mut self, segment: &Segment<P>) {
        let confirms = segment.flags.contains(Flags::SYN | Flags::ACK)
            && segment.seq == self.rcv.irs
            && segment.ack == self.snd.seq(1)
            && matches!(segment.flags.ace(), 0b010..=0b110);
        let is_client =
            self.state() == State::Established && self.ecn.negotiation == EcnNegotiation::Accurate;
        if confirms && is_client && self.rcv.pending_ack == PendingAck::Now {
            self.ecn.counter.on_handshake_packet(segment.ecn);
            self.ecn.counter.count_syn_ack();
            self.ecn.client_tests = ClientTests::HandshakeAck;
        }
    }

    /// Processes the ACK that opens the connection in SYN-RECEIVED. If it is a pure ACK, its flags report the codepoint of the
    /// SYN-ACK (RFC 9768 §3.2.2.1).
    pub(super) fn on_handshake_ack(&mut self, segment: &Segment<P>) {
        let is_pure = segment.payload.is_empty() && segment.options.sack.is_empty();
        let may_have_code = !segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::FIN);
        if self.ecn.negotiation == EcnNegotiation::Accurate && is_pure && may_have_code {
            self.ecn.reader.on_syn_ack_report(segment.flags.ace());
        }
    }

    /// Counts the codepoint of an acceptable packet with `len` payload bytes, for accurate feedback.
    pub(super) fn count_codepoint(&mut self, codepoint: Ecn, len: u64) {
        if self.ecn.negotiation != EcnNegotiation::Accurate {
            return;
        }
        let waits = len > 0 || matches!(self.rcv.pending_ack, PendingAck::Delayed { .. });
        let unacked = if waits { UnackedData::Some } else { UnackedData::None };
        self.stats.marks_received += u64::from(codepoint == Ecn::CongestionExperienced && len > 0);
        if self.ecn.counter.on_packet(codepoint, len as u32, unacked) == MarkAck::Now {
            self.rcv.pending_ack = PendingAck::Now;
        }
    }

    /// Records the ECN mark of data (RFC 3168 §6.1.3), which lie within the window (§6.1.5), for classic feedback.
    pub(super) fn record_ce_mark(&mut self, segment: &Segment<P>) {
        let is_classic = matches!(self.ecn.negotiation, EcnNegotiation::EchoOnly | EcnNegotiation::Full);
        if !is_classic || segment.payload.is_empty() {
            return;
        }
        if segment.flags.contains(Flags::CWR) {
            self.ecn.must_echo = false;
        }
        if segment.ecn == Ecn::CongestionExperienced {
            self.ecn.must_echo = true;
            self.stats.marks_received += 1;
        }
    }

    /// Returns whether a pure ACK has to report the codepoint of the SYN-ACK before any data are sent.
    pub(super) fn owes_handshake_ack(&self) -> bool {
        self.ecn.client_tests == ClientTests::HandshakeAck && self.rcv.pending_ack == PendingAck::Now
    }

    /// Returns the AccECN option of the next segment, if it carries one.
    pub(super) fn acc_ecn_option(&self, has_data: bool) -> Option<AccEcnOption> {
        if self.ecn.negotiation != EcnNegotiation::Accurate {
            return None;
        }
        let tests_path = match self.ecn.client_tests {
            ClientTests::HandshakeAck => true,
            ClientTests::FirstData => has_data,
            ClientTests::Done => false,
        };
        if tests_path { Some(self.ecn.counter.full_option()) } else { self.ecn.counter.option() }
    }

    /// Returns the AccECN option of a SYN-ACK. A retransmitted one carries none (RFC 9768 §3.2.3.2.2).
    pub(super) fn syn_ack_acc_ecn_option(&self) -> Option<AccEcnOption> {
        let confirms = self.ecn.negotiation == EcnNegotiation::Accurate && !self.snd.syn_was_retransmitted();
        confirms.then(|| self.ecn.counter.full_option())
    }

    /// Sets the ECN feedback of a segment with acknowledgment, of which SACK blocks and payload are complete: ECE, or the ACE
    /// field.
    pub(super) fn set_ecn_feedback(&mut self, segment: &mut Segment<P>) {
        if self.ecn.negotiation != EcnNegotiation::Accurate {
            segment.flags |= if self.ecn.must_echo { Flags::ECE } else { Flags(0) };
            return;
        }
        let has_data = !segment.payload.is_empty();
        let is_pure = !has_data && segment.options.sack.is_empty();
        let tests = self.ecn.client_tests;
        let ace = match tests {
            ClientTests::HandshakeAck if is_pure => self.ecn.counter.handshake_code(),
            _ => self.ecn.counter.ace(),
        };
        segment.flags |= Flags::from_ace(ace);
        self.ecn.client_tests = match tests {
            ClientTests::HandshakeAck if is_pure => ClientTests::FirstData,
            ClientTests::FirstData if has_data => ClientTests::Done,
            _ => tests,
        };
        self.ecn.counter.on_ack_sent();
    }

    /// Reads the accurate feedback of an acceptable acknowledgment that reports `delivered` bytes for the first time.
    pub(super) fn read_ecn_feedback(&mut self, segment: &Segment<P>, delivered: u64) {
        if self.ecn.negotiation != EcnNegotiation::Accurate {
            return;
        }
        let before = self.ecn.reader.feedback();
        self.ecn.report = self.ecn.reader.read(&FeedbackAck {
            ace: segment.flags.ace(),
            option: segment.options.acc_ecn,
            timestamp: segment.options.timestamps.filter(|_| self.options.timestamps).map(|ts| ts.value),
            delivered,
            mss: self.snd.mss,
        });
        self.stats.marks_reported += u64::from(self.ecn.report.packets);
        if before != self.ecn.reader.feedback() {
            self.control.use_classic_response();
        }
    }

    /// Returns the marked bytes that the acknowledgment in process reports, with accurate feedback.
    pub(super) fn marked_bytes(&self) -> u64 {
        self.ecn.report.bytes
    }

    /// Returns whether the segment reports a mark on our data.
    pub(super) fn has_ecn_echo(&self, segment: &Segment<P>) -> bool {
        match self.ecn.negotiation {
            EcnNegotiation::Full => segment.flags.contains(Flags::ECE),
            EcnNegotiation::Accurate => self.ecn.report.packets > 0,
            EcnNegotiation::None | EcnNegotiation::EchoOnly => false,
        }
    }

    /// Returns whether the extent of congestion is known, and our packets can be marked: the condition for a scalable
    /// response (RFC 9331 §4.2).
    pub(super) fn has_accurate_ecn(&self) -> bool {
        self.ecn.negotiation == EcnNegotiation::Accurate && self.ecn.reader.feedback() == Feedback::Used
    }

    /// Makes new data ECN-capable, and adds CWR after a reduction with classic feedback. Retransmissions and other segments
    /// must not be capable (RFC 3168 §6.1.4–6.1.6), except those of a scalable sender.
    pub(super) fn mark_ecn_capable(&mut self, segment: &mut Segment<P>) {
        match self.ecn.negotiation {
            EcnNegotiation::None | EcnNegotiation::EchoOnly => {}
            EcnNegotiation::Full => {
                segment.ecn = Ecn::Capable0;
                if self.ecn.cwr_pending {
                    self.ecn.cwr_pending = false;
                    segment.flags |= Flags::CWR;
                }
            }
            EcnNegotiation::Accurate if self.ecn.reader.feedback() == Feedback::Used => {
                segment.ecn = if self.control.is_scalable() { Ecn::Capable1 } else { Ecn::Capable0 };
            }
            EcnNegotiation::Accurate => {}
        }
    }

    /// Makes retransmitted data ECN-capable if the sender is scalable (RFC 8311 §4.3;
    /// draft-briscoe-iccrg-prague-congestion-control §2.2).
    pub(super) fn mark_retransmission_ecn_capable(&mut self, segment: &mut Segment<P>) {
        if self.control.is_scalable() {
            self.mark_ecn_capable(segment);
        }
    }

    /// Requests CWR on the next new data after a reduction of the window for any reason (RFC 3168 §6.1.2).
    pub(super) fn request_cwr(&mut self) {
        self.ecn.cwr_pending = self.ecn.negotiation == EcnNegotiation::Full;
    }

    /// Pauses new data for one timeout if a mark finds a window of one segment, which cannot be halved (RFC 3168 §6.1.2).
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

/// Returns the result of a SYN for its receiver.
fn negotiation_by_syn(mode: EcnMode, flags: Flags) -> EcnNegotiation {
    match (mode, flags.ace()) {
        (EcnMode::Never, _) | (EcnMode::AccEcn, 0b000) => EcnNegotiation::None,
        (EcnMode::AccEcn, 0b011) => EcnNegotiation::Full,
        // RFC 9768 §3.1.3: any other combination offers accurate ECN.
        (EcnMode::AccEcn, _) => EcnNegotiation::Accurate,
        (EcnMode::Accept | EcnMode::Request, _) if flags.contains(CLASSIC_SYN) => EcnNegotiation::Full,
        (EcnMode::Accept | EcnMode::Request, _) => EcnNegotiation::None,
    }
}
