//! The option on what is sent.

use super::Door;
use hopline_wire::tcp::{DOOR_LEN, DoorFeatures, DoorOption, DoorReport};

/// What a SYN answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Syn {
    /// Nothing: it is the first one.
    First,
    /// The peer's SYN: offers only what that one offered.
    Answer,
}

impl Door {
    /// The option of a SYN; `None` if there is nothing to offer.
    pub(in crate::tcp) fn offer(&self, syn: Syn) -> Option<DoorOption> {
        let features = match syn {
            Syn::First => self.features(),
            Syn::Answer => self.agreed,
        };
        (features != DoorFeatures::default()).then_some(DoorOption::Offer(features))
    }

    /// Bytes of options that each segment takes.
    pub(in crate::tcp) fn fixed_len(&self) -> u32 {
        if self.agreed.adsn || self.agreed.tpsn { DOOR_LEN as u32 } else { 0 }
    }

    /// Bytes of options that the next segment takes beyond that.
    pub(in crate::tcp) fn extra_len(&self) -> u32 {
        if self.to_tell > 0 { DOOR_LEN as u32 - self.fixed_len() } else { 0 }
    }

    /// The option of a segment that acknowledges up to `position`, with data or not.
    pub(in crate::tcp) fn report(&mut self, position: u64, carries: Carries) -> Option<DoorOption> {
        let report = DoorReport {
            adsn: self.agreed.adsn.then(|| self.number_ack(position)),
            tpsn: (self.agreed.tpsn && carries == Carries::Data).then(|| self.number_packet()),
            out_of_order: self.to_tell > 0,
        };
        self.to_tell = self.to_tell.saturating_sub(1);
        (report != DoorReport::default()).then_some(DoorOption::Report(report))
    }

    /// Zero for a new number, one more than before for the same again.
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

/// Whether a segment carries data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Carries {
    /// It does.
    Data,
    /// It does not.
    Nothing,
}
