//! The window where losses are told by time (RFC 8985): which segments are lost is known, and not decided here.

use super::custom_calls::RttContext;
use super::undo::Cause;
use super::{AckInput, CongestionState, RecoveryPhase, Response};
use crate::tcp::config::Config;
use crate::tcp::tlp::TailLossProbe;

impl CongestionState {
    /// Segments were taken for lost. One reduction covers everything that was in flight by then.
    /// `sacked`: bytes that the peer holds beyond what is acknowledged.
    pub(crate) fn on_loss(&mut self, config: &Config, ack: &AckInput, sacked: u64) -> Response {
        if self.phase != RecoveryPhase::Open {
            return Response::default();
        }
        self.react_under_hold(|c| c.react_to_loss(config, ack, sacked))
    }

    fn react_to_loss(&mut self, config: &Config, ack: &AckInput, sacked: u64) -> Response {
        // What left beyond cwnd, for segments that the peer holds, is not part of FlightSize (RFC 5681 §3.2 (2)).
        let flight = ack.nxt - ack.una;
        self.limited_transmit_bytes = flight.saturating_sub(u64::from(self.window.cwnd)).min(1 << 30) as u32;
        self.enter_recovery(config, ack);
        self.start_prr(flight, sacked, ack.delivered);
        Response::ENTER_RECOVERY
    }

    /// A probe repaired the only loss of its flight (RFC 8985 §7.4.2): the window is reduced as after a fast recovery, unless a
    /// mark of that flight has reduced it.
    pub(crate) fn on_tail_loss(&mut self, config: &Config, probe: TailLossProbe, ack: &AckInput) {
        if self.phase == RecoveryPhase::Open && probe.end > self.marked_below {
            self.react_under_hold(|c| {
                c.abandon_mark_reduction();
                c.save_before_reduction(Cause::FastRetransmit, ack.max);
                c.window.cwnd =
                    c.reduce(config, probe.flight, Cause::FastRetransmit, RttContext::from_ack(ack));
            });
        }
    }
}

pub(super) fn on_new_ack(c: &mut CongestionState, ack: &AckInput) -> Response {
    if ack.una >= c.recover {
        c.leave_recovery(); // RFC 6675 §5 (A)
        c.finish_prr();
    }
    Response::RESTART_TIMER
}
