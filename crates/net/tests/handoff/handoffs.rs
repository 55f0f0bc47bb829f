//! A host that changes its station again and again while something comes for it.

use crate::stream::Stream;
use crate::transfer::transfer;
use crate::world::{All, Radio, World, say, until};
use hopline_core::Duration as Span;
use hopline_net::handoff::Scheme;

const HANDOFFS: usize = 10;

/// The stream of a world in which a host changes its station so many times, and who did what.
fn walk(scheme: Scheme, radio: Radio) -> (World, All, Stream) {
    let world = World::new(radio);
    let mut all = world.all(scheme, Span::from_millis(400));
    // The first change is the first station.
    until("a first station", || !world.air.changes().is_empty());
    let stream = Stream::run(&world, || world.air.changes().len() > HANDOFFS);
    all.end();
    (world, all, stream)
}

pub(crate) fn nothing_is_lost_where_the_next_station_keeps_packets() {
    let mut medians = Vec::new();
    for scheme in [Scheme::Multicast, Scheme::Registration] {
        let (world, all, stream) = walk(scheme, Radio::IsTuned);
        let changes = world.air.changes();
        let median = stream.median_pause(&changes[1..]);
        say(&format!(
            "{scheme:?}: {HANDOFFS} handoffs, pause {median:.1} ms at the median, {} of {} lost, {} twice",
            stream.lost().len(),
            stream.sent,
            stream.duplicates(),
        ));
        say(&format!(
            "home {}\nmobile {}\nstations {}\n {}",
            all.home.show(),
            all.mobile.show(),
            all.stations[0].show(),
            all.stations[1].show()
        ));
        if scheme == Scheme::Multicast {
            assert_eq!(stream.lost(), Vec::<u32>::new(), "{}", all.mobile.show());
            assert!(all.of_stations("buffer_sent_packets") > 0);
        }
        medians.push(median);
    }
}

pub(crate) fn a_transfer_survives_many_handoffs() {
    for radio in [Radio::HearsAll, Radio::IsTuned] {
        for scheme in [Scheme::Multicast, Scheme::Registration] {
            let world = World::new(radio);
            let mut all = world.all(scheme, Span::from_secs(1));
            until("a first station", || !world.air.changes().is_empty());
            let transfer = transfer(&world, 4_000_000);
            let handoffs = world.air.changes().len() - 1;
            all.end();
            say(&format!(
                "{radio:?}, {scheme:?}: {:.2} Mb/s, {} segments again, {handoffs} handoffs",
                transfer.goodput_mbps, transfer.sent_again
            ));
            say(&format!(
                "home {}\nmobile {}\nstations {}\n {}",
                all.home.show(),
                all.mobile.show(),
                all.stations[0].show(),
                all.stations[1].show()
            ));
            assert!(handoffs >= 2, "{handoffs}");
        }
    }
}
