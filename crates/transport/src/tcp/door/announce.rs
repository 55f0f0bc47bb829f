//! TCP-DOOR option of outgoing segments.

use super::Door;
use hopline_wire::tcp::{DOOR_LEN, DoorFeatures, DoorOption, DoorReport};

/// Direction of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Syn {
    /// First SYN of the initiator.
    First,
    /// Answer to the peer's SYN: offers only features that the peer offered.
    Answer,
}

impl Door {
    /// Returns the option of a SYN; `None` if there is nothing to offer.
    pub(in crate::tcp) fn offer(&self, syn: Syn) -> Option<DoorOption> {
        let features = match syn {
            Syn::First => self.features(),
            Syn::Answer => self.agreed,
        };
        (features != DoorFeatures::default()).then_some(DoorOption::Offer(features))
    }

    /// Returns the bytes of options that each segment carries.
    pub(in crate::tcp) fn fixed_len(&self) -> u32 {
        if self.agreed.adsn || self.agreed.tpsn { DOOR_LEN as u32 } else { 0 }
    }

    /// Returns the additional bytes of options of the next segment.
    pub(in crate::tcp) fn extra_len(&self) -> u32 {
        if self.to_tell > 0 { DOOR_LEN as u32 - self.fixed_len() } else { 0 }
    }

    /// Returns the option of a segment that acknowledges up to `position`, with or without data.
    pub(in crate::tcp) fn report(&mut self, position: u64, carries: Carries) -> Option<DoorOption> {
        let report = DoorReport {
            adsn: self.agreed.adsn.then(|| self.number_ack(position)),
            tpsn: (self.agreed.tpsn && carries == Carries::Data).then(|| self.number_packet()),
            out_of_order: self.to_tell > 0,
        };
        self.to_tell = self.to_tell.saturating_sub(1);
        (report != DoorReport::default()).then_some(DoorOption::Report(report))
    }

    /// Returns the ADSN of an acknowledgment: zero for a new position, otherwise one more than the last.
    fn number_ack(&mut self, position: u64) -> u8 {
        let adsn = match self.last_ack {
            Some((last, adsn)) if last == position => adsn.wrapping_add(1),
            _ => 0,
        };
        self.last_ack = Some((position, adsn));
        adsn
    }

    fn number_packet(&mut self) -> u16 {
        let tpsn = self.next_packet;
        self.next_packet = tpsn.wrapping_add(1);
        tpsn
    }
}

/// Presence of data in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Carries {
    /// The segment carries data.
    Data,
    /// The segment carries no data.
    Nothing,
}
