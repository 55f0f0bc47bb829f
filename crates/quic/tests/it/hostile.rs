//! Datagrams of no QUIC endpoint: random, cut, changed, or of another connection.

use crate::support::endpoint;
use bytes::Bytes;
use hopline_core::{Instant, Length};
use hopline_quic::Endpoint;
use hopline_transport::connection::State;
use hopline_transport::quic::{Config, Datagram};
use hopline_wire::ipv4::Ecn;
use proptest::prelude::*;

fn datagram(bytes: Vec<u8>) -> Datagram {
    Datagram { bytes: Bytes::from(bytes), ecn: Ecn::NotCapable, data_bytes: 0, data: 0..0 }
}

/// Client and server, opening or open.
fn ends(flights: usize) -> [Endpoint<Length>; 2] {
    let mut ends: [Endpoint<Length>; 2] = [endpoint(Config::DEFAULT, 0, 1), endpoint(Config::DEFAULT, 1, 1)];
    ends[0].connect(Instant::ZERO).expect("new");
    ends[1].listen().expect("new");
    ends[0].send(Length(10_000)).expect("open");
    for flight in 0..flights {
        exchange(&mut ends, flight % 2, Instant::from_millis(flight as u64));
    }
    ends
}

/// Hands over all that one end has to send. Returns the datagrams.
fn exchange(ends: &mut [Endpoint<Length>; 2], from: usize, now: Instant) -> Vec<Datagram> {
    let sent: Vec<_> = std::iter::from_fn(|| ends[from].poll_transmit(now)).collect();
    sent.iter().for_each(|datagram| ends[1 - from].handle_packet(now, datagram));
    sent
}

/// Takes everything that an end has to say, and its timers.
fn drain(end: &mut Endpoint<Length>, mut now: Instant) {
    for _ in 0..20 {
        while end.poll_transmit(now).is_some() {}
        while end.poll_event().is_some() {}
        while end.recv().is_some() {}
        let Some(at) = end.poll_timeout() else { return };
        now = now.max(at);
        end.handle_timeout(now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_datagrams_are_dropped(
        flights in 0_usize..6,
        to in 0_usize..2,
        all in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..10),
        first in prop::sample::select(vec![0x40_u8, 0xc0, 0xc3, 0xd0, 0xe0, 0xf0]),
    ) {
        let mut ends = ends(flights);
        let now = Instant::from_millis(10);
        let before = ends[to].state();
        for mut bytes in all {
            ends[to].handle_packet(now, &datagram(bytes.clone()));
            // As a QUIC packet of version 1, as large as an Initial.
            if bytes.len() > 5 {
                bytes[..5].copy_from_slice(&[first, 0, 0, 0, 1]);
                bytes.resize(1300, 0);
                ends[to].handle_packet(now, &datagram(bytes));
            }
        }
        // A server with a first packet that has no meaning may have closed what it began.
        if before == State::Established {
            prop_assert_eq!(ends[to].state(), before);
        }
        drain(&mut ends[to], now);
    }

    #[test]
    fn cut_and_changed_datagrams_do_no_harm(
        flights in 0_usize..6,
        cut in 0_usize..1500,
        at in 0_usize..1500,
        xor in 1_u8..,
    ) {
        let mut ends = ends(flights);
        let now = Instant::from_millis(10);
        let from = flights % 2;
        let sent: Vec<_> = std::iter::from_fn(|| ends[from].poll_transmit(now)).collect();
        for original in &sent {
            let mut bytes = original.bytes.to_vec();
            ends[1 - from].handle_packet(now, &datagram(bytes[..cut.min(bytes.len())].to_vec()));
            let at = at % bytes.len();
            bytes[at] ^= xor;
            ends[1 - from].handle_packet(now, &datagram(bytes));
            // Back to its sender, and to a server that knows nothing of it.
            ends[from].handle_packet(now, original);
            let mut other: Endpoint<Length> = endpoint(Config::DEFAULT, 1, 9);
            other.listen().expect("new");
            other.handle_packet(now, original);
            drain(&mut other, now);
        }
        // The original still arrives.
        sent.iter().for_each(|original| ends[1 - from].handle_packet(now, original));
        for (number, flight) in (0..10).map(|n| (n, (from + 1 + n) % 2)) {
            exchange(&mut ends, flight, Instant::from_millis(20 + number as u64 * 30));
        }
        ends.iter_mut().for_each(|end| drain(end, Instant::from_secs(1)));
    }
}
