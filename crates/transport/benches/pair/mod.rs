//! Two endpoints of any transport that hand each other what they have to send, without a link.

use hopline_core::{Instant, Length, LinkId, Payload, StateMachine};
use hopline_transport::connection::Connection;
use std::hint::black_box;

/// An endpoint that can be handed what another one sent.
pub(crate) trait Peer:
    Connection<Length> + StateMachine<Transmit = <Self as StateMachine>::Packet>
{
}
impl<E: Connection<Length> + StateMachine<Transmit = <E as StateMachine>::Packet>> Peer for E {}

/// Connects `a` to `b` and gives `a` data without end. Returns the time.
pub(crate) fn connect<E: Peer>(a: &mut E, b: &mut E) -> Instant {
    b.listen().expect("closed before");
    a.connect(Instant::ZERO).expect("closed before");
    let now = Instant::from_millis(1);
    for _ in 0..3 {
        deliver_all(a, b, now);
        deliver_all(b, a, now);
    }
    a.send(now, Length(1 << 60)).expect("unlimited");
    now
}

/// Hands over everything `from` has to send, as a driver would; returns the number of segments.
pub(crate) fn deliver_all<E: Peer>(from: &mut E, to: &mut E, now: Instant) -> u64 {
    let mut n = 0;
    while let Some(segment) = from.poll_transmit(now) {
        to.handle_packet(now, LinkId::ONLY, segment);
        while let Some(event) = to.poll_event() {
            black_box(event);
        }
        while let Some(data) = to.recv() {
            black_box(data.len());
        }
        black_box(to.poll_timeout());
        n += 1;
    }
    n
}
