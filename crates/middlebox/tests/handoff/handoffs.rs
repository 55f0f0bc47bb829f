//! A host that changes its station again and again while something comes for it.

use crate::handoff::stream::Stream;
use crate::handoff::transfer::transfer;
use crate::handoff::world::{Deployment, Reception, World, print_uncaptured};
use hopline_core::Duration as Span;
use hopline_middlebox::handoff::Scheme;
use hopline_testkit::streams::until;
use std::thread;

const HANDOFFS: usize = 10;
const SCHEMES: [Scheme; 2] = [Scheme::Multicast, Scheme::Registration];

/// A stream to a host that changes its station so many times, and says how it was.
fn stream_over_handoffs(scheme: Scheme, radio: Reception) -> (Deployment, Stream) {
    let world = World::new(radio);
    let mut all = world.deployment(scheme, Span::from_millis(400));
    until("a first station", || world.air.station().is_some());
    let stream = Stream::run(&world, || world.air.changes().len() > HANDOFFS);
    all.end();
    let (lost, twice) = (stream.lost().len(), stream.duplicates());
    // The first change is the first station.
    let pause = stream.median_pause(&world.air.changes()[1..]);
    let of = stream.sent;
    print_uncaptured(&format!(
        "{radio:?}, {scheme:?}: {HANDOFFS} handoffs, pause {pause:.1} ms at the median, {lost} of {of} lost, {twice} twice"
    ));
    (all, stream)
}

/// A transfer to a host that changes its station every so often; how many times it did.
fn transfer_over_handoffs(scheme: Scheme, radio: Reception, every: Span, bytes: usize) -> usize {
    let world = World::new(radio);
    let mut all = world.deployment(scheme, every);
    until("a first station", || world.air.station().is_some());
    let transfer = transfer(&world, bytes);
    let handoffs = world.air.changes().len() - 1;
    all.end();
    let (goodput, again) = (transfer.goodput_mbps, transfer.retransmitted);
    print_uncaptured(&format!(
        "{radio:?}, {scheme:?}: {goodput:.2} Mb/s, {again} segments again, {handoffs} handoffs"
    ));
    handoffs
}

/// And is, where the host only registers its station.
pub(crate) fn no_packet_is_lost_if_the_next_station_buffers() {
    let [kept, registered] = thread::scope(|scope| {
        let walks = SCHEMES
            .map(|scheme| scope.spawn(move || stream_over_handoffs(scheme, Reception::CurrentStation)));
        walks.map(|walk| walk.join().unwrap())
    });
    let (all, stream) = kept;
    stream.assert_complete(&all.mobile.show());
    assert!(all.sum_of_stations("taken_over") > HANDOFFS as u64);
    // Each station keeps more than it has room for while the other one serves.
    assert!(all.sum_of_stations("buffer_overwritten_packets") > 0);
    let (all, stream) = registered;
    assert_eq!(all.sum_of_stations("buffer_overwritten_packets"), 0);
    // 50 ms are ten datagrams, each time.
    assert!(stream.lost().len() > HANDOFFS, "{:?}", stream.lost());
    assert!(all.home.metric("registrations") > HANDOFFS as u64);
}

pub(crate) fn a_transfer_survives_many_handoffs() {
    let handoffs = transfer_over_handoffs(
        Scheme::Multicast,
        Reception::CurrentStation,
        Span::from_millis(500),
        2_000_000,
    );
    assert!(handoffs >= 2, "{handoffs}");
}

/// Measures the figures of Linux in docs/protocols/handoff.md.
pub(crate) fn figures() {
    for radio in [Reception::CurrentStation, Reception::AllStations] {
        for scheme in SCHEMES {
            stream_over_handoffs(scheme, radio);
            transfer_over_handoffs(scheme, radio, Span::from_secs(1), 10_000_000);
        }
    }
}
