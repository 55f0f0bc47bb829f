//! The window where losses are told by time (RFC 8985): which segments are lost is known, and not decided here.

use super::ask_own::Moment;
use super::undo::Cause;
use super::{Ack, Control, Phase, Response};
use crate::tcp::config::Config;
use crate::tcp::tlp::Probe;

impl Control {
    /// Segments were taken for lost. One reduction covers everything that was in flight by then.
    /// `sacked`: bytes that the peer holds beyond what is acknowledged.
    pub(crate) fn on_loss(&mut self, config: &Config, ack: &Ack, sacked: u64) -> Response {
        if self.phase != Phase::Open {
            return Response::default();
        }
        self.react(|c| c.lose(config, ack, sacked))
    }

    fn lose(&mut self, config: &Config, ack: &Ack, sacked: u64) -> Response {
        // What left beyond cwnd, for segments that the peer holds, is not part of FlightSize (RFC 5681 §3.2 (2)).
        let flight = ack.nxt - ack.una;
        self.limited = flight.saturating_sub(u64::from(self.window.cwnd)).min(1 << 30) as u32;
        self.enter_recovery(config, ack);
        self.begin_in_proportion(flight, sacked, ack.delivered);
        Response::ENTER
    }

    /// A probe repaired the only loss of its flight (RFC 8985 §7.4.2): the window is reduced as after a fast recovery, unless a
    /// mark of that flight has reduced it.
    pub(crate) fn on_tail_loss(&mut self, config: &Config, probe: Probe, ack: &Ack) {
        if self.phase == Phase::Open && probe.end > self.marked_below {
            self.react(|c| {
                c.note_reduction(Cause::FastRetransmit, ack.max);
                c.window.cwnd = c.reduce(config, probe.flight, Cause::FastRetransmit, Moment::of(ack));
            });
        }
    }
}

pub(super) fn on_new_ack(c: &mut Control, ack: &Ack) -> Response {
    if ack.una >= c.recover {
        c.leave_recovery(); // RFC 6675 §5 (A)
        c.end_in_proportion();
    }
    Response::RESTART_TIMER
}
