//! Detection of out-of-order segments. Every segment is checked before any other processing, since TCP drops late ones.

use super::DoorState;
use super::order::{Arrival, unwrap_8, unwrap_16, unwrap_32};
use crate::connection::State;
use crate::tcp::endpoint::Endpoint;
use hopline_core::{Duration, Instant, Payload, Seq32};
use hopline_wire::tcp::{DoorOption, DoorReport, Flags, Segment};

impl<P: Payload> Endpoint<P> {
    /// Checks the order of a segment with its sequence number at `position` of the peer's stream.
    pub(in crate::tcp) fn check_order(&mut self, now: Instant, position: i64, segment: &Segment<P>) {
        if self.door.is_none() || !self.is_order_evidence(position, segment) {
            return;
        }
        let acks = self.ack_position(segment);
        let timestamp = segment.options.timestamps.filter(|_| self.options.timestamps).map(|ts| ts.value);
        let rto = self.rto.without_back_off();
        let Some(door) = &mut self.door else { return };
        let stats = &mut self.stats.door;
        let report = match segment.options.door {
            Some(DoorOption::Report(report)) => report,
            Some(DoorOption::Malformed | DoorOption::Offer(_)) => {
                stats.malformed += 1;
                DoorReport::default()
            }
            None => DoorReport::default(),
        };
        if segment.payload.len() > 0 && door.on_data(report, timestamp) == Arrival::Event {
            stats.data_events += 1;
        }
        let arrival = door.on_ack(acks, report);
        let is_ack_event = arrival == Arrival::Event && door.config.detection.acks().is_some();
        let block = segment.options.sack.as_slice().first().map(|block| (block.left, block.right));
        let is_told = door.is_new_feedback(arrival, report, FeedbackAck { acks, adsn: report.adsn, block });
        stats.ack_events += u64::from(is_ack_event);
        stats.reported_events += u64::from(is_told);
        let [met_acks, met_told] = door.matched_events(now, rto, is_ack_event, is_told);
        stats.matched_ack_events += met_acks;
        stats.matched_reported_events += met_told;
        if is_ack_event || is_told {
            self.on_out_of_order(now);
        }
    }

    /// Returns whether the peer can have sent the segment on this connection: it acknowledges data that were sent, and
    /// its position is plausible, as RFC 5961 requires of acknowledgments. Resets are excluded, since they copy the
    /// numbers of the segments that they answer.
    fn is_order_evidence(&self, position: i64, segment: &Segment<P>) -> bool {
        let known = !matches!(self.state(), State::SynReceived)
            && !segment.flags.contains(Flags::RST)
            && !segment.flags.contains(Flags::SYN);
        let earliest = self.rcv.nxt as i64 - i64::from(self.config.receive_buffer);
        known
            && (earliest..=self.rcv.right_edge as i64).contains(&position)
            && self.is_acceptable_ack(segment)
    }
}

/// Identity of an acknowledgment that carries feedback: its ADSN if there is one, otherwise its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FeedbackAck {
    acks: i64,
    adsn: Option<u8>,
    block: Option<(Seq32, Seq32)>,
}

impl DoorState {
    /// Processes data at the receiver (D2): a late packet is an event to report.
    fn on_data(&mut self, report: DoorReport, timestamp: Option<u32>) -> Arrival {
        let near = self.data.newest();
        let number = if self.agreed.tpsn {
            report.tpsn.map(|n| near.map_or(i64::from(n), |near| unwrap_16(n, near)))
        } else if self.agreed.feedback {
            timestamp.map(|n| near.map_or(i64::from(n), |near| unwrap_32(n, near)))
        } else {
            None
        };
        let Some(number) = number else { return Arrival::InOrder };
        let arrival = self.data.record(number, self.config.late);
        if arrival == Arrival::Event {
            self.feedback_to_send = self.config.feedback_acks;
        }
        arrival
    }

    /// Processes an acknowledgment at the sender (D1): numbers never fall in the order of sending.
    fn on_ack(&mut self, position: i64, report: DoorReport) -> Arrival {
        let near = match self.acks.newest() {
            Some((newest, adsn)) if newest == position => Some(adsn),
            _ => None,
        };
        let adsn = match (report.adsn.filter(|_| self.agreed.adsn), near) {
            (Some(adsn), Some(near)) => unwrap_8(adsn, near),
            (Some(adsn), None) => i64::from(adsn),
            (None, near) => near.unwrap_or(0),
        };
        self.acks.record((position, adsn), self.config.late)
    }

    /// Returns how many events in the order of ACKs, and how many reported events, turn out to have come within one
    /// timeout of an event of the other kind.
    fn matched_events(&mut self, now: Instant, rto: Duration, is_ack_event: bool, is_told: bool) -> [u64; 2] {
        let mut met = [0, 0];
        if is_ack_event {
            met = self.ack_events.record(now, &mut self.reported_events, rto);
        }
        if is_told {
            let [told, acks] = self.reported_events.record(now, &mut self.ack_events, rto);
            met = [met[0] + acks, met[1] + told];
        }
        met
    }

    /// Returns whether the peer reports an event. Of several consecutive reports only the first counts. An acknowledgment
    /// that the network duplicated reports nothing new.
    fn is_new_feedback(&mut self, arrival: Arrival, report: DoorReport, teller: FeedbackAck) -> bool {
        let listens = self.agreed.feedback && self.config.detection.data().is_some();
        let tells = listens && report.out_of_order;
        if self.config.feedback_acks == 1 {
            return tells && self.last_feedback_ack.replace(teller) != Some(teller);
        }
        if arrival != Arrival::InOrder {
            return false;
        }
        let told = core::mem::replace(&mut self.last_ack_had_feedback, tells);
        tells && !told
    }
}
