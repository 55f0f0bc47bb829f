//! The three packets that open a connection, some of which are lost.

use crate::connection::State;
use crate::wide::{Config, Endpoint};
use hopline_core::{Instant, Length, LinkId, Machine};

#[test]
fn data_that_arrive_without_the_packet_before_them_open_the_connection() {
    let at = Instant::from_millis;
    let [mut a, mut b] = [(); 2].map(|()| Endpoint::<Length>::new(Config::DEFAULT).expect("valid"));
    b.listen().expect("new");
    a.connect(at(0)).expect("new");
    a.send(at(0), Length(5000)).expect("no limit");
    let opening = a.poll_transmit(at(0)).expect("opens");
    b.handle_packet(at(25), LinkId::ONLY, opening);
    a.handle_packet(at(50), LinkId::ONLY, b.poll_transmit(at(25)).expect("answers"));
    let confirmation = a.poll_transmit(at(50)).expect("confirms");
    assert!(confirmation.ack.is_some() && confirmation.data.is_none(), "and is lost");
    // Nobody sends data who has not heard the answer.
    let data = a.poll_transmit(at(50)).expect("data follow");
    b.handle_packet(at(76), LinkId::ONLY, data);
    assert_eq!(b.state(), State::Established);
    assert!(b.recv().is_some_and(|data| data.0 > 0));
}
