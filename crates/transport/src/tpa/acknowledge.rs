//! The acknowledgment in a segment: round trip, window, the block (TPA §3.2 to §3.5).

use super::block::{AckAge, Block, BlockEnd};
use super::endpoint::Endpoint;
use super::rto::SampleResult;
use super::state::CloseState;
use super::stats::DropReason;
use super::timer::Timer;
use super::window::{AckedTransmission, PathChange};
use crate::connection::Event;
use hopline_core::{Duration, Instant, Payload};
use hopline_wire::tpa::Ack;

impl<P: Payload> Endpoint<P> {
    /// Processes an acknowledgment, with its proof of receipt and the window of the segment.
    pub(super) fn on_ack(&mut self, now: Instant, ack: Ack, proof: u16, window: u16) {
        let of_block = ack.block == self.snd.number;
        let Some(block) = self.snd.block.as_mut().filter(|_| of_block) else {
            return self.on_ack_of_other_block(ack, window);
        };
        if self.tags.local.is_some() && block.nonces.proof(ack.bitmap) != proof {
            return self.drop_segment(DropReason::BadProof);
        }
        let Some(news) = block.acknowledge(ack.bitmap) else {
            return self.drop_segment(DropReason::BadAck);
        };
        let knowledge = block.ack_age(ack.bitmap);
        let answers =
            if block.is_latest(ack.tx) { AckedTransmission::Latest } else { AckedTransmission::Earlier };
        let round_trip = block.rtt_sample(now, ack.tx);
        self.stats.bytes_acked += block.bytes_of(news);
        if knowledge == AckAge::Latest {
            self.set_peer_window(window);
        }
        if !news.is_empty() {
            let change = self.window.on_ack(answers);
            self.apply_path_change(change);
        }
        // After the path: the sample that a new route brings is the first that weighs more (TPA §3.4 (i)).
        if let Some(rtt) = round_trip {
            self.on_rtt_sample(rtt);
        }
        if self.snd.block.as_ref().is_some_and(Block::is_acknowledged) {
            self.end_block(now);
        }
        self.arm_retransmit();
    }

    fn on_rtt_sample(&mut self, rtt: Duration) {
        if self.rto.sample(rtt) == SampleResult::RouteChange {
            self.stats.route_changes += 1;
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.on_rtt_sample(rtt, self.snd.mss.into());
        }
    }

    /// Processes an ACK of another block. The last ACK of the previous block may be repeated; any other ACK is invalid.
    fn on_ack_of_other_block(&mut self, ack: Ack, window: u16) {
        let mask = self.config.block_numbers.mask();
        if self.snd.number.wrapping_sub(ack.block) & mask != 1 {
            self.drop_segment(DropReason::OldAck);
        } else if self.snd.block.as_ref().is_none_or(Block::is_unacknowledged) {
            self.set_peer_window(window);
        }
    }

    fn set_peer_window(&mut self, window: u16) {
        self.snd.peer_window = window.into();
        self.timers.stop(Timer::Probe);
    }

    /// Carries out the actions for a change of the path state.
    pub(super) fn apply_path_change(&mut self, change: PathChange) {
        match change {
            PathChange::None => {}
            PathChange::Congested => self.stats.congested_periods += 1,
            PathChange::Frozen => self.stats.freezes += 1,
            PathChange::CongestionOver => self.rto.end_back_off(),
            PathChange::RouteChanged => {
                self.rto.end_back_off();
                self.rto.on_route_change();
                self.stats.route_changes += 1;
            }
        }
    }

    /// Ends a completely acknowledged block and forms the next one (§3.2).
    fn end_block(&mut self, now: Instant) {
        let Some(block) = self.snd.block.take() else { return };
        self.stats.blocks += 1;
        self.snd.number = self.snd.number.wrapping_add(1) & self.config.block_numbers.mask();
        self.snd.queue.advance(block.start + block.bytes);
        if self.snd.queue.take_refused() {
            self.event(Event::Writable);
        }
        if block.end == BlockEnd::Fin {
            self.snd.closing = CloseState::FinAcked;
            self.enter_state(now, self.state().after_fin_acked());
        } else {
            self.form_block(now);
        }
    }
}
