//! Arriving segments: opening, data, closing.

use super::config::MIN_MSS;
use super::endpoint::Endpoint;
use super::receive::{AckTime, ReceiveOutcome, SegmentContent};
use super::state::PeerConfirmed;
use super::stats::DropReason;
use super::timer::Timer;
use super::window::PathState;
use crate::Signal;
use crate::connection::{CloseReason, Event, State};
use hopline_core::{Instant, Payload};
use hopline_wire::tpa::{Control, Opening, Segment};

impl<P: Payload> Endpoint<P> {
    pub(super) fn handle_segment(&mut self, now: Instant, segment: Segment<P>) {
        self.stats.segments_received += 1;
        match self.state() {
            State::Closed => self.drop_segment(DropReason::Closed),
            State::Listen => self.on_segment_in_listen(now, segment),
            State::SynSent => self.on_segment_in_syn_sent(now, segment),
            _ => self.on_segment_in_connection(now, segment),
        }
    }

    fn on_segment_in_listen(&mut self, now: Instant, segment: Segment<P>) {
        match (segment.control, segment.opening, segment.ack) {
            (Control::Syn, Some(opening), None) => {
                self.apply_opening(opening, segment.window);
                self.lifecycle.enter(State::SynReceived);
                self.last_heard = now;
                self.opening.syn_sent = Some(now);
                self.send_syn(now);
            }
            _ => self.drop_segment(DropReason::Unexpected),
        }
    }

    fn on_segment_in_syn_sent(&mut self, now: Instant, segment: Segment<P>) {
        if segment.control == Control::Syn && segment.ack.is_none() {
            return self.on_simultaneous_syn(now, &segment);
        }
        if segment.tag != self.tags.local {
            return self.drop_segment(DropReason::WrongTag);
        }
        match (segment.control, segment.opening, segment.ack) {
            (Control::Syn, Some(opening), Some(_)) => {
                self.handle_syn_ack(now, opening, segment.window);
                self.pending_segments.ack = true;
            }
            (Control::Rst, ..) => self.terminate(CloseReason::Refused),
            _ => self.drop_segment(DropReason::Unexpected),
        }
    }

    /// Processes the answer of the called peer.
    fn handle_syn_ack(&mut self, now: Instant, opening: Opening, window: u16) {
        self.apply_opening(opening, window);
        // A listener without state creates the connection only after a segment from us.
        if self.tags.local.is_some() {
            self.opening.confirmed = PeerConfirmed::No;
        }
        self.sample_handshake(now);
        self.establish(now);
    }

    /// Processes a SYN while our own SYN is not answered (simultaneous open, RFC 9293 §3.5, figure 7). A SYN carries no
    /// tag, so it may be forged.
    fn on_simultaneous_syn(&mut self, now: Instant, segment: &Segment<P>) {
        let Some(opening) = segment.opening else { return self.drop_segment(DropReason::Unexpected) };
        self.apply_opening(opening, segment.window);
        self.lifecycle.enter(State::SynReceived);
        self.last_heard = now;
        self.send_syn(now);
    }

    pub(super) fn apply_opening(&mut self, opening: Opening, window: u16) {
        self.tags.peer = opening.tag;
        let least = if self.tags.local.is_some() { MIN_MSS } else { 1 };
        self.snd.peer_mss = opening.mss.max(least);
        self.choose_mss();
        self.snd.block_segments = self.config.block_segments.min(opening.block_segments);
        self.snd.peer_window = window.into();
        self.rcv.peer_cwnd_max = opening.cwnd_max;
    }

    /// Takes the round trip of SYN and answer as the first sample, unless one of them was retransmitted.
    fn sample_handshake(&mut self, now: Instant) {
        if let Some(sent) = self.opening.syn_sent.take() {
            self.rto.sample(now - sent);
        }
        self.rto.end_back_off();
    }

    pub(super) fn establish(&mut self, now: Instant) {
        self.lifecycle.enter(State::Established);
        self.last_heard = now;
        if self.opening.confirmed == PeerConfirmed::Yes {
            self.timers.stop(Timer::Open);
        } else {
            self.timers.set(Timer::Open, now + self.rto.timeout());
        }
        self.event(Event::Connected);
        self.form_block(now);
        self.set_silence_timer();
        if let Some(interval) = self.config.keep_alive {
            self.timers.set(Timer::KeepAlive, now + interval);
        }
    }

    /// Processes a segment in SYN-RECEIVED or a later state.
    fn on_segment_in_connection(&mut self, now: Instant, segment: Segment<P>) {
        if segment.control == Control::Syn && segment.ack.is_none() && self.is_repeated_syn(&segment) {
            return self.pending_segments.syn = true;
        }
        if segment.control == Control::StatelessReset {
            return self.on_stateless_reset(&segment);
        }
        if segment.tag != self.tags.local {
            return self.drop_segment(DropReason::WrongTag);
        }
        match segment.control {
            Control::Rst => self.on_reset(&segment),
            Control::Syn => self.on_syn_ack(now, &segment),
            Control::None | Control::Fin => self.on_regular_segment(now, segment),
            Control::Echo(_) => self.on_echo(now),
            // Any host that knows the addresses answers these.
            Control::Challenge(_) | Control::StatelessReset => self.drop_segment(DropReason::Unexpected),
        }
    }

    /// Processes a report that the peer's host does not know the connection, since it restarted or gave it up. The peer's
    /// own tag, which we sent, is the proof.
    fn on_stateless_reset(&mut self, segment: &Segment<P>) {
        if segment.tag != self.tags.peer {
            return self.drop_segment(DropReason::WrongTag);
        }
        self.end_by_reset();
    }

    /// Processes the echo of a challenge: the peer is alive. It may have missed our latest segments at its new address.
    fn on_echo(&mut self, now: Instant) {
        self.last_heard = now;
        self.is_probed = false;
        self.pending_segments.ack = true;
    }

    /// Returns whether the peer repeats its SYN because it missed our answer.
    fn is_repeated_syn(&self, segment: &Segment<P>) -> bool {
        self.state() == State::SynReceived
            && segment.opening.is_some_and(|opening| opening.tag == self.tags.peer)
    }

    fn on_reset(&mut self, segment: &Segment<P>) {
        // Without tags the only proof is to know about where the connection stands (compare RFC 5961 §3).
        if self.tags.local.is_none() && !self.rcv.is_current(segment.block) {
            return self.drop_segment(DropReason::BadReset);
        }
        self.end_by_reset();
    }

    fn end_by_reset(&mut self) {
        self.terminate(self.lifecycle.reset_reason());
    }

    /// Processes a SYN-ACK, of a simultaneous open or because our ACK was lost.
    fn on_syn_ack(&mut self, now: Instant, segment: &Segment<P>) {
        if self.state() == State::SynReceived
            && let Some(opening) = segment.opening
        {
            // The SYN that made us answer may have been forged; this shows our tag.
            self.handle_syn_ack(now, opening, segment.window);
        }
        self.pending_segments.ack = true;
    }

    fn on_regular_segment(&mut self, now: Instant, segment: Segment<P>) {
        let Some(ack) = segment.ack else { return self.drop_segment(DropReason::Unexpected) };
        if self.state() == State::SynReceived {
            self.sample_handshake(now);
            self.establish(now);
        }
        self.last_heard = now;
        self.is_probed = false;
        self.confirm_opening();
        if segment.opening.is_some() {
            self.pending_segments.ack = true; // the peer repeats its parameters until it hears of us
        }
        self.on_ack(now, ack, segment.receipt.proof, segment.window);
        if self.state() == State::Closed {
            return;
        }
        if let Some(place) = segment.position {
            let taken = self.rcv.handle_segment(segment, place);
            self.on_data_received(now, taken);
        }
    }

    /// Records that the peer holds the connection, so that the opening parameters need not be repeated.
    fn confirm_opening(&mut self) {
        if self.opening.confirmed == PeerConfirmed::No {
            self.opening.confirmed = PeerConfirmed::Yes;
            self.timers.stop(Timer::Open);
            // What it says of the handshake it does not say of a path that has failed since (TPA §3.3, §3.5).
            if self.window.path() == PathState::Normal {
                self.rto.end_back_off();
            }
        }
    }

    fn on_data_received(&mut self, now: Instant, taken: ReceiveOutcome) {
        match taken.content {
            SegmentContent::New { in_order, overtook } => {
                self.stats.bytes_received += in_order;
                self.stats.out_of_order += u64::from(overtook);
                if in_order > 0 {
                    self.event(Event::Readable);
                }
                if self.rcv.is_finished() {
                    self.on_end_of_stream(now);
                }
            }
            SegmentContent::Duplicate => {
                self.stats.duplicates_received += 1;
                if self.state() == State::TimeWait {
                    self.enter_time_wait(now); // RFC 9293 §3.10.7.4: the peer did not get our last ACK
                }
            }
            SegmentContent::Probe => {}
            SegmentContent::Dropped(reason) => self.drop_segment(reason),
        }
        match taken.reply {
            AckTime::None => {}
            AckTime::Now => self.pending_segments.ack = true,
            AckTime::Delayed if self.timers.is_set(Timer::DelayedAck) => {}
            AckTime::Delayed => self.timers.set(Timer::DelayedAck, now + self.config.ack.timer),
        }
    }

    /// Processes the end of the peer's data.
    fn on_end_of_stream(&mut self, now: Instant) {
        let next = self.state().after_peer_fin();
        if next != self.state() {
            self.enter_state(now, next);
            self.event(Event::PeerClosed);
        }
    }

    pub(super) fn on_signal(&mut self, signal: Signal) {
        let sending = self.state().may_transmit() && self.snd.block.is_some();
        let change = match signal {
            Signal::RouteLost if sending => self.window.on_route_lost(),
            Signal::RouteFound => self.window.on_route_found(),
            Signal::RouteLost => return,
            Signal::PathLength { hops } => {
                if let Some(pacing) = &mut self.pacing {
                    pacing.set_hops(hops);
                }
                return;
            }
        };
        self.apply_path_change(change);
    }
}
