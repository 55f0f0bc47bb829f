//! The feedback schemes: what a sender makes of being told about its route.

mod atcp;
mod bus;
mod elfn;
mod fixed_rto;
mod freeze;
mod parameters;
mod tcp_f;

use super::script::{Script, mss_1000_sack, plain, segment};
use crate::Signal;
use crate::tcp::{Config, FeedbackState, RouteFeedback};
use hopline_core::{Duration, Instant, Length, StateMachine};

/// Ten segments in flight since 100 ms, the RTO 300 ms, and more to send.
fn sending(feedback: RouteFeedback) -> Script {
    let mut s = Script::sending(Config { feedback, ..plain() }, 1 << 40);
    let said = s.transmits();
    assert!(said.starts_with(". 1:1001") && said.ends_with(". 9001:10001 ack 1"), "{said}");
    s
}

/// The same with SACK.
fn sending_with_sack(feedback: RouteFeedback) -> Script {
    let config = Config { feedback, ..plain().with_sack() };
    let mut s = Script::connected_with(config, mss_1000_sack());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    s
}

impl Script {
    fn signal(&mut self, signal: Signal) {
        self.endpoint.handle_signal(self.now, signal);
    }

    /// The route is lost after so many milliseconds from the start.
    fn lose_route_at(&mut self, ms: u64) {
        assert_eq!(self.run_until(ms), "", "nothing is said before {ms} ms");
        self.signal(Signal::RouteLost);
        assert_eq!(self.transmits(), "");
    }

    fn feedback_state(&self) -> FeedbackState {
        self.endpoint.feedback_state()
    }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
