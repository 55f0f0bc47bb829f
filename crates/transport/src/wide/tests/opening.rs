//! The three packets that open a connection, some of which are lost.

use crate::connection::State;
use crate::wide::{Config, Endpoint};
use hopline_core::{Instant, Length, LinkId, StateMachine};
use hopline_wire::wide::Packet;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Two ends, the second of which has answered, and what the first sends then: a confirmation and data.
fn answered() -> (Endpoint<Length>, [Packet<Length>; 2]) {
    let mut config = Config::DEFAULT;
    config.silence.limit = None;
    let [mut a, mut b] = [(); 2].map(|()| Endpoint::<Length>::new(config).expect("valid"));
    b.listen().expect("new");
    a.connect(at(0)).expect("new");
    a.send(at(0), Length(5000)).expect("no limit");
    let opening = a.poll_transmit(at(0)).expect("opens");
    b.handle_packet(at(25), LinkId::ONLY, opening);
    a.handle_packet(at(50), LinkId::ONLY, b.poll_transmit(at(25)).expect("answers"));
    (b, [(); 2].map(|()| a.poll_transmit(at(50)).expect("confirms, and sends")))
}

#[test]
fn data_complete_the_handshake_if_the_confirmation_is_lost() {
    let (mut b, [confirmation, data]) = answered();
    assert!(confirmation.ack.is_some() && confirmation.data.is_none(), "and is lost");
    // An end sends data only after the answer to its opening.
    b.handle_packet(at(76), LinkId::ONLY, data);
    assert_eq!(b.state(), State::Established);
    assert!(b.recv().is_some_and(|data| data.0 > 0));
}

#[test]
fn a_responder_confirmed_by_reordered_data_probes_its_answer() {
    let (mut b, [_lost, data]) = answered();
    while let Some((due, _)) = b.poll_timeout().filter(|(due, _)| *due <= at(2700)) {
        b.handle_timeout(due);
        while b.poll_transmit(due).is_some() {}
    }
    b.handle_packet(at(2700), LinkId::ONLY, data);
    while b.poll_transmit(at(2700)).is_some() {}
    assert!(b.in_flight() > 0, "nobody has acknowledged it");
    let (due, _) = b.poll_timeout().expect("it is asked for");
    assert!(due < at(4000), "{due:?}");
}
