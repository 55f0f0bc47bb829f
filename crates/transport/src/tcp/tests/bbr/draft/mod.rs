//! Test cases of the appendix of draft-ietf-ccwg-bbr-06, each by its number, over the modelled path.

mod path;
mod probe_bw;
mod probe_rtt;
mod startup;
mod undo;

use super::{Fate, Link, PLAIN, Supply, TestPath};
use crate::tcp::congestion::bbr::V3Variables;
use crate::tcp::{BbrConfig, BbrState};
use hopline_core::{Duration, Instant};

const V3: BbrConfig = BbrConfig::V3;
/// Data bytes of a full segment, and its size on the link.
const MSS: u64 = 1448;
/// 40 Mb/s, 80 ms: a product of 267 segments, so that one loss is less than 2 % of a flight.
const LONG: Link =
    Link { bits_per_sec: 40_000_000, round_trip: Duration::from_millis(80), queue: 600, ..PLAIN };

/// State of a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Snapshot {
    at: Instant,
    in_flight: u64,
    var: V3Variables,
}

/// Rate at which data leave a link, bytes per second.
fn data_rate(link: Link) -> f64 {
    link.bits_per_sec as f64 / 8.0 * MSS as f64 / (MSS + super::HEADERS) as f64
}

/// BBRv3 without ProbeRTT for an hour, for cases that ProbeRTT would interrupt.
fn without_probe_rtt() -> BbrConfig {
    BbrConfig { probe_rtt_interval: Duration::from_secs(3600), ..V3 }
}

fn is_probe_bw(state: BbrState) -> bool {
    use BbrState::{ProbeBwCruise, ProbeBwDown, ProbeBwRefill, ProbeBwUp};
    matches!(state, ProbeBwDown | ProbeBwCruise | ProbeBwRefill | ProbeBwUp)
}

/// `true` if `value` is within `share` of `expected`.
fn is_near(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() <= share
}

impl TestPath {
    /// Creates an open connection, of which every acknowledgment is recorded, with this application.
    fn new_recorded(bbr: BbrConfig, link: Link, supply: Supply) -> Self {
        let mut path = Self::new_idle(bbr, link, 1);
        path.record = Some(Vec::new());
        path.set_supply(supply);
        path
    }

    fn set_supply(&mut self, supply: Supply) {
        self.supply = supply;
        self.supply_data();
    }

    /// Lets the application provide `bits_per_sec` from now on, two segments at a time.
    fn limit_application(&mut self, bits_per_sec: u64) {
        let bytes = 2 * MSS;
        let every = Duration::of_bits(8 * bytes, bits_per_sec);
        self.set_supply(Supply::Chunks { bytes, every, next: self.now });
    }

    fn look(&self) -> Snapshot {
        let rack = self.a.rack.as_ref().expect("RACK is in use");
        Snapshot {
            at: self.now,
            in_flight: rack.segments.in_flight(),
            var: self.a.control.bbr_v3_variables(),
        }
    }

    pub(super) fn record_ack(&mut self) {
        if self.record.is_some() {
            let snapshot = self.look();
            self.record.get_or_insert_default().push(snapshot);
        }
    }

    fn acks(&self) -> &[Snapshot] {
        self.record.as_deref().expect("acknowledgments are recorded")
    }

    /// Runs until `done`, which is asked after each acknowledgment and after each event, for at most `secs` seconds.
    /// Returns the state for which it was `true`.
    fn run_to(&mut self, secs: f64, awaited: &str, mut done: impl FnMut(&Snapshot) -> bool) -> Snapshot {
        let end = self.now + Duration::from_secs_f64(secs);
        while let Some(at) = self.next_at().filter(|&at| at <= end) {
            let known = self.acks().len();
            self.now = self.now.max(at);
            self.step();
            let fresh = self.acks()[known..].iter().copied().chain([self.look()]);
            if let Some(found) = fresh.into_iter().find(|snapshot| done(snapshot)) {
                return found;
            }
        }
        panic!("{awaited}: not within {secs} s; states {:?}, now {:?}", self.states, self.look());
    }

    fn run_to_state(&mut self, secs: f64, state: BbrState) -> Snapshot {
        self.run_to(secs, &format!("{state:?}"), |now| now.var.state == state)
    }

    /// Runs so many seconds. Returns the acknowledgments of that time.
    fn run_secs(&mut self, secs: f64) -> Vec<Snapshot> {
        let known = self.acks().len();
        let end = self.now.since(Instant::ZERO).as_secs_f64() + secs;
        self.run_until(end);
        self.acks()[known..].to_vec()
    }

    /// Goodput of so many seconds as a share of what the link carries.
    fn share_of_link(&mut self, secs: f64) -> f64 {
        let end = self.now.since(Instant::ZERO).as_secs_f64() + secs;
        self.goodput_until(end) / 8.0 / data_rate(self.link)
    }

    /// Determines the treatment of the next data packets.
    fn treat_next(&mut self, fates: impl IntoIterator<Item = Fate>) {
        self.fates = fates.into_iter().collect();
    }
}

/// Drops the last of each `every` data packets, of `total`.
fn drop_every(every: usize, total: usize) -> impl Iterator<Item = Fate> {
    (1..=total).map(move |i| if i.is_multiple_of(every) { Fate::Drop } else { Fate::Pass })
}
