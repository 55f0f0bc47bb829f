//! Accurate ECN feedback (RFC 9768): counters of both ends, the ACE field, and the AccECN option.
//!
//! | part | clause |
//! |---|---|
//! | codepoint of the SYN or SYN-ACK as three flags | §3.1.2 table 2, §3.2.2.1 tables 3 and 4 |
//! | counters of the receiver, and the ACKs that they trigger | §3.2, §3.2.2.5.1 |
//! | counters of the sender, and the wrap of the ACE field | §3.2.2.2, §3.2.2.5.2, appendix A.2 |
//! | AccECN option: emission, absence, zeroing, consistency | §3.2.3 |
//!
//! [`super::ecn`] negotiates the feedback and connects it to the endpoint.

use hopline_wire::ip::Ecn;
use hopline_wire::tcp::{AccEcnCounters, AccEcnOption, AccEcnOrder};

/// Initial value of the counters of CE packets (§3.2.1).
const INITIAL_CEP: u32 = 5;
/// Initial values of the byte counters (§3.2.1).
const INITIAL_BYTES: AccEcnCounters = AccEcnCounters { e0b: 1, ceb: 0, e1b: 1 };
/// Values of the ACE field.
const ACE_VALUES: u32 = 8;
/// Segments of ECN-capable data that must be acknowledged before their codepoints count as erased on the path.
const BLEACHED_AFTER: u64 = 10;

/// Returns the three flags that report the codepoint of a SYN or SYN-ACK (tables 2 and 3).
pub(super) const fn handshake_code(codepoint: Ecn) -> u8 {
    match codepoint {
        Ecn::NotCapable => 0b010,
        Ecn::Capable1 => 0b011,
        Ecn::Capable0 => 0b100,
        Ecn::CongestionExperienced => 0b110,
    }
}

/// Returns the codepoint that three flags report; `None` if they report none.
pub(super) const fn reported_codepoint(code: u8) -> Option<Ecn> {
    match code {
        0b010 => Some(Ecn::NotCapable),
        0b011 => Some(Ecn::Capable1),
        0b100 => Some(Ecn::Capable0),
        0b110 => Some(Ecn::CongestionExperienced),
        _ => None,
    }
}

/// Counters of the receiver of data (§3.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkCounter {
    /// CE packets: `r.cep`.
    cep: u32,
    bytes: AccEcnCounters,
    /// Codepoint of the latest SYN or SYN-ACK of the peer.
    handshake: Ecn,
    /// Codepoint of the last packet.
    last: Ecn,
    /// CE packets since the last acknowledgment.
    marks_unreported: u8,
    /// `true` if a byte counter has changed since the last acknowledgment.
    bytes_unreported: bool,
}

/// Acknowledgment that an arriving packet calls for (§3.2.2.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkAck {
    /// None beyond the policy for data.
    ByPolicy,
    /// At once.
    Now,
}

/// Data that wait for an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnackedData {
    /// None.
    None,
    /// Some, the arriving ones included.
    Some,
}

impl MarkCounter {
    /// Creates the counters of a connection on which the peer's SYN or SYN-ACK arrived with this codepoint.
    pub(super) fn new(handshake: Ecn) -> Self {
        Self {
            cep: INITIAL_CEP,
            bytes: INITIAL_BYTES,
            handshake,
            last: handshake,
            marks_unreported: 0,
            bytes_unreported: false,
        }
    }

    /// Records the codepoint of the latest SYN or SYN-ACK (§3.1.5).
    pub(super) fn on_handshake_packet(&mut self, codepoint: Ecn) {
        self.handshake = codepoint;
    }

    /// Counts a CE mark of a SYN-ACK, once (§3.2.2.2).
    pub(super) fn count_syn_ack(&mut self) {
        if self.handshake == Ecn::CongestionExperienced {
            self.cep = self.cep.max(INITIAL_CEP + 1);
        }
    }

    /// Counts an acceptable packet with `len` payload bytes.
    pub(super) fn on_packet(&mut self, codepoint: Ecn, len: u32, unacked: UnackedData) -> MarkAck {
        let before = core::mem::replace(&mut self.last, codepoint);
        let counter = match codepoint {
            Ecn::NotCapable => return MarkAck::ByPolicy,
            Ecn::Capable0 => &mut self.bytes.e0b,
            Ecn::Capable1 => &mut self.bytes.e1b,
            Ecn::CongestionExperienced => &mut self.bytes.ceb,
        };
        *counter = counter.wrapping_add(len);
        self.bytes_unreported |= len > 0;
        if codepoint != Ecn::CongestionExperienced {
            return MarkAck::ByPolicy;
        }
        self.cep = self.cep.wrapping_add(1);
        self.marks_unreported = self.marks_unreported.saturating_add(1);
        let is_change = before != Ecn::CongestionExperienced && len > 0;
        let marks_per_ack = match unacked {
            UnackedData::Some => 2,
            UnackedData::None => 3,
        };
        if is_change || self.marks_unreported >= marks_per_ack { MarkAck::Now } else { MarkAck::ByPolicy }
    }

    /// Returns the ACE field: the least significant bits of the counter of CE packets.
    pub(super) fn ace(&self) -> u8 {
        (self.cep % ACE_VALUES) as u8
    }

    /// Returns the flags that report the codepoint of the latest SYN or SYN-ACK.
    pub(super) fn handshake_code(&self) -> u8 {
        handshake_code(self.handshake)
    }

    /// Records that an acknowledgment was sent.
    pub(super) fn on_ack_sent(&mut self) {
        (self.marks_unreported, self.bytes_unreported) = (0, false);
    }

    /// Returns the option of the next acknowledgment, if a byte counter has changed since the last one. It has each counter
    /// that has changed during the connection (§3.2.3.3, the recommended simple scheme).
    pub(super) fn option(&self) -> Option<AccEcnOption> {
        self.bytes_unreported.then(|| {
            let AccEcnCounters { e0b, ceb, e1b } = self.bytes;
            let has_marks = ceb != INITIAL_BYTES.ceb;
            match (e0b != INITIAL_BYTES.e0b, e1b != INITIAL_BYTES.e1b) {
                (true, true) => self.full_option(),
                (true, false) => AccEcnOption::new(AccEcnOrder::Zero, self.bytes, 1 + u8::from(has_marks)),
                (false, _) => AccEcnOption::new(AccEcnOrder::One, self.bytes, 1 + u8::from(has_marks)),
            }
        })
    }

    /// Returns an option with all counters, which tests the path (§3.2.3.2.1).
    pub(super) fn full_option(&self) -> AccEcnOption {
        AccEcnOption::new(AccEcnOrder::One, self.bytes, 3)
    }
}

/// Marks that an acknowledgment reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkReport {
    /// CE packets, at least.
    pub(super) packets: u32,
    /// Bytes of data with CE; an estimate without the option (appendix A.3).
    pub(super) bytes: u64,
}

/// Use of the feedback by the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feedback {
    /// Data are ECN-capable, and marks count.
    Used,
    /// Data are not ECN-capable, since the path or the peer changes codepoints. Marks count (§3.2.2.3).
    WithoutCapableData,
    /// Data are not ECN-capable, and marks do not count (§3.2.2.1 note 1, §3.2.2.4).
    Ignored,
}

/// AccECN options of the peer (§3.2.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerOptions {
    /// None has arrived.
    Unseen,
    /// They arrive.
    Used,
    /// The first one had a counter of zero: they are ignored (§3.2.3.2.4).
    Ignored,
}

/// Counters of the sender of data (§3.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkReader {
    /// CE packets: `s.cep`.
    cep: u32,
    bytes: AccEcnCounters,
    feedback: Feedback,
    options: PeerOptions,
    /// `true` before the first ACE field, which must not be zero (§3.2.2.4).
    awaits_first: bool,
    /// Marks that the handshake reported, for the next report.
    handshake_marks: u32,
    /// `true` if the flags of the segment that is processed report the SYN-ACK, and not the counter.
    is_handshake_code: bool,
    /// CE packets that were reported since the last option.
    packets_since_option: u32,
    /// Acknowledged bytes that were ECN-capable, until a byte counter changes.
    capable_bytes: u64,
    /// Latest timestamp of the peer on an acknowledgment that counted.
    latest_timestamp: Option<u32>,
}

/// Acknowledgment with feedback.
#[derive(Clone, Copy, Debug)]
pub(super) struct FeedbackAck {
    /// ACE field.
    pub(super) ace: u8,
    pub(super) option: Option<AccEcnOption>,
    /// Timestamp of the peer, where timestamps are in use.
    pub(super) timestamp: Option<u32>,
    /// Bytes that are newly acknowledged, cumulatively or selectively.
    pub(super) delivered: u64,
    /// Size of a full segment, bytes.
    pub(super) mss: u32,
}

impl MarkReader {
    pub(super) fn new() -> Self {
        Self {
            cep: INITIAL_CEP,
            bytes: INITIAL_BYTES,
            feedback: Feedback::Used,
            options: PeerOptions::Unseen,
            awaits_first: true,
            handshake_marks: 0,
            is_handshake_code: false,
            packets_since_option: 0,
            capable_bytes: 0,
            latest_timestamp: None,
        }
    }

    pub(super) fn feedback(&self) -> Feedback {
        self.feedback
    }

    /// Stops sending ECN-capable data.
    pub(super) fn stop_capable_data(&mut self) {
        if self.feedback == Feedback::Used {
            self.feedback = Feedback::WithoutCapableData;
        }
    }

    fn ignore(&mut self) {
        self.feedback = Feedback::Ignored;
    }

    /// Processes the report of a SYN-ACK about our SYN, which was not ECN-capable. Any other codepoint is an invalid
    /// transition (§3.2.2.3).
    pub(super) fn on_syn_report(&mut self, codepoint: Ecn, option: Option<AccEcnOption>) {
        if codepoint != Ecn::NotCapable {
            self.stop_capable_data();
        }
        // §3.2.2.2: a mark counts for congestion control, and not for the counter.
        self.handshake_marks = u32::from(codepoint == Ecn::CongestionExperienced);
        self.check_first_option(option);
    }

    /// Processes the flags of the ACK of our SYN-ACK, which was not ECN-capable (§3.2.2.1 table 4).
    pub(super) fn on_syn_ack_report(&mut self, code: u8) {
        self.is_handshake_code = true;
        match (code, reported_codepoint(code)) {
            (0, _) => self.ignore(),
            (_, Some(Ecn::CongestionExperienced)) => {
                (self.cep, self.handshake_marks) = (INITIAL_CEP + 1, 1);
                self.stop_capable_data();
            }
            (_, Some(Ecn::Capable0 | Ecn::Capable1)) => self.stop_capable_data(),
            (_, Some(Ecn::NotCapable) | None) => {}
        }
    }

    /// Returns the marks that an acknowledgment reports for the first time.
    pub(super) fn read(&mut self, ack: &FeedbackAck) -> MarkReport {
        let handshake = core::mem::take(&mut self.handshake_marks);
        let mut report = if core::mem::take(&mut self.is_handshake_code) {
            self.check_first_option(ack.option);
            MarkReport::default()
        } else {
            self.read_counters(ack)
        };
        report.packets += handshake;
        report.bytes += u64::from(handshake) * u64::from(ack.mss);
        if self.feedback == Feedback::Ignored { MarkReport::default() } else { report }
    }

    fn read_counters(&mut self, ack: &FeedbackAck) -> MarkReport {
        if !self.is_news(ack) {
            return MarkReport::default();
        }
        if core::mem::take(&mut self.awaits_first) && ack.ace == 0 {
            self.ignore();
        }
        self.check_first_option(ack.option);
        let option = ack.option.filter(|_| self.options == PeerOptions::Used);
        let least = (u32::from(ack.ace) + ACE_VALUES - self.cep % ACE_VALUES) % ACE_VALUES;
        let full_segments = u32::try_from(ack.delivered / u64::from(ack.mss.max(1))).unwrap_or(u32::MAX);
        let safer = safest_increment(least, full_segments);
        let (packets, bytes) = match option {
            Some(option) => {
                let bytes = self.read_option(&option, safer);
                (reconcile(least, safer, bytes, ack.mss), bytes)
            }
            None => (safer, u64::from(safer) * u64::from(ack.mss)),
        };
        if option.is_none() {
            // What the next option reports again is then no news.
            self.bytes.ceb = self.bytes.ceb.wrapping_add(bytes as u32);
            self.packets_since_option = self.packets_since_option.saturating_add(packets);
        }
        self.cep = self.cep.wrapping_add(packets);
        self.check_erasure(ack);
        MarkReport { packets, bytes }
    }

    /// Returns whether no later acknowledgment has arrived before (appendix A.1).
    fn is_news(&mut self, ack: &FeedbackAck) -> bool {
        let is_later = |old: u32, new: u32| (new.wrapping_sub(old) as i32) > 0;
        let has_newer_timestamp = match (self.latest_timestamp, ack.timestamp) {
            (Some(old), Some(new)) => is_later(old, new),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if has_newer_timestamp {
            self.latest_timestamp = ack.timestamp;
        }
        ack.delivered > 0 || has_newer_timestamp
    }

    /// Checks the first option, of which no counter of ECN-capable bytes can be zero (§3.2.3.2.4).
    fn check_first_option(&mut self, option: Option<AccEcnOption>) {
        if let (PeerOptions::Unseen, Some(option)) = (self.options, option) {
            let is_zeroed = option.e0b() == Some(0) || option.e1b() == Some(0);
            self.options = if is_zeroed { PeerOptions::Ignored } else { PeerOptions::Used };
        }
    }

    /// Updates the byte counters. Returns the CE bytes that are reported for the first time.
    fn read_option(&mut self, option: &AccEcnOption, packets: u32) -> u64 {
        let update = |counter: &mut u32, field: Option<u32>| match field {
            Some(value) => {
                let change = distance_24(*counter, value);
                *counter = counter.wrapping_add(change as u32);
                change
            }
            None => 0,
        };
        update(&mut self.bytes.e0b, option.e0b());
        update(&mut self.bytes.e1b, option.e1b());
        let marked = update(&mut self.bytes.ceb, option.ceb()).max(0) as u64;
        let since = core::mem::take(&mut self.packets_since_option);
        if marked > 0 && packets == 0 && since == 0 {
            // §3.2.3.2.5: bytes were marked, but no packet.
            self.stop_capable_data();
        }
        marked
    }

    /// Stops sending ECN-capable data if the peer sends options, but no byte of the first data arrived with a codepoint.
    fn check_erasure(&mut self, ack: &FeedbackAck) {
        let unchanged = self.bytes == INITIAL_BYTES && self.cep == INITIAL_CEP;
        if self.feedback != Feedback::Used || self.options != PeerOptions::Used || !unchanged {
            return;
        }
        self.capable_bytes += ack.delivered;
        if self.capable_bytes >= BLEACHED_AFTER * u64::from(ack.mss) {
            self.stop_capable_data();
        }
    }
}

/// Returns the number of new CE packets if the ACE field wrapped as often as `full_segments` acknowledged segments allow:
/// the safest likely case (appendix A.2.1). `least`: increment without a wrap.
fn safest_increment(least: u32, full_segments: u32) -> u32 {
    // More marks than segments come from segments that were not full.
    let spare = full_segments.saturating_sub(least);
    least.max(full_segments - spare % ACE_VALUES * u32::from(full_segments > least))
}

/// Returns the number of new CE packets, where the option reports `bytes` as CE (appendix A.2.2): the increment without a
/// wrap if these segments are not too long, and those with the wrap would be short.
fn reconcile(least: u32, safer: u32, bytes: u64, mss: u32) -> u32 {
    let mss = u64::from(mss);
    let fits = bytes <= mss * u64::from(least);
    let would_be_short = 2 * bytes < mss * u64::from(safer);
    if fits && would_be_short { least } else { safer }
}

/// Returns the distance from a counter to its 24 least significant bits in an option. A small step back is negative, as
/// where an estimate was too high.
fn distance_24(counter: u32, field: u32) -> i32 {
    (field.wrapping_sub(counter) << 8) as i32 >> 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_safest_increment_is_that_of_appendix_a_2_1() {
        assert_eq!(safest_increment(2, 9), 2);
        assert_eq!(safest_increment(2, 10), 10);
        assert_eq!(safest_increment(0, 8), 8);
        assert_eq!(safest_increment(0, 7), 0);
        assert_eq!(safest_increment(3, 1), 3, "two marks were on segments that are not full");
        assert_eq!(safest_increment(1, 1), 1);
        assert_eq!(safest_increment(1, 25), 25);
    }

    #[test]
    fn the_option_decides_on_the_wrap_as_in_appendix_a_2_2() {
        assert_eq!(reconcile(0, 8, 1460, 1460), 8);
        assert_eq!(reconcile(2, 10, 1460, 1460), 2);
        assert_eq!(reconcile(7, 15, 10_200, 1460), 7);
        assert_eq!(reconcile(0, 8, 0, 1460), 0);
    }

    #[test]
    fn counters_of_24_bits_wrap_and_step_back() {
        assert_eq!(distance_24(0x00ff_ffff, 5), 6);
        assert_eq!(distance_24(0x0200_0001, 1461), 1460, "appendix A.1");
        assert_eq!(distance_24(2000, 1460), -540);
    }
}
