//! TCP-DOOR.

mod detect;
mod disabled;
mod options;
mod respond;

use super::script::{Script, mss_1000_sack, plain, segment};
use crate::tcp::{Config, DoorConfig, DoorStats};
use hopline_core::{Instant, Length};
use hopline_wire::tcp::{DoorFeatures, DoorOption, DoorReport, Options};

const ALL: DoorFeatures = DoorFeatures { adsn: true, tpsn: true, feedback: true };
const ADSN: DoorFeatures = DoorFeatures { adsn: true, tpsn: false, feedback: false };
const NOTHING: DoorFeatures = DoorFeatures { adsn: false, tpsn: false, feedback: false };

/// SACK, with 1000 data bytes beside the option.
fn with_door(door: DoorConfig) -> Config {
    Config { mss: 1008, ..plain().with_sack().with_door(Some(door)) }
}

/// Options of a peer that can do this.
fn peer(features: DoorFeatures) -> Options {
    let door = (features != NOTHING).then_some(DoorOption::Offer(features));
    Options { mss: Some(1008), door, ..mss_1000_sack() }
}

/// Connected actively at 100 ms after a round trip of 100 ms, to a peer that answers with these options.
fn connected(config: Config, options: Options) -> Script {
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.now = Instant::from_millis(100);
    s.receive(segment(0).syn().ack(1).options(options));
    s.transmits();
    s
}

/// The same with ten segments in flight: 1:1001 to 9001:10001.
fn in_flight(config: Config, features: DoorFeatures) -> Script {
    let mut s = connected(config, peer(features));
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    assert_eq!(s.endpoint.flight_size(), 10_000);
    s
}

/// Feedback and nothing else.
fn out_of_order() -> DoorReport {
    DoorReport { out_of_order: true, ..DoorReport::default() }
}

fn stats(s: &Script) -> DoorStats {
    s.endpoint.stats().door
}
