//! TCP-DOOR option of outgoing segments.

use super::DoorState;
use hopline_wire::tcp::{DOOR_LEN, DoorFeatures, DoorOption, DoorReport};

/// Direction of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum SynKind {
    /// First SYN of the initiator.
    Initial,
    /// Answer to the peer's SYN: offers only features that the peer offered.
    Reply,
}

impl DoorState {
    /// Returns the option of a SYN; `None` if there is nothing to offer.
    pub(in crate::tcp) fn syn_option(&self, syn: SynKind) -> Option<DoorOption> {
        let features = match syn {
            SynKind::Initial => self.features(),
            SynKind::Reply => self.agreed,
        };
        (features != DoorFeatures::default()).then_some(DoorOption::Offer(features))
    }

    /// Returns the bytes of options that each segment carries.
    pub(in crate::tcp) fn fixed_len(&self) -> u32 {
        if self.agreed.adsn || self.agreed.tpsn { DOOR_LEN as u32 } else { 0 }
    }

    /// Returns the additional bytes of options of the next segment.
    pub(in crate::tcp) fn extra_len(&self) -> u32 {
        if self.feedback_to_send > 0 { DOOR_LEN as u32 - self.fixed_len() } else { 0 }
    }

    /// Returns the option of a segment that acknowledges up to `position`, with or without data.
    pub(in crate::tcp) fn segment_option(
        &mut self,
        position: u64,
        carries: PayloadKind,
    ) -> Option<DoorOption> {
        let report = DoorReport {
            adsn: self.agreed.adsn.then(|| self.next_adsn(position)),
            tpsn: (self.agreed.tpsn && carries == PayloadKind::Data).then(|| self.next_tpsn()),
            out_of_order: self.feedback_to_send > 0,
        };
        self.feedback_to_send = self.feedback_to_send.saturating_sub(1);
        (report != DoorReport::default()).then_some(DoorOption::Report(report))
    }

    /// Returns the ADSN of an acknowledgment: zero for a new position, otherwise one more than the last.
    fn next_adsn(&mut self, position: u64) -> u8 {
        let adsn = match self.last_ack {
            Some((last, adsn)) if last == position => adsn.wrapping_add(1),
            _ => 0,
        };
        self.last_ack = Some((position, adsn));
        adsn
    }

    fn next_tpsn(&mut self) -> u16 {
        let tpsn = self.next_tpsn;
        self.next_tpsn = tpsn.wrapping_add(1);
        tpsn
    }
}

/// Presence of data in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum PayloadKind {
    /// The segment carries data.
    Data,
    /// The segment carries no data.
    Nothing,
}
